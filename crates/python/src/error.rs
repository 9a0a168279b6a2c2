//! Exceptions: the errors of the lab, field by field. Their classes are those of `nvlab._errors`.

use nvlab_design::DesignErrors;
use nvlab_design::toml_reader::FileError;
use nvlab_lab::reproduce::FindError;
use nvlab_lab::sweep::{PointError, SweepError};
use nvlab_run::RunError;
use nvlab_run::engine::{EngineError, TaskError};
use nvlab_trace::TraceError;
use nvlab_workload::WorkloadError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::io;

/// Why there is no result.
#[derive(Debug)]
pub enum Trouble {
    /// A design, or another file, is wrong.
    Design(DesignErrors),
    /// A workload is wrong.
    Workload(WorkloadError),
    /// A run failed.
    Task(TaskError),
    /// All runs failed.
    Engine(EngineError),
    /// A value is wrong.
    Input(String),
    /// The system refuses.
    System(io::Error),
    /// Recoverable memory.
    Rvm(nvlab_rvm::Error),
    /// A heap.
    Heap(nvlab_nvheap::Error),
}

macro_rules! from {
    ($($kind:ident($error:ty)),*) => {
        $(impl From<$error> for Trouble {
            fn from(error: $error) -> Trouble {
                Trouble::$kind(error)
            }
        })*
    };
}
from!(
    Design(DesignErrors),
    Workload(WorkloadError),
    Task(TaskError),
    Engine(EngineError),
    Input(String),
    System(io::Error),
    Rvm(nvlab_rvm::Error),
    Heap(nvlab_nvheap::Error)
);

impl From<TraceError> for Trouble {
    fn from(error: TraceError) -> Trouble {
        Trouble::Workload(error.into())
    }
}

impl From<PointError> for Trouble {
    fn from(error: PointError) -> Trouble {
        match error {
            PointError::Design(errors) => Trouble::Design(errors),
            PointError::Workload(error) => Trouble::Workload(error),
            PointError::Elsewhere(why) => Trouble::Input(why),
        }
    }
}

impl From<SweepError> for Trouble {
    fn from(error: SweepError) -> Trouble {
        match error {
            SweepError::Wrong(error) => Trouble::Design((*error).into()),
            SweepError::Unreadable { path, source } => Trouble::System(about(&path, &source)),
            SweepError::Asked(text) => Trouble::Input(text),
        }
    }
}

impl From<FindError> for Trouble {
    fn from(error: FindError) -> Trouble {
        match error {
            FindError::Wrong(error) => Trouble::Design(error.into()),
            FindError::Unreadable { path, source } => Trouble::System(about(&path, &source)),
            FindError::Unknown(text) => Trouble::Input(text),
        }
    }
}

