//! Loads and stores instead of blocks: a program's accesses to a memory, transaction by transaction.
//!
//! A [`Workload`](crate::Workload) requests blocks of a device and may have many requests outstanding. A program that
//! uses a memory waits for every load and store before the next one, so its unit is the transaction: an arrival time
//! and the accesses it makes, one after the other.
//!
//! 1. A transaction's accesses depend on (the text, the seed) only, never on how long an access took.
//! 2. Arrival times never decrease. In a closed loop they are all zero: a transaction begins when the previous one
//!    ends.
//! 3. An access is inside [`WindowWorkload::footprint_bytes`] and inside one naturally aligned word of its size.

mod any;
pub mod random_words;
pub(crate) mod text;

pub use any::{AnyWindow, KINDS, WindowSpec};
pub use random_words::{RandomWords, WordsConfig};

use crate::{Pacing, Span, Time};

/// The operation of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Loads a word.
    Load,
    /// Stores a word.
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
    /// Replaces the contents of `accesses` with the accesses of the next transaction and returns its arrival time;
    /// `None` means that the workload has ended for good. The caller owns the buffer, so that nothing is allocated per
    /// transaction.
    fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time>;

    /// Whether transactions wait for the previous one or for their arrival times.
    fn pacing(&self) -> Pacing;

    /// The bytes, from the start of the memory, that may be accessed.
    fn footprint_bytes(&self) -> u64;

    /// How many transactions remain, if known.
    fn len_hint(&self) -> Option<u64> {
        None
    }

    /// The simulated time after which it should be stopped; see [`Workload::time_limit`](crate::Workload::time_limit).
    fn time_limit(&self) -> Option<Span> {
        None
    }

    /// A readable description of a transaction and its addresses, in a few lines.
    fn describe(&self) -> String;
}
