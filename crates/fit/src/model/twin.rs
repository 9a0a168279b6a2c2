//! A figure as a run that measures it: through the public way of [`Task`], on a smaller drive that measures the same.
//!
//! What does not clean is measured on the drive with smaller blocks, whose erases take less in proportion: the same dies, planes
//! and times. What cleans is measured with blocks as they are (blocks of fewer pages change write amplification a little) on a few of
//! the dies, with as much of the link, the front end and the queue for each of them; if the queue is too short to be shared, on all
//! dies with smaller blocks.

use super::text::{self, Part};
use super::{Model, Values};
use crate::figures::what::{Load, State, What};
use crate::priors::Knob;
use nvlab_design::{Design, DesignErrors};
use nvlab_run::Preparation;
use nvlab_run::State as Prepared;
use nvlab_run::metric;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_workload::WorkloadError;
use std::sync::Arc;
use thiserror::Error;

/// Bytes of a drive that does not clean, about.
const SMALL: f64 = 12e9;
/// Pages of its blocks, at least. It has as many blocks as the drive: some of each die are kept for open streams and cleaning.
const PAGES_LEAST: f64 = 24.0;
/// Bytes of it that are filled before reads, about.
const FILLED: f64 = 3e9;
/// Bytes of one that cleans, at most.
const STEADY: f64 = 150e9;
/// Requests in flight of one that cleans on a few of the dies, at least.
const DEPTH_LEAST: f64 = 3.0;

/// Why a figure cannot be run.
#[derive(Debug, Error)]
pub enum TwinError {
    /// The design is wrong.
    #[error("{0}")]
    Design(#[from] DesignErrors),
    /// The workload is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

/// A figure of a design, as a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The run.
    pub task: Task,
    what: What,
    metric: &'static str,
    times: f64,
}

/// What a simulation says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// Its value, in the base unit of its [`What`].
    pub value: f64,
    /// Mean and 99th percentile of the latency of its requests, in seconds.
    pub latencies: Option<[f64; 2]>,
}

impl Job {
    /// What a run says of the figure; `None` if nothing.
    pub fn simulated(&self, run: &RunResult) -> Option<Simulated> {
        let value = metric::metric(self.metric, run).map(|value| value * self.times);
        let value = value.filter(|value| *value > 0.0 && value.is_finite())?;
        let seconds = |name: &str| metric::metric(name, run).map(|ns| ns * 1e-9);
        let latencies = self.what.latencies().and_then(|[mean, p99]| Some([seconds(mean)?, seconds(p99)?]));
        Some(Simulated { value, latencies })
    }
}

/// The part of a drive that a figure is measured on.
fn part(model: &Model, values: &Values, what: What) -> Part {
    let without_cache = match what {
        What::Rate(requests, _) | What::Latency(requests) => requests.state != State::Cache,
        _ => true,
    };
    let whole = Part { dies: values.dies, pages: 1, without_cache };
    let dies = (STEADY / values.of(Knob::Die)).floor().clamp(1.0, f64::from(values.dies)) as u32;
    // A part of a request cannot be in flight; what wears a drive does not depend on how many are.
    let in_flight = match what {
        What::Endurance(..) | What::Cache => f64::INFINITY,
        _ => f64::from(what.depth()) * f64::from(dies) / f64::from(values.dies),
    };
    if what.cleans() && in_flight >= DEPTH_LEAST {
        return Part { dies, ..whole };
    }
    let smaller = (values.raw_bytes() / if what.cleans() { STEADY } else { SMALL }).max(1.0);
    let pages = smaller.min(f64::from(model.pages.count) / PAGES_LEAST).floor().max(1.0);
    Part { pages: pages as u32, ..whole }
}

