//! The writes of a preparation: those that fill a device, and those of a workload, as fast as the device accepts them
//! or at the pace of the run.

use nvlab_units::{Span, Time};
use nvlab_workload::block::Draws;
use nvlab_workload::block::repeated::PassWrites;
use nvlab_workload::block::together::Tenant;
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Program, Request, Workload};
use std::ops::Range;
use std::sync::Arc;

/// Writes in flight where nothing says how many.
pub(super) const DEPTH: u32 = 32;
/// Bytes of the requests that fill a device, at least.
const FILL_BYTES: u32 = 1 << 20;
/// A workload that draws this many requests without a write counts as one that writes nothing.
const BARREN_MAX: u64 = 1 << 20;

/// Requests of one unmeasured source, as fast as the device takes them.
pub(super) struct Unmeasured<F> {
    pub footprint: Range<u64>,
    /// [`BlockWorkload::fill`].
    pub fill: F,
}

impl<F> Workload for Unmeasured<F> {
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> Range<u64> {
        self.footprint.clone()
    }
}

impl<F: FnMut(&mut Batch) -> usize> BlockWorkload for Unmeasured<F> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        (self.fill)(batch)
    }
}

/// Large sequential writes over the first bytes of a device, and over a later range. They are of whole units: a unit written in
/// two parts is written twice, and the dead versions would stay among data that is never written again.
pub(super) fn sequential_fill(unit_bytes: u32, first: u64, then: Range<u64>) -> impl BlockWorkload + use<> {
    let piece = FILL_BYTES.next_multiple_of(unit_bytes) as u64;
    let ranges = [then, 0..first];
    let mut ranges: Vec<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    let fill = move |batch: &mut Batch| {
        let before = batch.len();
        while let Some(range) = ranges.last_mut().filter(|_| batch.room() > 0) {
            let bytes = (range.end - range.start).min(piece) as u32;
            batch.push(Request { offset: range.start, bytes, op: Op::Write, ..Request::default() });
            range.start += bytes as u64;
            if range.is_empty() {
                ranges.pop();
            }
        }
        batch.len() - before
    };
    Unmeasured { footprint: 0..end, fill }
}

/// Large writes in order over the first bytes of a device of zones, as far as each zone holds any: each of `size` bytes, of which
/// `held` can be written.
pub(super) fn zone_fill(unit_bytes: u32, end: u64, (size, held): (u64, u64)) -> impl BlockWorkload + use<> {
    let piece = FILL_BYTES.next_multiple_of(unit_bytes) as u64;
    let mut next = 0;
    let fill = move |batch: &mut Batch| {
        let before = batch.len();
        while next < end && batch.room() > 0 {
            let left = held - next % size;
            let bytes = left.min(piece).min(end - next);
            batch.push(Request { offset: next, bytes: bytes as u32, op: Op::Write, ..Request::default() });
            next += if bytes == left { size - held + bytes } else { bytes };
        }
        batch.len() - before
    };
    Unmeasured { footprint: 0..end, fill }
}

/// When the writes of a preparation are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As fast as the device takes them, without the reads, which leave nothing on it.
    Fast,
    /// As in the run: with the reads, at the same depth or rate. No two requests are further apart than this.
    Own { apart_max: Span },
}

/// The writes of a workload.
pub(super) struct Writes<'a> {
    workload: &'a mut dyn BlockWorkload,
    pace: Pace,
    /// Requests drawn, the reads among them.
    pub drawn: u64,
    /// Trims among them.
    pub trims: u64,
    /// Of an open workload, when the last request begins, in its own time and in that of the preparation.
    last: Option<(Time, Time)>,
}

impl<'a> Writes<'a> {
    pub fn new(workload: &'a mut dyn BlockWorkload, pace: Pace) -> Writes<'a> {
        Writes { workload, pace, drawn: 0, trims: 0, last: None }
    }

    /// Has the first request begin at once, and none much later than the one before.
    fn shift(&mut self, requests: &mut [Request], apart_max: Span) {
        for request in requests {
            let at = match self.last {
                Some((own, begun)) => begun + request.at.since(own).min(apart_max),
                None => Time::ZERO,
            };
            self.last = Some((request.at, at));
            request.at = at;
        }
    }
}

impl Workload for Writes<'_> {
    fn pacing(&self) -> Pacing {
        match (self.pace, self.workload.pacing()) {
            // When the program would issue its requests is not known here.
            (Pace::Fast, _) | (_, Pacing::Program) => Pacing::Closed { depth: DEPTH },
            (Pace::Own { .. }, pacing) => pacing,
        }
    }
    fn threads(&self) -> u32 {
        self.workload.threads()
    }
    fn footprint(&self) -> Range<u64> {
        self.workload.footprint()
    }
    /// Unknown: the reads among them are not counted.
    fn len_hint(&self) -> Option<u64> {
        None
    }
    fn time_limit(&self) -> Option<Span> {
        self.workload.time_limit()
    }
    fn has_end(&self) -> bool {
        self.workload.has_end()
    }
    fn describe(&self) -> String {
        self.workload.describe()
    }
}

impl BlockWorkload for Writes<'_> {
    fn appends(&self) -> bool {
        self.workload.appends()
    }
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let (before, until) = (batch.len(), self.drawn + BARREN_MAX);
        while batch.len() == before && self.drawn < until {
            match self.workload.fill(batch) {
                0 => break,
                count => self.drawn += count as u64,
            }
            if self.pace == Pace::Fast {
                batch.retain(before, |request| request.op != Op::Read);
            }
        }
        if let Pace::Own { apart_max } = self.pace {
            self.shift(&mut batch.requests_mut()[before..], apart_max);
        }
        let drawn = &batch.requests()[before..];
        self.trims += drawn.iter().filter(|request| request.op == Op::Trim).count() as u64;
        drawn.len()
    }
    fn prepare(&mut self, batch: &mut Batch) -> usize {
        self.workload.prepare(batch)
    }
    fn carries_payload(&self) -> bool {
        self.workload.carries_payload()
    }
    fn payload(&self, request: &Request) -> &[u8] {
        self.workload.payload(request)
    }
    fn client_bytes(&self) -> Option<u64> {
        self.workload.client_bytes()
    }
    fn pass_bytes(&self) -> Option<u64> {
        self.workload.pass_bytes()
    }
    fn draws(&self) -> Option<Vec<Draws>> {
        self.workload.draws()
    }
    fn begin_again(&mut self) -> bool {
        self.workload.begin_again()
    }
    fn pass_writes(&self, unit_bytes: u32) -> Option<PassWrites> {
        self.workload.pass_writes(unit_bytes)
    }
    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        self.workload.tenants()
    }
    fn ramp_time(&self) -> Span {
        self.workload.ramp_time()
    }
    /// They are issued as fast as the device takes them.
    fn program(&self) -> Option<Arc<Program>> {
        None
    }
}

/// True if streams are driven each at its own pace: one of several always is, since what they write in proportion depends on it.
pub(super) fn keeps_pace(workload: &mut dyn BlockWorkload, pace: Pace) -> bool {
    workload.tenants().is_some_and(|tenants| tenants.len() > 1 || pace != Pace::Fast)
}

/// The only stream of a workload, without its rate and its pauses; the workload if it is not made of streams.
pub(super) fn sole(workload: &mut dyn BlockWorkload) -> &mut dyn BlockWorkload {
    match workload.tenants().is_some() {
        true => &mut *workload.tenants().expect("it has some")[0].workload,
        false => workload,
    }
}
