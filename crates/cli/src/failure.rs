//! Why the program failed, and its exit status.

use nvlab_design::DesignErrors;
use nvlab_lab::sweep::PointError;
use nvlab_run::RunError;
use nvlab_run::engine::TaskError;
use nvlab_trace::TraceError;
use nvlab_workload::WorkloadError;
use std::path::Path;
use thiserror::Error;

/// Every way to end other than with 0. `nvlab explain exit-codes` is the list for users.
#[derive(Debug, Error)]
pub enum Failure {
    /// An assertion does not hold, or a device did not serve everything: 1. The reason has been printed already.
    #[error("{0}")]
    Check(String),
    /// The command line or a file is wrong: 2.
    #[error("{0}")]
    Input(String),
    /// A design is wrong: 2.
    #[error("{0}")]
    Design(#[from] DesignErrors),
    /// A workload is wrong: 2.
    #[error("{0}")]
    Workload(#[from] WorkloadError),
    /// Several of these are: 2.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Inputs(Vec<Failure>),
    /// Some points of many have no result: 3. Which and why has been printed already.
    #[error("{0}")]
    Points(String),
    /// This machine cannot do it: 4.
    #[error("{0}")]
    Machine(String),
    /// The served program ended with this status; it has said why.
    #[error("the program ended with status {0}")]
    Program(u8),
    /// A bug in nvlab, reported when it panicked: 70.
    #[error("{0}")]
    Fault(String),
    /// Ctrl-C: 130.
    #[error("{0}")]
    Interrupted(String),
}

/// Exit status after a panic: a bug in nvlab.
pub const STATUS_FAULT: u8 = 70;
/// The reader of stdout has gone: what a shell reports for a program killed by SIGPIPE.
pub const STATUS_PIPE: u8 = 141;
/// Exit status after Ctrl-C: 128 + SIGINT.
pub const STATUS_INTERRUPTED: u8 = 130;

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::Workload(error.into())
    }
}

impl Failure {
    pub fn status(&self) -> u8 {
        match self {
            Failure::Check(_) => 1,
            Failure::Input(_) | Failure::Design(_) | Failure::Workload(_) | Failure::Inputs(_) => 2,
            Failure::Points(_) => 3,
            Failure::Machine(_) => 4,
            Failure::Program(status) => *status,
            Failure::Fault(_) => STATUS_FAULT,
            Failure::Interrupted(_) => STATUS_INTERRUPTED,
        }
    }

    /// An operation that this machine refused.
    pub fn machine(what: impl std::fmt::Display, error: &std::io::Error) -> Failure {
        Failure::Machine(format!("{what}: {error}"))
    }
}

/// Writes a file for the user; one that exists is replaced.
pub fn save(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|error| Failure::machine(file.display(), &error))
}

/// What is wrong of a command, so that all of it is said at once.
#[derive(Debug, Default)]
pub struct Wrong(Vec<Failure>);

impl Wrong {
    /// What was read; `None` if that is wrong.
    pub fn take<T>(&mut self, read: Result<T, impl Into<Failure>>) -> Option<T> {
        read.map_err(|why| self.add(why.into())).ok()
    }

    /// What two designs have wrong in common is said once.
    fn add(&mut self, why: Failure) {
        if self.0.iter().all(|before| before.to_string() != why.to_string()) {
            self.0.push(why);
        }
    }
}

impl From<Wrong> for Failure {
    fn from(mut wrong: Wrong) -> Failure {
        match wrong.0.len() {
            1 => wrong.0.remove(0),
            _ => Failure::Inputs(wrong.0),
        }
    }
}

impl From<PointError> for Failure {
    fn from(error: PointError) -> Failure {
        match error {
            PointError::Design(errors) => Failure::Design(errors),
            PointError::Workload(error) => Failure::Workload(error),
            PointError::Elsewhere(why) => Failure::Check(why),
        }
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Failure {
        let text = error.to_string();
        match error {
            TaskError::Run(
                RunError::Unbuildable { .. } | RunError::Nothing { .. } | RunError::Unwatched { .. },
            ) => Failure::Input(text),
            TaskError::Run(RunError::NoMemory { .. }) | TaskError::Keep { .. } => Failure::Machine(text),
            TaskError::Run(_) | TaskError::Elsewhere(_) => Failure::Check(text),
            TaskError::Stopped => Failure::Interrupted(text),
        }
    }
}
