//! Measurements during a run: latencies per kind, and the windows of the run.
//!
//! A run of transactions has its loads under [`Op::Read`], its stores under [`Op::Write`], and the transactions as a
//! separate kind (`TRANSACTION`); its windows count transactions.

mod precision;

pub use precision::Figure;

use super::arrivals::Arrivals;
use super::device::Counters;
use crate::result::{Precision, Window};
use nvlab_units::{Histogram, PackedHistogram, Span, Time, Total};
use nvlab_workload::{Access, AccessKind, Op, Request};
use precision::Batches;

/// Maximum number of windows of a run; when there are more, neighbours are merged.
const WINDOWS_MAX: usize = 400;
/// Minimum requests of a window, and the initial number if the total is not known.
const WINDOW_REQUESTS: u64 = 32;

/// Index of the totals of transactions, after those of the kinds of requests.
pub const TRANSACTION: usize = 4;
/// The totals of every kind.
pub type Totals = [OpTotals; TRANSACTION + 1];

/// Totals of one kind of request.
#[derive(Clone, Debug, Default)]
pub struct OpTotals {
    /// Bytes.
    pub bytes: u64,
    /// Latency of each.
    pub latency: Histogram,
}

impl OpTotals {
    /// Requests.
    pub fn count(&self) -> u64 {
        self.latency.count()
    }

    /// One more, of so many bytes.
    #[inline]
    pub(super) fn count_one(&mut self, bytes: u32, latency: Span) {
        self.bytes += bytes as u64;
        self.latency.add(latency);
    }
}

/// What a window keeps of one kind: a histogram takes 22 KB, its non-empty buckets a few hundred bytes.
#[derive(Clone, Debug, Default)]
struct Kept {
    bytes: u64,
    latency: PackedHistogram,
}

impl OpTotals {
    /// Adds those of another stream.
    pub(super) fn merge(&mut self, other: &OpTotals) {
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    fn add(&mut self, kept: &Kept) {
        self.bytes += kept.bytes;
        self.latency.merge_packed(&kept.latency);
    }

    fn take(&mut self) -> Kept {
        Kept { bytes: std::mem::take(&mut self.bytes), latency: self.latency.take_packed() }
    }
}

#[derive(Clone, Debug)]
struct Stretch {
    from: Time,
    to: Time,
    ops: [Kept; TRANSACTION + 1],
    /// What the device had counted at its begin, and at its end.
    before: Counters,
    after: Counters,
}

impl Stretch {
    fn requests(&self) -> u64 {
        match self.ops[TRANSACTION].latency.count() {
            0 => self.ops.iter().map(|op| op.latency.count()).sum(),
            transactions => transactions,
        }
    }

    fn join(&mut self, next: Stretch) {
        self.to = next.to;
        let mut both = OpTotals::default();
        for (mine, theirs) in self.ops.iter_mut().zip(&next.ops) {
            both.add(mine);
            both.add(theirs);
            *mine = both.take();
        }
        self.after = next.after;
    }

    fn window(&self, origin: Time) -> Window {
        let unpacked = |op: Op| {
            let mut totals = OpTotals::default();
            totals.add(&self.ops[op as usize]);
            totals
        };
        let (read, write) = (unpacked(Op::Read), unpacked(Op::Write));
        let counted = self.after.since(&self.before);
        let per_unit = |units: u64| match counted.host_units {
            0 => 0.0,
            host => units as f64 / host as f64,
        };
        let quantile = |op: &OpTotals, q| if op.count() == 0 { 0 } else { op.latency.quantile(q).ns() };
        Window {
            from_s: self.from.since(origin).seconds(),
            to_s: self.to.since(origin).seconds(),
            requests: self.requests(),
            read_bytes: read.bytes,
            write_bytes: write.bytes,
            read_p50_ns: quantile(&read, 0.5),
            read_p99_ns: quantile(&read, 0.99),
            write_p50_ns: quantile(&write, 0.5),
            write_p99_ns: quantile(&write, 0.99),
            write_amplification: per_unit(counted.programmed_units()),
            cleaning_cost: per_unit(counted.causes.clean + counted.causes.transfer),
            erases: counted.erases,
        }
    }
}

/// Measures a run.
#[derive(Clone)]
pub struct Meter {
    origin: Time,
    current: Totals,
    current_from: Time,
    current_requests: u64,
    window_requests: u64,
    before: Counters,
    stretches: Vec<Stretch>,
    /// Of an open loop.
    pub(super) arrivals: Arrivals,
    /// From when requests were wanted until they began.
    pub(super) queue_wait: Total,
    /// The one that has begun.
    commit: Commit,
    /// There are flushes, or writes that are flushed at once.
    flushes: bool,
    /// See [`Meter::in_passes`].
    pass_bytes: u64,
    /// Those that have ended.
    commits: OpTotals,
    goal: Option<Goal>,
    /// Requests in the windows, and how many there are when the goal is looked at next.
    requests: u64,
    look_at: u64,
    is_reached: bool,
}

/// A run ends when it knows this figure so exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Which one.
    pub figure: Figure,
    /// Half of its 95 % interval over its value.
    pub within: f64,
}