fn about(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

impl Trouble {
    /// The exception.
    pub fn exception(&self, py: Python<'_>) -> PyErr {
        let made = match self {
            Trouble::Design(errors) => design(py, errors),
            Trouble::Workload(error) => workload(py, error),
            Trouble::Task(TaskError::Run(error)) => made(py, class_of(error), (error.to_string(),)),
            Trouble::Task(TaskError::Elsewhere(why)) => made(py, "RunError", (why.clone(),)),
            Trouble::Task(TaskError::Keep { dir, source })
            | Trouble::Engine(EngineError::Keep { dir, source }) => {
                return about(&dir.display().to_string(), source).into();
            }
            Trouble::Task(TaskError::Stopped) | Trouble::Engine(EngineError::Stopped { .. }) => {
                return PyKeyboardInterrupt::new_err(());
            }
            Trouble::Engine(error) => made(py, "Unsupported", (error.to_string(),)),
            Trouble::Input(text) => made(py, "InputError", (text,)),
            Trouble::Rvm(error) => rvm(py, error),
            Trouble::Heap(error) => heap(py, error),
            Trouble::System(error) => return io::Error::new(error.kind(), error.to_string()).into(),
        };
        made.unwrap_or_else(|error| error)
    }
}

impl From<Trouble> for PyErr {
    fn from(trouble: Trouble) -> PyErr {
        Python::attach(|py| trouble.exception(py))
    }
}

/// An exception of `nvlab._errors`.
fn made<'py, A: pyo3::call::PyCallArgs<'py>>(py: Python<'py>, class: &str, arguments: A) -> PyResult<PyErr> {
    let class = py.import("nvlab._errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call1(arguments)?))
}

fn class_of(error: &RunError) -> &'static str {
    match error {
        RunError::NoMemory { .. }
        | RunError::NotAMemory { .. }
        | RunError::NotALog { .. }
        | RunError::NoBytes { .. }
        | RunError::Unheld { .. }
        | RunError::Unstaged { .. } => "Unsupported",
        _ => "RunError",
    }
}

/// Message, path, line, column (from 1), hint.
type Problem = (String, Option<String>, Option<usize>, Option<usize>, String);

fn design(py: Python<'_>, errors: &DesignErrors) -> PyResult<PyErr> {
    let problem = |error: &FileError| -> Problem {
        let at = error.at.as_ref();
        let path = at.map(|at| at.source.name.clone());
        (error.message.clone(), path, at.map(|at| at.line()), at.map(|at| at.column()), error.help.join("\n"))
    };
    let problems: Vec<Problem> = errors.0.iter().map(problem).collect();
    made(py, "DesignError", (errors.render(false), problems))
}

fn workload(py: Python<'_>, error: &WorkloadError) -> PyResult<PyErr> {
    let first = match error {
        WorkloadError::Several(errors) => errors.first().unwrap_or(error),
        error => error,
    };
    let text = error.to_string();
    match first {
        WorkloadError::Text { .. } | WorkloadError::DoesNotFit { .. } => made(py, "WorkloadError", (text,)),
        WorkloadError::Job { file, line, .. } => made(py, "WorkloadError", (text, file, line)),
        WorkloadError::File { path, source } => Ok(about(&path.display().to_string(), source).into()),
        WorkloadError::Trace(error) => trace(py, error),
        WorkloadError::Several(_) => made(py, "WorkloadError", (text,)),
    }
}

fn trace(py: Python<'_>, error: &TraceError) -> PyResult<PyErr> {
    let text = error.to_string();
    match error {
        TraceError::File { path, source } => Ok(about(&path.display().to_string(), source).into()),
        TraceError::Line { file, line, .. } | TraceError::Row { file, row: line, .. } => {
            made(py, "TraceError", (text, file, line))
        }
        TraceError::Table { file, .. } | TraceError::Format { file, .. } | TraceError::Empty { file, .. } => {
            made(py, "TraceError", (text, file))
        }
        TraceError::Refused { .. } | TraceError::Damaged { .. } | TraceError::NotWritable { .. } => {
            made(py, "WorkloadError", (text,))
        }
    }
}

fn rvm(py: Python<'_>, error: &nvlab_rvm::Error) -> PyResult<PyErr> {
    use nvlab_rvm::Error;
    let class = match error {
        Error::Io { source, .. } => {
            return Ok(io::Error::new(source.kind(), error.to_string()).into());
        }
        Error::Busy(_) => "BusyError",
        Error::Format { .. } | Error::Damaged { .. } => "DamagedError",
        _ => "PersistenceError",
    };
    made(py, class, (error.to_string(),))
}

fn heap(py: Python<'_>, error: &nvlab_nvheap::Error) -> PyResult<PyErr> {
    use nvlab_nvheap::Error;
    let class = match error {
        Error::Io { source, .. } => {
            return Ok(io::Error::new(source.kind(), error.to_string()).into());
        }
        Error::Busy(_) => "BusyError",
        Error::Format { .. } | Error::Schema { .. } | Error::Damaged { .. } => "DamagedError",
        _ => "PersistenceError",
    };
    made(py, class, (error.to_string(),))
}
