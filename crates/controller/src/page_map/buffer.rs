//! The write buffer: a host unit takes a slot and frees it when its page is programmed.
//!
//! Slots form a ring, so a writer that finds the buffer full waits for the oldest unit. Timing needs no more than
//! that. With payload, the buffer also keeps the contents of each slot until the program is done, because a
//! protected buffer must return them after a power cut.
//!
//! A protected buffer may absorb overwrites (see `absorb`): the newer version takes the slot of the older one.

use super::absorb::Waiting;
use super::array::{LaneId, Queued};
use super::config::WriteBuffer;
use nvlab_units::{Die, Lpa, Ticket, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Marks a slot whose unit is in a page not yet programmed.
const STAGED: Ticket = Ticket::NEVER;
const NOWHERE: Queued = Queued { lane: LaneId(Die(0)), ticket: STAGED };

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    /// If staged: its frontier; if queued: its lane.
    at: u32,
    ticket: Ticket,
}

/// A unit the buffer would return after a power cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Held {
    pub lpa: Lpa,
    pub sequence: u64,
    pub admitted: Time,
    pub data: Vec<u8>,
    slot: u64,
    queued: Queued,
}

impl Held {
    /// A unit that was kept outside this process.
    pub fn kept(lpa: Lpa, sequence: u64, data: Vec<u8>) -> Held {
        Held { lpa, sequence, admitted: Time::ZERO, data, slot: 0, queued: NOWHERE }
    }
}

/// What a writer that needs a slot must wait for.
pub(super) enum Oldest {
    /// Nothing: the slot was never used.
    Free,
    /// The page of this frontier must be programmed first, full or not.
    Staged { frontier: u32 },
    /// A queued program.
    Queued(Queued),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Buffer {
    config: Option<WriteBuffer>,
    slots: Vec<Slot>,
    /// Slots taken in total; the next is this modulo their number.
    taken: u64,
    /// By slot; of a slot with several versions, the oldest first.
    held: VecDeque<Held>,
    /// No power cut occurs before this time.
    settled: Time,
    /// The latest time at which programmed units were dropped.
    released: Time,
    /// Pages of host units whose program may not have begun; only if it absorbs overwrites.
    pub waiting: Waiting,
}

impl Buffer {
    pub fn new(config: Option<WriteBuffer>, lanes: u32) -> Buffer {
        let slots = config.map_or(0, |buffer| buffer.units as usize);
        let unused = Slot { at: 0, ticket: Ticket::default() };
        Buffer {
            config,
            slots: vec![unused; slots],
            taken: 0,
            held: VecDeque::new(),
            settled: Time::ZERO,
            released: Time::ZERO,
            waiting: vec![VecDeque::new(); lanes as usize],
        }
    }

    pub fn config(&self) -> Option<WriteBuffer> {
        self.config
    }
    pub fn is_protected(&self) -> bool {
        self.config.is_some_and(|buffer| buffer.protected)
    }
    /// No power cut occurs before `upto`.
    pub fn settle(&mut self, upto: Time) {
        self.settled = self.settled.max(upto);
    }

    /// The earliest time of a power cut, if the array allows none before `latest`.
    pub fn sure(&self, latest: Time) -> Time {
        self.settled.max(latest)
    }

    #[inline]
    fn index(&self, slot: u64) -> usize {
        match self.slots.len() {
            n if n.is_power_of_two() => slot as usize & (n - 1),
            n => (slot % n as u64) as usize,
        }
    }

    /// Units whose slots cannot be taken yet: slots become free in the order in which they were taken.
    pub fn fill(&self, mut is_done: impl FnMut(Queued) -> bool) -> u32 {
        let slots = self.slots.len() as u64;
        let is_free = |slot: u64| match self.slots[self.index(slot)] {
            Slot { ticket: STAGED, .. } => false,
            Slot { ticket, .. } if ticket == Ticket::default() => true,
            Slot { at, ticket } => is_done(Queued { lane: LaneId(Die(at)), ticket }),
        };
        // The slot to be taken next is the oldest.
        let free = (self.taken..self.taken + slots).map(is_free).take_while(|free| *free).count();
        slots as u32 - free as u32
    }

    /// What the next slot waits for.
    #[inline]
    pub fn oldest(&self) -> Oldest {
        let slot = self.slots[self.index(self.taken)];
        match slot.ticket {
            STAGED => Oldest::Staged { frontier: slot.at },
            ticket if ticket == Ticket::default() => Oldest::Free,
            ticket => Oldest::Queued(Queued { lane: LaneId(Die(slot.at)), ticket }),
        }
    }

    /// Takes the next slot for a unit placed in `frontier`; returns the slot's number.
    #[inline]
    pub fn take(&mut self, frontier: u32) -> u64 {
        let index = self.index(self.taken);
        self.slots[index] = Slot { at: frontier, ticket: STAGED };
        self.taken += 1;
        self.taken - 1
    }

    /// The program of a slot's unit is queued; the default [`Queued`] frees the slot.
    #[inline]
    pub fn queued(&mut self, slot: u64, queued: Queued) {
        let index = self.index(slot);
        self.slots[index] = Slot { at: queued.lane.0.0, ticket: queued.ticket };
    }

