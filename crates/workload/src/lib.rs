//! What is asked of a device: generated requests and recorded ones, as one stream of [`Request`]s.
//!
//! Not here: what a request costs, and when it is served. A workload never learns when a request completes;
//! a closed loop only says how many may be under way ([`Pacing`]), and whoever runs it keeps to that.
//!
//! 1. A workload is a function of (its text, the device's capacity, the seed): the same three give the same
//!    requests, for ever. Each purpose draws from its own stream of random numbers, so that changing the
//!    share of reads does not move the addresses.
//! 2. The moments of an open workload never go back.
//! 3. Every request lies inside the capacity it was made for. A [`Op::Flush`] has no bytes, everything else has.
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
//! | [`fio_job`] | fio job files, the subset that a device can see |
//! | [`trace`] | readers and writers of eight trace formats, plain or compressed |
//! | [`columns`] | a trace in memory, one array per column; [`nvt`] is the file of it |
//! | [`replay`] | a trace as a workload: cut, scaled, squeezed, wrapped, tiled |
//! | [`window`] | programs on a memory: loads and stores by transactions; single words |
//! | [`tpca`] | TPC-A's transactions on such a memory |
//! | [`iozone`] | IOzone's modes on a FAT volume, with what they write |
//! | [`tpcc`] | TPC-C's transactions on a database of pages, behind a buffer pool |
//! | [`info`] | what `nvlab trace info` and `nvlab trace head` say |

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
mod suggest;
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

/// How a workload's requests are let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At most `depth` requests are under way; the next begins when one completes. [`Request::at`] is zero.
    Closed {
        /// How many requests may be under way.
        depth: u32,
    },
    /// Every request begins at its [`Request::at`], however busy the device is.
    Open,
    /// Every request begins when the recorded program would ask it ([`Workload::program`]).
    Program,
}

/// A source of requests.
///
/// [`Workload::fill`] gives them; the rest is what is known beforehand.
pub trait Workload {
    /// Appends the next requests to `batch`, at most as many as fit, and returns how many; 0 means the end was
    /// reached, and it stays reached. Panics if `batch` has no room, since 0 would then mean two things.
    fn fill(&mut self, batch: &mut Batch) -> usize;

    /// Appends the next of the requests that bring a device from the factory to the state in which this workload
    /// begins, as [`Workload::fill`] does; they are not measured. Most workloads begin in any state.
    fn prepare(&mut self, _batch: &mut Batch) -> usize {
        0
    }

    /// True if its writes carry bytes that a device may learn from.
    fn carries_payload(&self) -> bool {
        false
    }

    /// What a write of this workload carries; empty if its writes carry nothing.
    fn payload(&self, _request: &Request) -> &[u8] {
        &[]
    }

    /// Bytes of its own that a client asks for in the measured part, where requests carry more or fewer than that.
    fn client_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether requests wait for completions or for moments.
    fn pacing(&self) -> Pacing;

    /// The program whose requests these are, row by row: with [`Pacing::Program`].
    fn program(&self) -> Option<std::sync::Arc<Program>> {
        None
    }

    /// How many requests are still to come, if it is known. A workload without an end says `None`.
    fn len_hint(&self) -> Option<u64> {
        None
    }

    /// True if it was told to end after so many requests or so much time, even if their number is not known.
    fn has_end(&self) -> bool {
        self.len_hint().is_some() || self.time_limit().is_some()
    }

    /// The bytes that requests may touch, `[start, end)`: what a preconditioner fills.
    fn footprint(&self) -> std::ops::Range<u64>;

    /// The simulated time after which it should be stopped. An open workload ends by itself; a closed loop
    /// does not know the time, so its runner stops it.
    fn time_limit(&self) -> Option<Span> {
        None
    }
}
