//! The one error of this crate: what was wrong with what was given, and where.

use std::path::PathBuf;

/// Why a workload could not be made, read or written. The message names the place and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The text of a workload (`-w`) does not say a workload.
    #[error("workload '{text}': {reason}")]
    Text {
        /// The whole text.
        text: String,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// A workload does not fit the device it is to run on.
    #[error("{what}: {reason}")]
    DoesNotFit {
        /// The workload or trace.
        what: String,
        /// Which bound is passed, and what to add.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system or the decompressor said.
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
        column: &'static str,
        /// What stands there.
        found: String,
        /// What may stand there.
        allowed: String,
    },
    /// One line of a job file asks for something that does not exist or is not done here.
    #[error("{file}:{line}: {reason}")]
    Job {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// The format of a trace is not known, or could be several.
    #[error("{file}: {reason}; add one of {formats} after the name, as in '{file}:msr'")]
    Format {
        /// The file.
        file: String,
        /// Why it is not known.
        reason: String,
        /// The formats to choose from, as `:msr, :spc`.
        formats: String,
    },
    /// A trace was read to its end and holds nothing to do.
    #[error("{file}: no request in {lines} lines{because}")]
    Empty {
        /// The file.
        file: String,
        /// How many lines were read.
        lines: u64,
        /// What was left out, as ` (12 left out: volume)`; empty if nothing was.
        because: String,
    },
    /// A column file is cut short or changed.
    #[error("{file}: damaged trace file: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// What does not hold.
        reason: String,
    },
    /// The target format cannot say what the trace says.
    #[error("request {row} cannot be written as {format}: {reason}")]
    NotWritable {
        /// The request, from 0.
        row: usize,
        /// The format.
        format: &'static str,
        /// What it cannot say.
        reason: String,
    },
}
