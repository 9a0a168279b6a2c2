//! Warnings about a run that no figure shows.

use super::departure::departure;
use nvlab_run::number;
use nvlab_run::result::{ArrivalsResult, RunResult};

/// A smaller share of reads without data is not mentioned.
const UNWRITTEN: f64 = 0.01;

/// The warnings about a run; none for most.
pub fn warnings(run: &RunResult) -> Vec<String> {
    let streams = run.tenants.iter().filter_map(|stream| {
        overload(stream.arrivals.as_ref()?).map(|text| format!("stream {}: {text}", stream.name))
    });
    let all = if run.tenants.is_empty() { run.arrivals.as_ref().and_then(overload) } else { None };
    all.into_iter()
        .chain(streams)
        .chain(unwritten(run))
        .chain(part_of_pass(run))
        .chain(departure(run))
        .collect()
}

/// A queue that grew over the run.
fn overload(arrivals: &ArrivalsResult) -> Option<String> {
    let per_s = |rate: f64| match rate {
        rate if rate >= 1000.0 => number::count(rate.round() as u64),
        rate => number::three(rate),
    };
    let ArrivalsResult { offered_per_s, served_per_s, growth_per_s, .. } = *arrivals;
    (growth_per_s > 0.0).then(|| {
        format!(
            "the queue grew by {} requests per second ({} offered, {} served): latencies depend on the length of the run",
            per_s(growth_per_s),
            per_s(offered_per_s),
            per_s(served_per_s)
        )
    })
}

/// Reads for which no cell was read.
fn unwritten(run: &RunResult) -> Option<String> {
    (run.read.count > 0 && run.unwritten_read_share >= UNWRITTEN).then(|| {
        format!(
            "{} of the reads were of addresses without data (never written, or trimmed): they access no flash and are faster \
             than reads of data",
            number::share(run.unwritten_read_share)
        )
    })
}

/// Warns if a run covered less than all addresses of a permutation.
fn part_of_pass(run: &RunResult) -> Option<String> {
    run.part_of_pass.map(|pass| {
        format!(
            "the run wrote {} of a pass over its addresses, each once per pass: write amplification rises and falls within a pass, \
             so run whole passes (--until '{:.2} x capacity')",
            number::share(run.write.bytes as f64 / pass as f64),
            (100.0 * pass as f64 / run.design.capacity_bytes as f64).ceil() / 100.0
        )
    })
}
