//! The description of a sweep in its table: its axes and the metrics shown, as JSON in the metadata of the table. The
//! page of a finished sweep is made from the table alone.

use super::shown::Shown;
use super::space::{Axis, RunSpec, Space};
use super::{Outcome, Sweep};
use nvlab_run::metric::Metric;
use nvlab_run::result::RESULTS_VERSION;
use serde::{Deserialize, Serialize};

/// The key of the metadata.
pub(super) const KEY: &str = "nvlab.sweep";

/// The properties that the rows of the table do not contain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Description {
    name: String,
    design: String,
    sets: Vec<String>,
    workload: String,
    precondition: String,
    until: Option<String>,
    seed: String,
    axes: Vec<AxisTexts>,
    metrics: Vec<String>,
    front: Vec<String>,
    /// Version of nvlab.
    pub nvlab: String,
    pub results_version: u32,
    /// In all runs the device set the pace.
    pub closed_loop: bool,
}

/// [`Axis`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AxisTexts {
    name: String,
    values: Vec<String>,
    sets: Vec<(String, Vec<String>)>,
}

impl Description {
    pub fn of(sweep: &Sweep, outcomes: &[Outcome], shown: &Shown) -> Description {
        let names = |metrics: &[Metric]| metrics.iter().map(|metric| metric.name.clone()).collect();
        let run = sweep.space.run.clone();
        let axis = |axis: &Axis| {
            let Axis { name, values, sets } = axis.clone();
            AxisTexts { name, values, sets }
        };
        let runs = || outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok());
        let version = runs().next().map(|run| (run.nvlab.clone(), run.results_version));
        let (nvlab, results_version) =
            version.unwrap_or_else(|| (env!("CARGO_PKG_VERSION").into(), RESULTS_VERSION));
        Description {
            name: sweep.name.clone(),
            design: run.design,
            sets: run.sets,
            workload: run.workload,
            precondition: run.state.to_string(),
            until: run.until,
            seed: run.seed,
            axes: sweep.space.axes.iter().map(axis).collect(),
            metrics: names(&shown.metrics),
            front: names(&shown.front),
            nvlab,
            results_version,
            closed_loop: runs().all(|run| run.closed_loop),
        }
    }

    /// The sweep, with all points of its space.
    pub fn sweep(&self) -> Result<Sweep, String> {
        let run = RunSpec {
            design: self.design.clone(),
            sets: self.sets.clone(),
            workload: self.workload.clone(),
            state: self.precondition.parse()?,
            until: self.until.clone(),
            seed: self.seed.clone(),
        };
        let axis = |axis: &AxisTexts| {
            let AxisTexts { name, values, sets } = axis.clone();
            Axis { name, values, sets }
        };
        let axes = self.axes.iter().map(axis).collect();
        Ok(Sweep { name: self.name.clone(), space: Space { run, axes }, skips: Vec::new() })
    }

    pub fn shown(&self) -> Result<Shown, String> {
        Shown::named(&self.metrics, &self.front)
    }
}
