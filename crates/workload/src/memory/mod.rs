//! Loads and stores of words: a program's accesses to a memory, transaction by transaction.
//!
//! A [`BlockWorkload`](crate::BlockWorkload) requests blocks of a device and may have many requests outstanding. A
//! program that uses a memory waits for every load and store before the next one, so its unit is the transaction: an
//! arrival time and the accesses it makes, one after the other.
//!
//! 1. A transaction's accesses depend on (the text, the seed) only, never on how long an access took.
//! 2. Arrival times never decrease. In a closed loop they are all zero: a transaction begins when the previous one
//!    ends.
//! 3. An access is inside [`Workload::footprint`] and inside one naturally aligned word of its size.

pub mod random_words;
pub mod tpca;

use crate::{Time, Workload};
use random_words::RandomWords;
use std::ops::Deref;
use tpca::Tpca;

/// Whether the processor loads or stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// From the memory to the processor.
    Load,
    /// From the processor to the memory.
    Store,
}

/// One load or store of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first byte, counted from the start of the memory.
    pub offset: u64,
    /// 1, 2, 4 or 8.
    pub bytes: u16,
    /// Whether it loads or stores.
    pub kind: AccessKind,
}

impl Access {
    /// A load of `bytes` at `offset`.
    #[inline]
    pub fn load(offset: u64, bytes: u16) -> Access {
        Access { offset, bytes, kind: AccessKind::Load }
    }

    /// A store of `bytes` at `offset`.
    #[inline]
    pub fn store(offset: u64, bytes: u16) -> Access {
        Access { offset, bytes, kind: AccessKind::Store }
    }
}

/// A source of transactions on words: bursts of accesses that arrive together.
pub trait MemoryWorkload: Workload {
    /// Replaces the contents of `accesses` with the accesses of the next transaction and returns its arrival time;
    /// `None` means that the workload has ended for good. The caller owns the buffer, so that nothing is allocated per
    /// transaction.
    fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time>;
}

/// Transactions of any program. What is known of them beforehand is in the trait this dereferences to.
#[derive(Clone, Debug)]
pub enum AnyMemoryWorkload {
    /// A TPC-A database in the memory.
    Tpca(Box<Tpca>),
    /// Independent accesses, each a transaction.
    Words(Box<RandomWords>),
}

impl AnyMemoryWorkload {
    /// [`MemoryWorkload::next`], without a virtual call per transaction.
    #[inline]
    pub fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time> {
        match self {
            AnyMemoryWorkload::Tpca(workload) => workload.next(accesses),
            AnyMemoryWorkload::Words(workload) => workload.next(accesses),
        }
    }
}

impl Deref for AnyMemoryWorkload {
    type Target = dyn Workload;
    fn deref(&self) -> &Self::Target {
        match self {
            AnyMemoryWorkload::Tpca(workload) => &**workload,
            AnyMemoryWorkload::Words(workload) => &**workload,
        }
    }
}
