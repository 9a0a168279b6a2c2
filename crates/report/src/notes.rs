//! What a reader must know of a run as a whole before its figures are used.

use super::warnings::warnings;
use nvlab_run::metric;
use nvlab_run::result::RunResult;

/// The figures that a run is judged by first.
const FIRST: [&str; 8] =
    ["tps", "iops", "read.mean", "write.mean", "trim.mean", "flush.mean", "transaction.mean", "waf"];

/// What no figure shows, what is not in its lifetime, and which of its first figures it is too short for.
pub fn notes(run: &RunResult) -> Vec<String> {
    let short = FIRST.iter().filter_map(|name| doubt(name, run));
    warnings(run).into_iter().chain(run.lifetime.caveat.clone()).chain(short).collect()
}

/// `WA ± 8.1 %: too short`, if the figure of a metric is not known exactly enough.
pub(super) fn doubt(name: &str, run: &RunResult) -> Option<String> {
    let metric = metric::find(name).expect("the metric is in the table of metrics");
    let doubts = metric.doubts(run);
    (!doubts.is_empty()).then(|| format!("{} {}", metric.title, doubts.join("; ")))
}
