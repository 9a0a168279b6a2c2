//! Transactions on recoverable memory: bytes that change together, durably.
//!
//! A transaction is the ranges a program names before it changes them, the bytes they then hold, and the time the program
//! computes. What reaches a log depends on the log: headers, and whether ranges are reduced to the bytes that really
//! changed.
//!
//! 1. A transaction depends on (the text, the seed) and the transactions before it only.
//! 2. The ranges of a transaction lie inside [`Workload::footprint`] and neither overlap nor touch: a library that joins
//!    neighbours logs as many ranges as are listed.
//! 3. The memory is all zero before the first transaction.

pub mod compiler;
pub mod debit_credit;

use crate::{Span, Time, Workload};
use compiler::Compiler;
use debit_credit::DebitCredit;
use std::ops::{Deref, Range};

/// What one transaction changes. Reused from one transaction to the next.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    ranges: Vec<(u64, Range<usize>)>,
    data: Vec<u8>,
    /// The program's own time: everything but the commit.
    pub compute: Span,
}

impl Changes {
    /// Makes it empty for the next transaction; keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.data.clear();
        self.compute = Span::ZERO;
    }

    /// Adds a range that holds `data` afterwards.
    pub fn push(&mut self, offset: u64, data: &[u8]) {
        let start = self.data.len();
        self.data.extend_from_slice(data);
        self.ranges.push((offset, start..self.data.len()));
    }

    /// The ranges: offset and new bytes of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.ranges.iter().map(|(offset, at)| (*offset, &self.data[at.clone()]))
    }

    /// New bytes in all ranges together.
    pub fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}

/// A source of transactions on recoverable memory.
pub trait DurableWorkload: Workload {
    /// Replaces the contents of `changes` with the next transaction and returns its arrival time; `None` means that the
    /// workload has ended for good.
    fn next(&mut self, changes: &mut Changes) -> Option<Time>;

    /// Checks what the memory holds after any number of whole transactions, without knowing which; an error says what is
    /// wrong.
    fn check(&self, memory: &[u8]) -> Result<(), String>;
}

/// Transactions of any program. What is known of them beforehand is in the trait this dereferences to.
#[derive(Clone, Debug)]
pub enum AnyDurableWorkload {
    /// Bank transfers, TPC-B alike.
    DebitCredit(Box<DebitCredit>),
    /// A persistent heap as a compiler fills it.
    Compiler(Box<Compiler>),
}

impl Deref for AnyDurableWorkload {
    type Target = dyn DurableWorkload;
    fn deref(&self) -> &Self::Target {
        match self {
            AnyDurableWorkload::DebitCredit(workload) => &**workload,
            AnyDurableWorkload::Compiler(workload) => &**workload,
        }
    }
}

impl AnyDurableWorkload {
    /// [`DurableWorkload::next`], without a virtual call per transaction.
    #[inline]
    pub fn next(&mut self, changes: &mut Changes) -> Option<Time> {
        match self {
            AnyDurableWorkload::DebitCredit(workload) => workload.next(changes),
            AnyDurableWorkload::Compiler(workload) => workload.next(changes),
        }
    }
}
