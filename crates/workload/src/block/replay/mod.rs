//! A trace as a workload.
//!
//! Addresses are transformed once, on the columns, when the replay is made; [`Replay`] then only reads arrays.
//! In this order:
//!
//! 1. `first=T` keeps requests that began before T; `scale-time=F` multiplies the times.
//! 2. Volumes are laid out one after another, each as long as its last byte rounded up to 1 MiB. A trace of a single
//!    volume keeps its addresses.
//! 3. `compact` removes extents that are never accessed; the order of addresses is preserved. With `clip-trims`,
//!    extents that are only trimmed count as not accessed, and trims are clipped to the others.
//! 4. `align=U` widens reads and writes to whole units. A trim is narrowed instead: it must not discard bytes
//!    outside its range.
//! 5. `wrap` takes addresses modulo the capacity (modulo a tenant's part, with copies). Without it, a trace
//!    that does not fit is an error.
//! 6. `copies=N` gives each of N tenants its own part; tenant 0 replays from the start, the others from a random
//!    request on, wrapping around. `loop=N` repeats all of it N times.
//!
//! `think=keep` replays the program behind the trace ([`Program`]) instead of the recorded times: its computing between
//! response and request is kept, its waiting is that of the new device.
//!
//! A period lasts from the first request to the last plus a mean gap, so that consecutive periods do not overlap.

mod addresses;
mod heap;
mod program;
mod spec;
#[cfg(test)]
mod tests;

pub use program::{Program, Rerun};
pub use spec::ReplaySpec;

use super::BlockWorkload;
use crate::{Batch, Op, Pacing, Request, Time, Workload, WorkloadError};
use nvlab_trace::Columns;
use nvlab_units::Rng;
use nvlab_units::quantity::display_bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What the modifiers changed in the requests of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// Requests of one pass of one tenant.
    pub requests: u64,
    /// Dropped because they began too late (`first`).
    pub too_late: u64,
    /// Reads and writes that were widened (`align`).
    pub widened: u64,
    /// Bytes that widening added to them.
    pub widened_bytes: u64,
    /// Trims that were narrowed (`align`, `clip-trims`).
    pub narrowed_trims: u64,
    /// Trims of less than a unit, or only of unused extents, dropped (`align`, `clip-trims`).
    pub dropped_trims: u64,
    /// Requests whose address was taken modulo the capacity (`wrap`).
    pub wrapped: u64,
    /// The end of the footprint as recorded, volumes laid out.
    pub recorded_bytes: u64,
    /// The end of the footprint of one tenant as replayed.
    pub footprint_bytes: u64,
}

