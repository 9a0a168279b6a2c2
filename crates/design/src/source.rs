//! Sources of values: design files, parts and `--set` texts, read into flat tables of dotted keys with their places.
//!
//! 1. A leaf is a value that is not a table; its name is the path to it, `ftl.clean.kind`.
//! 2. Every leaf records its source and the bytes it stands at, so that any later error can point at it.
//! 3. A part writes its numbers as `{ value = ..., source = ..., basis = ... }`: that is one leaf, with its
//!    [`Evidence`].

use crate::toml_reader::{self, Entry, FileError, Place, Source, SourceKind, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The source of a number of a datasheet, and its reliability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Document and page.
    pub source: String,
    /// The relation of the number to that document.
    pub basis: Basis,
}

/// The relation of a number to its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Stated in the system's own paper, slides or datasheet.
    Stated,
    /// Stated in another public source.
    Cited,
    /// Derived from numbers that are stated or cited.
    Derived,
    /// From memory or by judgement; not checked.
    Assumed,
}

impl Basis {
    /// Every basis with its name.
    pub const ALL: [(&'static str, Basis); 4] = [
        ("stated", Basis::Stated),
        ("cited", Basis::Cited),
        ("derived", Basis::Derived),
        ("assumed", Basis::Assumed),
    ];
    /// Its name in a part file.
    pub fn name(self) -> &'static str {
        Basis::ALL.iter().find(|(_, basis)| *basis == self).map_or("assumed", |(name, _)| name)
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// What was written.
    pub value: Value,
    /// Where the value stands.
    pub at: Place,
    /// Where its key stands.
    pub key: Place,
    /// Where a part's number comes from.
    pub evidence: Option<Evidence>,
}

impl Leaf {
    /// The folder of the file it stands in; `None` if it stands in no file.
    pub fn folder(&self) -> Option<&Path> {
        match self.at.source.kind {
            SourceKind::File if !self.at.source.name.starts_with("builtin:") => {
                Path::new(&self.at.source.name).parent()
            }
            _ => None,
        }
    }
}

/// One source as flat keys.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// Dotted key to value.
    pub leaves: BTreeMap<String, Leaf>,
    /// Dotted name of every table to the place of its header.
    pub tables: BTreeMap<String, Place>,
}

/// Reads a whole file. Everything readable is kept even if there are errors.
pub fn read(source: &Arc<Source>, errors: &mut Vec<FileError>) -> Layer {
    let root = toml_reader::parse(source, errors);
    let mut reader = Reader { is_part: source.kind == SourceKind::Part, layer: Layer::default(), errors };
    reader.table(root, "");
    reader.layer
}

struct Reader<'a> {
    is_part: bool,
    layer: Layer,
    errors: &'a mut Vec<FileError>,
}

impl Reader<'_> {
    fn table(&mut self, entries: Vec<Entry>, prefix: &str) {
        for Entry { name, key, node } in entries {
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
                let error = FileError::at(key, format!("`{name}` cannot be a key"), "not a name");
                self.errors.push(error.help("a name has letters, digits, `-` and `_`"));
                continue;
            }
            let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match node.value {
                // In a part, a table with a `value` is one number with its evidence.
                Value::Table(inner) if self.is_part && inner.iter().any(|entry| entry.name == "value") => {
                    self.fact(inner, path, key);
                }
                Value::Table(inner) => {
                    self.table(inner, &path);
                    self.layer.tables.insert(path, node.at);
                }
                value => {
                    self.layer.leaves.insert(path, Leaf { value, at: node.at, key, evidence: None });
                }
            }
        }
    }

    fn fact(&mut self, entries: Vec<Entry>, path: String, key: Place) {
        for entry in &entries {
            if !["value", "source", "basis"].contains(&entry.name.as_str()) {
                let message = format!("`{path}` has no `{}`", entry.name);
                let error = FileError::at(entry.key.clone(), message, "unknown key");
                self.errors.push(error.help("value, source, basis"));
            }
        }
        let text = |wanted: &str| entries.iter().find(|entry| entry.name == wanted)?.node.value.text();
        let source = text("source").filter(|source| !source.trim().is_empty());
        let basis = Basis::ALL.iter().find(|(name, _)| Some(*name) == text("basis"));
        let evidence = match (source, basis) {
            (Some(source), Some((_, basis))) => Some(Evidence { source: source.to_string(), basis: *basis }),
            (source, _) => {
                let missing = if source.is_none() { "source" } else { "basis" };
                let error = FileError::at(key.clone(), format!("`{path}` has no {missing}"), "this number");
                self.errors.push(
                    error.help(
                        "source = where the number comes from; basis = stated, cited, derived or assumed",
                    ),
                );
                None
            }
        };
        if let Some(entry) = entries.into_iter().find(|entry| entry.name == "value") {
            let (value, at) = (entry.node.value, entry.node.at);
            self.layer.leaves.insert(path, Leaf { value, at, key, evidence });
        }
    }
}

/// Reads `KEY=VALUE` of a `--set`. The value is TOML if it can be read so, otherwise plain text:
/// `ftl.clean.kind=greedy` and `ftl.unit=4 KiB` need no quotes.
pub(crate) fn read_set(text: &str, errors: &mut Vec<FileError>) -> Option<(String, Leaf)> {
    let source =
        Arc::new(Source { kind: SourceKind::Set, name: "--set".to_string(), text: text.to_string() });
    let place = |span: std::ops::Range<usize>| Place { source: source.clone(), span };
    let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
        let error = FileError::at(place(0..text.len()), "a change is written KEY=VALUE", "not a change");
        errors.push(error.help("for example --set ftl.clean.kind=greedy"));
        return None;
    };
    let trimmed = |part: &str, from: usize| {
        let start = from + part.len() - part.trim_start().len();
        start..start + part.trim().len()
    };
    let (key_span, value_span) = (trimmed(key, 0), trimmed(value, key.len() + 1));
    let value = match toml_reader::parse_value(&source, value_span.clone()) {
        Some(value) if !matches!(value, Value::Table(_) | Value::Other(_)) => value,
        _ => Value::Text(text[value_span.clone()].to_string()),
    };
    let leaf = Leaf { value, at: place(value_span), key: place(key_span.clone()), evidence: None };
    Some((text[key_span].to_string(), leaf))
}
