//! A channel or link: short transfers, booked in order of request, each in the first gap long enough for it.
//!
//! Unlike a [`crate::Lane`], a bus may be booked ahead: the transfer of a read still sensing its cells must not
//! delay the transfers of reads that are ready before it.
//!
//! Invariants
//! 1. The bookings are disjoint and in order, with a gap between any two: adjacent ones are merged.
//! 2. Bookings that end before `now` no longer matter, except right after the last one. When they are removed has no
//!    effect on
//!    results: a bus that was stored and read back gives the same results for the same calls.

use crate::time::{Served, Span, Time};
use serde::{Deserialize, Serialize};

/// A channel or link that carries one short transfer at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Bus {
    /// The last booking in order of time; most new bookings come after it.
    last: (Time, Time),
    /// Earlier bookings that may still have usable gaps between them.
    earlier: Vec<(Time, Time)>,
    /// Bookings that end by then no longer matter.
    over: Time,
}

impl Bus {
    /// A bus without bookings.
    pub fn new() -> Bus {
        Bus::default()
    }

    /// Books `span` at `at` or as soon after as the bus is free. `now` is the time of the call; it does not go
    /// back by more than a booking, and `at` is not before it.
    #[inline]
    pub fn book(&mut self, now: Time, at: Time, span: Span) -> Served {
        // No earlier booking matters any more.
        if self.last.1 <= now && !span.is_zero() {
            self.last = (at, at + span);
            return Served { start: at, end: self.last.1 };
        }
        // After the last gap: it follows the last booking, as most do on a busy bus.
        if (self.last.0..=self.last.1).contains(&at) && !span.is_zero() {
            let start = self.last.1;
            self.last.1 = start + span;
            return Served { start, end: self.last.1 };
        }
        self.book_among(now, at, span)
    }

    /// [`Bus::book`] among other bookings. A separate function, so that the common case saves no registers for it.
    #[inline(never)]
    fn book_among(&mut self, now: Time, at: Time, span: Span) -> Served {
        // Only code without calls is inlined here, so that no register is saved for it.
        if at < self.last.1 || span.is_zero() || self.earlier.len() == self.earlier.capacity() {
            return self.book_in_gap(now, at, span);
        }
        self.book_last(now, at, span)
    }

    /// Books after all other bookings.
    #[inline(always)]
    fn book_last(&mut self, now: Time, at: Time, span: Span) -> Served {
        self.over = self.over.max(now);
        self.earlier.push(self.last);
        self.last = (at, at + span);
        Served { start: at, end: self.last.1 }
    }

    /// Removes the bookings that no longer matter, if there is no room for another one: looking for them at every
    /// call would take longer than keeping them for a while.
    #[inline]
    fn make_room(&mut self) {
        if self.earlier.len() < self.earlier.capacity() {
            return;
        }
        let over = self.earlier.partition_point(|&(_, end)| end <= self.over);
        self.earlier.drain(..over);
        // With less than a quarter removed, the next removal would come too soon.
        self.earlier.reserve(3 * self.earlier.len());
    }

    /// [`Bus::book_among`] before the end of the last booking, or when there is no room for another one.
    #[inline(never)]
    fn book_in_gap(&mut self, now: Time, at: Time, span: Span) -> Served {
        if span.is_zero() {
            return Served { start: at, end: at };
        }
        self.over = self.over.max(now);
        self.make_room();
        if at >= self.last.1 {
            return self.book_last(now, at, span);
        }
        let mut start = at;
        let past = at.max(self.over);
        let first = self.earlier.partition_point(|&(_, to)| to <= past);
        for (index, &(from, to)) in self.earlier.iter().enumerate().skip(first) {
            if start + span <= from {
                self.insert(index, (start, start + span));
                return Served { start, end: start + span };
            }
            start = start.max(to);
        }
        let mut end = start + span;
        if end < self.last.0 {
            self.insert(self.earlier.len(), (start, end));
        } else if end == self.last.0 {
            self.last.0 = start;
            if let Some(before) = self.earlier.pop_if(|before| before.1 == start && start > self.over) {
                self.last.0 = before.0;
            }
        } else {
            start = start.max(self.last.1);
            end = start + span;
            self.last.1 = end;
        }
        Served { start, end }
    }

    /// Inserts a booking before the one at `index`, and joins it with its neighbours if there is no gap.
    fn insert(&mut self, index: usize, (start, end): (Time, Time)) {
        let joins_before = index > 0 && self.earlier[index - 1].1 == start && start > self.over;
        let joins_after = index < self.earlier.len() && self.earlier[index].0 == end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.earlier[index - 1].1 = self.earlier[index].1;
                self.earlier.remove(index);
            }
            (true, false) => self.earlier[index - 1].1 = end,
            (false, true) => self.earlier[index].0 = start,
            (false, false) => self.earlier.insert(index, (start, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Time {
        Time::from_ns(n * 1000)
    }

    #[test]
    fn an_early_transfer_passes_a_late_booking() {
        let mut bus = Bus::new();
        let late = bus.book(us(0), us(1000), Span::from_us(10));
        let early = bus.book(us(1), us(50), Span::from_us(10));
        let tight = bus.book(us(2), us(995), Span::from_us(10));
        assert_eq!((late.start, early.start, tight.start), (us(1000), us(50), us(1010)));
    }

    /// Against a plain map of busy microseconds.
    #[test]
    fn bookings_never_overlap_and_waste_no_gap() {
        let mut rng = crate::Rng::new(4);
        for _ in 0..50 {
            let (mut bus, mut now) = (Bus::new(), 0u64);
            let mut busy = vec![false; 4000];
            for _ in 0..200 {
                now += rng.below(10);
                let (at, span) = (now + rng.below(100), 1 + rng.below(9));
                let served = bus.book(us(now), us(at), Span::from_us(span));
                let fits = |start: &u64| (*start..start + span).all(|t| !busy[t as usize]);
                let expected = (at..).find(fits).unwrap();
                assert_eq!((served.start, served.end), (us(expected), us(expected + span)));
                busy[expected as usize..(expected + span) as usize].fill(true);
                let counting = bus.earlier.iter().chain([&bus.last]).filter(|booking| booking.1 > bus.over);
                assert!(counting.is_sorted_by(|a, b| a.1 < b.0), "{bus:?}");
            }
        }
    }

    /// Times go back by up to a booking; nothing is removed from one of the buses, everything at once from the other.
    #[test]
    fn when_bookings_are_removed_changes_nothing() {
        let mut rng = crate::Rng::new(5);
        for _ in 0..2000 {
            let (mut plain, mut tidy, mut now) = (Bus::new(), Bus::new(), 20u64);
            plain.earlier.reserve(400);
            for _ in 0..300 {
                now += rng.below(4);
                let called = now - rng.below(12);
                let (at, span) = (called + rng.below(24), rng.below(5));
                let served = plain.book(us(called), us(at), Span::from_us(span));
                tidy.earlier.retain(|&(_, end)| end > plain.over);
                assert_eq!(tidy.book(us(called), us(at), Span::from_us(span)), served);
            }
        }
    }
}