impl Meter {
    /// A meter for a run that begins at `origin` on a device that has counted `before`, of `expected` requests
    /// if that is known.
    pub fn new(origin: Time, before: Counters, expected: Option<u64>) -> Meter {
        Meter {
            origin,
            current: Default::default(),
            current_from: origin,
            current_requests: 0,
            window_requests: (expected.unwrap_or(0) / WINDOWS_MAX as u64 + 1).max(WINDOW_REQUESTS),
            before,
            stretches: Vec::new(),
            arrivals: Arrivals::default(),
            queue_wait: Total::default(),
            commit: Commit::default(),
            flushes: false,
            pass_bytes: 0,
            commits: OpTotals::default(),
            goal: None,
            requests: 0,
            look_at: 0,
            is_reached: false,
        }
    }

    /// The same with a goal.
    pub fn until(self, goal: Option<Goal>) -> Meter {
        Meter { goal, ..self }
    }

    /// Checks its goal only after this many bytes are written: within a pass over all addresses figures rise and
    /// fall.
    pub(super) fn in_passes(self, pass_bytes: Option<u64>) -> Meter {
        Meter { pass_bytes: pass_bytes.unwrap_or(0), ..self }
    }

    /// True if its goal is reached.
    #[inline]
    pub(crate) fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// How exactly the figures are known, from whole windows.
    pub fn precision(&self) -> Vec<Precision> {
        precision::precision(&self.stretches)
    }

    /// A request was served: wanted at `wanted`, done at `end`.
    #[inline]
    pub fn served(&mut self, request: &Request, wanted: Time, end: Time) {
        self.counted(request.op, request.bytes, end.since(wanted));
        self.flushes |= request.op == Op::Flush || request.fua;
        if let Some(took) = self.commit.note((request.op, request.fua), wanted, end) {
            self.committed(took);
        }
    }

    /// A request of one of several streams, each of which notes its own commits.
    pub(super) fn counted(&mut self, op: Op, bytes: u32, took: Span) {
        self.current[op as usize].count_one(bytes, took);
    }

    /// A commit took so long.
    pub(super) fn committed(&mut self, took: Span) {
        self.commits.count_one(0, took);
    }

    /// Requests were served, each wanted at its moment and with its latency.
    #[inline]
    pub(super) fn served_all(&mut self, requests: &[Request], moments: &[Time], latencies: &[Span]) {
        let Some(&Request { op, .. }) = requests.first() else { return };
        let (others, bytes) = requests.iter().fold((0, 0), |(others, bytes), request| {
            let other = (request.op as u8 ^ op as u8) | request.fua as u8;
            (others | other, bytes + request.bytes as u64)
        });
        if others == 0 && op != Op::Flush {
            if op == Op::Write {
                self.commit.first.get_or_insert(moments[0]);
                if self.flushes {
                    let ends = moments.iter().zip(latencies).take(requests.len());
                    self.commit.written =
                        ends.fold(self.commit.written, |last, (&at, &took)| last.max(at + took));
                }
            }
            let totals = &mut self.current[op as usize];
            totals.bytes += bytes;
            totals.latency.add_all(&latencies[..requests.len()]);
            return;
        }
        for (request, (&moment, &latency)) in requests.iter().zip(moments.iter().zip(latencies)) {
            self.served(request, moment, moment + latency);
        }
    }

    /// From the first write since a flush to the end of the next one, of each flush that had something to make durable.
    pub(super) fn commits(&self) -> &OpTotals {
        &self.commits
    }

