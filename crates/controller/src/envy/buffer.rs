//! The write buffer: a ring of SRAM slots, filled at the head and flushed from the tail (section 3.2).
//!
//! Slots form a ring, so a store that finds the buffer full waits for the oldest page. The place of a page in the
//! FIFO is a number that only increases; its slot is that modulo the number of slots.

use super::NOTHING;
use nvlab_units::{Die, Ticket};

/// A slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The page it holds (see `Envy::location`), or nothing.
    pub owner: u32,
    /// The pool it came from and will be flushed to (sections 4.3 and 4.4).
    pub origin: u32,
    /// The die and ticket of its flush, once queued; the default ticket if there is nothing to wait for.
    pub die: Die,
    pub ticket: Ticket,
}

/// The ring.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub slots: Vec<Slot>,
    /// Slots taken in total.
    pub taken: u64,
    /// Of these, those whose flush is queued or that were found empty.
    pub flushed: u64,
    flush_at: u64,
}

impl Buffer {
    /// An empty ring; with 0 pages there is one slot, in which a page waits for its program.
    pub fn new(pages: u32, flush_at: u32) -> Buffer {
        let empty = Slot { owner: NOTHING, origin: 0, die: Die(0), ticket: Ticket::default() };
        Buffer { slots: vec![empty; pages.max(1) as usize], taken: 0, flushed: 0, flush_at: flush_at as u64 }
    }

    /// The slot of a place.
    #[inline]
    pub fn index(&self, place: u64) -> u32 {
        match self.slots.len() {
            n if n.is_power_of_two() => (place as usize & (n - 1)) as u32,
            n => (place % n as u64) as u32,
        }
    }

    /// True if more pages wait than `flush_at` allows.
    #[inline]
    pub fn wants_flush(&self) -> bool {
        self.taken - self.flushed > self.flush_at
    }

    /// The place whose slot the next page needs; `None` if the slot was never used.
    #[inline]
    pub fn oldest(&self) -> Option<u64> {
        self.taken.checked_sub(self.slots.len() as u64)
    }

    /// Slots with a page whose flush is not queued.
    pub fn waiting(&self) -> u64 {
        self.taken - self.flushed
    }
}
