//! Datasheets: the built-in part files, and those in the folder of a design.
//!
//! A part file has `name`, `about` and `kind`, and then the keys of `[media.NAME]`, every number as
//! `{ value = "100 ns", source = "eNVy Fig. 12", basis = "stated" }`.

use super::context::Context;
use super::error::DesignErrors;
use super::keys;
use super::library::Library;
use super::part::{self, Part};
use super::source::{self, Evidence, Layer, Leaf};
use crate::toml_reader::{FileError, Source, SourceKind, Value};
use nvlab_units::Span;
use nvlab_units::quantity::Price;
use std::path::Path;
use std::sync::Arc;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// Every built-in part: its name and its file.
        pub const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../parts/", $name, ".toml")))),*];
    };
}
built_in!(
    "battery-backed-dram",
    "cxl-dram",
    "disk-2010",
    "disk-7200",
    "dram",
    "envy-flash",
    "envy-flash-256",
    "envy-sram",
    "fusion-mlc",
    "fusion-slc",
    "intel-28f016sv",
    "mlc-2010",
    "mlc-k9g8g08u0m",
    "pcm-67-215",
    "pram-kps1215ezm",
    "qlc-2022",
    "qlc-2022-slc",
    "qlc-64l-fg",
    "qlc-9xl-vnand",
    "qlc-9xl-vnand-slc",
    "slc-2008",
    "slc-2010",
    "stt-mram",
    "tlc-2022",
    "tlc-2022-slc",
    "tlc-64l-fg",
    "tlc-9xl-vnand",
    "tlc-9xl-vnand-slc",
    "xpoint-2019",
);

/// Keys of a part file that carry no evidence: they name it.
const NAMES: [&str; 3] = ["name", "about", "kind"];

/// One number of a datasheet.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its key.
    pub key: String,
    /// Its value as written.
    pub value: String,
    /// Its source.
    pub evidence: Evidence,
}

/// A datasheet, read and checked.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Its name.
    pub name: String,
    /// What the part is, in one line.
    pub about: String,
    /// The part, typed.
    pub part: Part,
    /// Every number with its source, in the order of the key table.
    pub facts: Vec<Fact>,
}

const LIBRARY: Library =
    Library { what: "part", prefix: "parts/", suffix: ".toml", built_in: BUILT_IN, kind: SourceKind::Part };

/// The source of a part: a built-in name, or `./FILE.toml` relative to `beside`.
pub fn find(reference: &str, beside: Option<&Path>) -> Result<Arc<Source>, (String, String)> {
    match Library::is_file(reference) {
        true => LIBRARY.read(reference, beside).map_err(|problem| (problem, String::new())),
        false => {
            LIBRARY.built_in(reference).map_err(|help| (format!("there is no part `{reference}`"), help))
        }
    }
}

/// Reads a part file into the keys of `media.NAME`.
pub(super) fn layer(source: &Arc<Source>, medium: &str, errors: &mut Vec<FileError>) -> Layer {
    let mut layer = source::read(source, errors);
    let mut moved = Layer::default();
    for (path, leaf) in std::mem::take(&mut layer.leaves) {
        let plain = NAMES.contains(&path.as_str()) || matches!(leaf.value, Value::Flag(_));
        let name_of_kind = ["cell", "backup", "ecc.kind"].contains(&path.as_str());
        if !plain && !name_of_kind && leaf.evidence.is_none() && !reported(errors, &leaf) {
            let error =
                FileError::at(leaf.key.clone(), format!("`{path}` has no source"), "a number of a part");
            errors.push(
                error.help(format!("{path} = {{ value = ..., source = \"...\", basis = \"stated\" }}")),
            );
        }
        if path == "kind" || !NAMES.contains(&path.as_str()) {
            moved.leaves.insert(format!("media.{medium}.{path}"), leaf);
        }
    }
    for (path, place) in layer.tables {
        moved.tables.insert(format!("media.{medium}.{path}"), place);
    }
    moved
}

/// True if there is an error at this key already.
fn reported(errors: &[FileError], leaf: &Leaf) -> bool {
    let same = |error: &FileError| error.at.as_ref().is_some_and(|at| at.span == leaf.key.span);
    errors.iter().any(same)
}

impl Sheet {
    /// Reads and checks a part: a built-in name, or the path of a file.
    pub fn load(reference: &str) -> Result<Sheet, DesignErrors> {
        let source = find(reference, None).map_err(|(problem, help)| {
            let error = FileError::new(problem);
            DesignErrors(vec![if help.is_empty() { error } else { error.help(help) }])
        })?;
        Sheet::read(&source)
    }

