//! A resource that is busy until a time: a die, a bank, a channel, a link, a driver lock. Decision 0001.
//!
//! A lane does *foreground* work, whose end is known when it is asked for, and *background* work (programs
//! behind a write buffer, cleaning copies, erases), which runs while the foreground is idle. A foreground
//! access that arrives in the middle of a background operation either suspends it or waits for that one
//! operation ([`Interruption`]); the rest of the background always waits. So the end of background work is
//! not known when it is queued: the caller holds a [`Ticket`] and asks again later.
//!
//! Invariants
//! 1. Background work is done in the order it was queued.
//! 2. What [`Lane::finish`] or [`Lane::foreground`] returned stays true. An access may suspend work whose end was
//!    returned to a caller: the caller's end stays, and the lane *owes* the time, so all later work begins later by it.
//! 3. Work is conserved: `done <= queued`, and no two things are done at once, except that owed work counts as done.
//!
//! No event queue is needed: each call brings the lane up to date. Times may arrive slightly out of order
//! (a transfer delays one request past the next); a lane never goes back in time, it serves in order of call.

use crate::time::{Served, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a foreground access does to the background operation it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interruption {
    /// It waits until that one operation is done.
    Wait,
    /// It suspends the operation.
    Suspend {
        /// From the suspend command until the access may begin.
        latency: Span,
        /// From the end of the last access until the operation goes on (eNVy section 3.4: "a few
        /// microseconds", so that a burst of accesses suspends once).
        resume: Span,
        /// How often one operation may be suspended; then an access waits until it is done. `u32::MAX`: no limit.
        limit: u32,
    },
}

/// A position in a lane's background work: it stands for everything queued up to there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(u64);

impl Ticket {
    /// A position that is never reached.
    pub const NEVER: Ticket = Ticket(u64::MAX);
}

/// Background operations of one length, back to back, none before `not_before`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Batch {
    end: u64,
    each: u64,
    not_before: Time,
}

/// A stretch of promised background work without a pause: work `from` to `to`, done at `end`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Promise {
    from: u64,
    to: u64,
    end: Time,
}

/// A resource that does one thing at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lane {
    /// Background work is accounted for up to this time.
    now: Time,
    /// No access starts before this: until then the lane is occupied by foreground work or by background work already
    /// accounted for.
    free_at: Time,
    /// Promised background work occupies the lane until here: the promised time plus the debt.
    owed_until: Time,
    /// No other background work runs before this.
    suspended_until: Time,
    /// Background work done by `now` (or promised), and queued in total, in picoseconds of work since power-on.
    done: u64,
    queued: u64,
    /// The last promise, and earlier ones that had not yet ended when it was made, oldest first.
    promise: Promise,
    promises: VecDeque<Promise>,
    /// Length of each operation of the last promise.
    promised_each: u64,
    /// When promised work last stood still, before its start or suspended: from, until.
    pause: (Time, Time),
    /// The batch queued last, while work is queued, and the earlier ones, oldest first; finished ones may remain for
    /// a while.
    batch: Batch,
    earlier: VecDeque<Batch>,
    /// When the last queued background work would be done if nothing else arrived.
    expected: Time,
    /// The operation suspended last, as the position of its end, and how often it was suspended.
    suspended: (u64, u32),
}

/// Limit of queued work: 213 days, less one picosecond to keep [`Ticket::NEVER`] out of reach. More never ends.
const QUEUED_MAX: u64 = u64::MAX - 1;

impl Lane {
    /// An idle lane.
    pub fn new() -> Lane {
        Lane::default()
    }

    /// Runs queued background work in the idle time before `at`.
    #[inline]
    pub fn advance(&mut self, at: Time) {
        if at > self.now {
            if self.done != self.queued {
                self.work(at);
            }
            self.now = at;
        }
    }

    /// Runs the background work that fits between `now` and `at`.
    fn work(&mut self, at: Time) {
        let mut time = self.now.max(self.suspended_until);
        while let Some(Batch { end, not_before, .. }) = self.next_batch() {
            time = time.max(not_before);
            if time >= at {
                break;
            }
            let step = at.since(time).ps().min(end - self.done);
            self.done += step;
            time += Span::from_ps(step);
            // For an out-of-order access, this time is already used.
            self.free_at = self.free_at.max(time);
        }
    }

    /// The remaining length of the background operation in progress; zero if there is none.
    fn left_of_current(&mut self) -> u64 {
        self.next_batch().map_or(0, |batch| (batch.end - self.done) % batch.each)
    }

