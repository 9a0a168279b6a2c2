//! Reading TOML files written by users: designs, datasheets, experiments. The meaning of keys is not defined here.
//!
//! 1. Every value and every key knows its [`Place`]; every problem is a [`FileError`] that names file and line.
//! 2. [`parse`] returns the readable parts of a broken file, so that a caller may report all problems at once.
//! 3. A key that is never read is an error that names the nearest known one.
//!
//! Two ways to read the tree of [`Entry`]s that [`parse`] returns:
//!
//! * [`Table`], for files whose tables nest (experiments): the first problem ends the reading.
//!   ```text
//!   let root = Table::root(&Arc::new(Source::file(name, text)), "a sweep")?;
//!   let sweep = root.needed_table("sweep")?;          // [sweep]
//!   let design = sweep.needed("design")?;             // a text that must be there
//!   let batch = sweep.datum("batch", Shape::Time)?;   // Option<Datum>: any quantity, with its range
//!   for axis in root.tables("axis")? {                // [[axis]]
//!       let values = axis.get("values");              // Option<&Node>, of any type: Node::items, Node::scalar
//!       axis.end()?;                                  // refuses every key that was not asked for
//!   }
//!   root.end()?;
//!   ```
//!   A getter returns `Ok(None)` for a missing key; [`Table::wrong`] is an error at the value of a key.
//! * `design::source`, for designs: flat dotted keys in layers, so that files, parts and `--set` overlay each other.
//!   Their values are read by the key table.
//!
//! Both turn a written [`Value`] into a typed [`datum::Datum`] by the [`datum::Shape`] its key asks for.

pub mod datum;
mod error;
mod table;

pub use error::FileError;
pub use table::Table;

use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// What kind of text a value was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A design, an experiment: a file or a built-in one.
    File,
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

impl Source {
    /// The text of a file.
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { kind: SourceKind::File, name: name.into(), text: text.into() }
    }
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

    /// The character of the line, counted from 1.
    pub fn column(&self) -> usize {
        let end = self.span.start.min(self.source.text.len());
        let line = self.source.text[..end].rfind('\n').map_or(0, |newline| newline + 1);
        1 + self.source.text[line..end].chars().count()
    }
}

/// A value as written, before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, the form of every quantity with a unit.
    Text(String),
    /// A bare number, as written.
    Number(String),
    /// `true` or `false`.
    Flag(bool),
    /// An array.
    List(Vec<Node>),
    /// A table, in the order of its keys.
    Table(Vec<Entry>),
    /// A value of a type that no key takes: its TOML name.
    Other(&'static str),
}

/// A value and where it is written.
#[derive(Clone, Debug)]
pub struct Node {
    /// What was written.
    pub value: Value,
    /// Where.
    pub at: Place,
}

/// Equal if the same was written, wherever.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub name: String,
    /// Where the key is written.
    pub key: Place,
    /// Its value.
    pub node: Node,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (&self.name, &self.node) == (&other.name, &other.node)
    }
}

impl Value {
    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
    /// A string, number or flag as `--set` takes it.
    pub fn scalar(&self) -> Option<String> {
        match self {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Flag(flag) => Some(flag.to_string()),
            Value::List(_) | Value::Table(_) | Value::Other(_) => None,
        }
    }
    /// The items of an array.
    pub fn items(&self) -> Option<&[Node]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }
    /// The value as shown in messages: `` `12` ``, "an array".
    pub fn written(&self) -> String {
        match self {
            Value::Text(text) | Value::Number(text) => format!("`{text}`"),
            Value::Flag(flag) => format!("`{flag}`"),
            Value::List(_) => "an array".into(),
            Value::Table(_) => "a TOML table".into(),
            Value::Other(kind) => format!("a TOML {kind}"),
        }
    }
}

/// Reads a whole file. Everything readable is kept even if there are errors.
pub fn parse(source: &Arc<Source>, errors: &mut Vec<FileError>) -> Vec<Entry> {
    let (root, problems) = DeTable::parse_recoverable(&source.text);
    for problem in problems {
        let message = format!("this is not TOML: {}", problem.message());
        let at = problem.span().map(|span| Place { source: source.clone(), span });
        errors.push(FileError { at, broken: true, ..FileError::new(message) });
    }
    entries(root.get_ref(), source)
}

/// Reads one value; `None` if the text of the source at `span` is not TOML.
pub(crate) fn parse_value(source: &Arc<Source>, span: Range<usize>) -> Option<Value> {
    let value = DeValue::parse(&source.text[span]).ok()?;
    Some(value_of(value.get_ref(), source))
}

fn entries(table: &DeTable<'_>, source: &Arc<Source>) -> Vec<Entry> {
    let place = |span| Place { source: source.clone(), span };
    let entry = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| Entry {
        name: key.get_ref().to_string(),
        key: place(key.span()),
        node: Node { value: value_of(value.get_ref(), source), at: place(value.span()) },
    };
    table.iter().map(entry).collect()
}

fn value_of(value: &DeValue<'_>, source: &Arc<Source>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Number(match number.radix() {
            10 => number.as_str().to_string(),
            // Hexadecimal and the like: as decimal, or as an impossible number that is refused later.
            radix => i128::from_str_radix(number.as_str(), radix).map_or("?".to_string(), |n| n.to_string()),
        }),
        DeValue::Float(number) => Value::Number(number.as_str().to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| Node {
                value: value_of(item.get_ref(), source),
                at: Place { source: source.clone(), span: item.span() },
            };
            Value::List(items.iter().map(node).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, source)),
        DeValue::Datetime(_) => Value::Other("datetime"),
    }
}
