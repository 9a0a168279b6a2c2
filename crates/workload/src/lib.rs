//! Workloads, generated or replayed from a trace (`nvlab-trace`): streams of [`Request`]s for blocks, of [`Access`]es to words by transactions, or of
//! [`Changes`] of recoverable memory.
//!
//! What a request costs and when it is served is not modelled here. A workload never learns when a request completes;
//! a closed loop only specifies how many may be outstanding ([`Pacing`]), and the code that runs it enforces that.
//!
//! What every workload knows beforehand is the trait [`Workload`]; a kind of stream is a trait on top of it and an arm of
//! [`Work`]: [`BlockWorkload`], [`MemoryWorkload`], [`DurableWorkload`]. All of them are read by [`WorkloadSpec::parse`] and opened by
//! [`WorkloadSpec::open`].
//!
//! 1. A workload is a function of (its text, the device's capacity, the seed): the same three always produce the same
//!    requests. Each purpose draws from its own stream of random numbers, so that changing the share of reads does
//!    not change the addresses.
//! 2. The times of an open workload never decrease.
//! 3. Every request is inside the capacity it was made for. A [`Op::Flush`] has no bytes, every other request has.
//! 4. Nothing is allocated, hashed or dispatched dynamically per request: requests come in a [`Batch`] of 32, and the
//!    kind of workload matters once per batch; of transactions, once per transaction.
//!
//! ```
//! use nvlab_workload::{Batch, Target, Work, WorkloadSpec};
//! let spec = WorkloadSpec::parse("zipf theta=0.99 read=70% bs=4KiB qd=32 until=1000io")?;
//! let mut opened = spec.open(Target::blocks(1 << 30, 512), 1)?;
//! let Work::Requests(workload) = &mut opened.streams[0].work else { unreachable!() };
//! let (mut batch, mut bytes) = (Batch::new(), 0u64);
//! while workload.fill(&mut batch) > 0 {
//!     bytes += batch.requests().iter().map(|request| request.bytes as u64).sum::<u64>();
//!     batch.clear();
//! }
//! assert_eq!(bytes, 1000 * 4096);
//! # Ok::<(), nvlab_workload::WorkloadError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`spec`] | the text after `-w`: `'zipf theta=0.99 read=70%'`, `db.fio`, `'web.csv.gz:msr compact'` |
//! | [`block`] | requests for blocks: |
//! | [`block::generator`] | addresses, a mix of operations, sizes and arrivals |
//! | [`block::replay`] | a trace as a workload: cut, scaled, squeezed, wrapped, tiled |
//! | [`block::fio_job`] | fio job files, the subset that affects a device |
//! | [`block::together`] | several streams on one device, each with its own pace |
//! | [`block::fat`] | clients of a FAT volume, with payload: IOzone's modes, a logger |
//! | [`block::tpcc`] | TPC-C's transactions on a database of pages, behind a buffer pool |
//! | [`memory`] | loads and stores by transactions: |
//! | [`memory::tpca`] | TPC-A |
//! | [`memory::random_words`] | single words |
//! | [`durable`] | transactions on recoverable memory: |
//! | [`durable::debit_credit`] | debit-credit, TPC-B alike |
//! | [`durable::compiler`] | the shape of a compiler on a persistent heap |
//! | [`objects`] | operations on objects that a program keeps, and stores of them |
//! | [`addresses`] | uniform, shuffled, sequential, Zipf, hot/cold ... |
//! | [`arrivals`] | when requests or transactions arrive, and when they end |

pub mod addresses;
pub mod arrivals;
mod batch;
pub mod block;
pub mod durable;
mod error;
mod in_use;
pub mod memory;
pub mod objects;
pub mod spec;
mod words;
mod work;

pub use batch::Batch;
pub use block::replay::{self, Program, Rerun};
pub use block::{AnyBlockWorkload, BlockWorkload};
pub use durable::{AnyDurableWorkload, Changes, DurableWorkload};
pub use error::WorkloadError;
pub use in_use::InUse;
pub use memory::{Access, AccessKind, AnyMemoryWorkload, MemoryWorkload};
pub use nvlab_trace::{Op, Request};
pub use nvlab_units::{Span, Time};
pub use spec::{Serves, Target, WorkloadSpec};
pub use words::size;
pub use work::{Opened, Stream, Work};

use std::ops::Range;

/// The zones of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// Bytes from the start of one zone to that of the next.
    pub size_bytes: u64,
    /// Bytes of a zone that can be written, from its start on.
    pub capacity_bytes: u64,
    /// Zones that may be open at the same time.
    pub open_max: u32,
}

/// What decides when a workload's requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At most `depth` requests are outstanding; the next begins when one completes. [`Request::at`] is zero.
    Closed {
        /// Of all its threads together, at least 1.
        depth: u32,
    },
    /// Every request begins at its [`Request::at`], however busy the device is.
    Open,
    /// Every request begins when the recorded program would issue it ([`BlockWorkload::program`]).
    Program,
}

/// What every workload knows beforehand. What it asks of a device is defined by the traits that build on this one:
/// [`BlockWorkload`], [`MemoryWorkload`] and [`DurableWorkload`].
pub trait Workload {
    /// Whether requests or transactions wait for completions or for their times.
    fn pacing(&self) -> Pacing;

    /// Threads that issue its requests: in a closed loop each keeps its share of the depth in flight. They matter where the
    /// host's software takes processor time.
    fn threads(&self) -> u32 {
        1
    }

    /// The bytes that may be accessed, `[start, end)`, which a preconditioner fills.
    fn footprint(&self) -> Range<u64>;

    /// How many requests or transactions remain, if known. `None` for a workload without an end.
    fn len_hint(&self) -> Option<u64> {
        None
    }

    /// The simulated time after which it should be stopped. An open workload ends by itself; a closed loop
    /// does not know the time, so its runner stops it.
    fn time_limit(&self) -> Option<Span> {
        None
    }

    /// True if it is configured to end after some requests or time, even if the number of requests is unknown.
    fn has_end(&self) -> bool {
        self.len_hint().is_some() || self.time_limit().is_some()
    }

    /// What its text does not say, in a few lines, the most important first; empty if there is nothing of that kind.
    fn describe(&self) -> String {
        String::new()
    }
}