impl fmt::Display for ReplayReport {
    /// One line: `1000 requests over 3.2 GiB; 12 widened by 48 KiB in all`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests over {}", self.requests, display_bytes(self.footprint_bytes))?;
        if self.footprint_bytes != self.recorded_bytes {
            write!(f, " (recorded over {})", display_bytes(self.recorded_bytes))?;
        }
        if self.widened > 0 {
            write!(f, "; {} widened by {} in total", self.widened, display_bytes(self.widened_bytes))?;
        }
        for (count, what) in [
            (self.too_late, "too late"),
            (self.narrowed_trims, "trims narrowed"),
            (self.dropped_trims, "empty trims left out"),
            (self.wrapped, "wrapped"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// A trace that is being replayed. Cloning shares the columns.
#[derive(Clone, Debug)]
pub struct Replay {
    columns: Arc<Columns>,
    program: Option<Arc<Program>>,
    report: ReplayReport,
    /// Closed loop of this depth; `None` honours the recorded times.
    depth: Option<u32>,
    stream: u8,
    period_ps: u64,
    passes: u64,
    pass: u64,
    /// The next row, with a single tenant.
    row: usize,
    tenants: Tenants,
}

/// Several copies of the trace, merged by time.
#[derive(Clone, Debug)]
struct Tenants {
    /// Bytes of a tenant's part.
    part_bytes: u64,
    /// The first row of each.
    first_row: Vec<u32>,
    /// Tenants not yet done with this pass: time within the pass, tenant, requests done.
    next: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl Replay {
    /// A replay of `columns` according to `spec` on a device of `capacity` bytes.
    pub fn new(
        columns: Columns,
        spec: &ReplaySpec,
        capacity: u64,
        seed: u64,
    ) -> Result<Replay, WorkloadError> {
        let mut columns = columns;
        let what = spec.path.display().to_string();
        let refuse = |reason: String| WorkloadError::DoesNotFit { what: what.clone(), reason };
        let copies = spec.copies.max(1);
        let part_bytes = addresses::part_bytes(capacity, copies, spec.align);
        let mut report = ReplayReport::default();
        addresses::prepare(&mut columns, spec, part_bytes, copies, &mut report).map_err(refuse)?;
        if columns.is_empty() {
            return Err(refuse("nothing is left to replay".to_owned()));
        }
        report.requests = columns.len() as u64;
        let last = columns.at_ps()[columns.len() - 1];
        let gap = last / (columns.len() as u64 - 1).max(1);
        let passes = spec.loops.max(1);
        let period_ps = last.checked_add(gap.max(1)).filter(|period| period.checked_mul(passes).is_some());
        let Some(period_ps) = period_ps else {
            let days = last as f64 * 1e-12 / 86400.0 * passes as f64;
            return Err(refuse(format!("it would last {days:.0} days; at most 213 can be simulated")));
        };
        let mut phases = Rng::stream(seed, "tenants");
        let first_row = (0..copies)
            .map(|tenant| if tenant == 0 { 0 } else { phases.below(columns.len() as u64) as u32 })
            .collect();
        let tenants = Tenants { part_bytes, first_row, next: BinaryHeap::new() };
        let mut program = None;
        if spec.keeps_think {
            let none = "it has no response times, so it is unknown when its program waited and when it computed; \
                    `nvlab serve --record FILE.nvt` records them, and traces of format msr have them";
            program = Some(Arc::new(Program::of(&columns).ok_or_else(|| refuse(none.to_owned()))?));
        }
        let columns = Arc::new(columns);
        let (depth, stream) = (spec.depth, spec.stream);
        let mut replay =
            Replay { columns, program, report, depth, stream, period_ps, passes, pass: 0, row: 0, tenants };
        replay.begin_pass();
        Ok(replay)
    }

    /// The same without its reads, which leave nothing on a device; `None` if nothing is left.
    pub fn without_reads(mut self) -> Option<Replay> {
        // Where the copies of a trace begin is the number of a row.
        if self.copies() == 1 {
            Arc::make_mut(&mut self.columns).retain(|request| request.op != Op::Read);
        }
        let is_left = self.columns.ops().any(|op| op != Op::Read);
        is_left.then_some(self)
    }

    /// The same again and again, as long as there is simulated time.
    pub fn endless(mut self) -> Replay {
        self.passes = u64::MAX / self.period_ps;
        self
    }

    /// What the modifiers changed.
    pub fn report(&self) -> &ReplayReport {
        &self.report
    }

    /// The trace as it is replayed, one tenant's.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    fn copies(&self) -> usize {
        self.tenants.first_row.len()
    }

    fn begin_pass(&mut self) {
        self.row = 0;
        if self.copies() > 1 {
            // All tenants start with the pass, each with its own first request.
            self.tenants.next.extend((0..self.copies() as u32).map(|tenant| Reverse((0, tenant, 0))));
        }
    }

    #[inline]
    fn at(&self, since_pass_ps: u64) -> Time {
        match self.depth {
            Some(_) => Time::ZERO,
            None => Time::from_ps(self.pass * self.period_ps + since_pass_ps),
        }
    }

    #[inline]
    fn fill_single(&mut self, batch: &mut Batch) -> usize {
        let columns = &*self.columns;
        let count = batch.room().min(columns.len() - self.row);
        let mut rows = columns.rows(self.row..self.row + count);
        let is_closed = self.depth.is_some();
        let base_ps = self.pass * self.period_ps;
        batch.extend(count, || {
            let request = rows.next().expect("as many rows as requests");
            let at = if is_closed { Time::ZERO } else { Time::from_ps(base_ps + request.at.ps()) };
            Request { at, stream: self.stream, ..request }
        });
        self.row += count;
        count
    }

    fn fill_tenants(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        let rows = self.columns.len() as u32;
        while batch.room() > 0 {
            let Some(mut head) = self.tenants.next.peek_mut() else { break };
            let Reverse((since_pass, tenant, done)) = *head;
            let first = self.tenants.first_row[tenant as usize];
            let row = (first as u64 + done as u64) % rows as u64;
            if done + 1 == rows {
                std::collections::binary_heap::PeekMut::pop(head);
            } else {
                let next = (row + 1) % rows as u64;
                let (at, begun) = (self.columns.at_ps()[next as usize], self.columns.at_ps()[first as usize]);
                let since = if next > first as u64 { at - begun } else { at + (self.period_ps - begun) };
                *head = Reverse((since, tenant, done + 1));
                drop(head);
            }
            let mut request = self.columns.request(row as usize);
            request.at = self.at(since_pass);
            request.offset +=
                if request.op == Op::Flush { 0 } else { tenant as u64 * self.tenants.part_bytes };
            request.volume = tenant as u16;
            request.stream = self.stream;
            batch.push(request);
        }
        batch.len() - before
    }
}

impl BlockWorkload for Replay {
    #[inline]
    fn fill(&mut self, batch: &mut Batch) -> usize {
        assert!(batch.room() > 0, "a full batch cannot be filled");
        loop {
            let count = if self.copies() > 1 { self.fill_tenants(batch) } else { self.fill_single(batch) };
            if count > 0 || self.pass + 1 >= self.passes {
                return count;
            }
            self.pass += 1;
            self.begin_pass();
        }
    }

    fn program(&self) -> Option<Arc<Program>> {
        self.program.clone()
    }
}

impl Workload for Replay {
    fn pacing(&self) -> Pacing {
        match (self.depth, &self.program) {
            (_, Some(_)) => Pacing::Program,
            (Some(depth), None) => Pacing::Closed { depth },
            (None, None) => Pacing::Open,
        }
    }

    fn len_hint(&self) -> Option<u64> {
        let rows = self.columns.len() as u64;
        let left_in_pass = if self.copies() > 1 {
            self.tenants.next.iter().map(|Reverse((_, _, done))| rows - *done as u64).sum()
        } else {
            rows - self.row as u64
        };
        Some(left_in_pass + (self.passes - 1 - self.pass) * rows * self.copies() as u64)
    }

    /// Starts at 0 and includes gaps between the addresses.
    fn footprint(&self) -> Range<u64> {
        let parts_before = self.tenants.part_bytes * (self.copies() as u64 - 1);
        0..parts_before + self.report.footprint_bytes
    }

    /// The report, in lines for people.
    fn describe(&self) -> String {
        self.report.to_string()
    }
}
