//! Reading typed values out of layers: marks what was read, fills in defaults, remembers every origin, collects
//! every error.

use super::key::{self, Key, Keys, Preset};
use super::source::{Evidence, Layer, Leaf};
use crate::toml_reader::datum::{self, Datum, Shape};
use crate::toml_reader::{FileError, Place, SourceKind, Value};
use nvlab_units::quantity::Price;
use nvlab_units::suggest::nearest;
use nvlab_units::{Rate, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Where a resolved value comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The default of its key.
    Default,
    /// It is derived from other values; the text names them.
    Derived(&'static str),
    /// A text: a design file, a part or a `--set`.
    Text(Place, Option<Evidence>),
}

/// One value of a resolved design.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Its dotted path.
    pub path: String,
    /// Its value.
    pub value: Datum,
    /// Where it comes from.
    pub origin: Origin,
}

/// A design or part while it is being read.
pub struct Context {
    /// All keys.
    pub keys: Keys,
    /// The design's own values.
    pub top: Layer,
    /// The values of its parts, under `media.NAME`.
    pub parts: Layer,
    /// Problems so far.
    pub errors: Vec<FileError>,
    /// Values so far.
    pub resolved: Vec<Resolved>,
    /// Keys that were read.
    used: BTreeSet<String>,
    /// Tables whose kind or part is unknown, so that their keys cannot be checked.
    murky: BTreeSet<String>,
}

impl Context {
    /// A context for a layer.
    pub fn new(keys: Keys, top: Layer, errors: Vec<FileError>) -> Context {
        let (used, murky) = (BTreeSet::new(), BTreeSet::new());
        Context { keys, top, parts: Layer::default(), errors, resolved: Vec::new(), used, murky }
    }

    /// What is written at a path.
    pub fn leaf(&mut self, path: &str) -> Option<Leaf> {
        self.used.insert(path.to_string());
        self.top.leaves.get(path).or_else(|| self.parts.leaves.get(path)).cloned()
    }

    /// True if something is written at a path.
    pub fn has(&self, path: &str) -> bool {
        self.top.leaves.contains_key(path) || self.parts.leaves.contains_key(path)
    }

    /// True if there is a table, or something inside it.
    pub fn has_table(&self, table: &str) -> bool {
        let prefix = format!("{table}.");
        let inside = |layer: &Layer| {
            layer.tables.contains_key(table) || layer.leaves.keys().any(|path| path.starts_with(&prefix))
        };
        inside(&self.top) || inside(&self.parts)
    }

    /// The names under `[media]`.
    pub fn media_names(&self) -> BTreeSet<String> {
        let inside = self.top.leaves.keys().filter(|path| path.split('.').count() > 2);
        let names = inside.chain(self.top.tables.keys()).filter_map(|path| {
            let mut parts = path.split('.');
            (parts.next() == Some("media")).then(|| parts.next()).flatten()
        });
        names.map(str::to_string).collect()
    }

    /// Marks a table as unreadable: its keys are not reported as unknown.
    pub fn give_up_on(&mut self, table: &str) {
        self.murky.insert(table.to_string());
    }

    /// True if a table is marked as unreadable.
    pub fn gave_up_on(&self, table: &str) -> bool {
        self.murky.contains(table)
    }

    /// The place to point at for an error about a key: its value, else its table.
    pub fn place(&self, path: &str) -> Option<Place> {
        let leaf = self.top.leaves.get(path).or_else(|| self.parts.leaves.get(path));
        if let Some(leaf) = leaf {
            return Some(leaf.at.clone());
        }
        let mut table = key::parent(path);
        while !table.is_empty() {
            if let Some(place) = self.top.tables.get(table) {
                return Some(place.clone());
            }
            table = key::parent(table);
        }
        None
    }

    /// Reports a problem with the value at a path.
    pub fn wrong(&mut self, path: &str, problem: impl Into<String>, help: impl Into<String>) {
        let error = match self.place(path) {
            Some(place) => FileError::at(place, problem, ""),
            None => FileError::new(problem),
        };
        self.errors.push(error.help(help));
    }

