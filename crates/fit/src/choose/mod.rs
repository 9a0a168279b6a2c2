//! The best design that meets requirements: keys that are free, a workload, needs, goals.
//!
//! The price of a design, its capacity and whether it can be at all are known before it is run; all else is measured by ordinary
//! runs, which are kept. The keys of a kind are free only in designs of that kind: `ftl.clean.d` of `ftl.clean.kind = d-choices`.
//!
//! | file | what |
//! |---|---|
//! | [`free`] | keys that are free, and their values |
//! | `hunt` | the search |
//! | [`page`] | the answer as a page |
//! | `document` | the answer as JSON |

mod document;
pub mod free;
mod hunt;
pub mod page;

use crate::fit::{Ended, Runs};
use free::{Free, Trial};
use hunt::{Axis, Found, Hunt, Point, Space};
use nvlab_report::Assertion;
use nvlab_run::Preparation;
use nvlab_run::metric::{Better, Metric};
use nvlab_run::plan::{Named, Settings, Source, Task, Until};
use nvlab_run::result::RunResult;
use nvlab_workload::WorkloadError;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The design, by name or path, with changes after commas.
    pub design: String,
    /// Changes of it.
    pub sets: Vec<String>,
    /// Keys that are free.
    pub free: Vec<Free>,
    /// The workload.
    pub workload: String,
    /// How devices are prepared.
    pub state: Preparation,
    /// Where a run ends.
    pub until: Option<Until>,
    /// Seed of search and runs.
    pub seed: u64,
    /// What must hold.
    pub needs: Vec<Assertion>,
    /// What is to be best, the first first.
    pub goals: Vec<Metric>,
    /// Runs at most.
    pub runs: usize,
}

/// A design that was run.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its changes: the free keys that it has.
    pub sets: Vec<String>,
    /// The goals, in base units of their metrics.
    pub goals: Vec<f64>,
    /// What each need is about, in base units.
    pub needs: Vec<f64>,
    /// Which needs it meets.
    pub meets: Vec<bool>,
    /// It meets all, and nothing that does is better in every goal.
    pub is_front: bool,
}