    /// `requests` were served since the last call, about 32, by a device that has counted what `counters` returns.
    #[inline]
    pub fn batch(&mut self, counters: impl FnOnce() -> Counters, requests: u64, now: Time) {
        self.current_requests += requests;
        if self.current_requests >= self.window_requests {
            self.close(counters(), now);
        }
    }

    /// An access of a transaction took `latency`.
    #[inline]
    pub fn access(&mut self, access: &Access, latency: Span) {
        let op = match access.kind {
            AccessKind::Load => Op::Read,
            AccessKind::Store => Op::Write,
        };
        self.current[op as usize].count_one(access.bytes.into(), latency);
    }

    /// A transaction took `latency` from its arrival.
    #[inline]
    pub fn transaction(&mut self, latency: Span) {
        self.current[TRANSACTION].latency.add(latency);
    }

    fn close(&mut self, counters: Counters, now: Time) {
        let ops = self.current.each_mut().map(OpTotals::take);
        self.requests += self.current_requests;
        self.stretches.push(Stretch {
            from: self.current_from,
            to: now,
            ops,
            before: self.before,
            after: counters,
        });
        self.before = counters;
        self.current_from = now;
        self.current_requests = 0;
        if self.stretches.len() == WINDOWS_MAX {
            self.window_requests *= 2;
            let mut joined: Vec<Stretch> = Vec::with_capacity(WINDOWS_MAX);
            for (i, stretch) in self.stretches.drain(..).enumerate() {
                match joined.last_mut() {
                    Some(last) if i % 2 == 1 => last.join(stretch),
                    _ => joined.push(stretch),
                }
            }
            self.stretches = joined;
        }
        self.look();
    }

    /// Looks whether the goal is reached, each time the run has become a quarter longer: who looks at every window ends when the
    /// windows agree by chance.
    fn look(&mut self) {
        let Some(Goal { figure, within }) = self.goal.filter(|_| self.requests >= self.look_at) else {
            return;
        };
        self.look_at = self.requests + self.requests / 4;
        let written: u64 = self.stretches.iter().map(|stretch| stretch.ops[Op::Write as usize].bytes).sum();
        if written < self.pass_bytes {
            return;
        }
        self.is_reached = Batches::of(&self.stretches).within(figure).is_some_and(|found| found <= within);
    }

    /// The totals per kind and the windows, after the last request was done at `end`.
    pub fn finish(mut self, counters: Counters, end: Time) -> (Totals, Vec<Window>) {
        if self.current.iter().any(|op| op.count() > 0) {
            self.close(counters, end);
        }
        let windows = self.stretches.iter().map(|stretch| stretch.window(self.origin)).collect();
        let mut totals: Totals = Default::default();
        for stretch in &self.stretches {
            totals.iter_mut().zip(&stretch.ops).for_each(|(total, part)| total.add(part));
        }
        (totals, windows)
    }
}

/// The commit that a stream is in: from the first write since the last flush until a request makes all of them durable. A flush
/// covers only what was written when it was sent, so a host sends it when those writes are done: where a workload asks for both at
/// once, as at a rate, and the device ends the flush first, the commit ends so long after the writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Commit {
    /// When the first of the writes was wanted.
    first: Option<Time>,
    /// When the last of them is done.
    written: Time,
}

impl Commit {
    /// A request was served; how long the commit took that it ends. It may be a write that is flushed at once.
    #[inline]
    pub fn note(&mut self, (op, fua): (Op, bool), wanted: Time, end: Time) -> Option<Span> {
        if op == Op::Write {
            self.first.get_or_insert(wanted);
            self.written = self.written.max(end);
        }
        if op != Op::Flush && !fua {
            return None;
        }
        let done = if op == Op::Flush && self.written > end { self.written + end.since(wanted) } else { end };
        self.first.take().map(|first| done.since(first))
    }
}

/// The latency figures of a histogram.
pub fn latency(histogram: &Histogram) -> crate::result::Latency {
    if histogram.count() == 0 {
        return Default::default();
    }
    let ns = |span: Span| span.ns();
    crate::result::Latency {
        mean_ns: histogram.mean().ps() as f64 / 1000.0,
        p50_ns: ns(histogram.quantile(0.5)),
        p95_ns: ns(histogram.quantile(0.95)),
        p99_ns: ns(histogram.quantile(0.99)),
        p99_9_ns: ns(histogram.quantile(0.999)),
        p99_99_ns: ns(histogram.quantile(0.9999)),
        max_ns: ns(histogram.max()),
    }
}
