//! Several streams of requests on one device at the same time: the jobs of a fio file, or several workloads.
//!
//! Each stream keeps its own pace: its depth, its rate, its pauses. So which of them is next depends on completions, which a
//! workload does not learn: whoever drives a device with [`Together`] drives its [`Tenant`]s one by one
//! ([`BlockWorkload::tenants`]), and does not ask it for requests.

use super::{AnyBlockWorkload, BlockWorkload};
use crate::{Batch, Pacing, Span, Workload};
use std::ops::Range;

/// A pause between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long, from the completion of all requests before it.
    pub time: Span,
    /// After how many requests, at least 1.
    pub every: u32,
}

/// One of the streams.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Its name in results.
    pub name: String,
    /// Its requests.
    pub workload: AnyBlockWorkload,
    /// Tenants that must have ended before it begins, by their number: lower than its own.
    pub after: Vec<usize>,
    /// It begins so long after them, or after the beginning.
    pub delay: Span,
    /// How it pauses.
    pub think: Option<Think>,
}

/// Streams that run together.
#[derive(Clone, Debug)]
pub struct Together {
    tenants: Vec<Tenant>,
    next: usize,
}

impl Together {
    /// At least one.
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
        format!("{} streams: {}", names.len(), names.join(", "))
    }
}

impl BlockWorkload for Together {
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

    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        Some(&mut self.tenants)
    }
}
