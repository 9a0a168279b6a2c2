//! The error type of this crate: what was wrong with a trace, and where.

use std::borrow::Cow;
use std::path::PathBuf;

/// Why a trace could not be read or written. The message names the place and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no such trace or volume, or the requests are none of a trace.
    #[error("{what}: {reason}")]
    Refused {
        /// The trace or volume asked for.
        what: String,
        /// What is wrong, and what there is.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Its path as given.
        path: PathBuf,
        /// The error of the operating system or the decompressor.
        source: std::io::Error,
    },
    /// A line does not fit the format.
    #[error("{file}:{line}: {column} '{found}' is wrong: {allowed}")]
    Line {
        /// The file; lines are counted in its decompressed text.
        file: String,
        /// Its number, from 1.
        line: u64,
        /// Name of the column in this format.
        column: Cow<'static, str>,
        /// What stands there, shortened if it is long.
        found: String,
        /// What may stand there.
        allowed: String,
    },
    /// One row of a table is wrong.
    #[error("{file}: row {row}: {column} '{found}' is wrong: {allowed}")]
    Row {
        /// The file of the table.
        file: String,
        /// Its number, from 1.
        row: u64,
        /// Name of the column in the table.
        column: String,
        /// The value as text.
        found: String,
        /// What may stand there.
        allowed: String,
    },
    /// A table does not have the columns of a trace, or cannot be read.
    #[error("{file}: {reason}")]
    Table {
        /// The file of the table.
        file: String,
        /// Which column is missing or of the wrong type, or why it cannot be read.
        reason: String,
    },
    /// The format cannot be told from name and contents.
    #[error("{file}: {reason}; add one of {formats} after the name, as in '{file}:msr'")]
    Format {
        /// The file, as it would stand on the command line.
        file: String,
        /// Why the contents fit none or several.
        reason: String,
        /// The formats to choose from, as `:msr, :spc`.
        formats: String,
    },
    /// A trace was read to its end and holds no requests.
    #[error("{file}: no request in {lines} lines{because}")]
    Empty {
        /// The file that was read to its end.
        file: String,
        /// Lines read, those skipped included.
        lines: u64,
        /// What was skipped, as ` (12 left out: volume)`; empty if nothing was.
        because: String,
    },
    /// A column file is truncated or corrupted.
    #[error("{file}: damaged trace file: {reason}")]
    Damaged {
        /// The column file.
        file: String,
        /// What is wrong with its chunks or its rows.
        reason: String,
    },
    /// The target format cannot represent the trace.
    #[error("request {row} cannot be written as {format}: {reason}")]
    NotWritable {
        /// Number of the request, from 0.
        row: usize,
        /// Name of the format.
        format: &'static str,
        /// What of the request it cannot represent.
        reason: String,
    },
}
