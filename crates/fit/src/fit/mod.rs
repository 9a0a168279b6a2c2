//! From figures to the most probable design.
//!
//! 1. The closed forms place the search: CMA-ES finds the most probable drive of each kind of flash.
//! 2. It is simulated, figure by figure ([`crate::model::twin`]). What a simulation measures over its closed form is the correction
//!    of that closed form, and the search goes on with it, until the corrections stay as they are.
//! 3. Elliptical slice sampling draws the drives that are nearly as probable: the intervals, and the spread of every prediction.
//!
//! | file | what |
//! |---|---|
//! | [`posterior`] | how probable a drive is; searches and draws |
//! | `document`, [`page`] | the answer as JSON and as a page |
//! | `next`, `interval` | what to measure next; where nine of ten drives are |
//! | `compared` | jobs of fio that no closed form is of, simulated on the design that was found |
//! | [`answer`] | what is said of it: numbers with intervals, residuals, contradictions, other designs, the file |

pub mod answer;
mod compared;
mod document;
mod interval;
mod next;
pub mod page;
pub mod posterior;

pub use answer::{Answer, Number, Residual};
pub use compared::{Compared, Pair};
pub use interval::nine_of_ten;
pub use next::Next;

use crate::figures::Figures;
use crate::model::twin::{self, Simulated};
use crate::model::{Model, Values};
use nvlab_design::DesignErrors;
use nvlab_design::toml_reader::FileError;
use nvlab_run::engine::{Done, TaskError};
use nvlab_run::plan::{Source, Task};
use nvlab_workload::WorkloadError;
use posterior::{Mode, Posterior};
use std::sync::Arc;
use thiserror::Error;

/// Simulated designs of a fit, at most.
const ROUNDS: usize = 4;
/// Corrections that change by less are taken to stay.
const STAYS: f64 = 0.015;

/// What runs for a fit: the engine, with its progress, its kept results and its cores.
pub trait Runs: Sync {
    /// A workload, read once.
    fn source(&self, text: &str) -> Result<Arc<Source>, WorkloadError>;
    /// Runs tasks, which have these titles; the results in their order, or why one has none. An error ends the search.
    fn run(&self, tasks: &[&Task], titles: &[String]) -> Result<Vec<Result<Done, TaskError>>, Ended>;
}

/// Why a search ended early.
#[derive(Clone, Debug, Error)]
pub enum Ended {
    /// Somebody ended it.
    #[error("{0}")]
    Interrupted(String),
    /// This machine cannot do it.
    #[error("{0}")]
    Machine(String),
}

/// Why there is no fit.
#[derive(Debug, Error)]
pub enum FitError {
    /// The file of figures is wrong.
    #[error(transparent)]
    Wrong(#[from] Box<FileError>),
    /// A design that was found cannot be read: a fault of the model.
    #[error("{0}")]
    Design(#[from] DesignErrors),
    /// A figure cannot be run.
    #[error("{figure}: {why}")]
    Run {
        /// The figure.
        figure: String,
        /// Why.
        why: String,
    },
    /// No drive can be so.
    #[error("no drive of the usual numbers has these capacities and dies: {0}")]
    Impossible(String),
    /// It ended early.
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl From<FileError> for FitError {
    fn from(error: FileError) -> FitError {
        FitError::Wrong(Box::new(error))
    }
}

/// A fit that has ended: the modes, the corrections, and what the best one was simulated to do.
pub struct Fitted<'a> {
    /// What is known.
    pub posterior: Posterior<'a>,
    /// The modes, the most probable first.
    pub modes: Vec<Mode>,
    /// Of each figure, what a simulation of the most probable drive measured.
    pub simulated: Vec<Simulated>,
    /// Runs that were made or found.
    pub runs: usize,
}

/// Fits a model to figures.
pub fn fit<'a>(
    model: &'a Model,
    figures: &'a Figures,
    seed: u64,
    runs: &dyn Runs,
) -> Result<Fitted<'a>, FitError> {
    let corrections = vec![0.0; figures.figures.len()];
    let mut posterior = Posterior { model, figures, corrections, without: None, seed };
    let mut modes = posterior.modes(None);
    let mut count = 0;
    let mut simulated = Vec::new();
    for round in 0..ROUNDS {
        let drives = drives(&posterior, &modes[0].at)?;
        let all: Vec<usize> = (0..figures.figures.len()).collect();
        simulated = simulate(&posterior, &drives, &all, &format!("design {}", round + 1), runs)?;
        count += simulated.len();
        let mut change: f64 = 0.0;
        for (number, Simulated { value, .. }) in simulated.iter().enumerate() {
            let figure = &figures.figures[number];
            let form = crate::model::forms::value(&drives[figure.size], figure.what);
            let correction = (value / form).ln();
            change = change.max((correction - posterior.corrections[number]).abs());
            posterior.corrections[number] = correction;
        }
        if change < STAYS || round + 1 == ROUNDS {
            break;
        }
        let near = modes[0].at.clone();
        modes = posterior.modes(if round == 0 { None } else { Some(&near) });
    }
    Ok(Fitted { posterior, modes, simulated, runs: count })
}

/// The drives of all siblings at a point.
pub fn drives(posterior: &Posterior<'_>, at: &[f64]) -> Result<Vec<Values>, FitError> {
    posterior.drives(at).ok_or_else(|| {
        let drive = &posterior.figures.drive;
        let sizes: Vec<String> =
            (0..drive.capacities.len()).map(|size| posterior.figures.capacity(size)).collect();
        FitError::Impossible(sizes.join(", "))
    })
}

/// What simulations say of figures.
pub fn simulate(
    posterior: &Posterior<'_>,
    drives: &[Values],
    numbers: &[usize],
    title: &str,
    runs: &dyn Runs,
) -> Result<Vec<Simulated>, FitError> {
    let figures = posterior.figures;
    let named = |number: usize| figures.name(&figures.figures[number]);
    let failed = |number: usize, why: String| FitError::Run { figure: named(number), why };
    let mut jobs = Vec::new();
    for &number in numbers {
        let figure = &figures.figures[number];
        let source = |text: &str| runs.source(text);
        let job = twin::job(posterior.model, &drives[figure.size], figure.size, figure.what, source);
        jobs.push(job.map_err(|why| failed(number, why.to_string()))?);
    }
    let tasks: Vec<&Task> = jobs.iter().flatten().map(|job| &job.task).collect();
    let with_job = numbers.iter().zip(&jobs).filter(|(_, job)| job.is_some());
    let titles: Vec<String> = with_job.map(|(&number, _)| format!("{title}: {}", named(number))).collect();
    let mut results = runs.run(&tasks, &titles)?.into_iter();
    let mut values = Vec::new();
    for (&number, job) in numbers.iter().zip(&jobs) {
        let figure = &figures.figures[number];
        values.push(match job {
            None => {
                let value = crate::model::forms::value(&drives[figure.size], figure.what);
                Simulated { value, latencies: None }
            }
            Some(job) => {
                let done = results.next().expect("each task has a result");
                let run = done.map_err(|why| failed(number, why.to_string()))?.result;
                job.simulated(&run).ok_or_else(|| failed(number, "the run has no such figure".to_string()))?
            }
        });
    }
    Ok(values)
}
