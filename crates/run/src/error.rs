//! Why a run has no result, or an open device cannot answer.

use super::drive::DriveError;
use nvlab_workload::WorkloadError;
use thiserror::Error;

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The workload cannot be read again: a trace that has changed, or is gone.
    #[error("{0}")]
    Workload(String),
    /// The design cannot be built.
    #[error("design {design}: {why}")]
    Unbuildable {
        /// Its name.
        design: String,
        /// Why.
        why: String,
    },
    /// This machine has too little memory for the device.
    #[error("design {design}: {why}")]
    NoMemory {
        /// Its name.
        design: String,
        /// How much is needed, and how much is available.
        why: String,
    },
    /// A program of loads and stores on a device of blocks.
    #[error(
        "design {design} is a block device: transactions of loads and stores need a memory (ftl.kind = \"envy\", or ftl.cache.kind = \"set-associative\")"
    )]
    NotAMemory {
        /// Its name.
        design: String,
    },
    /// Transactions on a design without a log.
    #[error("design {design} has no log: transactions on recoverable memory need one (ftl.kind = \"rvm\")")]
    NotALog {
        /// Its name.
        design: String,
    },
    /// A workload that does not pass the stages of a design.
    #[error("design {design} has path.stages, and {why}; leave out path.stages")]
    Unstaged {
        /// Its name.
        design: String,
        /// What the workload is instead.
        why: &'static str,
    },
    /// A run that cannot be shown on a live page.
    #[error("design {design}: {why}; leave out --http")]
    Unwatched {
        /// The design.
        design: String,
        /// Why.
        why: &'static str,
    },
    /// A workload that a device that is held does not take.
    #[error("design {design}: {why}")]
    Unheld {
        /// The design.
        design: String,
        /// Why.
        why: &'static str,
    },
    /// Bytes, or a recovery, asked of media that keep none.
    #[error(
        "design {design}: its media store no bytes, so no data can be read back and no power cut survived"
    )]
    NoBytes {
        /// The design.
        design: String,
    },
    /// The log failed, or lost something.
    #[error("{design}: {why}")]
    Log {
        /// The design.
        design: String,
        /// Why.
        why: String,
    },
    /// Preconditioning failed.
    #[error("{design}: while preconditioning ({kind}): {source}")]
    Precondition {
        /// The design.
        design: String,
        /// The requested state.
        kind: &'static str,
        /// Why.
        source: DriveError,
    },
    /// The device failed a request.
    #[error("{design}: {source}{}", of(*.asked))]
    Failed {
        /// The design.
        design: String,
        /// Why.
        source: DriveError,
        /// Requests the run should have served.
        asked: Option<u64>,
    },
    /// The workload produced fewer requests than it announced.
    #[error("{design}: {served} requests were served, {asked} were issued")]
    Short {
        /// The design.
        design: String,
        /// Requests served.
        served: u64,
        /// Requests the run should have served.
        asked: u64,
    },
    /// The workload ended before the limit the user set.
    #[error(
        "{design}: the workload ended after {requests} requests and {simulated}, before --until '{until}'; \
         leave out --until, or repeat the trace (loop=N)"
    )]
    Ended {
        /// The design.
        design: String,
        /// Requests served.
        requests: u64,
        /// Simulated time.
        simulated: nvlab_units::Span,
        /// The argument of `--until`.
        until: String,
    },
    /// The device cannot be mounted after a power cut, at the end of the run or one requested by the user.
    #[error("{design}: the mount after a power cut failed: {why}")]
    Unmounted {
        /// The design.
        design: String,
        /// Why.
        why: String,
    },
    /// No request at all.
    #[error("{design}: the workload has no requests within the limit")]
    Nothing {
        /// The design.
        design: String,
    },
}

impl RunError {
    /// True if whoever follows it stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, RunError::Precondition { source, .. } | RunError::Failed { source, .. }
            if matches!(source, DriveError::Stopped(_)))
    }
}

impl From<WorkloadError> for RunError {
    fn from(error: WorkloadError) -> RunError {
        RunError::Workload(error.to_string())
    }
}

fn of(asked: Option<u64>) -> String {
    asked.map(|asked| format!(" (of {asked} issued)")).unwrap_or_default()
}
