//! Loads and stores instead of blocks: what a program does to a memory, transaction by transaction.
//!
//! A [`Workload`](crate::Workload) asks a device for blocks and may have many requests under way. A program that
//! uses a memory waits for every load and store before the next one, so its unit is the transaction: a moment at
//! which it arrives and the accesses it makes, one after the other.
//!
//! 1. A transaction's accesses depend on (the text, the seed) only, never on how long an access took.
//! 2. Moments never go back. In a closed loop they are all zero: a transaction begins when the one before it ends.
//! 3. An access lies inside [`WindowWorkload::footprint_bytes`] and inside one naturally aligned word of its size.

mod any;
pub mod random_words;
pub(crate) mod text;

pub use any::{AnyWindow, KINDS, WindowSpec};
pub use random_words::{RandomWords, WordsConfig};

use crate::{Pacing, Span, Time};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Brings a word to the processor.
    Load,
    /// Changes a word.
    Store,
}

/// One access of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte, counted from the start of the memory.
    pub offset: u64,
    /// How many bytes: 1, 2, 4 or 8.
    pub bytes: u16,
    /// Load or store.
    pub kind: AccessKind,
}

impl Access {
    /// A load.
    #[inline]
    pub fn load(offset: u64, bytes: u16) -> Access {
        Access { offset, bytes, kind: AccessKind::Load }
    }

    /// A store.
    #[inline]
    pub fn store(offset: u64, bytes: u16) -> Access {
        Access { offset, bytes, kind: AccessKind::Store }
    }
}

/// A source of transactions.
pub trait WindowWorkload {
    /// Replaces what is in `accesses` by the accesses of the next transaction and returns the moment it arrives;
    /// `None` means the end was reached, and it stays reached. The buffer is the caller's, so that nothing is
    /// allocated per transaction.
    fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time>;

    /// Whether transactions wait for the one before or for moments.
    fn pacing(&self) -> Pacing;

    /// The bytes from the start of the memory that accesses may touch.
    fn footprint_bytes(&self) -> u64;

    /// How many transactions are still to come, if it is known.
    fn len_hint(&self) -> Option<u64> {
        None
    }

    /// The simulated time after which it should be stopped; see [`Workload::time_limit`](crate::Workload::time_limit).
    fn time_limit(&self) -> Option<Span> {
        None
    }

    /// What a transaction does and where, in a few lines for people.
    fn describe(&self) -> String;
}
