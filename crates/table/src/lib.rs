//! Tables of results, and how tables are written as Parquet.
//!
//! A [`Table`] has named columns of one length, in which values may be missing, and metadata. It becomes a Parquet file
//! ([`Table::parquet`]) and comes back from one ([`Table::load`]). Other tables are written by naming their columns and handing over
//! the cells of one column after the other ([`write()`]). Equal tables give equal bytes: a file holds no time and no machine.
//!
//! ```
//! use nvlab_table::{Column, Table, Values};
//! let table = Table {
//!     columns: vec![
//!         Column::new("design", Values::Texts(vec![Some("ssd-tlc".into()), Some("moneta".into())])),
//!         Column::new("waf", Values::Numbers(vec![Some(2.5), None])),
//!     ],
//!     metadata: vec![("nvlab.schema".into(), "example/1".into())],
//! };
//! let back = Table::of_bytes(table.parquet()?)?;
//! assert_eq!(back, table);
//! # Ok::<(), std::io::Error>(())
//! ```

mod read;
mod write;

pub use write::{Cells, Field, Kind, write};

use std::io;
use std::path::Path;

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its columns, all of one length.
    pub columns: Vec<Column>,
    /// Keys and what they say, in the order of the file.
    pub metadata: Vec<(String, String)>,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Unique in its table.
    pub name: String,
    /// True if a value may be missing, whether one is or not: readers put tables of many runs into one.
    pub may_miss: bool,
    /// One for each row.
    pub values: Values,
}

/// The values of a column; `None` is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// True or false.
    Flags(Vec<Option<bool>>),
    /// Whole numbers from 0 on.
    Counts(Vec<Option<u64>>),
    /// Real numbers.
    Numbers(Vec<Option<f64>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

impl Column {
    /// A column in which values may be missing.
    pub fn new(name: impl Into<String>, values: Values) -> Column {
        Column { name: name.into(), may_miss: true, values }
    }
}

impl Values {
    /// How many there are, missing ones included.
    pub fn len(&self) -> usize {
        match self {
            Values::Flags(values) => values.len(),
            Values::Counts(values) => values.len(),
            Values::Numbers(values) => values.len(),
            Values::Texts(values) => values.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The real number in a row; `None` if it is missing, or the column has other values.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Values::Numbers(values) => values[row],
            _ => None,
        }
    }

    /// The text in a row; `None` if it is missing, or the column has other values.
    pub fn text(&self, row: usize) -> Option<&str> {
        match self {
            Values::Texts(values) => values[row].as_deref(),
            _ => None,
        }
    }
}

impl Table {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The values of the column of this name.
    pub fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// What its metadata say under a key.
    pub fn says(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(known, _)| known == key).map(|(_, says)| says.as_str())
    }

    /// As a Parquet file: zstd, one row group.
    pub fn parquet(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let fields: Vec<Field> = self.columns.iter().map(Field::of).collect();
        let cells = |at: usize, rows| Cells::of(&self.columns[at].values, rows);
        write(&mut bytes, &fields, self.rows(), cells, &self.metadata)?;
        Ok(bytes)
    }

    /// Reads a file that [`Table::parquet`] made.
    pub fn load(path: &Path) -> io::Result<Table> {
        Table::of_bytes(std::fs::read(path)?)
    }

    /// Reads such a file from memory. Columns of other types than [`Values`] has are refused.
    pub fn of_bytes(bytes: Vec<u8>) -> io::Result<Table> {
        read::table(bytes.into())
    }
}

#[cfg(test)]
mod tests;