/// What a need costs: how much better the first goal could be without it.
#[derive(Clone, Debug)]
pub struct Cost {
    /// The need.
    pub need: String,
    /// The best without it, if better.
    pub without: Option<Candidate>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Choice {
    /// All that were run and have a result.
    pub candidates: Vec<Candidate>,
    /// The best, or the front, by their places; the best of the first goal first. Empty if nothing meets all.
    pub best: Vec<usize>,
    /// What binds the best: needs it just meets, keys at the end of their range.
    pub binds: Vec<String>,
    /// What each need costs.
    pub costs: Vec<Cost>,
    /// Designs in the space, as far as keys and values tell.
    pub designs: u64,
    /// Runs that were made.
    pub runs: usize,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ChooseError {
    /// What is asked for cannot be.
    #[error("{0}")]
    Wrong(String),
    /// The workload is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// It ended early.
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// A margin within which a need binds.
const BINDS: f64 = 0.05;

/// Searches.
pub fn choose(asked: &Asked, runs: &dyn Runs) -> Result<Choice, ChooseError> {
    free::check(asked).map_err(ChooseError::Wrong)?;
    let source = runs.source(&asked.workload)?;
    let mut designs = Designs::new(asked, runs, source);
    let count = designs.axes.iter().fold(1u64, |all, axis| all.saturating_mul(axis.count as u64));
    let mut hunt = Hunt::new(&mut designs, asked.seed);
    hunt.go(asked.runs)?;
    if hunt.found.is_empty() {
        return Err(ChooseError::Wrong("no design of this space can be run".to_string()));
    }
    let mut without = Vec::new();
    if !hunt.best().is_empty() && asked.goals.len() == 1 {
        for margin in 0..asked.needs.len() {
            let relaxed = hunt.waiving(margin, (asked.runs / 10).clamp(4, 12))?;
            without.push(relaxed.expect("the best meets the others, too"));
        }
    }
    let found = std::mem::take(&mut hunt.found);
    drop(hunt);
    Ok(designs.answer(&found, without, count))
}

/// The designs of a space, run by the engine.
struct Designs<'a> {
    asked: &'a Asked,
    runs: &'a dyn Runs,
    source: Arc<Source>,
    axes: Vec<Axis>,
    trial: Trial<'a>,
    ran: BTreeMap<Point, (Vec<f64>, Vec<f64>)>,
    count: usize,
}

impl<'a> Designs<'a> {
    fn new(asked: &'a Asked, runs: &'a dyn Runs, source: Arc<Source>) -> Designs<'a> {
        let axis = |free: &Free| Axis { count: free.values.len(), is_ordered: free.is_ordered };
        let axes = asked.free.iter().map(axis).collect();
        let trial = Trial { design: &asked.design, sets: &asked.sets, free: &asked.free };
        Designs { asked, runs, source, axes, trial, ran: BTreeMap::new(), count: 0 }
    }

    /// A goal as a cost: the logarithm, so that differences are shares.
    fn cost(metric: &Metric, value: f64) -> f64 {
        let log = value.max(1e-300).ln();
        if metric.better == Better::More { -log } else { log }
    }

    /// The margin of a need: the logarithm of how far the value is on the wrong side.
    fn margin(need: &Assertion, value: f64, holds: bool) -> f64 {
        let (limit, at_most) = need.limit().unwrap_or((1.0, true));
        let margin = (value.max(1e-300) / limit.abs().max(1e-300)).ln() * if at_most { 1.0 } else { -1.0 };
        match (holds, margin.is_finite()) {
            (_, false) => {
                if holds {
                    -10.0
                } else {
                    10.0
                }
            }
            (true, true) => margin.min(0.0),
            (false, true) => margin.max(1e-6),
        }
    }

    /// The values of goals and needs of a run.
    fn measured(&self, run: &RunResult) -> Option<(Vec<f64>, Vec<f64>, Vec<f64>)> {
        let of = |metric: &Metric| match metric.of(run) {
            None if metric.is_life_of(run) && run.without_end() => Some(f64::INFINITY),
            value => value,
        };
        let goals: Vec<f64> = self.asked.goals.iter().map(of).collect::<Option<_>>()?;
        let costs = self.asked.goals.iter().zip(&goals).map(|(metric, value)| Designs::cost(metric, *value));
        let mut values: Vec<f64> = costs.collect();
        let mut needs = Vec::new();
        for need in &self.asked.needs {
            let holds = need.check(run).is_ok_and(|verdict| verdict.holds);
            let value = of(need.metric()).unwrap_or(f64::NAN);
            needs.push(value);
            values.push(Designs::margin(need, value, holds));
        }
        Some((values, goals, needs))
    }

    fn candidate(&self, found: &Found) -> Candidate {
        let (goals, needs) = self.ran[&found.point].clone();
        let meets = found.values[goals.len()..].iter().map(|margin| *margin <= 0.0).collect();
        Candidate { sets: self.trial.sets_of(&found.point), goals, needs, meets, is_front: false }
    }

    fn answer(&self, found: &[Found], without: Vec<usize>, designs: u64) -> Choice {
        let goals = self.asked.goals.len();
        let mut candidates: Vec<Candidate> = found.iter().map(|found| self.candidate(found)).collect();
        let meets: Vec<usize> =
            (0..found.len()).filter(|&at| candidates[at].meets.iter().all(|met| *met)).collect();
        let beats = |a: &Found, b: &Found| {
            let pairs = || a.values[..goals].iter().zip(&b.values[..goals]);
            pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
        };
        let is_front = |at: &usize| meets.iter().all(|&other| !beats(&found[other], &found[*at]));
        let mut best: Vec<usize> = meets.iter().copied().filter(is_front).collect();
        best.sort_by(|a, b| found[*a].values[0].total_cmp(&found[*b].values[0]));
        if goals == 1 {
            best.truncate(1);
        }
        best.iter().for_each(|&at| candidates[at].is_front = true);
        let binds = best.first().map_or(Vec::new(), |&at| self.binds(&found[at]));
        let cheaper = |at: &usize| {
            best.first().is_some_and(|&first| found[*at].values[0] < found[first].values[0] - 1e-9)
        };
        let cost = |(need, at): (&Assertion, usize)| Cost {
            need: need.text().to_string(),
            without: Some(at).filter(cheaper).map(|at| candidates[at].clone()),
        };
        let costs = self.asked.needs.iter().zip(without).map(cost).collect();
        Choice { best, binds, costs, designs, runs: self.count, candidates }
    }

    fn binds(&self, found: &Found) -> Vec<String> {
        let goals = self.asked.goals.len();
        let margins = self.asked.needs.iter().zip(&found.values[goals..]);
        let near = margins.filter(|(_, margin)| **margin > -BINDS);
        let needs = near.map(|(need, margin)| format!("{} (met by {:.1} %)", need.text(), -margin * 100.0));
        let ends = self.asked.free.iter().zip(&found.point).filter(|(free, at)| {
            free.is_ordered && free.values.len() > 2 && (**at == 0 || **at + 1 == free.values.len())
        });
        let ends =
            ends.map(|(free, at)| format!("{} is at the end of its range: {}", free.key, free.values[*at]));
        needs.chain(ends).collect()
    }
}

impl Space for Designs<'_> {
    fn axes(&self) -> &[Axis] {
        &self.axes
    }

    fn costs(&self) -> usize {
        self.asked.goals.len()
    }

    fn values(&self) -> usize {
        self.asked.goals.len() + self.asked.needs.len()
    }

    fn known(&self, point: &Point) -> Option<(Point, Vec<Option<f64>>)> {
        let (point, named) = self.trial.design(point)?;
        let goals = self
            .asked
            .goals
            .iter()
            .map(|metric| free::known(metric, &named.design).map(|value| Designs::cost(metric, value)));
        let needs = self.asked.needs.iter().map(|need| {
            let value = free::known(need.metric(), &named.design)?;
            let (limit, at_most) = need.limit()?;
            let holds = if at_most { value <= limit } else { value >= limit };
            Some(Designs::margin(need, value, holds))
        });
        Some((point, goals.chain(needs).collect()))
    }

    fn run(&mut self, points: &[Point]) -> Result<Vec<Option<Vec<f64>>>, Ended> {
        let settings = Settings { seed: self.asked.seed, until: self.asked.until, state: self.asked.state };
        let (trial, source) = (&self.trial, &self.source);
        let task = |point: &Point| {
            let (_, Named { design, name, .. }) = trial.design(point)?;
            Task::new(design, name, source, settings).ok()
        };
        let tasks: Vec<Option<Task>> = points.par_iter().map(task).collect();
        let ready: Vec<&Task> = tasks.iter().flatten().collect();
        let titles: Vec<String> = ready.iter().map(|task| task.plan.design_name.clone()).collect();
        self.count += ready.len();
        let mut results = self.runs.run(&ready, &titles)?.into_iter();
        let mut values = Vec::new();
        for (point, task) in points.iter().zip(&tasks) {
            let done = task.as_ref().and_then(|_| results.next()).and_then(Result::ok);
            let measured = done.and_then(|done| self.measured(&done.result));
            values.push(measured.map(|(values, goals, needs)| {
                self.ran.insert(point.clone(), (goals, needs));
                values
            }));
        }
        Ok(values)
    }
}
