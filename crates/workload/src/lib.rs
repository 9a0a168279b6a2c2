//! Requests to a device, generated or recorded, as one stream of [`Request`]s.
//!
//! It does not model what a request costs or when it is served. A workload never learns when a request completes;
//! a closed loop only specifies how many may be outstanding ([`Pacing`]), and the code that runs it enforces that.
//!
//! 1. A workload is a function of (its text, the device's capacity, the seed): the same three always produce the same
//!    requests. Each purpose draws from its own stream of random numbers, so that changing the share of reads does
//!    not change the addresses.
//! 2. The times of an open workload never decrease.
//! 3. Every request is inside the capacity it was made for. A [`Op::Flush`] has no bytes, every other request has.
//! 4. Nothing is allocated, hashed or dispatched dynamically per request: requests come in a [`Batch`] of 32,
//!    and [`AnyWorkload`] chooses the kind once per batch.
//!
//! ```
//! use nvlab_workload::{Batch, Workload, WorkloadSpec};
//! let capacity_bytes = 1 << 30;
//! let spec = WorkloadSpec::parse("zipf theta=0.99 read=70% bs=4KiB qd=32 until=1000io")?;
//! let mut opened = spec.open(capacity_bytes, 512, 1)?;
//! let workload = &mut opened.phases[0][0].workload;
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
//! | [`generator`] | uniform, shuffled, sequential, Zipf, hot/cold ... : addresses, mixes, sizes, arrivals |
//! | [`spec`] | the text after `-w`: `'zipf theta=0.99 read=70%'`, `db.fio`, `'web.csv.gz:msr compact'` |
//! | [`fio_job`] | fio job files, the subset that affects a device |
//! | [`trace`] | readers and writers of eight trace formats, plain or compressed |
//! | [`columns`] | a trace in memory, one array per column; [`nvt`] is its file format |
//! | [`replay`] | a trace as a workload: cut, scaled, squeezed, wrapped, tiled |
//! | [`window`] | programs on a memory: loads and stores by transactions; single words |
//! | [`tpca`] | TPC-A's transactions on such a memory |
//! | [`iozone`] | IOzone's modes on a FAT volume, with payload |
//! | [`tpcc`] | TPC-C's transactions on a database of pages, behind a buffer pool |
//! | [`suggest`] | "did you mean ...?" |
//! | [`info`] | the output of `nvlab trace info` and `nvlab trace head` |

pub mod any;
pub mod columns;
mod error;
pub mod fio_job;
pub mod generator;
pub mod info;
pub mod iozone;
pub mod nvt;
pub mod replay;
mod request;
pub mod spec;
pub mod suggest;
pub mod tpca;
pub mod tpcc;
pub mod trace;
pub mod window;
mod words;

pub use any::AnyWorkload;
pub use error::WorkloadError;
pub use iozone::{Iozone, IozoneConfig};
pub use nvlab_units::{Span, Time};
pub use replay::{Program, Rerun};
pub use request::{Batch, Op, Request};
pub use spec::{Opened, Stream, WorkloadSpec};
pub use tpca::{Tpca, TpcaConfig};
pub use tpcc::{Tpcc, TpccConfig};
pub use window::{Access, AccessKind, AnyWindow, WindowSpec, WindowWorkload};

/// How a workload's requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At most `depth` requests are outstanding; the next begins when one completes. [`Request::at`] is zero.
    Closed {
        /// The most outstanding requests.
        depth: u32,
    },
    /// Every request begins at its [`Request::at`], however busy the device is.
    Open,
    /// Every request begins when the recorded program would issue it ([`Workload::program`]).
    Program,
}

/// A source of requests.
///
/// [`Workload::fill`] produces them; the other methods return what is known beforehand.
pub trait Workload {
    /// Appends the next requests to `batch`, at most as many as fit, and returns how many; 0 means that the workload
    /// has ended for good. Panics if `batch` has no room, since 0 would then be ambiguous.
    fn fill(&mut self, batch: &mut Batch) -> usize;

    /// Appends the next of the requests that bring a factory-new device to the state in which this workload begins,
    /// like [`Workload::fill`]; they are not measured. Most workloads can begin in any state.
    fn prepare(&mut self, _batch: &mut Batch) -> usize {
        0
    }

    /// True if its writes carry bytes that a device may learn from.
    fn carries_payload(&self) -> bool {
        false
    }

    /// The payload of a write; empty if its writes carry none.
    fn payload(&self, _request: &Request) -> &[u8] {
        &[]
    }

    /// Bytes the client itself accesses in the measured part, if the requests carry more or fewer.
    fn client_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether requests wait for completions or for their times.
    fn pacing(&self) -> Pacing;

    /// The program that issues these requests, row by row: with [`Pacing::Program`].
    fn program(&self) -> Option<std::sync::Arc<Program>> {
        None
    }

    /// How many requests remain, if known. `None` for a workload without an end.
    fn len_hint(&self) -> Option<u64> {
        None
    }

    /// True if it is configured to end after some requests or time, even if the number of requests is unknown.
    fn has_end(&self) -> bool {
        self.len_hint().is_some() || self.time_limit().is_some()
    }

    /// The bytes that requests may access, `[start, end)`, which a preconditioner fills.
    fn footprint(&self) -> std::ops::Range<u64>;

    /// The simulated time after which it should be stopped. An open workload ends by itself; a closed loop
    /// does not know the time, so its runner stops it.
    fn time_limit(&self) -> Option<Span> {
        None
    }
}