    /// The first batch that is not yet done.
    #[inline]
    fn next_batch(&mut self) -> Option<Batch> {
        while let Some(&batch) = self.earlier.front() {
            if batch.end > self.done {
                return Some(batch);
            }
            self.earlier.pop_front();
        }
        (self.done != self.queued).then_some(self.batch)
    }

    /// Foreground work of length `span` that arrives at `at`: it starts when earlier foreground work is done and the
    /// background operation it meets is suspended or done.
    #[inline(always)]
    pub fn foreground(&mut self, at: Time, span: Span, interruption: &Interruption) -> Served {
        self.foreground_from(at, at, span, interruption)
    }

    /// [`Lane::foreground`] that starts no earlier than `ready`. Which operation it meets is decided at its arrival,
    /// `at`.
    #[inline(always)]
    pub fn foreground_from(
        &mut self,
        at: Time,
        ready: Time,
        span: Span,
        interruption: &Interruption,
    ) -> Served {
        let served = self.overlapping(at, ready, span, interruption);
        self.free_at = served.end;
        served
    }

    /// [`Lane::foreground`] that starts no earlier than `ready` and occupies only a part of the resource: other
    /// accesses may overlap it, and the caller makes those of the same part wait for each other. Background work
    /// waits for all of them.
    #[inline(always)]
    pub fn overlapping(&mut self, at: Time, ready: Time, span: Span, interruption: &Interruption) -> Served {
        if self.done == self.queued && at >= self.owed_until {
            // `now` stays: `suspended_until` is not before `at`, and no background work runs before the later of the two.
            let start = at.max(ready).max(self.free_at);
            let end = start + span;
            self.suspended_until = self.suspended_until.max(end);
            return Served { start, end };
        }
        self.overlapping_first(at, ready, span, interruption)
    }

    /// [`Lane::overlapping`] when background work is pending or promised, or was pending at the last call.
    fn overlapping_first(
        &mut self,
        at: Time,
        ready: Time,
        span: Span,
        interruption: &Interruption,
    ) -> Served {
        self.advance(at);
        if self.owed_until <= self.now {
            self.free_at = self.free_at.max(self.owed_until);
        }
        // Out of order: it cannot suspend what the lane has already done.
        let at = at.max(self.free_at.min(self.now));
        let mut start = at.max(ready).max(self.free_at);
        if at < self.owed_until {
            return self.overlapping_promised(at, start, span, interruption);
        }
        let left = self.left_of_current();
        let mut resume = Span::ZERO;
        if left > 0 {
            // Already suspended: no second suspend command.
            let paused = self.suspended_until > at;
            match *interruption {
                Interruption::Suspend { resume: wait, .. } if paused => resume = wait,
                Interruption::Suspend { latency, resume: wait, limit }
                    if self.may_suspend(self.done + left, limit) =>
                {
                    start += latency;
                    resume = wait;
                }
                _ => {
                    let done = self.promise(Ticket(self.done + left), at);
                    start = start.max(done);
                    // Work promised meanwhile starts after the access.
                    self.pause = (done, start + span);
                }
            }
        }
        let end = start + span;
        self.suspended_until = self.suspended_until.max(end + resume);
        Served { start, end }
    }

    /// [`Lane::overlapping`] that starts no earlier than `start` and arrives in the middle of promised work. If it
    /// suspends that work or starts between two operations, the rest, and everything after it, is done later than
    /// promised.
    fn overlapping_promised(
        &mut self,
        at: Time,
        start: Time,
        span: Span,
        interruption: &Interruption,
    ) -> Served {
        let Interruption::Suspend { latency, mut resume, limit } = *interruption else {
            let start = start.max(self.owed_until);
            let end = start + span;
            self.suspended_until = self.suspended_until.max(end);
            return Served { start, end };
        };
        let mut start = start;
        if at >= self.pause.1 {
            // Operations are assumed to have the length promised last; others among them count as several, or as a part.
            let each = self.promised_each.max(1);
            let behind = (self.owed_until.since(at).ps() - 1) / each * each;
            if self.may_suspend(self.promise.to.saturating_sub(behind), limit) {
                start += latency;
                self.pause = (at, at);
            } else {
                let between = self.owed_until.before(Span::from_ps(behind));
                self.pause = (between, between);
                resume = Span::ZERO;
            }
        } else if at < self.pause.0 {
            // It waits for the end of the same operation and suspends nothing.
            resume = Span::ZERO;
        }
        start = start.max(self.pause.0);
        let end = start + span;
        let until = self.pause.1.max(end + resume);
        // Work after the last promised operation delays no promise.
        if self.pause.0 < self.owed_until {
            self.owed_until += until.since(self.pause.1);
        }
        self.pause.1 = until;
        self.suspended_until = self.suspended_until.max(self.owed_until).max(until);
        Served { start, end }
    }

