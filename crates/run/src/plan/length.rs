//! Estimates the device time of a run at a rate from its first requests: simulated time ends after 213 days, which
//! should not be discovered after hours.

use crate::Limit;
use nvlab_units::{Span, Time};
use nvlab_workload::{Batch, Changes, Op, Pacing, Work, WorkloadError};

/// Requests that are drawn for the estimate: their mean distance is known to 3 % if they arrive at random.
const SAMPLE: u64 = 1024;
/// An estimate beyond the end of time by less than this may be wrong.
const MARGIN: f64 = 1.1;

/// Fails if a run of an open loop would take longer than simulated time can be, by what its first requests tell.
pub(super) fn check(work: &Work, limit: &Limit, text: &str) -> Result<(), WorkloadError> {
    let longest = Limit::NONE.time.seconds();
    let needed = match needed_s(work, limit) {
        Some(needed) if limit.time == Limit::NONE.time && needed > longest * MARGIN => needed,
        _ => return Ok(()),
    };
    let days = |seconds: f64| (seconds / 86_400.0).floor();
    Err(WorkloadError::DoesNotFit {
        what: format!("workload '{text}'"),
        reason: format!(
            "at its rate= it takes about {} days of device time until its end or that of --until, but a run can simulate at \
             most {} days, because time is counted in picoseconds: give a higher rate=, or an earlier end (--until, until=)",
            days(needed),
            days(longest)
        ),
    })
}

/// Seconds until the first limit but that of time is reached; `None` if the pace is the device's, or too little is known.
fn needed_s(work: &Work, limit: &Limit) -> Option<f64> {
    if work.pacing() != Pacing::Open {
        return None;
    }
    let Sample { requests, bytes, written_bytes, last } = Sample::of(work)?;
    let share = |limit: u64, sampled: u64| (limit != u64::MAX).then(|| limit as f64 / sampled.max(1) as f64);
    let own = work.len_hint().unwrap_or(u64::MAX);
    let shares = [
        share(limit.requests.min(own), requests),
        share(limit.bytes, bytes),
        share(limit.written_bytes, written_bytes),
    ];
    let first = shares.into_iter().flatten().reduce(f64::min)?;
    // The first of n requests arrives at 0, so they show n - 1 distances.
    let distances = requests.checked_sub(1).filter(|&distances| distances > 0)?;
    Some(first * last.seconds() * requests as f64 / distances as f64)
}

/// The first requests of a workload.
#[derive(Default)]
struct Sample {
    requests: u64,
    bytes: u64,
    written_bytes: u64,
    last: Span,
}

impl Sample {
    /// `None` if the workload ends within them.
    fn of(work: &Work) -> Option<Sample> {
        let mut sample = Sample::default();
        match work.clone() {
            Work::Requests(mut workload) => {
                let mut batch = Batch::new();
                while sample.requests < SAMPLE {
                    batch.clear();
                    if workload.fill(&mut batch) == 0 {
                        return None;
                    }
                    for request in batch.requests() {
                        let bytes = request.bytes as u64;
                        sample.bytes += if matches!(request.op, Op::Read | Op::Write) { bytes } else { 0 };
                        sample.written_bytes += if request.op == Op::Write { bytes } else { 0 };
                        sample.last = request.at.since(Time::ZERO);
                    }
                    sample.requests += batch.len() as u64;
                }
            }
            Work::Accesses(mut workload) => {
                let mut accesses = Vec::new();
                sample.take(|| workload.next(&mut accesses))?;
            }
            Work::Commits(mut workload) => {
                let mut changes = Changes::default();
                sample.take(|| workload.next(&mut changes))?;
            }
        }
        Some(sample)
    }

    /// Of transactions only the number is known.
    fn take(&mut self, mut next: impl FnMut() -> Option<Time>) -> Option<()> {
        (self.bytes, self.written_bytes) = (u64::MAX, u64::MAX);
        while self.requests < SAMPLE {
            self.last = next()?.since(Time::ZERO);
            self.requests += 1;
        }
        Some(())
    }
}
