//! The part of a run that a sweep keeps in memory: its metrics.

use nvlab_run::engine::Done;
use nvlab_run::metric::{Metric, metrics};
use nvlab_run::result::RunResult;
use nvlab_run::stats::own_interval;

/// The metrics of a run. A whole result, with its windows and histograms, takes a hundred times as much memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The key of the run.
    pub key: String,
    /// The result was already stored.
    pub reused: bool,
    /// Version of nvlab.
    pub(super) nvlab: String,
    pub(super) results_version: u32,
    /// The device set the pace.
    pub(super) closed_loop: bool,
    /// How the device was prepared.
    pub(super) prepared: String,
    /// In the order of the table of metrics.
    pub(super) values: Vec<Option<f64>>,
    /// Half of the 95 % interval of each: 0 if it is not random, infinite if the run is too short.
    pub(super) intervals: Vec<f64>,
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
            prepared: run.precondition.line(run.design.capacity_bytes),
            values: metrics().iter().map(|metric| metric.of(run)).collect(),
            intervals: metrics().iter().map(|metric| own_interval(metric, run).unwrap_or(0.0)).collect(),
        }
    }

    /// The value of a metric; `None` if the run has none.
    pub(super) fn get(&self, metric: &Metric) -> Option<f64> {
        self.known(metric).map(|(value, _)| value)
    }

    /// The same with half of its 95 % interval.
    pub(super) fn known(&self, metric: &Metric) -> Option<(f64, f64)> {
        let at = metrics().iter().position(|known| known.name == metric.name)?;
        Some((self.values[at]?, self.intervals[at]))
    }
}

impl From<Done> for Figures {
    fn from(done: Done) -> Figures {
        Figures::of(&done.result, done.reused)
    }
}