    /// Records a value that is not read but derived from others.
    pub fn derive(&mut self, path: &str, value: Datum, from: &'static str) {
        self.resolved.push(Resolved { path: path.to_string(), value, origin: Origin::Derived(from) });
    }

    /// The value at a path, if it is written or has a default; an error if it is wrong or missing.
    pub fn get(&mut self, path: &str, kind: Option<&str>) -> Option<Datum> {
        let key = self.key(path, kind);
        let (value, origin) = match (self.leaf(path), key.preset) {
            (Some(leaf), _) => (leaf.value.clone(), Origin::Text(leaf.at, leaf.evidence)),
            (None, Preset::Is(text)) => (preset(text), Origin::Default),
            (None, Preset::Nothing(_)) => return None,
            (None, Preset::Required) => {
                self.missing(path, kind);
                return None;
            }
        };
        match datum::read(key.shape, &value) {
            Ok(value) => {
                self.resolved.push(Resolved { path: path.to_string(), value: value.clone(), origin });
                Some(value)
            }
            Err(wrong) => {
                if key::leaf(path) == "kind" {
                    self.give_up_on(key::parent(path));
                }
                self.wrong(path, format!("`{path}`: {}", wrong.problem), wrong.help);
                None
            }
        }
    }

    fn key(&self, path: &str, kind: Option<&str>) -> &'static Key {
        let key = self.keys.find(path, kind);
        key.unwrap_or_else(|| panic!("{path} of {kind:?} is not in the key table"))
    }

    /// Reports that a value must be set.
    pub fn missing(&mut self, path: &str, kind: Option<&str>) {
        let key = self.key(path, kind);
        if key::leaf(path) == "kind" {
            self.give_up_on(key::parent(path));
        }
        let table = key::parent(path);
        let place = if self.has_table(table) { String::new() } else { format!(" in a table [{table}]") };
        let help = format!("{} = {}{place} ({})", key::leaf(path), key.example, key.shape.allowed());
        let error = match self.place(path) {
            Some(place) => FileError::at(place, format!("`{path}` is missing"), "in this table"),
            None => FileError::new(format!("`{path}` is missing")),
        };
        self.errors.push(error.help(help).help(format!("nvlab explain {path}")));
    }

    /// A size; `None` if it is wrong or missing, which has been reported. The same holds for the getters below.
    pub fn size(&mut self, path: &str, kind: &str) -> Option<u64> {
        match self.get(path, Some(kind))? {
            Datum::Size(bytes) => Some(bytes),
            _ => None,
        }
    }
    /// A time.
    pub fn time(&mut self, path: &str, kind: &str) -> Option<Span> {
        match self.get(path, Some(kind))? {
            Datum::Time(span) => Some(span),
            _ => None,
        }
    }
    /// A share.
    pub fn share(&mut self, path: &str, kind: &str) -> Option<f64> {
        match self.get(path, Some(kind))? {
            Datum::Share(share) => Some(share),
            _ => None,
        }
    }
    /// A count that its key keeps within 32 bits.
    pub fn count(&mut self, path: &str, kind: &str) -> Option<u32> {
        match self.get(path, Some(kind))? {
            Datum::Count(count) => u32::try_from(count).ok(),
            _ => None,
        }
    }
    /// A rate.
    pub fn rate(&mut self, path: &str, kind: &str) -> Option<Rate> {
        match self.get(path, Some(kind))? {
            Datum::Rate(rate, _) => Some(rate),
            _ => None,
        }
    }
    /// A price.
    pub fn price(&mut self, path: &str, kind: &str) -> Option<Price> {
        match self.get(path, Some(kind))? {
            Datum::Price(price) => Some(price),
            _ => None,
        }
    }
    /// A text, or the name of a medium. Other names are read with [`Context::choice`], which returns their meanings.
    pub fn text(&mut self, path: &str, kind: &str) -> Option<String> {
        if let Some(Key { shape: Shape::OneOf(_), .. }) = self.keys.find(path, Some(kind)) {
            panic!("{path} takes one of some names: ask for what it stands for");
        }
        match self.get(path, Some(kind))? {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }
    /// The meaning of the name at a path. The `meanings` are those of the names that its key takes, in their order.
    pub fn choice<T: Copy>(&mut self, path: &str, kind: &str, meanings: &[(&str, T)]) -> Option<T> {
        self.named_choice(path, kind, meanings).map(|(_, meaning)| meaning)
    }
    /// The name at a path and its meaning.
    pub fn named_choice<'a, T: Copy>(
        &mut self,
        path: &str,
        kind: &str,
        meanings: &[(&'a str, T)],
    ) -> Option<(&'a str, T)> {
        let Some(Key { shape: Shape::OneOf(names), .. }) = self.keys.find(path, Some(kind)) else {
            panic!("{path} of {kind} does not take one of some names")
        };
        let taken: BTreeSet<&str> = names.iter().map(|(name, _)| *name).collect();
        let meant: BTreeSet<&str> = meanings.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            taken, meant,
            "{path} of {kind} takes the names on the left, those on the right mean something"
        );
        let Datum::Text(text) = self.get(path, Some(kind))? else { return None };
        meanings.iter().copied().find(|(name, _)| *name == text)
    }
    /// Yes or no.
    pub fn flag(&mut self, path: &str, kind: &str) -> Option<bool> {
        match self.get(path, Some(kind))? {
            Datum::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Reports every key and table of the design that was not read. If an error ended the reading early (`is_whole`
    /// is false), an existing key may merely not have been reached: it is reported only if the kind of its table
    /// excludes it.
    pub fn report_unused(&mut self, is_whole: bool) {
        let mut unknown_tables = BTreeSet::new();
        for (table, place) in &self.top.tables {
            let inside_unknown =
                unknown_tables.iter().any(|outer: &String| table.starts_with(&format!("{outer}.")));
            if inside_unknown || self.keys.is_table(table) {
                continue;
            }
            let known = ["design", "media", "array", "ftl", "power", "path"];
            let inner = self.keys.all().map(|key| key::parent(key.path)).filter(|table| !table.contains('*'));
            let near = nearest(table, known.into_iter().chain(inner));
            let error = FileError::at(place.clone(), format!("there is no table `{table}`"), "unknown table");
            self.errors.push(error.help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("tables: {}", known.join(", ")),
            }));
            unknown_tables.insert(table.clone());
        }
        let leaves: BTreeMap<String, Leaf> = self.top.leaves.clone();
        for (path, leaf) in leaves {
            let inside = |table: &String| path.starts_with(&format!("{table}."));
            let silent = unknown_tables.iter().any(inside) || self.murky.iter().any(inside);
            if !silent && !self.used.contains(&path) && (is_whole || !self.may_be_meant(&path)) {
                let error = self.unused(&path, &leaf);
                self.errors.push(error);
            }
        }
    }

    /// True if a key exists and the values read do not exclude it.
    fn may_be_meant(&self, path: &str) -> bool {
        if self.keys.is_table(path) || self.keys.find(path, None).is_none() {
            return false;
        }
        let table = key::parent(path);
        let own = format!("{table}.kind");
        // A table with its own kind depends on that kind alone, which was not read.
        let kind = match self.keys.find(&own, None) {
            Some(_) if !self.resolved.iter().any(|resolved| resolved.path == own) => return true,
            _ => self.kind_of(table),
        };
        let fits = |key: &Key| {
            key::matches(key.path, path)
                && (key.kinds.is_empty() || kind.as_deref().is_none_or(|kind| key.kinds.contains(&kind)))
        };
        self.keys.all().any(fits)
    }

    fn unused(&self, path: &str, leaf: &Leaf) -> FileError {
        let key_place = leaf.key.clone();
        if self.keys.is_table(path) {
            let inside: BTreeSet<&str> = self.keys.of_table(path).map(|key| key::leaf(key.path)).collect();
            let inside: Vec<&str> = inside.into_iter().collect();
            return FileError::at(key_place, format!("`{path}` is a table, not a value"), "a table").help(
                if inside.is_empty() {
                    "give it a name".into()
                } else {
                    format!("its keys: {}", inside.join(", "))
                },
            );
        }
        let table = key::parent(path);
        if let Some(key) = self.keys.find(path, None) {
            let kinds: BTreeSet<&str> = self
                .keys
                .all()
                .filter(|other| other.path == key.path)
                .flat_map(|key| key.kinds)
                .copied()
                .collect();
            let kinds: Vec<&str> = kinds.into_iter().collect();
            let kind = self.kind_of(table);
            let message = match &kind {
                Some(kind) => format!("`{path}` does not apply to kind = \"{kind}\""),
                None => format!("`{path}` does not apply here"),
            };
            return FileError::at(key_place, message, "does not apply").help(if kinds.is_empty() {
                format!("nvlab explain {}", key.path)
            } else {
                format!("it is for kind = \"{}\"", kinds.join("\" or \""))
            });
        }
        let siblings = || self.keys.of_table(table).map(|key| key::leaf(key.path));
        let error = FileError::at(key_place, format!("there is no key `{path}`"), "unknown key");
        if let Some(near) = nearest(key::leaf(path), siblings()) {
            let near = if table.is_empty() { near.to_string() } else { format!("{table}.{near}") };
            return error.help(format!("did you mean `{near}`?"));
        }
        let elsewhere = self.keys.all().map(|key| key.path).find(|other| key::leaf(other) == key::leaf(path));
        // The same key of a table that has another name: `controller.clean.kind`.
        let tail = path.find('.').map(|at| &path[at..]).filter(|tail| tail[1..].contains('.'));
        let renamed =
            self.keys.all().map(|key| key.path).find(|other| tail.is_some_and(|tail| other.ends_with(tail)));
        if let Some(near) =
            renamed.or_else(|| nearest(path, self.keys.all().map(|key| key.path))).or(elsewhere)
        {
            return error.help(format!("did you mean `{near}`?"));
        }
        let names: BTreeSet<&str> = siblings().collect();
        let names: Vec<&str> = names.into_iter().collect();
        error.help(format!("keys of this table: {}", names.join(", ")))
    }

    /// The kind of a table as resolved, or of the table around it.
    fn kind_of(&self, table: &str) -> Option<String> {
        let at = |table: &str| {
            let path = format!("{table}.kind");
            let found = self.resolved.iter().find(|resolved| resolved.path == path)?;
            match &found.value {
                Datum::Text(kind) => Some(kind.clone()),
                _ => None,
            }
        };
        at(table).or_else(|| at(key::parent(table)))
    }
}

/// A default as a value: the texts in the table are written without quotes.
fn preset(text: &str) -> Value {
    match text {
        "true" => Value::Flag(true),
        "false" => Value::Flag(false),
        text => Value::Text(text.to_string()),
    }
}

impl Origin {
    /// For people: `ssd.toml:12`, `default`, `--set`, `part tlc-2022, line 9 (assumed)`.
    pub fn text(&self) -> String {
        match self {
            Origin::Default => "default".into(),
            Origin::Derived(from) => format!("from {from}"),
            Origin::Text(place, evidence) => match place.source.kind {
                SourceKind::Set => format!("--set {}", place.source.text),
                SourceKind::File => format!("{}:{}", place.source.name, place.line()),
                SourceKind::Part => {
                    let from = format!("{}:{}", place.source.name, place.line());
                    match evidence {
                        Some(e) => format!("{from} ({}: {})", e.basis.name(), e.source),
                        None => from,
                    }
                }
            },
        }
    }
}
