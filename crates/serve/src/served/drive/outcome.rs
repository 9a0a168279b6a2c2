//! What was done to a served device, as the result of a run.

use super::{Drive, Start};
use nvlab_run::result::{Precondition, RunResult};
use nvlab_run::{Limit, RunPlan, State, summarize};

impl Drive {
    /// The result since the device was opened, or since the power came back last; `None` if it was lost or cannot finish what
    /// it accepted.
    pub fn result(&self) -> Option<RunResult> {
        let mut inner = self.inner();
        let now = inner.clock.now();
        let plan = RunPlan {
            design_name: self.name.clone(),
            workload_text: "served".into(),
            workload_about: "requests of programs to a served device".into(),
            seed: inner.state.seed(),
            state: State::Fresh.into(),
            until: None,
            limit: Limit::NONE,
            requests_asked: None,
        };
        let kind = match self.start {
            Start::Fresh => "fresh",
            Start::Closed | Start::Killed => "as it was left",
        };
        let prepared = self.prepared.clone().unwrap_or_else(|| Precondition::none(kind));
        let (origin, totals) = (inner.origin, inner.totals.clone());
        let wall_s = inner.clock.running().as_secs_f64();
        let device = inner.device.as_mut()?;
        let idle = device.observed_mut().idle_at(now).ok()?;
        let (span, busy) = (now.since(origin), idle.since(origin));
        let result =
            summarize(&self.design, &plan, &device.observed().insides(busy), prepared, &totals, span, busy);
        Some(RunResult { wall_s, ..result })
    }
}
