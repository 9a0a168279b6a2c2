//! A table of a file that is read key by key; see the head of [`crate::toml_reader`].

use super::datum::{self, Datum, Shape};
use super::{Entry, FileError, Node, Place, Source, Value};
use nvlab_units::suggest::nearest;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Lists of texts, each with its name.
pub type NamedLists = Vec<(String, Vec<String>)>;
type Read<T> = Result<T, FileError>;

/// A table; it records the keys that were read, so that the others can be reported as unknown.
pub struct Table {
    entries: Vec<Entry>,
    /// For messages: `[run]`.
    name: String,
    at: Place,
    asked: RefCell<Vec<&'static str>>,
}

impl Table {
    /// The whole of a file; `name` names it in messages: "an experiment".
    pub fn root(source: &Arc<Source>, name: &str) -> Read<Table> {
        let mut errors = Vec::new();
        let entries = super::parse(source, &mut errors);
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(Table::new(&entries, name.to_string(), Place { source: source.clone(), span: 0..0 })),
        }
    }

    fn new(entries: &[Entry], name: String, at: Place) -> Table {
        Table { entries: entries.to_vec(), name, at, asked: RefCell::new(Vec::new()) }
    }

    /// An error at the table.
    pub fn error(&self, problem: impl fmt::Display) -> FileError {
        FileError::at(self.at.clone(), problem.to_string(), "")
    }

    /// An error at the value of a key: `problem` follows its name.
    pub fn wrong(&self, key: &'static str, problem: impl fmt::Display) -> FileError {
        let at = self.get(key).map_or(&self.at, |node| &node.at);
        FileError::at(at.clone(), format!("`{key}` {problem}"), "")
    }

    /// The value of a key, whatever it is.
    pub fn get(&self, key: &'static str) -> Option<&Node> {
        if !self.asked.borrow().contains(&key) {
            self.asked.borrow_mut().push(key);
        }
        self.entries.iter().find(|entry| entry.name == key).map(|entry| &entry.node)
    }

    /// The value of a key as `read` takes it; otherwise the key "is {what}".
    fn one<T>(&self, key: &'static str, what: &str, read: impl Fn(&Node) -> Option<T>) -> Read<Option<T>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        read(node).map(Some).ok_or_else(|| self.wrong(key, format!("is {what}")))
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Read<Option<String>> {
        self.one(key, "a text", |node| node.value.text().map(str::to_string))
    }

    /// A required text.
    pub fn needed(&self, key: &'static str) -> Read<String> {
        self.text(key)?.ok_or_else(|| self.error(format!("{} needs `{key}`", self.name)))
    }

    /// A plain number.
    pub fn number(&self, key: &'static str) -> Read<Option<f64>> {
        self.one(key, "a number", |node| number_of(&node.value))
    }

    /// True or false.
    pub fn flag(&self, key: &'static str) -> Read<Option<bool>> {
        self.one(key, "true or false", |node| match node.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        })
    }

    /// A quantity of any shape.
    pub fn datum(&self, key: &'static str, shape: Shape) -> Read<Option<Datum>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let datum = datum::read(shape, &node.value);
        datum.map(Some).map_err(|wrong| {
            FileError::at(node.at.clone(), format!("`{key}`: {}; {}", wrong.problem, wrong.help), "")
        })
    }

    /// Two numbers, the smaller one first.
    pub fn range(&self, key: &'static str) -> Read<Option<[f64; 2]>> {
        self.one(key, "two numbers, the smaller one first: [0.99, 1.06]", |node| {
            match node.value.items()? {
                [low, high] => match (number_of(&low.value)?, number_of(&high.value)?) {
                    (low, high) if low <= high => Some([low, high]),
                    _ => None,
                },
                _ => None,
            }
        })
    }

    /// A list of texts.
    pub fn texts(&self, key: &'static str) -> Read<Option<Vec<String>>> {
        self.one(key, "a list of texts", |node| texts_of(&node.value))
    }

    /// A table whose keys are not known beforehand, its values texts.
    pub fn pairs(&self, key: &'static str) -> Read<Option<Vec<(String, String)>>> {
        self.free(key, "a table of texts", |value| value.text().map(str::to_string))
    }

    /// The same, its values lists of texts.
    pub fn lists(&self, key: &'static str) -> Read<Option<NamedLists>> {
        self.free(key, "a table of lists of texts", texts_of)
    }

    fn free<T>(
        &self,
        key: &'static str,
        what: &str,
        read: fn(&Value) -> Option<T>,
    ) -> Read<Option<Vec<(String, T)>>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let Value::Table(entries) = &node.value else {
            return Err(self.wrong(key, format!("is {what}")));
        };
        let pairs = entries.iter().map(|entry| match read(&entry.node.value) {
            Some(read) => Ok((entry.name.clone(), read)),
            None => Err(FileError::at(entry.node.at.clone(), format!("`{key}` is {what}"), "")),
        });
        pairs.collect::<Read<Vec<_>>>().map(Some)
    }

    /// The points of a curve, which are required: `[["50/50", 4.0], ["10/90", 1.44]]`.
    pub fn points(&self, key: &'static str) -> Read<Vec<(String, f64)>> {
        let pair = |item: &Node| match item.value.items()? {
            [text, number] => Some((text.value.text()?.to_string(), number_of(&number.value)?)),
            _ => None,
        };
        let what = "a list of pairs of an axis value and a number: [[\"80%\", 4.0]]";
        let points = self.one(key, what, |node| node.value.items()?.iter().map(pair).collect())?;
        points.ok_or_else(|| self.wrong(key, format!("is {what}")))
    }

    /// A table inside this one.
    pub fn table(&self, key: &'static str) -> Read<Option<Table>> {
        let name = format!("[{key}]");
        self.one(key, &format!("a table: {name}"), |node| inner(node, &name))
    }

    /// A required table.
    pub fn needed_table(&self, key: &'static str) -> Read<Table> {
        self.table(key)?.ok_or_else(|| self.error(format!("{} needs [{key}]", self.name)))
    }

    /// The tables of an array of tables; none if the key is missing.
    pub fn tables(&self, key: &'static str) -> Read<Vec<Table>> {
        let name = format!("[[{key}]]");
        let tables = |node: &Node| node.value.items()?.iter().map(|item| inner(item, &name)).collect();
        self.one(key, &format!("a list of tables: {name}"), tables).map(Option::unwrap_or_default)
    }

    /// Refuses every key that was not read.
    pub fn end(&self) -> Read<()> {
        let asked = self.asked.borrow();
        let Some(entry) = self.entries.iter().find(|entry| !asked.contains(&entry.name.as_str())) else {
            return Ok(());
        };
        let name = &entry.name;
        let hint = nearest(name, asked.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let problem = format!("{} has no key `{name}`{hint} (known: {})", self.name, asked.join(", "));
        Err(FileError::at(entry.key.clone(), problem, ""))
    }
}

fn inner(node: &Node, name: &str) -> Option<Table> {
    match &node.value {
        Value::Table(entries) => Some(Table::new(entries, name.to_string(), node.at.clone())),
        _ => None,
    }
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.parse().ok(),
        _ => None,
    }
}

fn texts_of(value: &Value) -> Option<Vec<String>> {
    value.items()?.iter().map(|item| item.value.text().map(str::to_string)).collect()
}
