//! A workload opened on a device: one type for every kind of stream.

use crate::block::together::Issue;
use crate::{AnyBlockWorkload, AnyDurableWorkload, AnyMemoryWorkload, Span, Workload};
use std::ops::Deref;

/// What a workload asks of a device. What is known of it beforehand is in the trait it dereferences to.
#[derive(Clone, Debug)]
pub enum Work {
    /// Reads, writes, trims and flushes of blocks.
    Requests(AnyBlockWorkload),
    /// Loads and stores of words, transaction by transaction.
    Accesses(AnyMemoryWorkload),
    /// Transactions on recoverable memory, each made durable.
    Commits(AnyDurableWorkload),
}

impl Work {
    /// The requests; `None` if it accesses words.
    pub fn requests(self) -> Option<AnyBlockWorkload> {
        if let Work::Requests(workload) = self { Some(workload) } else { None }
    }

    /// The transactions; `None` if it requests blocks.
    pub fn accesses(self) -> Option<AnyMemoryWorkload> {
        if let Work::Accesses(workload) = self { Some(workload) } else { None }
    }

    /// What [`Workload::len_hint`] counts, as a word: `request` or `transaction`.
    pub fn unit(&self) -> &'static str {
        match self {
            Work::Requests(_) => "request",
            Work::Accesses(_) | Work::Commits(_) => "transaction",
        }
    }
}

impl Deref for Work {
    type Target = dyn Workload;
    fn deref(&self) -> &Self::Target {
        match self {
            Work::Requests(workload) => &**workload,
            Work::Accesses(workload) => &**workload,
            Work::Commits(workload) => &**workload,
        }
    }
}

/// What [`WorkloadSpec::open`](crate::WorkloadSpec::open) returns.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Streams that run together, at least one.
    pub streams: Vec<Stream>,
    /// Notes for the user: what was skipped, sorted, widened.
    pub notes: Vec<String>,
}

/// One of the workloads that run together.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The row of its figures in results.
    pub name: String,
    /// Requests, accesses or commits.
    pub work: Work,
    /// Simulated time before its figures are counted.
    pub ramp_time: Span,
    /// Streams that must have ended before it begins, by their number.
    pub after: Vec<usize>,
    /// Delay after they ended, or after the beginning.
    pub delay: Span,
    /// How it issues its requests, if it is a closed loop.
    pub issue: Issue,
    /// Its figures are added to those of this stream, by its number.
    pub reported_with: Option<usize>,
}

impl Stream {
    /// A stream that begins at once and counts from its beginning.
    pub fn new(name: String, work: Work) -> Stream {
        let ramp_time = Span::ZERO;
        let (delay, issue) = (Span::ZERO, Issue::default());
        Stream { name, work, ramp_time, after: Vec::new(), delay, issue, reported_with: None }
    }
}
