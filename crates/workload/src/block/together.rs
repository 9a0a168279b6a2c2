//! Several streams of requests on one device at the same time: the jobs of a fio file, or several workloads.
//!
//! Each stream keeps its own pace: its depth, its rate, its pauses. So which of them is next depends on completions, which a
//! workload does not learn: whoever drives a device with [`Together`] drives its [`Tenant`]s one by one
//! ([`BlockWorkload::tenants`]), and does not ask it for requests.

use super::{AnyBlockWorkload, BlockWorkload, Draws};
use crate::{Batch, Pacing, Span, Workload};
use std::ops::Range;

/// How a stream in a closed loop issues its requests; by default as soon as one is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Issue {
    /// Pauses; `None`: it never pauses.
    pub think: Option<Think>,
    /// An upper limit; `None`: as fast as the device.
    pub rate: Option<Rate>,
    /// When it takes completed requests, once its depth is reached.
    pub reap: Reap,
}

impl Issue {
    /// What becomes of pauses where there is a rate too.
    pub(super) fn pauses_below_a_rate(&self) -> Option<&'static str> {
        self.think?;
        Some(match self.rate.as_ref()?.ignores_thinking {
            true => {
                "thinktime with a rate: pauses do not count towards the rate (rate_ignore_thinktime), so they slow the job down"
            }
            false => {
                "thinktime with a rate: the job catches up after a pause, so pauses change the bursts, not the rate, unless \
             they leave too little time; rate_ignore_thinktime=1 adds them"
            }
        })
    }
}

/// A pause, once all requests before it are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Length of the pause, from the completion of all requests before it.
    pub time: Span,
    /// After how many requests since the last pause, at least 1.
    pub every: Option<u32>,
    /// After how much time since the last pause.
    pub after: Option<Span>,
    /// Requests count when they are issued, not when they are taken as done.
    pub when_issued: bool,
}

/// A limit in front of a closed loop: fio's `rate` and `rate_iops`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// For reads, writes and trims; `None`: no limit.
    pub limits: [Option<RateLimit>; 3],
    /// Bytes of the smallest read, write and trim.
    pub least_bytes: [u32; 3],
    /// Who is early waits for all requests in flight, then for as long as it was early. Otherwise only until it is time.
    pub waits_out: bool,
    /// Pauses do not count: what they delayed is not caught up.
    pub ignores_thinking: bool,
    /// A read that is early becomes a write that is less so, and the other way round.
    pub switches: bool,
    /// Seeds the exponentially distributed gaps.
    pub seed: u64,
}

/// A limit for one kind of request, counted from the beginning of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// The next request may be issued when the bytes so far are due.
    Bytes {
        /// At least 1.
        per_s: u64,
    },
    /// The next request may be issued when the gaps so far have passed.
    Gaps {
        /// The mean distance between two requests.
        mean: Span,
        /// Exponentially distributed gaps; false: equal ones.
        is_poisson: bool,
    },
}

/// How a stream whose depth is reached takes requests that are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reap {
    /// It waits until this many are done and takes them together; at least 1.
    pub at_once: u32,
    /// Then it goes on taking until at most this many are in flight.
    pub until_left: Option<u32>,
}

impl Default for Reap {
    fn default() -> Reap {
        Reap { at_once: 1, until_left: None }
    }
}

/// One stream of a [`Together`].
#[derive(Clone, Debug)]
pub struct Tenant {
    /// The row of its figures in results.
    pub name: String,
    /// The requests it issues.
    pub workload: AnyBlockWorkload,
    /// Tenants that must have ended before it begins, by their number: lower than its own.
    pub after: Vec<usize>,
    /// Delay after they ended, or after the beginning.
    pub delay: Span,
    /// Simulated time before its figures are counted.
    pub ramp_time: Span,
    /// How it issues its requests, if it is a closed loop.
    pub issue: Issue,
    /// Its figures are added to those of this tenant, whose number is lower than its own and which has none here.
    pub reported_with: Option<usize>,
}

/// Streams on one device; driven tenant by tenant, not as one workload.
#[derive(Clone, Debug)]
pub struct Together {
    tenants: Vec<Tenant>,
    next: usize,
}

impl Together {
    /// Panics without tenants.
    pub fn new(tenants: Vec<Tenant>) -> Together {
        assert!(!tenants.is_empty(), "nobody runs together");
        Together { tenants, next: 0 }
    }
}

impl Workload for Together {
    /// Open if all of them are: else the sum of their depths, those that can be in flight at the same time.
    fn pacing(&self) -> Pacing {
        let depths = self.tenants.iter().filter_map(|tenant| match tenant.workload.pacing() {
            Pacing::Closed { depth } => Some(depth),
            Pacing::Open | Pacing::Program => None,
        });
        match depths.reduce(u32::saturating_add) {
            Some(depth) => Pacing::Closed { depth },
            None => Pacing::Open,
        }
    }

    fn footprint(&self) -> Range<u64> {
        let footprints = self.tenants.iter().map(|tenant| tenant.workload.footprint());
        footprints.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).expect("there is a tenant")
    }

    fn len_hint(&self) -> Option<u64> {
        let lengths = self.tenants.iter().map(|tenant| match tenant.workload.time_limit() {
            None => tenant.workload.len_hint(),
            Some(_) => None,
        });
        lengths.sum()
    }

    fn has_end(&self) -> bool {
        self.tenants.iter().all(|tenant| tenant.workload.has_end())
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        let streams = if names.len() == 1 { "stream" } else { "streams" };
        format!("{} {streams}: {}", names.len(), names.join(", "))
    }
}

impl BlockWorkload for Together {
    fn appends(&self) -> bool {
        self.tenants.iter().all(|tenant| tenant.workload.appends())
    }

    /// Some from each in turn, whatever their pace.
    fn fill(&mut self, batch: &mut Batch) -> usize {
        for _ in 0..self.tenants.len() {
            let next = self.next;
            self.next = (next + 1) % self.tenants.len();
            let filled = self.tenants[next].workload.fill(batch);
            if filled > 0 {
                return filled;
            }
        }
        0
    }

    /// Those of all streams, if none of them waits for others or pauses.
    fn draws(&self) -> Option<Vec<Draws>> {
        // Of one alone it does not matter how often it writes.
        if let [tenant] = &self.tenants[..] {
            return tenant.workload.draws();
        }
        let is_plain = |tenant: &Tenant| {
            tenant.after.is_empty() && tenant.delay == Span::ZERO && tenant.issue == Issue::default()
        };
        if !self.tenants.iter().all(is_plain) {
            return None;
        }
        let draws = self.tenants.iter().map(|tenant| tenant.workload.draws());
        draws.collect::<Option<Vec<_>>>().map(|draws| draws.into_iter().flatten().collect())
    }

    fn pass_bytes(&self) -> Option<u64> {
        match &self.tenants[..] {
            [tenant] => tenant.workload.pass_bytes(),
            _ => None,
        }
    }

    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        Some(&mut self.tenants)
    }

    fn ramp_time(&self) -> Span {
        self.tenants.iter().map(|tenant| tenant.ramp_time).max().unwrap_or(Span::ZERO)
    }
}