    /// Reads and checks a part file.
    pub fn read(source: &Arc<Source>) -> Result<Sheet, DesignErrors> {
        let mut errors = Vec::new();
        let plain = source::read(source, &mut Vec::new());
        let text = |key: &str| match plain.leaves.get(key).map(|leaf| &leaf.value) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let (name, about) = (text("name"), text("about"));
        let layer = layer(source, "part", &mut errors);
        for (key, value) in [("name", &name), ("about", &about)] {
            if value.is_empty() {
                errors.push(FileError::new(format!("{}: `{key}` is missing", source.name)));
            }
        }
        let mut context = Context::new(keys::table(), layer, errors);
        let part = part::read(&mut context, "media.part");
        // Numbers for error correction wait for a design that turns it on.
        context.give_up_on("media.part.ecc");
        context.report_unused(part.is_some());
        match part {
            Some(part) if context.errors.is_empty() => {
                let facts = facts(&context.top);
                Ok(Sheet { name, about, part, facts })
            }
            _ => Err(DesignErrors(context.errors)),
        }
    }

    /// `nvlab parts show NAME`: every number with its source.
    pub fn show(&self) -> String {
        let mut text = format!("{} ({})\n{}\n\n", self.name, self.part.kind(), self.about);
        let width = |column: fn(&Fact) -> usize| self.facts.iter().map(column).max().unwrap_or(0);
        let (key, value) = (width(|fact| fact.key.len()), width(|fact| fact.value.chars().count()));
        for fact in &self.facts {
            let basis = fact.evidence.basis.name();
            let source = &fact.evidence.source;
            text += &format!("{:key$}  {:value$}  {basis:8} {source}\n", fact.key, fact.value);
        }
        text += "\nstated: in the system's own paper or datasheet; cited: in another public source; derived: follows \
                 from those;\nassumed: from memory or by judgement, not checked.\n";
        text
    }
}

fn facts(layer: &Layer) -> Vec<Fact> {
    let mut facts: Vec<(usize, Fact)> = Vec::new();
    for (path, leaf) in &layer.leaves {
        let Some(evidence) = leaf.evidence.clone() else { continue };
        let key = path.strip_prefix("media.part.").unwrap_or(path).to_string();
        let order = keys::all().position(|key| keys::matches(key.path, path)).unwrap_or(usize::MAX);
        facts.push((order, Fact { key, value: plain(&leaf.value), evidence }));
    }
    facts.sort_by_key(|(order, _)| *order);
    facts.into_iter().map(|(_, fact)| fact).collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::List(items) => items.iter().map(|item| plain(&item.value)).collect::<Vec<_>>().join(" / "),
        value => value.scalar().unwrap_or_else(|| value.written()),
    }
}

/// One row of `nvlab parts list`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// nand, nor, pcm, ram or disk; with the cell for NAND.
    pub kind: String,
    /// Capacity of one piece.
    pub bytes: u64,
    /// Reading: the fastest and the slowest kind of page.
    pub read: [Span; 2],
    /// Writing or programming.
    pub write: Span,
    /// Erasing, if there is such a thing.
    pub erase: Option<Span>,
    /// Rated cycles or writes; `None` if it does not wear.
    pub endurance: Option<u32>,
    /// Price by capacity, if known.
    pub price: Option<Price>,
    /// What it is.
    pub about: String,
}

/// The rows of `nvlab parts list`: every built-in part.
pub fn list() -> Vec<Row> {
    let sheets = BUILT_IN.iter().filter_map(|(name, _)| Sheet::load(name).ok());
    sheets.map(|sheet| row(&sheet)).collect()
}

fn row(sheet: &Sheet) -> Row {
    let ends = |spans: &[Span]| [spans[0], spans[spans.len() - 1]];
    let (read, write, erase, endurance) = match &sheet.part {
        Part::Nand(flash) | Part::Nor(flash) => {
            (ends(&flash.read), flash.program, Some(flash.erase), Some(flash.endurance))
        }
        Part::Pcm(pcm) => ([pcm.cells.read; 2], pcm.cells.write, None, Some(pcm.endurance)),
        Part::Ram(ram) => ([ram.cells.read; 2], ram.cells.write, None, None),
        Part::Disk(disk) => ([disk.seek; 2], disk.seek, None, None),
    };
    let kind = match &sheet.part {
        Part::Nand(flash) => format!("nand {}", flash.cell),
        part => part.kind().to_string(),
    };
    Row {
        name: sheet.name.clone(),
        kind,
        bytes: sheet.part.bytes(),
        read,
        write,
        erase,
        endurance,
        price: sheet.part.price(),
        about: sheet.about.clone(),
    }
}
