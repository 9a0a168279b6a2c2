//! The values of a column, whatever type the writer chose.

use std::borrow::Cow;

pub use parquet::data_type::ByteArray as Text;

/// A column of a Parquet table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableField {
    /// Its name at the root of the schema.
    pub name: String,
    /// What its type says before its values are read.
    pub kind: FieldKind,
}

/// What matters of a column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// FLOAT or DOUBLE.
    Real,
    /// Timestamps, in units of this many picoseconds.
    Timestamp(u64),
    /// Any other type: its values say what it is.
    Other,
}

/// The values of a column in some rows.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Integers that may be negative.
    Signed(Vec<i64>),
    /// Integers from 0 on.
    Unsigned(Vec<u64>),
    /// Floating-point numbers.
    Real(Vec<f64>),
    /// Booleans.
    Flags(Vec<bool>),
    /// Strings of bytes, usually UTF-8.
    Texts(Vec<Text>),
    /// This row has no value, and the batch cannot be used.
    Missing(usize),
    /// They are of a type of this name, which no part of a request has.
    Other(String),
}

/// The values of each column in a batch of rows, or why there are none.
pub type Batch = Result<Vec<Cells>, String>;

/// A value that cannot be used.
#[derive(Debug)]
pub(super) struct Problem {
    /// Its row in the batch.
    pub row: usize,
    pub found: String,
    pub allowed: String,
}

type Values<T> = Result<Vec<T>, Problem>;

const WHOLE: &str = "a number from 0 to 18446744073709551615 in its base unit";

impl Cells {
    fn problem<T>(&self, allowed: &str) -> Values<T> {
        let problem = |row: usize, found: &str, allowed: &str| {
            Err(Problem { row, found: found.to_owned(), allowed: allowed.to_owned() })
        };
        match self {
            Cells::Missing(row) => problem(*row, "null", "a value in every row"),
            Cells::Other(name) => problem(0, name, allowed),
            Cells::Signed(_) | Cells::Unsigned(_) => problem(0, "whole numbers", allowed),
            Cells::Real(_) => problem(0, "real numbers", allowed),
            Cells::Flags(_) => problem(0, "true and false", allowed),
            Cells::Texts(_) => problem(0, "texts", allowed),
        }
    }

    /// Numbers of a unit that is worth `unit`, in ticks that are worth `tick`.
    pub(super) fn whole(&self, unit: u64, tick: u64) -> Values<u64> {
        let real = |value: f64| {
            let ticks = (value * (unit as f64 / tick as f64)).round();
            (ticks >= 0.0 && ticks < u64::MAX as f64).then_some(ticks as u64)
        };
        match self {
            Cells::Signed(values) => each(values, |value| scaled(u64::try_from(value).ok()?, unit, tick)),
            Cells::Unsigned(values) => each(values, |value| scaled(value, unit, tick)),
            Cells::Real(values) => each(values, real),
            other => other.problem("a numeric column"),
        }
    }

    /// Texts, or whole numbers as texts.
    pub(super) fn texts(&self) -> Values<Cow<'_, [u8]>> {
        let digits = |number: String| Cow::Owned(number.into_bytes());
        Ok(match self {
            Cells::Texts(texts) => texts.iter().map(|text| Cow::Borrowed(text.data())).collect(),
            Cells::Signed(_) | Cells::Unsigned(_) => {
                self.whole(1, 1)?.into_iter().map(|number| digits(number.to_string())).collect()
            }
            other => return other.problem("a text column"),
        })
    }

    /// True or false.
    pub(super) fn flags(&self) -> Values<bool> {
        match self {
            Cells::Flags(flags) => Ok(flags.clone()),
            other => other.problem("a Boolean column"),
        }
    }
}

fn each<T: Copy + std::fmt::Debug>(values: &[T], of: impl Fn(T) -> Option<u64>) -> Values<u64> {
    let value = |(row, value): (usize, &T)| {
        of(*value).ok_or_else(|| Problem { row, found: format!("{value:?}"), allowed: WHOLE.to_owned() })
    };
    values.iter().enumerate().map(value).collect()
}

/// Where a unit is a tick nothing is multiplied, so that large absolute times do not overflow.
fn scaled(value: u64, unit: u64, tick: u64) -> Option<u64> {
    if unit == tick { Some(value) } else { value.checked_mul(unit).map(|value| value / tick) }
}
