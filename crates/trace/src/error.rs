//! The error type of this crate: what was wrong with a trace, and where.

use std::borrow::Cow;
use std::path::PathBuf;

/// Why a trace could not be read or written. The message names the place and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no such trace or volume, or the requests are none of a trace.
    #[error("{what}: {reason}")]
    Refused {
        /// The trace.
        what: String,
        /// What is wrong, and what there is.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system or the decompressor.
        source: std::io::Error,
    },
    /// One line is wrong.
    #[error("{file}:{line}: {column} '{found}' is wrong: {allowed}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: Cow<'static, str>,
        /// The text found there.
        found: String,
        /// What is allowed there.
        allowed: String,
    },
    /// One row of a table is wrong.
    #[error("{file}: row {row}: {column} '{found}' is wrong: {allowed}")]
    Row {
        /// The file.
        file: String,
        /// The row, from 1.
        row: u64,
        /// The column.
        column: String,
        /// The value found there.
        found: String,
        /// What is allowed there.
        allowed: String,
    },
    /// A table does not have the columns of a trace, or cannot be read.
    #[error("{file}: {reason}")]
    Table {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The format is unknown or ambiguous.
    #[error("{file}: {reason}; add one of {formats} after the name, as in '{file}:msr'")]
    Format {
        /// The file.
        file: String,
        /// Why it is unknown.
        reason: String,
        /// The formats to choose from, as `:msr, :spc`.
        formats: String,
    },
    /// A trace was read to its end and holds no requests.
    #[error("{file}: no request in {lines} lines{because}")]
    Empty {
        /// The file.
        file: String,
        /// How many lines were read.
        lines: u64,
        /// What was skipped, as ` (12 left out: volume)`; empty if nothing was.
        because: String,
    },
    /// A column file is truncated or corrupted.
    #[error("{file}: damaged trace file: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// The check that failed.
        reason: String,
    },
    /// The target format cannot represent the trace.
    #[error("request {row} cannot be written as {format}: {reason}")]
    NotWritable {
        /// The request, from 0.
        row: usize,
        /// The format.
        format: &'static str,
        /// What it cannot represent.
        reason: String,
    },
}
