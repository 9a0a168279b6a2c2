//! Where values come from: design files, parts and `--set` texts, read into flat tables of dotted keys that
//! remember their place.
//!
//! 1. A leaf is a value that is not a table; its name is the path to it, `ftl.clean.kind`.
//! 2. Every leaf knows its source and the bytes it stands at, so that any later error can point at it.
//! 3. A part writes its numbers as `{ value = ..., source = ..., basis = ... }`: that is one leaf, with its
//!    [`Evidence`].

use super::error::DesignError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What kind of text a value was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A design file or a built-in design.
    Design,
    /// A datasheet.
    Part,
    /// A `--set` on the command line.
    Set,
}

/// A text that values are read from.
#[derive(Debug)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Its path, `builtin:NAME`, or `--set`.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// A place in a source.
#[derive(Clone, Debug)]
pub struct Place {
    /// The source.
    pub source: Arc<Source>,
    /// Bytes of its text.
    pub span: Range<usize>,
}

impl Place {
    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        let end = self.span.start.min(self.source.text.len());
        1 + self.source.text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count()
    }
}

/// Where a number of a datasheet comes from, and how sure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Document and page.
    pub source: String,
    /// How the number stands to that document.
    pub basis: Basis,
}

/// How a number stands to its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It stands in the system's own paper, slides or datasheet.
    Stated,
    /// It stands in another public source.
    Cited,
    /// It follows from numbers that are stated or cited.
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

/// A value as it was written, before anybody knows what it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, the form of every quantity with a unit.
    Text(String),
    /// A bare number, as written.
    Number(String),
    /// `true` or `false`.
    Flag(bool),
    /// An array.
    List(Vec<Value>),
    /// Something no key takes: its TOML name.
    Other(&'static str),
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

/// One source as flat keys.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// Dotted key to value.
    pub leaves: BTreeMap<String, Leaf>,
    /// Dotted name of every table to the place of its header.
    pub tables: BTreeMap<String, Place>,
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Number(match number.radix() {
            10 => number.as_str().to_string(),
            // Hexadecimal and the like: as decimal, or as an impossible number that is refused later.
            radix => i128::from_str_radix(number.as_str(), radix).map_or("?".to_string(), |n| n.to_string()),
        }),
        DeValue::Float(number) => Value::Number(number.as_str().to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(items) => Value::List(items.iter().map(|item| value_of(item.get_ref())).collect()),
        other => Value::Other(other.type_str()),
    }
}

/// Reads a whole file. Everything readable is kept even if there are errors.
pub fn read(source: &Arc<Source>, errors: &mut Vec<DesignError>) -> Layer {
    let (root, problems) = DeTable::parse_recoverable(&source.text);
    for problem in problems {
        let message = format!("this is not TOML: {}", problem.message());
        let at = problem.span().map(|span| Place { source: source.clone(), span });
        errors.push(DesignError { at, broken: true, ..DesignError::new(message) });
    }
    let mut reader = Reader { source, layer: Layer::default(), errors };
    reader.table(root.get_ref(), "");
    reader.layer
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    layer: Layer,
    errors: &'a mut Vec<DesignError>,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        Place { source: self.source.clone(), span }
    }

    fn table(&mut self, table: &DeTable<'_>, prefix: &str) {
        for (key, value) in table {
            let name = key.get_ref();
            let at_key = self.place(key.span());
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) {
                let error = DesignError::at(at_key, format!("`{name}` cannot be a key"), "not a name");
                self.errors.push(error.help("a name has letters, digits, `-` and `_`"));
                continue;
            }
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            match value.get_ref() {
                DeValue::Table(inner) if self.is_fact(inner) => self.fact(inner, path, at_key),
                DeValue::Table(inner) => {
                    let at = self.place(value.span());
                    self.table(inner, &path);
                    self.layer.tables.insert(path, at);
                }
                inner => {
                    let at = self.place(value.span());
                    let leaf = Leaf { value: value_of(inner), at, key: at_key, evidence: None };
                    self.layer.leaves.insert(path, leaf);
                }
            }
        }
    }

    /// In a part, a table with a `value` is one number with its evidence.
    fn is_fact(&self, table: &DeTable<'_>) -> bool {
        self.source.kind == SourceKind::Part && table.iter().any(|(key, _)| key.get_ref() == "value")
    }

    fn fact(&mut self, table: &DeTable<'_>, path: String, key: Place) {
        let find =
            |wanted: &str| table.iter().find(|(key, _)| key.get_ref() == wanted).map(|(_, value)| value);
        for (name, _) in table {
            if !["value", "source", "basis"].contains(&name.get_ref().as_ref()) {
                let at = self.place(name.span());
                let message = format!("`{path}` has no `{}`", name.get_ref());
                self.errors.push(DesignError::at(at, message, "unknown key").help("value, source, basis"));
            }
        }
        let text = |value: Option<&Spanned<DeValue<'_>>>| {
            value.and_then(|value| value.get_ref().as_str()).map(str::to_string)
        };
        let source = text(find("source")).filter(|source| !source.trim().is_empty());
        let basis = text(find("basis")).unwrap_or_default();
        let basis = Basis::ALL.iter().find(|(name, _)| *name == basis).map(|(_, basis)| *basis);
        let evidence = match (source, basis) {
            (Some(source), Some(basis)) => Some(Evidence { source, basis }),
            (source, _) => {
                let missing = if source.is_none() { "source" } else { "basis" };
                let error = DesignError::at(key.clone(), format!("`{path}` has no {missing}"), "this number");
                self.errors.push(
                    error.help(
                        "source = where the number comes from; basis = stated, cited, derived or assumed",
                    ),
                );
                None
            }
        };
        if let Some(value) = find("value") {
            let at = self.place(value.span());
            self.layer.leaves.insert(path, Leaf { value: value_of(value.get_ref()), at, key, evidence });
        }
    }
}

/// Reads `KEY=VALUE` of a `--set`. The value is TOML if it can be read so, otherwise plain text:
/// `ftl.clean.kind=greedy` and `ftl.unit=4 KiB` need no quotes.
pub fn read_set(text: &str, errors: &mut Vec<DesignError>) -> Option<(String, Leaf)> {
    let source =
        Arc::new(Source { kind: SourceKind::Set, name: "--set".to_string(), text: text.to_string() });
    let place = |span: Range<usize>| Place { source: source.clone(), span };
    let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty()) else {
        let error = DesignError::at(place(0..text.len()), "a change is written KEY=VALUE", "not a change");
        errors.push(error.help("for example --set ftl.clean.kind=greedy"));
        return None;
    };
    let trimmed = |part: &str, from: usize| {
        let start = from + part.len() - part.trim_start().len();
        start..start + part.trim().len()
    };
    let (key_span, value_span) = (trimmed(key, 0), trimmed(value, key.len() + 1));
    let written = &text[value_span.clone()];
    let parsed = match DeValue::parse(written) {
        Ok(value) if !matches!(value.get_ref(), DeValue::Datetime(_) | DeValue::Table(_)) => {
            value_of(value.get_ref())
        }
        _ => Value::Text(written.to_string()),
    };
    let leaf = Leaf { value: parsed, at: place(value_span), key: place(key_span.clone()), evidence: None };
    Some((text[key_span].to_string(), leaf))
}
