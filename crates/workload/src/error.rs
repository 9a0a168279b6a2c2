//! The error type of this crate: what was wrong with the input, and where.

use std::borrow::Cow;
use std::path::PathBuf;

/// Why a workload could not be made, read or written. The message names the place and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The text of a workload (`-w`) is not valid.
    #[error("workload '{text}': {reason}")]
    Text {
        /// The whole text.
        text: String,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// A workload does not fit the device.
    #[error("{what}: {reason}")]
    DoesNotFit {
        /// The workload or trace.
        what: String,
        /// Which bound is exceeded, and which option helps.
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
    /// One line of a trace or job file is wrong.
    #[error("{file}:{line}: {column} '{found}' is wrong: {allowed}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column or option.
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
    /// One line of a job file uses something that does not exist or is not supported.
    #[error("{file}:{line}: {reason}")]
    Job {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// Several things are wrong with one input.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<WorkloadError>),
    /// The format of a trace is unknown or ambiguous.
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

impl WorkloadError {
    /// Fails if there are errors; those that say the same are reported once.
    pub(crate) fn all(mut errors: Vec<WorkloadError>) -> Result<(), WorkloadError> {
        let mut said = std::collections::BTreeSet::new();
        errors.retain(|error| said.insert(error.to_string()));
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(WorkloadError::Several(errors)),
        }
    }
}
