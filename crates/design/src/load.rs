//! From a name or path to a [`Design`]: the design it extends, its parts, its `--set` changes.

use super::context::Context;
use super::error::DesignErrors;
use super::library::Library;
use super::source::{self, Layer};
use super::{Design, key, keys, layers, resolve, sheets};
use crate::toml_reader::{FileError, Source, SourceKind, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// Every built-in design: its name and its file.
        pub const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../designs/", $name, ".toml")))),*];
    };
}
built_in!(
    "870-qvo-4tb",
    "970-evo-plus-1tb",
    "970-evo-plus-250gb",
    "970-evo-plus-2tb",
    "970-evo-plus-500gb",
    "bench-16g",
    "bench-16g-8x4",
    "bench-4g",
    "bench-4g-8x4",
    "bench-scm",
    "cxl-ms-ssd",
    "d5-p4320",
    "ddr-scm",
    "disk-2010",
    "dramless-hmb-512gb",
    "envy",
    "envy-128m",
    "fusion-fast",
    "hftl",
    "hftl-fsms",
    "hot-cold",
    "hybrid-slc-mlc",
    "lbftl",
    "lbftl-fsms",
    "mlc-bast",
    "mlc-block",
    "mlc-fast",
    "moneta",
    "moneta-stt",
    "nvramdisk",
    "nvramdisk-lines",
    "optane-like",
    "p4500-1tb",
    "p4500-2tb",
    "p4500-4tb",
    "pcie-flash-2007",
    "qlc-16tb",
    "qlc-61tb",
    "qlc-pslc",
    "rvm-battery-ram",
    "rvm-disk",
    "rvm-flash",
    "rvm-flash-disk",
    "rvm-hybrid",
    "s3c2413",
    "sd-card-4gb",
    "ssd-mlc-2010",
    "ssd-qlc",
    "ssd-tlc",
    "tlc-pslc",
    "zns-ssd",
);

/// Designs that extend each other further than this are taken for a cycle.
const EXTENDS_MAX: usize = 8;

pub fn load(reference: &str, sets: &[String]) -> Result<Design, DesignErrors> {
    let source = find(reference, None).map_err(|(problem, help)| with_help(FileError::new(problem), help))?;
    read(source, sets)
}

pub fn parse(name: &str, text: &str, sets: &[String]) -> Result<Design, DesignErrors> {
    read(Arc::new(Source { kind: SourceKind::File, name: name.into(), text: text.into() }), sets)
}

fn with_help(error: FileError, help: String) -> FileError {
    if help.is_empty() { error } else { error.help(help) }
}

const LIBRARY: Library =
    Library { what: "design", prefix: "builtin:", suffix: "", built_in: BUILT_IN, kind: SourceKind::File };

/// The source of a design: a built-in name, or a file relative to `beside`. Otherwise an error message, and help.
fn find(reference: &str, beside: Option<&Path>) -> Result<Arc<Source>, (String, String)> {
    let plain = reference.strip_prefix("builtin:");
    if plain.is_none() && Library::is_file(reference) {
        return LIBRARY.read(reference, beside).map_err(|problem| (problem, String::new()));
    }
    let name = plain.unwrap_or(reference);
    LIBRARY.built_in(name).map_err(|near| {
        let help = format!("{near} (for a file, give the extension: {name}.toml)");
        (format!("there is no built-in design `{name}`"), help)
    })
}

fn read(source: Arc<Source>, sets: &[String]) -> Result<Design, DesignErrors> {
    let mut errors = Vec::new();
    let mut top = read_layers(&source, 0, &mut errors);
    for set in sets {
        if let Some((path, leaf)) = source::read_set(set, &mut errors) {
            let mut layer = Layer::default();
            layer.leaves.insert(with_table(path), leaf);
            layers::lay(&mut top, layer);
        }
    }
    if errors.iter().any(|error| error.broken) {
        // Half a file would only give misleading errors.
        return Err(DesignErrors(sorted(errors)));
    }
    let mut context = Context::new(keys::table(), top, errors);
    load_parts(&mut context);
    let design = resolve::resolve(&mut context, &stem(&source.name));
    context.report_unused(design.is_some());
    if let (Some(design), true) = (&design, context.errors.is_empty())
        && let Err(problem) = design.check_controller()
    {
        context.wrong("ftl.kind", format!("invalid controller: {problem}"), "nvlab explain ftl");
    }
    match design {
        Some(mut design) if context.errors.is_empty() => {
            // A medium that the controller does not use (an inherited one, for example) is checked, but is not part
            // of the device.
            let unused: Vec<String> =
                design.media.keys().filter(|name| !design.uses(name)).cloned().collect();
            if let Some(error) = set_in_vain(&context.top, &unused) {
                return Err(error.into());
            }
            design.media.retain(|name, _| !unused.contains(name));
            context.resolved.retain(|resolved| {
                match resolved.path.split('.').collect::<Vec<_>>().as_slice() {
                    ["media", name, ..] => design.uses(name),
                    _ => true,
                }
            });
            context.resolved.sort_by_cached_key(|resolved| order(&resolved.path));
            design.resolved = context.resolved;
            Ok(design)
        }
        _ => Err(DesignErrors(sorted(context.errors))),
    }
}

/// The path of a key that a change names without its table, as `op=25%`: that of the controller, if it has such a key.
fn with_table(path: String) -> String {
    let of_controller = format!("ftl.{path}");
    match path != "schema" && keys::table().find(&of_controller, None).is_some() {
        true => of_controller,
        false => path,
    }
}

