//! The metrics of a sweep's table and curves, and the objectives of its front.

use super::front::{Objectives, groups};
use super::{Outcome, Sweep};
use nvlab_run::metric::{self, Better, Metric};
use nvlab_run::result::ENOUGH;

/// The usual metrics, besides the objectives.
const USUAL: [&str; 5] = ["iops", "write.mean", "write.p99", "read.p99", "waf"];

/// What is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The columns of the table, and what its curves show.
    pub metrics: Vec<Metric>,
    /// The objectives, two or three.
    pub front: Vec<Metric>,
}

impl Shown {
    /// The metrics and objectives that were asked for; if none were, the usual ones that the runs have.
    pub fn of(sweep: &Sweep, outcomes: &[Outcome], metrics: &[Metric], front: &[Metric]) -> Shown {
        let groups = groups(sweep, outcomes, front);
        let front = Objectives::of(&groups, front).0;
        if !metrics.is_empty() {
            return Shown { metrics: metrics.to_vec(), front };
        }
        let named = |name: &str| metric::find(name).expect("the metric is in the table of metrics");
        let mut metrics: Vec<Metric> = Vec::new();
        for metric in USUAL.map(named).into_iter().chain(front.iter().cloned()) {
            let has = groups.iter().any(|group| group.mean(&metric).is_some());
            if has && !metrics.iter().any(|known| known.name == metric.name) {
                metrics.push(metric);
            }
        }
        Shown { metrics, front }
    }

    /// Metrics and objectives by their names; of objectives there are two or three, or none.
    pub fn named(metrics: &[String], front: &[String]) -> Result<Shown, String> {
        let found = |names: &[String]| names.iter().map(|name| metric::find(name)).collect();
        let (metrics, front): (Result<Vec<Metric>, String>, Result<Vec<Metric>, String>) =
            (found(metrics), found(front));
        let front = front?;
        if !matches!(front.len(), 0 | 2 | 3) {
            return Err("a front compares points by two or three metrics".to_string());
        }
        match front.iter().find(|metric| metric.better == Better::Neither) {
            Some(metric) => Err(format!("front: neither more nor less of {} is better", metric.name)),
            None => Ok(Shown { metrics: metrics?, front }),
        }
    }

    /// Warnings that a reader needs before using the figures, each a sentence: how the devices were prepared, how
    /// many are not steady, and whether lifetimes do not include the cost of cleaning.
    pub fn notes(&self, outcomes: &[Outcome]) -> Vec<String> {
        prepared(outcomes).into_iter().chain(self.caveat(outcomes)).collect()
    }

    /// A warning if some of the lifetimes shown do not include the cost of cleaning.
    pub(super) fn caveat(&self, outcomes: &[Outcome]) -> Option<String> {
        self.metrics.iter().chain(&self.front).find(|metric| metric.is_life())?;
        let regained = metric::find("lifetime.regained").expect("the metric is in the table of metrics");
        let runs: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok()).collect();
        let short = runs.iter().filter(|run| run.get(&regained).is_some_and(|share| share < ENOUGH)).count();
        (short > 0).then(|| {
            format!(
        "the lifetimes of {short} of {} runs do not include the cost of cleaning: these runs mostly filled blocks that were already \
         erased (lifetime.regained below 90 %); run longer, or start with steady devices",
                runs.len()
            )
        })
    }
}

/// How the devices of all points were prepared, and how many of them are not in a steady state.
fn prepared(outcomes: &[Outcome]) -> Vec<String> {
    let runs = outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok());
    let lines: Vec<&str> = runs.map(|run| run.prepared.as_str()).filter(|line| !line.is_empty()).collect();
    let Some(&first) = lines.first() else { return Vec::new() };
    let mut notes = vec![match lines.iter().all(|line| *line == first) {
        true => format!("prepared: {first}"),
        false => {
            format!("prepared, first point: {first}; the others differ (column prepared)")
        }
    }];
    let reasons = ["not steady", "too short to tell", "did not fill its log"];
    let doubtful = |line: &&&str| reasons.iter().any(|reason| line.contains(reason));
    let count = lines.iter().filter(doubtful).count();
    if count > 0 {
        let of = lines.len();
        notes.push(format!(
            "{count} of {of} runs did not start in the requested state; see their column `prepared`"
        ));
    }
    notes
}