/// The run that measures a figure; `None` if nothing is run, since it is read off the design. `source` reads a workload once.
pub fn job(
    model: &Model,
    values: &Values,
    size: usize,
    what: What,
    source: impl Fn(&str) -> Result<Arc<Source>, WorkloadError>,
) -> Result<Option<Job>, TwinError> {
    let Some((metric, times)) = what.metric() else { return Ok(None) };
    let part = part(model, values, what);
    let (mut values, share) = (values.clone(), f64::from(part.dies) / f64::from(values.dies));
    if share < 1.0 {
        // With few dies, that not all program at once is said by their time.
        let slower = f64::from(values.dies) / values.programming();
        values.numbers[Knob::Program as usize] *= slower;
    }
    let text = text::of_part(model, &values, size, part, &|_| String::new());
    let design = Design::parse(&format!("{}.toml", model.drive.name), &text, &[])?;
    let depth = (f64::from(what.depth()) * share).round().max(1.0) as u32;
    let (state, until, span) = measured(what, design.capacity_bytes());
    let settings = Settings { seed: 1, until: Some(until.parse().expect("it is written here")), state };
    // Rates are those of all dies; endurance is that of all bytes.
    let times = match what {
        What::Latency(_) => times,
        What::Rate(..) => times / share,
        What::Endurance(_, years) => {
            let all = values.capacity_bytes as f64 / design.capacity_bytes() as f64;
            let days = years.map_or(1.0, |years| values.capacity_bytes as f64 * 365.25 * years);
            times * all / days
        }
        What::Cache => times,
    };
    let name = design.name.clone();
    let task = Task::new(design, name, &source(&(what.workload(depth) + &span))?, settings)?;
    Ok(Some(Job { task, what, metric, times }))
}

/// The state in which a figure is measured, how long, and what is added to its workload.
fn measured(what: What, capacity_bytes: u64) -> (Preparation, String, String) {
    let plain = |state: Prepared, until: String| (Preparation::from(state), until, String::new());
    let requests = match what {
        What::Endurance(Load::Sequential, _) => return plain(Prepared::Full, "1 x capacity".to_string()),
        What::Endurance(..) => return plain(Prepared::Steady, "400k io".to_string()),
        What::Rate(requests, _) | What::Latency(requests) => requests,
        What::Cache => return plain(Prepared::Fresh, "1 io".to_string()),
    };
    let count = match (requests.depth, requests.is_sequential) {
        (1, _) => 4_000,
        (_, true) => 20_000,
        _ if what.cleans() => 400_000,
        _ => 100_000,
    };
    if what.cleans() {
        return plain(Prepared::Steady, format!("{count} io"));
    }
    if !requests.is_write || requests.mixed.is_some() {
        // Data on all dies is enough to read from.
        let share = (FILLED / capacity_bytes as f64 * 100.0).ceil().clamp(1.0, 100.0) / 100.0;
        let is_scattered = requests.state == State::Steady;
        let state = Preparation { fill: share, is_scattered, ..Preparation::from(Prepared::Full) };
        return (state, format!("{count} io"), format!(" span={}%", (share * 100.0).round()));
    }
    // A drive takes its capacity before it cleans, and in order it cleans blocks that hold nothing; its cache takes less.
    let most = if requests.state == State::Cache { 0.01 } else { 0.4 };
    let most = (capacity_bytes as f64 * most / requests.block_bytes as f64).max(64.0) as u64;
    plain(Prepared::Fresh, format!("{} io", most.min(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::amount::Unit;
    use crate::figures::what::Requests;
    use crate::held_out;

    #[test]
    fn what_cleans_is_measured_on_few_dies_unless_the_queue_is_too_short_for_that() {
        let figures = held_out::published().unwrap().into_iter().find(|f| f.drive.name == "p4500").unwrap();
        let model = Model::new(&figures).unwrap();
        let values = model.values(&vec![0.0; model.variables.len()], 2).unwrap();
        assert!(values.dies >= 64, "the 4 TB: {} dies", values.dies);
        let writes = |depth| {
            let requests = Requests {
                is_sequential: false,
                is_write: true,
                mixed: None,
                block_bytes: 4096,
                depth,
                state: crate::figures::State::Steady,
            };
            part(&model, &values, What::Rate(requests, Unit::PerSecond))
        };
        let endurance = part(&model, &values, What::Endurance(Load::Jesd219, None));
        assert!(endurance.dies < 8 && endurance.pages == 1, "{endurance:?}");
        assert_eq!(writes(256), endurance);
        let alone = writes(1);
        assert!(alone.dies == values.dies && alone.pages > 8, "{alone:?}");
    }
}
