//! Speed of serving a design on this computer: over NBD on a Unix socket, answered at once, in memory.
//!
//! This program is measured, not the model: the device's own rate is that of its model, one request at a time, and is
//! the upper bound.

use crate::nbd::client::Client;
use crate::nbd::{Address, Export, NbdServer};
use crate::sys::usage;
use crate::{Drive, DriveOptions, ServeError, TimeMode};
use nvlab_design::Design;
use nvlab_os::Mapping;
use nvlab_units::{Rng, Span};
use nvlab_workload::Op;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a small and of a large request, and how many of each are under way.
const SMALL: (u32, usize) = (4096, 32);
const LARGE: (u32, usize) = (64 << 10, 8);
/// Requests between two looks at the clock.
const BETWEEN_LOOKS: usize = 32;

/// For how long and where requests are made.
#[derive(Clone, Copy, Debug)]
pub struct BenchSize {
    /// The longest time for which each kind of request is made.
    pub each: Duration,
    /// The most requests of each kind, even if there is time for more.
    pub requests: u64,
    /// Requests go to this much of the device, from its beginning on.
    pub span_bytes: u64,
}

/// The rate of one kind of request, measured and modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Requests a second of this machine's clock.
    pub served: f64,
    /// Requests a second of the modelled device, one at a time.
    pub modelled: f64,
}

/// How fast a design is served over NBD, and what serving it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Overwrites of 4 KiB at random, 32 under way.
    pub small_writes: Kind,
    /// Random reads of 4 KiB, 32 under way, of what was written.
    pub small_reads: Kind,
    /// Overwrites of 64 KiB in order, 8 under way.
    pub large_writes: Kind,
    /// Reads of 64 KiB in order, 8 under way, of what was written.
    pub large_reads: Kind,
    /// Writes of 4 KiB anywhere on the device. If it is larger than the span, most go to units that hold nothing: each takes memory
    /// that the program did not have.
    pub first_small_writes: Kind,
    /// The first writes of 64 KiB, in order.
    pub first_large_writes: Kind,
    /// A power cut, until requests are served again.
    pub cut: Duration,
    /// Bytes of memory at most, beyond what the program had before.
    pub memory_bytes: u64,
}

impl Served {
    /// Bytes of a large request; a small one has 4096.
    pub const LARGE_BYTES: u32 = LARGE.0;
}

/// A served device and a client.
struct Bench<'a> {
    drive: &'a Drive,
    socket: &'a Path,
    size: BenchSize,
}

impl Bench<'_> {
    /// Makes requests of `size.0` bytes, `size.1` together, at offsets that `next` returns.
    fn measure(&self, op: Op, size: (u32, usize), next: impl FnMut(u64) -> u64) -> io::Result<Kind> {
        self.measure_until(op, size, self.size.requests, self.size.each, next)
    }

    /// As `measure`, with limits of requests and time.
    fn measure_until(
        &self,
        op: Op,
        (bytes, together): (u32, usize),
        requests: u64,
        each: Duration,
        mut next: impl FnMut(u64) -> u64,
    ) -> io::Result<Kind> {
        let mut buffer = Mapping::anonymous(bytes as u64)?;
        let mut rng = Rng::new(bytes as u64);
        buffer.as_mut_slice().fill_with(|| rng.bits() as u8);
        let mut client = Client::connect(self.socket, buffer)?;
        let (mut done, mut offsets) = (0, Vec::with_capacity(together));
        let before = self.busy(op);
        let begun = Instant::now();
        while done < requests && begun.elapsed() < each {
            for _ in 0..BETWEEN_LOOKS.div_ceil(together) {
                offsets.clear();
                offsets.extend((done..requests.min(done + together as u64)).map(&mut next));
                client.together(op, &offsets)?;
                done += offsets.len() as u64;
            }
        }
        let took = begun.elapsed();
        let modelled = self.busy(op).saturating_sub(before);
        Ok(Kind { served: done as f64 / took.as_secs_f64(), modelled: done as f64 / modelled.seconds() })
    }

    /// How long the modelled device took for all requests of a kind so far.
    fn busy(&self, op: Op) -> Span {
        let latency = &self.drive.counts().totals[op as usize].latency;
        latency.mean() * latency.count()
    }

    fn run(&self) -> io::Result<Served> {
        let capacity = self.drive.capacity_bytes();
        let all = (self.size.span_bytes.min(capacity) / LARGE.0 as u64).max(1);
        let in_order = |nth: u64| nth % all * LARGE.0 as u64;
        let within = |bytes: u64, seed| {
            let mut rng = Rng::new(seed);
            move |_| rng.below(bytes / SMALL.0 as u64) * SMALL.0 as u64
        };
        let span = all * LARGE.0 as u64;
        let first_large_writes = self.measure_until(Op::Write, LARGE, all, Duration::MAX, in_order)?;
        let (large_writes, large_reads) =
            (self.measure(Op::Write, LARGE, in_order)?, self.measure(Op::Read, LARGE, in_order)?);
        let (small_writes, small_reads) = (
            self.measure(Op::Write, SMALL, within(span, 1))?,
            self.measure(Op::Read, SMALL, within(span, 2))?,
        );
        let first_small_writes = self.measure(Op::Write, SMALL, within(capacity, 3))?;
        let begun = Instant::now();
        self.drive.cut().map_err(io::Error::other)?;
        Ok(Served {
            small_writes,
            small_reads,
            large_writes,
            large_reads,
            first_small_writes,
            first_large_writes,
            cut: begun.elapsed(),
            memory_bytes: 0,
        })
    }
}

/// Serves a new device of a design and measures it.
pub fn bench(name: &str, design: &Design, size: BenchSize) -> Result<Served, ServeError> {
    let before = usage::begin_peak().map_err(ServeError::io("cannot read the memory usage"))?;
    let options = DriveOptions { time: TimeMode::Fast, seed: 1, ..DriveOptions::default() };
    let drive = Arc::new(Drive::open(name, design, &options)?);
    if drive.capacity_bytes() < LARGE.0 as u64 {
        return Err(ServeError::Options(format!("{name} is too small to measure")));
    }
    let folder = tempfile::tempdir().map_err(ServeError::io("cannot create a folder"))?;
    let socket = folder.path().join("nbd.sock");
    let export = Export { name: name.into(), drive: Arc::clone(&drive) };
    let _server = NbdServer::start(&Address::Unix(socket.clone()), vec![export])?;
    let ran = Bench { drive: &drive, socket: &socket, size }.run();
    let served = ran.map_err(ServeError::io(format!("{name} failed during the measurement")))?;
    let peak = usage::peak().map_err(ServeError::io("cannot read the memory usage"))?;
    Ok(Served { memory_bytes: peak.saturating_sub(before), ..served })
}
