//! The answer as JSON.

use super::{Asked, Candidate, Choice};
use nvlab_run::metric::Metric;
use serde_json::{Value, json};

impl Choice {
    /// All of it, for programs: values in base units.
    pub fn document(&self, asked: &Asked) -> Value {
        let candidate = |candidate: &Candidate| {
            let finite = |values: &[f64]| {
                values.iter().map(|v| if v.is_finite() { json!(v) } else { Value::Null }).collect::<Vec<_>>()
            };
            json!({
                "set": candidate.sets, "goals": finite(&candidate.goals), "needs": finite(&candidate.needs),
                "meets": candidate.meets, "front": candidate.is_front,
            })
        };
        json!({
            "schema": "nvlab.choose/1",
            "design": asked.design,
            "workload": asked.workload,
            "goals": asked.goals.iter().map(Metric::column).collect::<Vec<_>>(),
            "need_metrics": asked.needs.iter().map(|need| need.metric().column()).collect::<Vec<_>>(),
            "needs": asked.needs.iter().map(|need| need.text()).collect::<Vec<_>>(),
            "best": self.best.iter().map(|&at| candidate(&self.candidates[at])).collect::<Vec<_>>(),
            "binds": self.binds,
            "costs": self.costs.iter().map(|cost| json!({
                "need": cost.need, "without": cost.without.as_ref().map(candidate),
            })).collect::<Vec<_>>(),
            "candidates": self.candidates.iter().map(candidate).collect::<Vec<_>>(),
            "designs": self.designs,
            "runs": self.runs,
        })
    }
}
