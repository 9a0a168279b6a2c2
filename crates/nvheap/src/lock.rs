//! The lock and version of an object in one word of its header.
//!
//! ```text
//! bits 8..64  clock   of the transaction that changed the object last; while it is held, base + 1 + an index of the holder
//! bits 1..8   owner   the log of that transaction
//! bit  0      held
//! ```
//!
//! Clocks are Lamport clocks: a transaction that changes what another changed has the greater one. A heap is opened with a
//! *base* above every clock used before (its generation), made durable first. So a word left behind by a killed program is
//! at most the base, and free whatever it says: all locks are released at once, and lock words are never flushed. A holder
//! takes any free word with compare-and-swap; incrementing it, as the slides say, would fail on stale values.

use crate::sync::AtomicU64;
use std::sync::atomic::Ordering;

/// The most clocks there are.
pub(crate) const CLOCK_MAX: u64 = (1 << 56) - 1;
/// The most logs there are.
pub(crate) const OWNERS: usize = 128;

/// The value of a lock word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub u64);

impl Word {
    /// Free since the transaction of this clock and log.
    #[inline]
    pub fn free(clock: u64, owner: usize) -> Word {
        Word(clock << 8 | (owner as u64) << 1)
    }

    /// Held by the log's transaction, which finds what it knows of the object under `index`.
    #[inline]
    pub fn held(base: u64, owner: usize, index: usize) -> Word {
        Word((base + 1 + index as u64) << 8 | (owner as u64) << 1 | 1)
    }

    #[inline]
    pub fn clock(self) -> u64 {
        self.0 >> 8
    }

    #[inline]
    pub fn owner(self) -> usize {
        (self.0 >> 1) as usize % OWNERS
    }

    /// Free with every base, as most words are.
    #[inline]
    pub fn is_free(self) -> bool {
        self.0 & 1 == 0
    }

    #[inline]
    pub fn is_held(self, base: u64) -> bool {
        self.0 & 1 == 1 && self.clock() > base
    }

    /// The index under which `owner` holds it, if it does.
    #[inline]
    pub fn index_of(self, base: u64, owner: usize) -> Option<usize> {
        (self.is_held(base) && self.owner() == owner).then(|| (self.clock() - base - 1) as usize)
    }
}

#[inline]
pub(crate) fn load(word: &AtomicU64) -> Word {
    Word(word.load(Ordering::Acquire))
}

/// Takes a free word, or returns the word that another holder has put there meanwhile.
#[inline]
pub(crate) fn take(word: &AtomicU64, free: Word, held: Word) -> Result<(), Word> {
    match word.compare_exchange(free.0, held.0, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(()),
        Err(other) => Err(Word(other)),
    }
}

#[inline]
pub(crate) fn release(word: &AtomicU64, free: Word) {
    word.store(free.0, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_earlier_generation_are_free_whatever_they_say() {
        let held = Word::held(1000, 5, 17);
        assert!(held.is_held(1000));
        assert_eq!((held.index_of(1000, 5), held.index_of(1000, 4)), (Some(17), None));
        assert!(!held.is_held(1018), "the base of the next generation is above every clock of this one");
        assert!(!Word::free(2000, 5).is_held(1000));
        let cell = AtomicU64::new(held.0);
        let mine = Word::held(2000, 3, 0);
        assert_eq!(take(&cell, held, mine), Ok(()));
        assert_eq!(take(&cell, held, mine), Err(mine));
        release(&cell, Word::free(2001, 3));
        assert_eq!((load(&cell).clock(), load(&cell).owner()), (2001, 3));
    }
}