    /// Counts a suspension of the operation that ends at position `operation`, unless it has reached the limit.
    fn may_suspend(&mut self, operation: u64, limit: u32) -> bool {
        let before = if self.suspended.0 == operation { self.suspended.1 } else { 0 };
        let may = before < limit;
        if may {
            self.suspended = (operation, before + 1);
        }
        may
    }

    /// Keeps background work from running before `until`, except promised work.
    #[inline]
    pub fn hold(&mut self, until: Time) {
        self.suspended_until = self.suspended_until.max(until);
    }

    /// Queues `count` background operations of length `each`, none of which may begin before `at`.
    #[inline]
    pub fn background(&mut self, at: Time, each: Span, count: u32) -> Ticket {
        let (each, total) = (each.ps(), each.ps().saturating_mul(count as u64));
        let is_idle = self.done == self.queued;
        // The earliest end of the work queued before: an `at` earlier than that has no effect.
        let earliest = self.now.max(self.suspended_until).ps().saturating_add(self.queued - self.done);
        self.queued = self.queued.saturating_add(total).min(QUEUED_MAX);
        let start = earliest.max(at.ps()).max(self.expected.ps());
        self.expected = Time::from_ps(start.saturating_add(total));
        if !is_idle && self.batch.each == each && at.ps() <= earliest {
            self.batch.end = self.queued;
        } else if total > 0 {
            if is_idle {
                self.earlier.clear();
            } else {
                self.earlier.push_back(self.batch);
            }
            self.batch = Batch { end: self.queued, each, not_before: at };
        }
        Ticket(self.queued)
    }

    /// Returns when everything up to `ticket` will be done, as seen at `at`. The result is a promise: that work counts
    /// as done then, so call this only if a caller waits for it. For work already done it returns `at`.
    #[inline(always)]
    pub fn finish(&mut self, ticket: Ticket, at: Time) -> Time {
        // The common case: one operation is queued, has not begun, and a caller waits for it.
        let Batch { end, each, not_before } = self.batch;
        if ticket.0 == end
            && ticket.0 > self.done
            && at <= not_before
            && self.earlier.is_empty()
            && self.promises.is_empty()
        {
            self.now = self.now.max(at);
            let start = self.now.max(self.suspended_until).max(not_before);
            self.suspended_until = start + Span::from_ps(end - self.done);
            self.extend_promise(start, end, self.suspended_until, at);
            self.promised_each = each;
            self.occupy(at, start, self.suspended_until);
            return self.suspended_until;
        }
        self.finish_among(ticket, at)
    }

    /// When all queued work is done, including the time that accesses took from promised work. A promise, like
    /// [`Lane::finish`].
    pub fn idle_at(&mut self, at: Time) -> Time {
        self.finish(self.last(), at).max(self.owed_until)
    }

    /// [`Lane::finish`] in the general case.
    #[inline(never)]
    fn finish_among(&mut self, ticket: Ticket, at: Time) -> Time {
        if ticket.0 > self.done {
            self.advance(at);
        }
        if ticket.0 <= self.done {
            return self.promised_end(ticket, at);
        }
        self.promise(ticket, at);
        at.max(self.promise.end)
    }

    /// Promises the work up to `ticket`; returns its end.
    fn promise(&mut self, ticket: Ticket, at: Time) -> Time {
        if self.promises.front().is_some_and(|promise| promise.end <= at) {
            self.promises.retain(|promise| promise.end > at);
        }
        let mut time = self.now.max(self.suspended_until);
        let mut begin = None;
        while self.done < ticket.0
            && let Some(Batch { end, each, not_before }) = self.next_batch()
        {
            self.promised_each = each;
            let start = time.max(not_before);
            begin.get_or_insert(start);
            let to = end.min(ticket.0);
            time = start + Span::from_ps(to - self.done);
            self.extend_promise(start, to, time, at);
        }
        self.suspended_until = time;
        self.occupy(at, begin.unwrap_or(time), time);
        time
    }