    /// Keeps the contents of a slot (payload only).
    pub fn hold(&mut self, slot: u64, lpa: Lpa, sequence: u64, admitted: Time, data: &[u8]) {
        if self.is_protected() {
            let data = data.to_vec();
            self.held.push_back(Held { lpa, sequence, admitted, data, slot, queued: NOWHERE });
        }
    }

    /// Keeps the contents of a newer version of a unit in the slot of the version before it (payload only). That one is kept
    /// too as long as the power may fail before the newer one is admitted: not before `latest`.
    pub fn replace(&mut self, lpa: Lpa, sequence: u64, admitted: Time, data: &[u8], latest: Time) {
        let newest = self.held.iter().rposition(|held| held.lpa == lpa);
        let newest = newest.expect("a version in the buffer");
        let Held { slot, queued, .. } = self.held[newest];
        let data = data.to_vec();
        self.held.insert(newest + 1, Held { lpa, sequence, admitted, data, slot, queued });
        let first = self.held.partition_point(|held| held.slot < slot);
        let sure = self.sure(latest);
        let versions = self.held.range(first..=newest + 1);
        let needless = versions.skip(1).take_while(|held| held.admitted <= sure).count();
        self.held.drain(first..first + needless);
    }

    /// The program of a held slot is queued (payload only).
    pub fn held_queued(&mut self, slot: u64, queued: Queued) {
        let first = self.held.partition_point(|held| held.slot < slot);
        for held in self.held.range_mut(first..).take_while(|held| held.slot == slot) {
            held.queued = queued;
        }
    }

    /// Notes that units whose programs are done at `at` are no longer in the buffer. Requests come in the order of their calls,
    /// not always of their times: a later one, at an earlier time, does not find them either.
    #[inline]
    pub fn note_released(&mut self, at: Time) {
        self.released = self.released.max(at);
    }

    /// The latest time of [`Buffer::note_released`].
    pub fn released(&self) -> Time {
        self.released
    }

    /// Calls `keep` with those of the last `count` versions written, from number `first` on, that are still held:
    /// place in the buffer, unit, number, contents. In the order in which they took their places: a long write may
    /// take one twice.
    pub fn held_since(&self, first: u64, count: u64, mut keep: impl FnMut(u64, Lpa, u64, &[u8])) {
        let mut left = count;
        // Those that replaced others are further in front.
        let from = self.held.iter().rposition(|held| {
            left -= (held.sequence >= first) as u64;
            left == 0
        });
        for Held { lpa, sequence, data, slot, .. } in self.held.range(from.unwrap_or(0)..) {
            if *sequence >= first {
                keep(self.index(*slot) as u64, *lpa, *sequence, data);
            }
        }
    }

    /// Drops the contents of units that are programmed, oldest first.
    pub fn release(&mut self, mut is_done: impl FnMut(Queued) -> bool) {
        while self.held.front().is_some_and(|held| held.queued != NOWHERE && is_done(held.queued)) {
            self.held.pop_front();
        }
    }

    /// What a protected buffer still holds after a power cut at `at`.
    pub fn survive(self, at: Time) -> Vec<Held> {
        let mut surviving: Vec<Held> = Vec::new();
        for held in self.held.into_iter().filter(|held| held.admitted <= at) {
            match surviving.last_mut() {
                Some(older) if older.slot == held.slot => *older = held,
                _ => surviving.push(held),
            }
        }
        surviving
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Span;

    /// Of a unit overwritten for ever only the versions are kept that a power cut may ask for.
    #[test]
    fn a_version_is_kept_until_the_newer_one_is_sure() {
        let config = WriteBuffer { units: 4, protected: true, absorb: true, store: Span::ZERO };
        let mut buffer = Buffer::new(Some(config), 1);
        let at = |us: u64| Time::from_ps(us * 1_000_000);
        for lpa in [Lpa(7), Lpa(8)] {
            let slot = buffer.take(0);
            buffer.hold(slot, lpa, lpa.0 as u64, at(1), &[0]);
        }
        for nth in 2..100u64 {
            buffer.replace(Lpa(7), 10 + nth, at(nth), &[nth as u8], Time::ZERO);
        }
        assert_eq!(buffer.held.len(), 100);
        let survives = |buffer: &Buffer, at: Time| {
            let held = buffer.clone().survive(at);
            held.iter().map(|held| (held.lpa.0, held.data[0])).collect::<Vec<_>>()
        };
        assert_eq!(survives(&buffer, at(50)), [(7, 50), (8, 0)]);
        assert_eq!(survives(&buffer, at(1)), [(7, 0), (8, 0)]);
        buffer.settle(at(98));
        buffer.replace(Lpa(7), 200, at(100), &[100], at(90));
        // Those of 98, 99 and 100, and the other unit.
        assert_eq!(buffer.held.len(), 4);
        assert_eq!(survives(&buffer, at(98)), [(7, 98), (8, 0)]);
        assert_eq!(survives(&buffer, at(100)), [(7, 100), (8, 0)]);
        buffer.held_queued(0, Queued { lane: LaneId(Die(0)), ticket: Ticket::default() });
        buffer.release(|_| true);
        assert_eq!(buffer.held.len(), 1, "all versions of the slot are released together");
    }
}
