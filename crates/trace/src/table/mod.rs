//! Any text table as a trace, by the names of its columns: `columns=time_s,op,offset_bytes,length_bytes`.
//!
//! | column | what |
//! |---|---|
//! | `time_s`, `time_ms`, `time_us`, `time_ns`, `time_ps`, `time_100ns` | when, from any origin; decimals are allowed |
//! | `op` | words for reads, writes, trims and flushes: the usual ones, and those of `read=`, `write=`, `trim=`, `flush=` |
//! | `offset_bytes`, `offset_sectors`, `offset_4KiB` | the first byte, sector of 512 B, or block of any size |
//! | `length_bytes`, `length_sectors`, `length_4KiB` | how many |
//! | `volume`, `fua`, `response_s` ... | optional: text; 1, yes or true for a write with force unit access; time to the response |
//! | `-` | a column that is left aside, as are those behind the last one named |
//!
//! 1. Columns are divided by `separator=`; if that is not said, by what the first line has: tabs, commas, semicolons, bars, or
//!    blanks. A cell may be in double quotes. Lines that begin with `#` are left out.
//! 2. The first line is a header if `header=yes`, or if none of the cells in it that should be numbers begins like one.
//! 3. Without `columns=` the header, which may begin with `#`, names the columns ([`guess`]); what was made of it is in [`super::ReadReport`].

mod cells;
mod guess;
mod writer;

pub(crate) use cells::TextTable;
pub(crate) use guess::has_header;
pub(crate) use writer::TableWriter;

use crate::{Op, TraceError};
use cells::{Cells, Column, Role};
use nvlab_units::quantity;
use std::path::Path;

const SECTOR_BYTES: u64 = 512;
/// Picoseconds of the units of times.
const UNITS: [(&str, u64); 6] = [
    ("ps", 1),
    ("ns", 1_000),
    ("100ns", 100_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
const SEPARATORS: [(&str, u8); 5] =
    [("tab", b'\t'), ("comma", b','), ("semicolon", b';'), ("bar", b'|'), ("space", b' ')];
const ALLOWED: &str = "time_UNIT (s, ms, us, ns, ps, 100ns), op, offset_UNIT, length_UNIT (bytes, sectors, or a size such as 4KiB), \
                       volume, fua, response_UNIT, or - for a column to ignore";

/// What is said of a text table; all of it is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSpec {
    columns: Vec<Column>,
    separator: Option<u8>,
    has_header: Option<bool>,
    /// Words for an operation, besides the usual ones.
    words: Vec<(String, Op)>,
}

impl TableSpec {
    /// Reads the values of `columns=`, `separator=`, `header=`, and of `read=`, `write=`, `trim=` and `flush=`. The error is the
    /// key and what is allowed.
    pub fn parse<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<TableSpec, (&'static str, String)> {
        let columns = match value("columns") {
            None => Vec::new(),
            Some(names) => columns_of(names).map_err(|reason| ("columns", reason))?,
        };
        let separator = match value("separator") {
            None => None,
            Some(text) => Some(separator_of(text).ok_or_else(|| {
                let names = SEPARATORS.map(|(name, _)| name).join(", ");
                ("separator", format!("{names}, or one character"))
            })?),
        };
        let has_header = match value("header") {
            None => None,
            Some("yes") => Some(true),
            Some("no") => Some(false),
            Some(_) => return Err(("header", "yes or no".to_owned())),
        };
        let mut words: Vec<(String, Op)> = Vec::new();
        for op in Op::ALL {
            for word in value(op.name()).into_iter().flat_map(|words| words.split(',')) {
                if word.is_empty() || words.iter().any(|(known, _)| known.eq_ignore_ascii_case(word)) {
                    return Err((op.name(), "words separated by commas, each for one operation".to_owned()));
                }
                words.push((word.to_owned(), op));
            }
        }
        Ok(TableSpec { columns, separator, has_header, words })
    }

    /// The table whose first lines are `head`.
    pub(crate) fn of(&self, head: &[Vec<u8>], path: &Path) -> Result<TextTable, TraceError> {
        let refuse = |reason: String| TraceError::Table { file: path.display().to_string(), reason };
        let mut lines = guess::content(head);
        if !self.columns.is_empty() {
            lines.retain(|line| !guess::is_comment(line));
        }
        let Some(&first) = lines.first() else {
            return Err(TraceError::Empty {
                file: path.display().to_string(),
                lines: head.len() as u64,
                because: String::new(),
            });
        };
        let separator = self.separator.unwrap_or_else(|| guess::separator(first, self.columns.len()));
        let (columns, how) = match self.columns.as_slice() {
            [] if self.has_header == Some(false) => {
                let reason = "with header=no its columns have no names; give them: columns=...";
                return Err(refuse(reason.to_owned()));
            }
            [] => guess::columns(&lines, separator).map_err(refuse)?,
            said => (said.to_vec(), "as given"),
        };
        let is_header = || {
            let is_number = |role: Role| matches!(role, Role::Time(_) | Role::Offset(_) | Role::Length(_));
            let cells = Cells::new(first, separator).zip(&columns);
            let mut numbers = cells.filter(|(_, column)| is_number(column.role)).peekable();
            let begins_so = |byte: &u8| byte.is_ascii_digit() || b"+-.".contains(byte);
            numbers.peek().is_some() && numbers.all(|(cell, _)| !cell.first().is_some_and(begins_so))
        };
        // Columns that are not said were named by it.
        let has_header = self.columns.is_empty() || self.has_header.unwrap_or_else(is_header);
        let header = has_header.then(|| first.to_vec());
        Ok(TextTable::new(columns, separator, header, self.words.clone(), how))
    }
}

/// The columns by their names.
fn columns_of(names: &str) -> Result<Vec<Column>, String> {
    let mut columns: Vec<Column> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let role = role_of(name).ok_or_else(|| format!("'{name}' is not one of {ALLOWED}"))?;
        if role != Role::Aside
            && let Some(other) = columns.iter().find(|column| column.role.same(role))
        {
            return Err(format!("'{}' and '{name}' are the same column", other.name));
        }
        columns.push(Column { name: name.to_owned(), role });
    }
    match missing(&columns) {
        None => Ok(columns),
        Some(what) => {
            Err(format!("{what} is missing; needed are time_UNIT, op, offset_UNIT and length_UNIT"))
        }
    }
}

