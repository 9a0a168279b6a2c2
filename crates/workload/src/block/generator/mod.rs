//! Generated requests: an address distribution, a mix of operations, sizes and arrivals, combined statically.
//!
//! 1. Each purpose has its own random stream ("addresses", "operations", "sizes", "arrivals"), so that one
//!    can be changed without affecting another.
//! 2. Addresses are slots: whole multiples of the smallest block (or `align`), counted from the start of the region. A
//!    larger request that would exceed the end is moved down until it fits.
//! 3. Reads, writes and trims of a sequential generator each have their own position, as in fio.

mod any;
mod jesd219;
mod mix;
mod sizes;
mod spec;
mod zones;

pub use any::AnyGenerator;
pub use mix::Mix;
pub use sizes::{SizeSource, Sizes};
pub(crate) use spec::pattern;
pub use spec::{Amount, Distribution, GeneratorSpec, KINDS};
pub use zones::{ZoneResets, ZoneRules, ZoneWriter};

use super::{BlockWorkload, Draws, Often};
use crate::addresses::Addresses;
use crate::arrivals::{Arrivals, Pace};
use crate::{Batch, Op, Pacing, Request, Span, Workload};
use nvlab_units::Rng;
use std::ops::Range;

/// All parameters of a generator except its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// `[start, end)` in bytes of the device.
    pub region: Range<u64>,
    /// Of writes and trims, and of reads without `read_sizes`.
    pub sizes: Sizes,
    /// Sizes of reads; `None`: as the others.
    pub read_sizes: Option<Sizes>,
    /// Bytes that addresses are multiples of, counted from the start of the region.
    pub slot_bytes: u32,
    /// Shares of reads, writes and trims.
    pub mix: Mix,
    /// When; the depth of a closed loop is that of all threads together.
    pub pace: Pace,
    /// Threads that issue; each keeps its share of the depth in flight.
    pub threads: u32,
    /// A flush after every this many writes; 0 for none.
    pub flush_every: u64,
    /// Whether a flush follows the last request.
    pub flush_at_end: bool,
    /// Every write is forced to the medium.
    pub fua: bool,
    /// The number of requests, not counting flushes; `None` for no end.
    pub requests: Option<u64>,
    /// Simulated time after which it stops; `None` for no limit.
    pub time_limit: Option<Span>,
    /// Copied to [`Request::stream`]: its number when several run at once.
    pub stream: u8,
}

impl Plan {
    /// Closed loop of depth 1, writes of `block_bytes` over `region`, without an end.
    pub fn writes(region: Range<u64>, block_bytes: u32) -> Plan {
        Plan {
            region,
            sizes: Sizes::Fixed(block_bytes),
            read_sizes: None,
            slot_bytes: block_bytes,
            mix: Mix::Share { read: 0.0, trim: 0.0 },
            pace: Pace::Closed { depth: 1 },
            threads: 1,
            flush_every: 0,
            flush_at_end: false,
            fua: false,
            requests: None,
            time_limit: None,
            stream: 0,
        }
    }

    /// The number of slots in the region, for which the addresses must be made.
    pub fn slots(&self) -> u64 {
        (self.region.end - self.region.start) / self.slot_bytes as u64
    }
}

/// Changes the seed for the sizes of reads, where they are drawn apart.
const READS: u64 = 0x7265_6164;

/// Requests of a [`Plan`] at the addresses that `A` draws.
#[derive(Clone, Debug)]
pub struct Generator<A> {
    addresses: A,
    arrivals: Arrivals,
    sizes: SizeSource,
    read_sizes: Option<SizeSource>,
    operations: Rng,
    mix: mix::Drawn,
    base: u64,
    unit: u64,
    span: u64,
    remaining: u64,
    is_endless: bool,
    flush_every: u64,
    flush_in: u64,
    flush_due: bool,
    flush_at_end: bool,
    fua: bool,
    stream: u8,
    /// The write that follows the trim of the same blocks.
    pending: Option<Request>,
    time_limit: Option<Span>,
    threads: u32,
    /// If all requests are equal except for the address: one of them.
    alike: Option<Request>,
}

impl<A: Addresses> Generator<A> {
    /// A generator; `addresses` must have been made for `plan.slots()`. Panics if the region is smaller than
    /// the largest request.
    pub fn new(plan: &Plan, addresses: A, seed: u64) -> Generator<A> {
        let unit = plan.slot_bytes as u64;
        let span = plan.slots() * unit;
        assert!(span >= plan.sizes.largest() as u64, "requests of {:?} in {:?}", plan.sizes, plan.region);
        let mix = plan.mix.drawn();
        let is_alike =
            matches!(plan.pace, Pace::Closed { .. }) && plan.flush_every == 0 && !plan.flush_at_end;
        // Larger ones than a slot are moved away from the end.
        let is_alike = is_alike && plan.read_sizes.is_none() && plan.sizes.largest() <= plan.slot_bytes;
        let alike = |(op, bytes)| Request {
            bytes,
            op,
            fua: plan.fua && op == Op::Write,
            stream: plan.stream,
            ..Request::default()
        };
        Generator {
            addresses,
            arrivals: Arrivals::new(plan.pace, plan.time_limit, seed),
            sizes: SizeSource::new(&plan.sizes, seed),
            read_sizes: plan.read_sizes.as_ref().map(|sizes| SizeSource::new(sizes, seed ^ READS)),
            operations: Rng::stream(seed, "operations"),
            base: plan.region.start,
            unit,
            span,
            remaining: plan.requests.unwrap_or(u64::MAX),
            is_endless: plan.requests.is_none(),
            flush_every: plan.flush_every,
            flush_in: plan.flush_every,
            flush_due: false,
            flush_at_end: plan.flush_at_end,
            fua: plan.fua,
            stream: plan.stream,
            pending: None,
            time_limit: plan.time_limit,
            threads: plan.threads,
            alike: if is_alike { mix.only().zip(plan.sizes.only()).map(alike) } else { None },
            mix,
        }
    }