    /// Promised work occupies the lane from `begin` to `end`, as seen at `at`.
    #[inline]
    fn occupy(&mut self, at: Time, begin: Time, end: Time) {
        if self.owed_until <= at {
            self.pause = (at, begin);
        }
        self.owed_until = end;
    }

    /// Promises the next work, up to `to`, from `start` to `end`.
    #[inline]
    fn extend_promise(&mut self, start: Time, to: u64, end: Time, at: Time) {
        let from = std::mem::replace(&mut self.done, to);
        // It follows the last promise without a gap: the two become one stretch.
        if self.promise.end == start {
            (self.promise.to, self.promise.end) = (to, end);
            return;
        }
        if self.promise.end > at {
            self.promises.push_back(self.promise);
        }
        self.promise = Promise { from, to, end };
    }

    /// The promises that have not ended at `at`, oldest first.
    #[inline]
    fn open_promises(&self, at: Time) -> impl Iterator<Item = &Promise> {
        self.promises.iter().chain([&self.promise]).filter(move |promise| at < promise.end)
    }

    /// The end of work that is done or promised; `at` if that is already past.
    #[inline]
    fn promised_end(&self, ticket: Ticket, at: Time) -> Time {
        let open = self.open_promises(at).find(|promise| ticket.0 <= promise.to);
        match open {
            Some(promise) if ticket.0 > promise.from => {
                at.max(promise.end.before(Span::from_ps(promise.to - ticket.0)))
            }
            _ => at,
        }
    }

    /// The background work done at `at`, possibly part-way through an operation. Promises nothing. `at` must not be
    /// earlier than in a previous call.
    pub fn progress(&mut self, at: Time) -> Ticket {
        self.advance(at);
        match self.open_promises(at).next() {
            Some(&Promise { from, to, end }) => Ticket(to.saturating_sub((end - at).ps()).max(from)),
            None => Ticket(self.done),
        }
    }

    /// True if everything up to `ticket` is done at `at`. Promises nothing.
    pub fn is_done(&mut self, ticket: Ticket, at: Time) -> bool {
        ticket <= self.progress(at)
    }

    /// The position after everything queued so far.
    pub fn last(&self) -> Ticket {
        Ticket(self.queued)
    }

    /// When everything queued so far will be done if nothing else arrives: an estimate, which promises nothing and
    /// does not update the lane. A time in the past means that the lane is idle.
    #[inline]
    pub fn idle_from(&self) -> Time {
        let background = self.now.max(self.suspended_until).ps().saturating_add(self.queued - self.done);
        self.expected.max(self.free_at).max(Time::from_ps(background))
    }

