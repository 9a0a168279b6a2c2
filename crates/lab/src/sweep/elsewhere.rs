//! Points that run on other computers: each is described by texts alone, and its key verifies that a worker runs the
//! same point.

use super::{Batch, Point, PointError};
use nvlab_design::BUILT_IN;
use nvlab_run::engine::Engine;
use nvlab_run::plan::{Task, split};
use serde::{Deserialize, Serialize};
use std::fs;

/// A point as a worker on another computer runs it. A workload that is a file is read there, under the same path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    /// The number of the point in its sweep.
    pub point: usize,
    /// For progress and messages.
    pub title: String,
    /// The key of its run: that of the result that comes back.
    pub key: String,
    /// The design.
    pub design: DesignTexts,
    /// The workload.
    pub workload: String,
    /// Seed.
    pub seed: u64,
    /// When the run ends.
    pub until: Option<String>,
    /// How the device is prepared.
    pub state: String,
}

/// The name or path of a design, the contents of that file, and the changes to it.
pub type DesignTexts = (String, Option<String>, Vec<String>);

impl Errand {
    /// A task under its number and title.
    fn new(number: usize, title: &str, task: &Task, design: DesignTexts) -> Errand {
        Errand {
            point: number,
            title: title.to_string(),
            key: task.key.clone(),
            design,
            workload: task.plan.workload_text.clone(),
            seed: task.plan.seed,
            until: task.plan.until.clone(),
            state: task.plan.state.to_string(),
        }
    }

    /// A task whose design is in no file: every value of it is sent.
    pub fn of_values(number: usize, title: &str, task: &Task) -> Errand {
        let design = (task.design.name.clone(), Some(task.design.resolved_toml()), Vec::new());
        Errand::new(number, title, task, design)
    }
}

/// The design of a point, as texts.
pub fn design_of(point: &Point) -> DesignTexts {
    let (name, mut changes) = split(&point.design);
    changes.extend(point.sets.iter().cloned());
    let is_file = BUILT_IN.iter().all(|(known, _)| *known != name);
    let text = is_file.then(|| fs::read_to_string(name).ok()).flatten();
    (name.to_string(), text, changes)
}

/// The points whose results are not stored yet; of points with the same run, the first. `places` are their tasks.
pub fn errands(
    engine: &Engine,
    points: &[&Point],
    places: &[Result<usize, PointError>],
    batch: &Batch,
    mut design: impl FnMut(&Point) -> DesignTexts,
) -> Vec<Errand> {
    let mut seen = vec![false; batch.tasks.len()];
    let mut errands = Vec::new();
    for (number, (point, place)) in points.iter().zip(places).enumerate() {
        let Ok(at) = place else { continue };
        let task = &batch.tasks[*at];
        if std::mem::replace(&mut seen[*at], true) || engine.find(task).is_some() {
            continue;
        }
        errands.push(Errand::new(number, &batch.titles[*at], task, design(point)));
    }
    errands
}