    /// The fast path: only the address varies.
    #[inline]
    fn fill_alike(&mut self, batch: &mut Batch, like: Request) -> usize {
        let count = (batch.room() as u64).min(self.remaining) as usize;
        let (base, unit) = (self.base, self.unit);
        let addresses = &mut self.addresses;
        batch.extend(count, || {
            // Copied as a whole and then changed: `..like` would copy field by field, in twice as many stores.
            let mut request = like;
            request.offset = base + addresses.slot(like.op, 1) * unit;
            request
        });
        self.remaining -= count as u64;
        count
    }

    fn fill_varied(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        while batch.room() > 0 {
            match self.next() {
                Some(request) => batch.push(request),
                None => break,
            }
        }
        batch.len() - before
    }

    #[inline]
    fn next(&mut self) -> Option<Request> {
        // Tested before it is taken: taking stores, and few workloads have requests that come in pairs.
        if self.pending.is_some()
            && let Some(request) = self.pending.take()
        {
            return Some(self.counted(request));
        }
        if self.flush_due {
            self.flush_due = false;
            return Some(self.flush());
        }
        if self.remaining == 0 {
            return self.flush_once_at_end();
        }
        let Some(at) = self.arrivals.next() else {
            self.remaining = 0;
            return self.flush_once_at_end();
        };
        let (op, then_write) = self.mix.next(&mut self.operations);
        let bytes = match &mut self.read_sizes {
            Some(sizes) if op == Op::Read => sizes.draw(),
            _ => self.sizes.draw(),
        };
        let slot = self.addresses.slot(op, (bytes as u64).div_ceil(self.unit));
        let mut from = slot * self.unit;
        if from + bytes as u64 > self.span {
            from = (self.span - bytes as u64) / self.unit * self.unit;
        }
        let request =
            Request { at, offset: self.base + from, bytes, op, stream: self.stream, ..Request::default() };
        if then_write && self.remaining > 1 {
            self.pending = Some(Request { op: Op::Write, ..request });
        }
        Some(self.counted(request))
    }

    #[inline]
    fn counted(&mut self, mut request: Request) -> Request {
        self.remaining -= 1;
        // The order of the tests avoids a branch on the random operation in the usual case.
        request.fua = self.fua & (request.op == Op::Write);
        if self.flush_every > 0 && request.op == Op::Write {
            self.flush_in -= 1;
            if self.flush_in == 0 {
                self.flush_in = self.flush_every;
                self.flush_due = true;
            }
        }
        request
    }

    fn flush(&self) -> Request {
        let at = self.arrivals.now();
        Request { at, op: Op::Flush, stream: self.stream, ..Request::default() }
    }

    fn flush_once_at_end(&mut self) -> Option<Request> {
        std::mem::take(&mut self.flush_at_end).then(|| self.flush())
    }
}

impl<A> Generator<A> {
    fn go_on(&mut self, restarts: bool) {
        (self.remaining, self.is_endless, self.time_limit, self.flush_at_end) = (u64::MAX, true, None, false);
        self.arrivals.go_on(restarts);
    }

    /// A limit of time is taken for none: what is written until then depends on the device.
    fn leaves_rest(&self) -> bool {
        let ends = !self.is_endless && self.time_limit.is_none();
        ends && self.remaining.saturating_mul(self.sizes.largest() as u64) < self.span
    }
}

impl<A> Workload for Generator<A> {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    fn threads(&self) -> u32 {
        self.threads
    }

    fn footprint(&self) -> Range<u64> {
        self.base..self.base + self.span
    }

    /// Requests left; flushes are not counted.
    fn len_hint(&self) -> Option<u64> {
        (!self.is_endless).then_some(self.remaining)
    }

    fn time_limit(&self) -> Option<Span> {
        self.time_limit
    }
}

impl<A: Addresses> BlockWorkload for Generator<A> {
    #[inline]
    fn fill(&mut self, batch: &mut Batch) -> usize {
        assert!(batch.room() > 0, "a full batch cannot be filled");
        match self.alike {
            Some(like) => self.fill_alike(batch, like),
            None => self.fill_varied(batch),
        }
    }

    fn pass_bytes(&self) -> Option<u64> {
        let is_whole = self.sizes.only() == Some(self.unit as u32) && self.read_sizes.is_none();
        (is_whole && self.addresses.passes()).then(|| self.mix.written_of(self.span))
    }

    fn draws(&self) -> Option<Vec<Draws>> {
        if self.mix.only() == Some(Op::Read) {
            return Some(Vec::new());
        }
        let write_share = self.mix.write_share().filter(|_| self.read_sizes.is_none())?;
        let (start, bytes, slots) = (self.base, self.unit as u32, self.span / self.unit);
        let ranks = self.addresses.ranks()?;
        let sizes = match self.sizes.only() == Some(bytes) {
            true => None,
            // Of scattered slots, those after a popular one are not.
            false if ranks.is_in_order() => Some(self.sizes.apart()),
            false => return None,
        };
        let often = match self.arrivals.pace() {
            Pace::Closed { depth } => Often::Closed { depth, write_share },
            Pace::Poisson { per_second } | Pace::Regular { per_second } => {
                Often::Rate(per_second * write_share)
            }
        };
        let flushes = self.fua || self.flush_every > 0;
        Some(vec![Draws { start, bytes, slots, ranks, often, flushes, sizes }])
    }
}

#[cfg(test)]
mod tests;