    /// The earliest time at which neither foreground work nor promised work occupies the lane.
    pub fn free_at(&self) -> Time {
        self.free_at.max(self.owed_until)
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Time {
        Time::from_ns(n * 1000)
    }
    const SUSPEND: Interruption =
        Interruption::Suspend { latency: Span::from_us(2), resume: Span::from_us(5), limit: u32::MAX };

    #[test]
    fn foreground_queues_in_order() {
        let mut lane = Lane::new();
        let a = lane.foreground(us(10), Span::from_us(3), &Interruption::Wait);
        let b = lane.foreground(us(11), Span::from_us(3), &Interruption::Wait);
        assert_eq!((a.start, a.end, b.start, b.end), (us(10), us(13), us(13), us(16)));
    }

    #[test]
    fn the_estimate_of_its_idle_time_is_what_happens_if_nothing_comes() {
        let mut lane = Lane::new();
        assert_eq!(lane.idle_from(), Time::ZERO);
        // Idle until 10, then 12 us of work; more that may not begin before 30; a read at 31 suspends that.
        lane.background(us(10), Span::from_us(4), 3);
        assert_eq!(lane.idle_from(), us(22));
        let last = lane.background(us(30), Span::from_us(4), 1);
        assert_eq!(lane.idle_from(), us(34));
        lane.foreground(us(31), Span::from_us(3), &SUSPEND);
        // 1 us was done, 2 + 3 us for the read, 5 us until it goes on.
        assert_eq!(lane.idle_from(), us(31 + 2 + 3 + 5 + 3));
        assert_eq!(lane.finish(last, us(33)), us(44));
        assert_eq!(lane.idle_from(), us(44));
    }

    #[test]
    fn background_is_ready_at_its_end_and_not_before() {
        let mut lane = Lane::new();
        let ticket = lane.background(us(10), Span::from_us(4), 3);
        assert!(!lane.clone().is_done(ticket, us(22).before(Span::from_ps(1))));
        assert!(lane.clone().is_done(ticket, us(22)));
        assert_eq!(lane.finish(ticket, us(11)), us(22));
    }

    #[test]
    fn a_suspended_operation_ends_later_by_all_it_waited() {
        let mut lane = Lane::new();
        let erase = lane.background(us(0), Span::from_us(50), 1);
        // At 10 the erase is in progress: 2 us to suspend it, 1 us access, 5 us resume wait.
        let read = lane.foreground(us(10), Span::from_us(1), &SUSPEND);
        assert_eq!((read.start, read.end), (us(12), us(13)));
        // During the resume wait the erase is still suspended: no second latency.
        let again = lane.foreground(us(15), Span::from_us(1), &SUSPEND);
        assert_eq!((again.start, again.end), (us(15), us(16)));
        // 10 us were done, it goes on at 16 + 5: 40 us later it is ready, not a picosecond earlier.
        assert!(!lane.clone().is_done(erase, us(61).before(Span::from_ps(1))));
        assert!(lane.clone().is_done(erase, us(61)));
    }

    #[test]
    fn without_suspend_an_access_waits_for_one_operation_only() {
        let mut lane = Lane::new();
        let copies = lane.background(us(0), Span::from_us(10), 5);
        let read = lane.foreground(us(13), Span::from_us(1), &Interruption::Wait);
        assert_eq!(
            (read.start, read.end),
            (us(20), us(21)),
            "waits for the second copy, passes the other three"
        );
        assert_eq!(lane.finish(copies, us(21)), us(51));
    }

    #[test]
    fn at_a_boundary_nothing_is_suspended() {
        let mut lane = Lane::new();
        lane.background(us(0), Span::from_us(10), 5);
        let read = lane.foreground(us(20), Span::from_us(1), &SUSPEND);
        assert_eq!((read.start, read.end), (us(20), us(21)));
    }

    #[test]
    fn hold_also_delays_work_queued_later() {
        let mut lane = Lane::new();
        lane.foreground(us(0), Span::from_us(1), &SUSPEND);
        lane.hold(us(6));
        let program = lane.background(us(2), Span::from_us(10), 1);
        assert!(!lane.clone().is_done(program, us(16).before(Span::from_ps(1))));
        assert!(lane.is_done(program, us(16)));
    }

    /// Who was told the end of a program keeps it, a read does not wait for it, and what follows is later by both.
    #[test]
    fn a_promise_is_kept_and_what_a_read_takes_of_it_is_owed() {
        let mut lane = Lane::new();
        let program = lane.background(us(0), Span::from_us(100), 1);
        assert_eq!(lane.finish(program, us(10)), us(100));
        let read = lane.foreground(us(20), Span::from_us(1), &SUSPEND);
        assert_eq!((read.start, read.end), (us(22), us(23)));
        assert_eq!(lane.foreground(us(24), Span::from_us(1), &SUSPEND).start, us(24), "still suspended");
        assert_eq!(lane.finish(program, us(30)), us(100));
        assert!(!lane.clone().is_done(program, us(100).before(Span::from_ps(1))));
        assert!(lane.is_done(program, us(100)));
        // It was suspended from 20 to 30, so it runs until 110; this read makes that 118.
        let late = lane.foreground(us(105), Span::from_us(1), &SUSPEND);
        assert_eq!((late.start, lane.free_at()), (us(107), us(118)));
        let next = lane.background(us(105), Span::from_us(50), 1);
        assert!(!lane.clone().is_done(next, us(168).before(Span::from_ps(1))));
        assert_eq!((lane.idle_from(), lane.finish(next, us(110))), (us(168), us(168)));
        // A read makes that 176, which who was told 168 does not learn, but who asks for an idle lane does.
        lane.foreground(us(130), Span::from_us(1), &SUSPEND);
        assert_eq!((lane.finish(next, us(135)), lane.idle_at(us(135))), (us(168), us(176)));
    }

    #[test]
    fn an_access_before_promised_work_begins_delays_it_by_no_more_than_it_takes() {
        let mut lane = Lane::new();
        lane.foreground(us(0), Span::from_us(10), &SUSPEND);
        let program = lane.background(us(1), Span::from_us(100), 1);
        assert_eq!(lane.finish(program, us(1)), us(110));
        for (at, start, free_at) in [(2, 10, 116), (3, 11, 117), (16, 16, 122), (22, 24, 130)] {
            let read = lane.foreground(us(at), Span::from_us(1), &SUSPEND);
            assert_eq!((read.start, lane.free_at()), (us(start), us(free_at)), "at {at}");
        }
    }

    #[test]
    fn without_suspend_an_access_waits_for_promised_work() {
        let mut lane = Lane::new();
        let programs = lane.background(us(0), Span::from_us(100), 2);
        assert_eq!(lane.finish(programs, us(10)), us(200));
        let read = lane.foreground(us(20), Span::from_us(1), &Interruption::Wait);
        assert_eq!((read.start, read.end, lane.free_at()), (us(200), us(201), us(201)));
    }

    /// Beyond the limit a read gets in before the next operation, and only that one is later than promised.
    #[test]
    fn promised_operations_are_suspended_so_often_and_no_more() {
        let suspend = Interruption::Suspend { latency: Span::from_us(2), resume: Span::from_us(5), limit: 1 };
        let mut lane = Lane::new();
        let programs = lane.background(us(0), Span::from_us(100), 2);
        assert_eq!(lane.finish(programs, us(0)), us(200));
        assert_eq!(lane.foreground(us(10), Span::from_us(1), &suspend).start, us(12));
        // Suspended from 10 to 18: the first is done at 108, the second runs from the end of the next read to 209.
        let second = lane.foreground(us(30), Span::from_us(1), &suspend);
        assert_eq!((second.start, lane.free_at()), (us(108), us(209)));
        assert_eq!(lane.foreground(us(120), Span::from_us(1), &suspend).start, us(122));
        assert_eq!(lane.free_at(), us(217));
        // After the last nothing is left that could be late.
        let last = lane.foreground(us(190), Span::from_us(1), &suspend);
        assert_eq!((last.start, last.end, lane.free_at()), (us(217), us(218), us(218)));
        assert_eq!(lane.finish(programs, us(195)), us(200));
    }

    #[test]
    fn work_queued_for_later_neither_blocks_nor_begins_early() {
        let mut lane = Lane::new();
        let erase = lane.background(us(0), Span::from_us(1500), 1);
        let program = lane.background(us(2000), Span::from_us(100), 1);
        let read = lane.foreground(us(400), Span::from_us(60), &Interruption::Wait);
        assert_eq!((read.start, read.end), (us(1500), us(1560)), "waits for the erase in progress");
        let between = lane.foreground(us(1700), Span::from_us(10), &SUSPEND);
        assert_eq!(between.end, us(1710), "nothing is in progress yet");
        assert!(lane.is_done(erase, us(1710)));
        assert!(!lane.clone().is_done(program, us(2099)) && lane.is_done(program, us(2100)));
    }

    #[test]
    fn a_read_does_not_let_background_begin_before_its_time() {
        let mut lane = Lane::new();
        let erase = lane.background(us(100), Span::from_us(10), 1);
        lane.foreground(us(20), Span::from_us(5), &SUSPEND);
        assert!(!lane.clone().is_done(erase, us(109)) && lane.is_done(erase, us(110)));
    }

    #[test]
    fn an_operation_is_suspended_so_often_and_no_more() {
        let suspend = Interruption::Suspend { latency: Span::from_us(2), resume: Span::from_us(5), limit: 2 };
        let mut lane = Lane::new();
        let erase = lane.background(us(0), Span::from_us(100), 2);
        for at in [10, 20] {
            assert_eq!(lane.foreground(us(at), Span::from_us(1), &suspend).start, us(at + 2));
        }
        // Done: 10 us before the first read, 2 us before the second; 88 us are left from 28 on.
        let third = lane.foreground(us(30), Span::from_us(1), &suspend);
        assert_eq!((third.start, third.end), (us(116), us(117)));
        // The second operation begins then, and may be suspended again.
        assert_eq!(lane.foreground(us(120), Span::from_us(1), &suspend).start, us(122));
        assert_eq!(lane.finish(erase, us(121)), us(128 + 97));
    }

    /// Two parts of a resource, as two planes of a die: accesses overlap, and background work waits for both.
    #[test]
    fn overlapping_accesses_suspend_once_and_delay_only_the_background() {
        let mut lane = Lane::new();
        let erase = lane.background(us(0), Span::from_us(50), 1);
        let first = lane.overlapping(us(10), us(10), Span::from_us(8), &SUSPEND);
        let second = lane.overlapping(us(14), us(14), Span::from_us(8), &SUSPEND);
        assert_eq!((first.start, first.end, second.start, second.end), (us(12), us(20), us(14), us(22)));
        // The same part as the first: the caller says when it is ready.
        assert_eq!(lane.overlapping(us(15), first.end, Span::from_us(1), &SUSPEND).start, us(20));
        // Suspended from 10 to 22 + 5: 40 us are left.
        assert!(!lane.clone().is_done(erase, us(67).before(Span::from_ps(1))) && lane.is_done(erase, us(67)));
        // The same with work whose end was promised: it is suspended from 80 to 95.
        let erase = lane.background(us(70), Span::from_us(50), 1);
        assert_eq!(lane.finish(erase, us(70)), us(120));
        assert_eq!(lane.overlapping(us(80), us(80), Span::from_us(8), &SUSPEND).start, us(82));
        assert_eq!(lane.overlapping(us(82), us(82), Span::from_us(8), &SUSPEND).end, us(90));
        assert_eq!(lane.free_at(), us(135));
    }

    #[test]
    fn idle_time_before_a_promise_undoes_nothing() {
        let mut lane = Lane::new();
        let first = lane.background(us(0), Span::from_us(10), 1);
        assert_eq!(lane.finish(first, us(0)), us(10));
        let second = lane.background(us(50), Span::from_us(10), 1);
        assert_eq!(lane.finish(second, us(50)), us(60));
        assert!(lane.is_done(first, us(45)) && !lane.is_done(second, us(59)));
        let third = lane.background(us(51), Span::from_us(10), 1);
        assert_eq!(lane.finish(third, us(51)), us(70));
        assert!(!lane.is_done(second, us(59)) && lane.is_done(second, us(60)));
    }

    #[test]
    fn a_promise_is_told_the_same_to_everybody() {
        let mut lane = Lane::new();
        let first = lane.background(us(0), Span::from_us(100), 1);
        let second = lane.background(us(0), Span::from_us(100), 1);
        assert_eq!(lane.finish(second, us(10)), us(200));
        assert_eq!((lane.finish(first, us(20)), lane.finish(second, us(20))), (us(100), us(200)));
        assert_eq!((lane.finish(first, us(150)), lane.finish(second, us(150))), (us(150), us(200)));
    }

    #[test]
    fn foreground_between_promises_moves_only_the_later_one() {
        let mut lane = Lane::new();
        let first = lane.background(us(0), Span::from_us(100), 1);
        assert_eq!(lane.finish(first, us(10)), us(100));
        lane.foreground(us(20), Span::from_us(1), &SUSPEND);
        let second = lane.background(us(20), Span::from_us(50), 1);
        assert_eq!(lane.finish(second, us(30)), us(158));
        for (at, done) in [(us(50), (false, false)), (us(100), (true, false)), (us(158), (true, true))] {
            assert_eq!((lane.is_done(first, at), lane.is_done(second, at)), done, "at {at}");
        }
    }

    /// Promises apart from each other, of which the first has ended when more is promised.
    #[test]
    fn a_promise_is_kept_when_an_earlier_one_has_ended() {
        let mut lane = Lane::new();
        let mut promised = |at: u64, took: u64, asked: u64| {
            let work = lane.background(us(at), Span::from_us(took), 1);
            let end = lane.finish(work, us(asked));
            lane.foreground(us(asked), Span::from_us(1), &SUSPEND);
            (work, end)
        };
        let [(_, first), (second, middle), (third, last)] =
            [promised(0, 100, 10), promised(20, 50, 30), promised(40, 50, 50)];
        assert_eq!((first, middle, last), (us(100), us(158), us(216)));
        let fourth = lane.background(us(120), Span::from_us(50), 1);
        let end = lane.finish(fourth, us(120));
        assert!(end >= us(266), "{end}");
        assert_eq!([second, third, fourth].map(|work| lane.finish(work, us(125))), [us(158), us(216), end]);
    }

    /// Work beyond the end of time is never done; work queued before it ends as usual.
    #[test]
    fn work_that_passes_213_days_never_ends() {
        let mut lane = Lane::new();
        let day = Span::from_ms(24 * 3600 * 1000);
        let first = lane.background(us(0), day, 1);
        let rest = lane.background(us(0), day, 300);
        let more = lane.background(us(1), day * 2, u32::MAX);
        assert!(!lane.clone().is_done(more, Time::MAX.before(Span::from_ps(2))));
        assert_eq!(lane.clone().finish(first, us(0)), us(0) + day);
        for ticket in [rest, more] {
            assert!(lane.clone().finish(ticket, us(5)).is_over());
        }
        assert!(lane.finish(more, us(5)).is_over() && lane.finish(rest, us(6)).is_over());
        assert!(lane.clone().foreground(us(7), day, &Interruption::Wait).end.is_over());
        assert_eq!(lane.foreground(us(7), day, &SUSPEND).end, us(9) + day);
        assert!(lane.free_at().is_over());
        assert!(!lane.is_done(Ticket::NEVER, Time::MAX));
    }

    #[test]
    fn background_uses_idle_time_only() {
        let mut lane = Lane::new();
        lane.foreground(us(0), Span::from_us(10), &SUSPEND);
        let copy = lane.background(us(1), Span::from_us(4), 1);
        assert!(!lane.clone().is_done(copy, us(13)));
        assert!(lane.clone().is_done(copy, us(14)));
        // Queued at 100 on an idle lane: it cannot have used the time before.
        let late = lane.background(us(100), Span::from_us(4), 1);
        assert!(!lane.clone().is_done(late, us(103)));
        assert_eq!(lane.finish(late, us(100)), us(104));
    }

    /// Work is conserved and accesses never overlap, whatever the mixture; without suspension none overlaps promised work.
    #[test]
    fn random_mixture_against_the_sum() {
        let mut rng = crate::Rng::new(11);
        for round in 0..200 {
            let (mut lane, mut now, mut work) = (Lane::new(), Time::ZERO, Span::ZERO);
            let suspend = if round % 2 == 0 { Interruption::Wait } else { SUSPEND };
            let (mut last_end, mut promised, mut accesses) = (Time::ZERO, Time::ZERO, 0);
            for _ in 0..200 {
                now += Span::from_ns(rng.below(20_000));
                let span = Span::from_ns(rng.below(9_000) + 1);
                match rng.below(3) {
                    0 => {
                        let served = lane.foreground(now, span, &suspend);
                        assert!(served.start >= now && served.start >= last_end, "round {round}");
                        assert!(suspend == SUSPEND || served.start >= promised, "round {round}");
                        last_end = served.end;
                        work += span;
                        accesses += 1;
                    }
                    1 => {
                        lane.background(now, span, 2);
                        work += span * 2;
                    }
                    _ => {
                        promised = lane.finish(lane.last(), now);
                        assert!(promised >= now);
                        assert!(promised <= now || promised <= lane.free_at(), "round {round}");
                    }
                }
            }
            lane.finish(lane.last(), now);
            let end = lane.free_at();
            assert!(end.ps() >= work.ps(), "round {round}: {work} of work fitted into {end}");
            let most = now + work + Span::from_us(2 + 5) * accesses;
            assert!(end <= most, "round {round}: {work} of work and {accesses} accesses until {end}");
        }
    }

    /// Calls that step back in time find no time that background work has used: all that was queued and served by the end of
    /// a mixture fits into the time until the lane is free. An access of one of the planes takes its share of the lane.
    #[test]
    fn calls_out_of_order_use_no_time_twice() {
        const PLANES: u64 = 4;
        for seed in 0..20_000 {
            let mut rng = crate::Rng::new(seed);
            let (mut lane, mut now, mut work) = (Lane::new(), Time::ZERO, Span::ZERO);
            let mut planes = [Time::ZERO; PLANES as usize];
            let interruption = if seed % 2 == 0 { Interruption::Wait } else { SUSPEND };
            for _ in 0..1 + rng.below(30) {
                now += Span::from_ns(rng.below(6_000));
                let at = now.before(Span::from_ns(rng.below(10_000)));
                let span = Span::from_ns((rng.below(9_000) + 1) * PLANES);
                match rng.below(6) {
                    0 => {
                        let ready = planes.into_iter().fold(at, Time::max);
                        planes = [lane.foreground_from(at, ready, span, &interruption).end; PLANES as usize];
                        work += span;
                    }
                    1 => {
                        let plane = &mut planes[rng.below(PLANES) as usize];
                        *plane = lane.overlapping(at, *plane, span, &interruption).end;
                        work += span / PLANES;
                    }
                    2 | 3 => {
                        lane.background(at, span, 1);
                        work += span;
                    }
                    4 => {
                        lane.finish(lane.last(), at);
                    }
                    _ => {
                        lane.progress(at);
                    }
                }
            }
            let end = planes.into_iter().fold(lane.idle_at(now).max(lane.free_at()), Time::max);
            assert!(end.ps() >= work.ps(), "seed {seed}: {work} of work fitted into {end}");
        }
    }
}