/// The column that a table cannot do without and does not have.
fn missing(columns: &[Column]) -> Option<&'static str> {
    let has = |role: Role| columns.iter().any(|column| column.role.same(role));
    let needed = [
        (Role::Time(1), "time_UNIT"),
        (Role::Op, "op"),
        (Role::Offset(1), "offset_UNIT"),
        (Role::Length(1), "length_UNIT"),
    ];
    needed.into_iter().find(|(role, _)| !has(*role)).map(|(_, name)| name)
}

/// The role of a column of this name.
fn role_of(name: &str) -> Option<Role> {
    match name {
        "-" => return Some(Role::Aside),
        "op" => return Some(Role::Op),
        "volume" => return Some(Role::Volume),
        "fua" => return Some(Role::Fua),
        _ => {}
    }
    let (kind, unit) = name.split_once('_')?;
    match kind {
        "time" => time_unit(unit).map(Role::Time),
        "response" => time_unit(unit).map(Role::Response),
        "offset" => size_unit(unit).map(Role::Offset),
        "length" => size_unit(unit).map(Role::Length),
        _ => None,
    }
}

fn time_unit(name: &str) -> Option<u64> {
    UNITS.iter().find(|(unit, _)| *unit == name).map(|(_, ps)| *ps)
}

fn size_unit(name: &str) -> Option<u64> {
    match name {
        "bytes" => Some(1),
        "sectors" => Some(SECTOR_BYTES),
        size => quantity::bytes(size).ok().filter(|bytes| (1..=1 << 30).contains(bytes)),
    }
}

fn separator_of(text: &str) -> Option<u8> {
    let named = SEPARATORS.iter().find(|(name, _)| *name == text).map(|(_, byte)| *byte);
    named.or(match text.as_bytes() {
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'"' => Some(*byte),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_have_units() {
        assert_eq!(role_of("time_100ns"), Some(Role::Time(100_000)));
        assert_eq!(role_of("offset_4KiB"), Some(Role::Offset(4096)));
        assert_eq!(role_of("length_sectors"), Some(Role::Length(512)));
        assert_eq!(role_of("response_ms"), Some(Role::Response(1_000_000_000)));
        for wrong in ["time", "offset", "time_min", "offset_4k", "length_0B", "size_bytes", ""] {
            assert_eq!(role_of(wrong), None, "{wrong}");
        }
        assert_eq!(separator_of(";"), Some(b';'));
        assert_eq!(separator_of("tab"), Some(b'\t'));
        assert_eq!(separator_of("ab"), None);
    }
}
