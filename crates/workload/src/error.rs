//! The error type of this crate: what was wrong with the input, and where.

use nvlab_trace::TraceError;
use std::path::PathBuf;

/// Why a workload could not be made or read. The message names the place and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The text of a workload (`-w`) is not valid.
    #[error("workload '{text}': {reason}")]
    Text {
        /// What was parsed, as given.
        text: String,
        /// What is wrong with it, and what is allowed.
        reason: String,
    },
    /// A workload does not fit the device.
    #[error("{what}: {reason}")]
    DoesNotFit {
        /// The text of the workload, or the path of the trace.
        what: String,
        /// Which bound is exceeded, and which option helps.
        reason: String,
    },
    /// A job file could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The job file, or one it includes.
        path: PathBuf,
        /// Why the operating system refused.
        source: std::io::Error,
    },
    /// One line of a job file is wrong, or uses something that does not exist or is not supported.
    #[error("{file}:{line}: {reason}")]
    Job {
        /// The job file, or one it includes.
        file: String,
        /// Where it stands, from 1.
        line: u64,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// Several things are wrong with one input.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<WorkloadError>),
    /// From the reader of traces, with file and place.
    #[error(transparent)]
    Trace(#[from] TraceError),
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
