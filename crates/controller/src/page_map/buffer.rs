//! The write buffer: a host unit takes a slot and frees it when its page is programmed.
//!
//! Slots form a ring, so a writer that finds the buffer full waits for the oldest unit. Timing needs no more than
//! that. With payload, the buffer also keeps the contents of each slot until the program is done, because a
//! protected buffer must return them after a power cut.

use super::array::Queued;
use super::config::WriteBuffer;
use nvlab_units::{Ticket, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Marks a slot whose unit is in a page not yet programmed.
const STAGED: Ticket = Ticket::NEVER;
const NOWHERE: Queued = Queued { lane: 0, ticket: STAGED };

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Slot {
    /// If staged: its frontier; if queued: its lane.
    at: u32,
    ticket: Ticket,
}

/// A unit the buffer would return after a power cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Held {
    pub lpa: u32,
    pub sequence: u64,
    pub admitted: Time,
    pub data: Vec<u8>,
    slot: u64,
    queued: Queued,
}

impl Held {
    /// A unit that was kept outside this process.
    pub fn kept(lpa: u32, sequence: u64, data: Vec<u8>) -> Held {
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
    held: VecDeque<Held>,
}

impl Buffer {
    pub fn new(config: Option<WriteBuffer>) -> Buffer {
        let slots = config.map_or(0, |buffer| buffer.units as usize);
        let unused = Slot { at: 0, ticket: Ticket::default() };
        Buffer { config, slots: vec![unused; slots], taken: 0, held: VecDeque::new() }
    }

    pub fn config(&self) -> Option<WriteBuffer> {
        self.config
    }
    pub fn is_protected(&self) -> bool {
        self.config.is_some_and(|buffer| buffer.protected)
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
            Slot { at, ticket } => is_done(Queued { lane: at, ticket }),
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
            ticket => Oldest::Queued(Queued { lane: slot.at, ticket }),
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
        self.slots[index] = Slot { at: queued.lane, ticket: queued.ticket };
    }

    /// Keeps the contents of a slot (payload only).
    pub fn hold(&mut self, slot: u64, lpa: u32, sequence: u64, admitted: Time, data: &[u8]) {
        if self.is_protected() {
            let data = data.to_vec();
            self.held.push_back(Held { lpa, sequence, admitted, data, slot, queued: NOWHERE });
        }
    }

    /// The program of a held slot is queued (payload only).
    pub fn held_queued(&mut self, slot: u64, queued: Queued) {
        if let Ok(index) = self.held.binary_search_by_key(&slot, |held| held.slot) {
            self.held[index].queued = queued;
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
        self.held.into_iter().filter(|held| held.admitted <= at).collect()
    }
}
