//! What a sweep keeps in memory of a run: its metrics.

use crate::engine::Done;
use crate::report::metric::{Metric, metrics};
use crate::result::RunResult;

/// The metrics of a run. A whole result, with its windows and histograms, takes a hundred times as much memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The key of the run.
    pub key: String,
    /// It was already among the results.
    pub reused: bool,
    /// Version of nvlab.
    pub(super) nvlab: String,
    pub(super) results_version: u32,
    /// The device set the pace.
    pub(super) closed_loop: bool,
    /// In the order of the table of metrics.
    pub(super) values: Vec<Option<f64>>,
}

impl Figures {
    /// Of a result.
    pub(super) fn of(run: &RunResult, reused: bool) -> Figures {
        Figures {
            key: run.key.clone(),
            reused,
            nvlab: run.nvlab.clone(),
            results_version: run.results_version,
            closed_loop: run.closed_loop,
            values: metrics().iter().map(|metric| metric.of(run)).collect(),
        }
    }

    /// The value of a metric; `None` if the run has none.
    pub(super) fn get(&self, metric: &Metric) -> Option<f64> {
        self.values[metrics().iter().position(|known| known.name == metric.name)?]
    }
}

impl From<Done> for Figures {
    fn from(done: Done) -> Figures {
        Figures::of(&done.result, done.reused)
    }
}
