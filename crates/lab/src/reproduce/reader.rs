//! Typed reading of an experiment file: every key once, unknown ones refused with their line.
//!
//! The first problem ends the reading: an experiment is written by whoever adds a claim, not by users.

use crate::design::error::nearest;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Lists of texts, each with its name.
pub type NamedLists = Vec<(String, Vec<String>)>;

/// What is wrong with an experiment file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ExperimentError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

/// A file being read.
#[derive(Debug)]
pub(super) struct File<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl File<'_> {
    pub fn error(&self, span: &Range<usize>, problem: impl fmt::Display) -> ExperimentError {
        let end = span.start.min(self.text.len());
        let line = 1 + self.text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count();
        ExperimentError { file: self.name.to_string(), line, problem: problem.to_string() }
    }
}

/// A table of the file; what was asked for is remembered, so that the rest is unknown.
pub(super) struct Table<'a> {
    file: &'a File<'a>,
    table: &'a DeTable<'a>,
    /// For messages: `[run]`.
    name: String,
    span: Range<usize>,
    asked: RefCell<Vec<&'static str>>,
}

type Read<T> = Result<T, ExperimentError>;

impl<'a> Table<'a> {
    pub fn new(file: &'a File<'a>, table: &'a DeTable<'a>, name: &str, span: Range<usize>) -> Table<'a> {
        Table { file, table, name: name.to_string(), span, asked: RefCell::new(Vec::new()) }
    }

    pub fn error(&self, problem: impl fmt::Display) -> ExperimentError {
        self.file.error(&self.span, problem)
    }

    /// An error at the value of a key.
    pub fn wrong(&self, key: &'static str, problem: impl fmt::Display) -> ExperimentError {
        let span = self.get(key).map_or(self.span.clone(), Spanned::span);
        self.file.error(&span, format!("`{key}` {problem}"))
    }

    fn get(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        if !self.asked.borrow().contains(&key) {
            self.asked.borrow_mut().push(key);
        }
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    pub fn text(&self, key: &'static str) -> Read<Option<String>> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text.to_string())),
            Some(other) => Err(self.wrong(key, format!("is a text, not {}", other.type_str()))),
        }
    }

    pub fn needed(&self, key: &'static str) -> Read<String> {
        self.text(key)?.ok_or_else(|| self.error(format!("{} needs `{key}`", self.name)))
    }

    pub fn number(&self, key: &'static str) -> Read<Option<f64>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match number_of(value.get_ref()) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(key, "is a number")),
            },
        }
    }

    pub fn flag(&self, key: &'static str) -> Read<Option<bool>> {
        match self.get(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::Boolean(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(key, "is true or false")),
        }
    }

    /// Two numbers, the smaller one first.
    pub fn range(&self, key: &'static str) -> Read<Option<[f64; 2]>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let numbers: Option<Vec<f64>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| number_of(item.get_ref())).collect(),
            _ => None,
        };
        match numbers.as_deref() {
            Some(&[low, high]) if low <= high => Ok(Some([low, high])),
            _ => Err(self.wrong(key, "is two numbers, the smaller one first: [0.99, 1.06]")),
        }
    }

    pub fn texts(&self, key: &'static str) -> Read<Option<Vec<String>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        texts_of(value.get_ref()).map(Some).ok_or_else(|| self.wrong(key, "is a list of texts"))
    }

    /// A table whose keys are not known beforehand, its values texts.
    pub fn pairs(&self, key: &'static str) -> Read<Option<Vec<(String, String)>>> {
        self.free(key, "a table of texts", |value| value.as_str().map(str::to_string))
    }

    /// The same, its values lists of texts.
    pub fn lists(&self, key: &'static str) -> Read<Option<NamedLists>> {
        self.free(key, "a table of lists of texts", texts_of)
    }

    fn free<T>(
        &self,
        key: &'static str,
        what: &str,
        read: fn(&DeValue<'_>) -> Option<T>,
    ) -> Read<Option<Vec<(String, T)>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(key, format!("is {what}")));
        };
        let pairs = table.iter().map(|(name, value)| match read(value.get_ref()) {
            Some(read) => Ok((name.get_ref().to_string(), read)),
            None => Err(self.file.error(&value.span(), format!("`{key}` is {what}"))),
        });
        pairs.collect::<Read<Vec<_>>>().map(Some)
    }

    /// The points of a curve: `[["50/50", 4.0], ["10/90", 1.44]]`.
    pub fn points(&self, key: &'static str) -> Read<Vec<(String, f64)>> {
        let wrong = || self.wrong(key, "is a list of pairs of an axis value and a number: [[\"80%\", 4.0]]");
        let Some(DeValue::Array(items)) = self.get(key).map(Spanned::get_ref) else { return Err(wrong()) };
        let pair = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Array(pair) if pair.len() == 2 => {
                let text = pair[0].get_ref().as_str()?.to_string();
                Some((text, number_of(pair[1].get_ref())?))
            }
            _ => None,
        };
        items.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(wrong)
    }

    pub fn table(&self, key: &'static str) -> Read<Option<Table<'a>>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => {
                    Ok(Some(Table::new(self.file, table, &format!("[{key}]"), value.span())))
                }
                _ => Err(self.wrong(key, format!("is a table: [{key}]"))),
            },
        }
    }

    pub fn tables(&self, key: &'static str) -> Read<Vec<Table<'a>>> {
        let wrong = || self.wrong(key, format!("is a list of tables: [[{key}]]"));
        let items = match self.get(key).map(Spanned::get_ref) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(items)) => items,
            Some(_) => return Err(wrong()),
        };
        let table = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(table) => Ok(Table::new(self.file, table, &format!("[[{key}]]"), item.span())),
            _ => Err(wrong()),
        };
        items.iter().map(table).collect()
    }

    /// Refuses every key that nobody asked for.
    pub fn end(&self) -> Read<()> {
        let asked = self.asked.borrow();
        let Some((key, _)) = self.table.iter().find(|(key, _)| !asked.contains(&key.get_ref().as_ref()))
        else {
            return Ok(());
        };
        let name = key.get_ref();
        let hint = nearest(name, asked.iter().copied())
            .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let known = asked.join(", ");
        Err(self.file.error(&key.span(), format!("{} has no key `{name}`{hint} (known: {known})", self.name)))
    }
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn texts_of(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::Array(items) => {
            items.iter().map(|item| Some(item.get_ref().as_str()?.to_string())).collect()
        }
        _ => None,
    }
}
