//! Caveats to a run as a whole.

use super::warnings::warnings;
use nvlab_run::metric;
use nvlab_run::result::RunResult;

/// The main figures of a run.
const FIRST: [&str; 8] =
    ["tps", "iops", "read.mean", "write.mean", "trim.mean", "flush.mean", "transaction.mean", "waf"];

/// Warnings that no figure shows, what is not included in its lifetime, and which of its main figures it is too short
/// for.
pub fn notes(run: &RunResult) -> Vec<String> {
    let short = FIRST.iter().filter_map(|name| doubt(name, run));
    warnings(run).into_iter().chain(run.lifetime.caveat.clone()).chain(short).collect()
}

/// `WA ± 8.1 %: too short`, if the figure of a metric is not precise enough.
pub(super) fn doubt(name: &str, run: &RunResult) -> Option<String> {
    let metric = metric::find(name).expect("the metric is in the table of metrics");
    let doubts = metric.doubts(run);
    (!doubts.is_empty()).then(|| format!("{} {}", metric.title, doubts.join("; ")))
}