/// A value the user set that is overridden, or belongs to a medium that is not part of the device.
fn set_in_vain(top: &Layer, unused: &[String]) -> Option<FileError> {
    top.leaves.iter().filter(|(_, leaf)| leaf.at.source.kind == SourceKind::Set).find_map(|(path, leaf)| {
        if path == "design.extends" {
            let error = FileError::at(leaf.key.clone(), format!("`{path}` has no effect here"), "too late");
            return Some(error.help("use the other design directly, or write a file that extends it"));
        }
        let name = unused.iter().find(|name| path.starts_with(&format!("media.{name}.")))?;
        let error = FileError::at(leaf.key.clone(), format!("`{path}` has no effect"), "not used");
        Some(error.help(format!("this design does not use the medium `{name}`")))
    })
}

/// The order in which a design is written: about itself, its media one after the other, its controller; the keys of a
/// table together.
fn order(path: &str) -> (u8, String, usize, usize) {
    let at = |fits: &dyn Fn(&str) -> bool| keys::all().position(|key| fits(key.path)).unwrap_or(usize::MAX);
    let table = at(&|key| key::matches(key::parent(key), key::parent(path)));
    let key = at(&|key| key::matches(key, path));
    match path.split('.').collect::<Vec<_>>().as_slice() {
        ["schema" | "design", ..] => (0, String::new(), 0, key),
        ["media", name, ..] => (1, name.to_string(), table, key),
        _ => (2, String::new(), table, key),
    }
}

/// In the order of their places, those without a place last.
fn sorted(mut errors: Vec<FileError>) -> Vec<FileError> {
    errors.sort_by_key(|error| match &error.at {
        Some(place) => (0, place.source.name.clone(), place.span.start),
        None => (1, String::new(), 0),
    });
    if errors.is_empty() {
        errors.push(FileError::new("the design cannot be resolved (this is a bug in nvlab)"));
    }
    errors
}

/// `designs/ssd.toml` and `builtin:ssd` are both called `ssd`.
fn stem(name: &str) -> String {
    let name = name.strip_prefix("builtin:").unwrap_or(name);
    Path::new(name).file_stem().map_or_else(|| name.to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// Overlays a design on the one it extends.
fn read_layers(source: &Arc<Source>, depth: usize, errors: &mut Vec<FileError>) -> Layer {
    let layer = source::read(source, errors);
    let extends = layer.leaves.get("design.extends").cloned();
    let Some((leaf, Value::Text(reference))) = extends.map(|leaf| (leaf.clone(), leaf.value)) else {
        return layer;
    };
    if depth >= EXTENDS_MAX {
        let error = FileError::at(leaf.at, "designs extend each other in a circle", "too deep");
        errors.push(error.help(format!("a chain of `extends` may have at most {EXTENDS_MAX} designs")));
        return layer;
    }
    match find(&reference, leaf.folder()) {
        Err((problem, help)) => {
            errors.push(with_help(FileError::at(leaf.at, problem, ""), help));
            layer
        }
        Ok(below) => {
            let mut lower = read_layers(&below, depth + 1, errors);
            // These describe the extended design, not this one.
            for own in ["design.name", "design.about", "design.cite", "design.extends"] {
                lower.leaves.remove(own);
            }
            layers::lay(&mut lower, layer);
            lower
        }
    }
}

/// Reads the part of every medium that names one.
fn load_parts(context: &mut Context) {
    let names: BTreeSet<String> = context.media_names();
    for name in names {
        let path = format!("media.{name}.part");
        let Some(leaf) = context.top.leaves.get(&path).cloned() else { continue };
        let Value::Text(reference) = &leaf.value else { continue };
        let source = match sheets::find(reference, leaf.folder()) {
            Ok(source) => source,
            Err((problem, help)) => {
                context.give_up_on(&format!("media.{name}"));
                context.errors.push(with_help(FileError::at(leaf.at, problem, ""), help));
                continue;
            }
        };
        let mut errors = Vec::new();
        let mut part = sheets::layer(&source, &name, &mut errors);
        if !errors.is_empty() {
            context.give_up_on(&format!("media.{name}"));
        }
        context.errors.extend(errors);
        check_kind(context, &name, &part);
        // A value of the design replaces its rivals in the part.
        let own: Vec<String> = context.top.leaves.keys().cloned().collect();
        for rival in own.iter().flat_map(|path| key::rivals(path)) {
            part.leaves.remove(&rival);
        }
        // Correction is off unless a design turns it on; a part only states its numbers.
        context.parts.leaves.extend(part.leaves);
    }
}

/// A `kind` beside a `part` must be the part's.
fn check_kind(context: &mut Context, name: &str, part: &Layer) {
    let path = format!("media.{name}.kind");
    let of_part = part.leaves.get(&path).map(|leaf| &leaf.value);
    let Some(own) = context.top.leaves.get(&path) else { return };
    if of_part != Some(&own.value) {
        let kind = match of_part {
            Some(Value::Text(kind)) => format!("the part is of kind \"{kind}\""),
            _ => "the part is of another kind".to_string(),
        };
        let error = FileError::at(own.at.clone(), format!("`{path}` contradicts its part"), "");
        context.errors.push(error.help(format!("{kind}; leave out `kind`")));
        context.give_up_on(&format!("media.{name}"));
    }
}
