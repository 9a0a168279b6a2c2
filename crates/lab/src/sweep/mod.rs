//! Many runs: axes span a space of points, each point is a run, and all of them are one table and one page.
//!
//! 1. A point is an ordinary run with its key: a sweep that was interrupted or killed continues where it stopped, and
//!    shards that ran elsewhere are merged by looking up their results.
//! 2. The table depends on the sweep alone, not on which process ran which point when: one process, two shards and a
//!    resumed sweep write the same bytes.
//! 3. A point without a result is a row with the reason; it does not hold up the others.
//!
//! | module | what |
//! |---|---|
//! | [`space`] | axes, points, what is run at a point: also of experiments |
//! | [`file`](mod@file) | the file of a sweep, and axes as they are written on a command line |
//! | [`scale`] | the types of the values of an axis: numbers in a base unit, or texts |
//! | [`fleet`] | a workload that is a pattern: one point for each trace it matches |
//! | `figures` | the part of a run kept in memory |
//! | [`skip`] | rules for points that are not run |
//! | [`table`] | the results as one table: Parquet, CSV, JSON |
//! | `description` | the description of a sweep in its table |
//! | [`finished`] | a sweep read from its table, for its page |
//! | [`front`] | the objectives of points, and their Pareto front |
//! | [`shown`] | the metrics and objectives shown |
//! | [`page`] | table, curves and front as a page |
//! | [`elsewhere`] | points for workers on other computers |

mod description;
pub mod elsewhere;
mod figures;
pub mod file;
pub mod finished;
pub mod fleet;
pub mod front;
pub mod page;
pub mod scale;
pub mod shown;
pub mod skip;
pub mod space;
pub mod table;

#[cfg(test)]
mod tests;

pub use figures::Figures;
pub use file::SweepError;
pub use finished::Finished;
pub use shown::Shown;
pub use space::{Point, Space};

use nvlab_design::DesignErrors;
use nvlab_run::engine::{Engine, TaskError};
use nvlab_run::plan::{Named, Settings, Task};
use nvlab_workload::WorkloadError;
use rayon::prelude::*;
use skip::Skip;
use space::Axis;
use std::collections::HashMap;
use std::str::FromStr;
use thiserror::Error;

/// A space without the points that are skipped.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its name, used in the names of files.
    pub name: String,
    /// All points.
    pub space: Space,
    /// Rules for points that are not run.
    pub skips: Vec<Skip>,
}

/// The axis whose values are seeds: figures show the mean along it.
pub const SEED: &str = "seed";
/// The axis of the traces of a fleet.
pub(crate) const VOLUME: &str = "volume";
/// The axis whose values are workloads: points on different workloads are not compared.
pub(crate) const WORKLOAD: &str = "workload";

/// The outcome of a point.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The point.
    pub point: Point,
    /// What its run measured, or why it has no result.
    pub result: Result<Figures, String>,
}

/// Why a point cannot be run.
#[derive(Debug, Error)]
pub enum PointError {
    /// Its design is wrong.
    #[error("{}", .0.0.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; "))]
    Design(#[from] DesignErrors),
    /// Its workload is wrong, or does not fit the design.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Its run failed on another machine.
    #[error("{0}")]
    Elsewhere(String),
}

impl Sweep {
    /// True if its points are on many traces, whose metrics are shown as distributions.
    pub fn is_fleet(&self) -> bool {
        self.space.axis(VOLUME).is_some_and(|axis| axis.values.len() > 1)
    }

    /// The axes with several values, without that of seeds.
    pub fn varied(&self) -> Vec<&Axis> {
        self.space.axes.iter().filter(|axis| axis.name != SEED && axis.values.len() > 1).collect()
    }

    /// The points that are run; the last axis varies fastest.
    pub fn points(&self) -> Result<Vec<Point>, String> {
        let mut points = self.space.points()?;
        points.retain(|point| !self.skips.iter().any(|skip| skip.holds(&self.space, point)));
        Ok(points)
    }
}

/// Some of the points of a sweep: every `of`th, from the `number`th on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    /// How many shards there are.
    pub of: usize,
}

impl Shard {
    /// True if a point belongs to this shard; points are counted from 0.
    pub fn takes(&self, point: usize) -> bool {
        point % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    /// `2/8`.
    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            Some((number.trim().parse::<usize>().ok()?, of.trim().parse::<usize>().ok()?))
        });
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err(format!("`{text}` is not a shard: write I/N, with I from 1 to N")),
        }
    }
}

/// The outcomes of points, in their order: each has the task in its place, or a reason why it has none.
pub fn outcomes(
    points: &[&Point],
    places: Vec<Result<usize, PointError>>,
    ran: &[Result<Figures, TaskError>],
) -> Vec<Outcome> {
    let outcome = |(point, place): (&&Point, Result<usize, PointError>)| {
        let result = match place {
            Err(why) => Err(why.to_string()),
            Ok(at) => match &ran[at] {
                Ok(figures) => Ok(figures.clone()),
                Err(why) => Err(why.to_string()),
            },
        };
        Outcome { point: (*point).clone(), result }
    };
    points.iter().zip(places).map(outcome).collect()
}

/// The run of a point.
fn task_of(engine: &Engine, named: Named, point: &Point) -> Result<Task, PointError> {
    let settings = Settings { seed: point.seed, until: point.until, state: point.state };
    Ok(Task::new(named.design, named.name, &engine.source(&point.workload)?, settings)?)
}

/// Tasks without duplicates: figures share points.
#[derive(Debug, Default)]
pub struct Batch {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What each is called while it runs.
    pub titles: Vec<String>,
    known: HashMap<(String, String), usize>,
}

impl Batch {
    /// The tasks of points, whose designs `load` finds, and the number of each point's task; those in `failed` have failed
    /// elsewhere and have none.
    pub fn of(
        engine: &Engine,
        points: &[&Point],
        failed: &HashMap<usize, String>,
        load: impl Fn(&Point) -> Result<Named, DesignErrors> + Sync,
    ) -> (Batch, Vec<Result<usize, PointError>>) {
        let task = |(at, point): (usize, &&Point)| match failed.get(&at) {
            Some(why) => Err(PointError::Elsewhere(why.clone())),
            None => task_of(engine, load(point)?, point),
        };
        // Thousands of traces are read, on all cores.
        let tasks: Vec<Result<Task, PointError>> = points.par_iter().enumerate().map(task).collect();
        let mut batch = Batch::default();
        let places =
            points.iter().zip(tasks).map(|(point, task)| Ok(batch.enter(task?, point, ""))).collect();
        (batch, places)
    }

    /// Adds the run of a point; returns its number among the tasks.
    pub fn add(&mut self, engine: &Engine, point: &Point, title: &str) -> Result<usize, PointError> {
        Ok(self.enter(task_of(engine, point.load()?, point)?, point, title))
    }

    fn enter(&mut self, task: Task, point: &Point, title: &str) -> usize {
        let identity = (task.key.clone(), task.plan.design_name.clone());
        *self.known.entry(identity).or_insert_with(|| {
            self.titles.push(point.title(title));
            self.tasks.push(task);
            self.tasks.len() - 1
        })
    }

    /// The tasks as the engine takes them.
    pub fn tasks(&self) -> Vec<&Task> {
        self.tasks.iter().collect()
    }
}
