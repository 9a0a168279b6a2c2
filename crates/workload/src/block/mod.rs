//! Requests for blocks of a device: generators, recorded traces, and programs whose files or databases lie on it.

pub mod fat;
pub mod fio_job;
pub mod generator;
pub mod repeated;
pub mod replay;
pub mod together;
pub mod tpcc;

use crate::addresses::Ranks;
use crate::{Batch, Request, Span, Workload};
use fat::FatClient;
use generator::{AnyGenerator, SizeSource};
use nvlab_trace::Columns;
use nvlab_trace::columns::{Origin, ROWS_MAX};
use repeated::{PassWrites, Repeated};
use replay::{Program, Replay};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use together::{Tenant, Together};
use tpcc::Tpcc;

/// A trace of at most `limit` requests of `workload`: `nvlab trace make`. A closed loop has no times, so every request is at time 0.
pub fn record(workload: &mut dyn BlockWorkload, limit: u64, origin: Origin) -> Columns {
    let mut columns = Columns::new(origin);
    let mut batch = Batch::new();
    let mut left = limit.min(ROWS_MAX);
    while left > 0 && workload.fill(&mut batch) > 0 {
        for request in batch.requests().iter().take(left as usize) {
            columns.push(Request { volume: 0, ..*request });
        }
        left -= left.min(batch.len() as u64);
        batch.clear();
    }
    columns.rebase();
    columns
}

/// A source of requests for blocks.
pub trait BlockWorkload: Workload {
    /// Appends the next requests to `batch`, at most as many as fit, and returns how many; 0 means that the workload
    /// has ended for good. Panics if `batch` has no room, since 0 would then be ambiguous.
    fn fill(&mut self, batch: &mut Batch) -> usize;

    /// Appends the next of the requests that bring a factory-new device to the state in which this workload begins,
    /// like [`BlockWorkload::fill`]; they are not measured. Most workloads can begin in any state.
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

    /// Bytes that it writes in a pass, if it goes over all its addresses before it comes back to one: what its writes cost is
    /// the same in every pass, not in parts of one.
    fn pass_bytes(&self) -> Option<u64> {
        None
    }

    /// How it draws the addresses of its writes, each stream that writes for itself, if each address is drawn anew and it
    /// never trims: then nothing about the state it leaves a device in depends on their order.
    fn draws(&self) -> Option<Vec<Draws>> {
        None
    }

    /// Begins the next pass of a workload that is repeated ([`Repeated`]); false: it is not.
    fn begin_again(&mut self) -> bool {
        false
    }

    /// What a pass of a workload that is repeated writes to a device with units of `unit_bytes`.
    fn pass_writes(&self, _unit_bytes: u32) -> Option<PassWrites> {
        None
    }

    /// True if its writes are appended to zones (zone append): the device chooses the place, so that many of a zone may be in
    /// flight. Otherwise a host has one write of a zone in flight.
    fn appends(&self) -> bool {
        false
    }

    /// The streams of a workload that consists of several, each with its own pace.
    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        None
    }

    /// How long it runs before it is measured: its device and its queue are then as they stay.
    fn ramp_time(&self) -> Span {
        Span::ZERO
    }

    /// The program that issues these requests, row by row: with [`Pacing::Program`](crate::Pacing::Program).
    fn program(&self) -> Option<Arc<Program>> {
        None
    }
}

/// How often a stream writes, compared with others on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Often {
    /// An open loop: writes per second.
    Rate(f64),
    /// As the device serves its requests, of which this share are writes.
    Closed {
        /// The most requests in flight.
        depth: u32,
        /// Writes among the requests, 0 to 1.
        write_share: f64,
    },
}

/// Writes whose addresses are drawn anew each time: as those of a workload are, but others. A device that was written to by the same
/// writes before would see them a second time in the same order.
#[derive(Debug)]
pub struct Draws {
    /// First byte of the region, which is divided into slots.
    pub start: u64,
    /// Bytes of a slot, the unit of addresses.
    pub bytes: u32,
    /// Slots in the region.
    pub slots: u64,
    /// Draws the slot of the next write.
    pub ranks: Box<dyn Ranks>,
    /// How often it writes, compared with the other streams.
    pub often: Often,
    /// Some are forced to the medium, or flushes are among them.
    pub flushes: bool,
    /// Bytes of each write; `None`: those of a slot. With sizes, the ranks are in order ([`Ranks::is_in_order`]).
    pub sizes: Option<SizeSource>,
}

impl Draws {
    /// Draws a write: the rank of its first slot, and its bytes.
    #[inline]
    pub fn draw(&mut self) -> (u64, u32) {
        let rank = self.ranks.rank();
        let Some(sizes) = &mut self.sizes else { return (rank, self.bytes) };
        let bytes = sizes.draw();
        (rank.min(self.slots - bytes.div_ceil(self.bytes) as u64), bytes)
    }

    /// Slots of the largest write.
    pub fn slots_most(&self) -> u32 {
        self.sizes.as_ref().map_or(1, |sizes| sizes.largest().div_ceil(self.bytes))
    }
}

/// Requests from any source. They are used through the trait this dereferences to, with one virtual call per batch.
#[derive(Clone, Debug)]
pub enum AnyBlockWorkload {
    /// Requests by parameters.
    Generator(Box<AnyGenerator>),
    /// A database of pages behind a buffer pool.
    Tpcc(Box<Tpcc>),
    /// A program on a FAT volume, with payload.
    Fat(FatClient),
    /// Requests that were recorded.
    Replay(Replay),
    /// Several streams, each at its own pace.
    Together(Together),
    /// Passes over a workload that ends, one after another.
    Repeated(Repeated),
}

impl Deref for AnyBlockWorkload {
    type Target = dyn BlockWorkload;
    fn deref(&self) -> &Self::Target {
        match self {
            AnyBlockWorkload::Generator(workload) => &***workload,
            AnyBlockWorkload::Tpcc(workload) => &**workload,
            AnyBlockWorkload::Fat(workload) => workload,
            AnyBlockWorkload::Replay(workload) => workload,
            AnyBlockWorkload::Together(workload) => workload,
            AnyBlockWorkload::Repeated(workload) => workload,
        }
    }
}

impl DerefMut for AnyBlockWorkload {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            AnyBlockWorkload::Generator(workload) => &mut ***workload,
            AnyBlockWorkload::Tpcc(workload) => &mut **workload,
            AnyBlockWorkload::Fat(workload) => workload,
            AnyBlockWorkload::Replay(workload) => workload,
            AnyBlockWorkload::Together(workload) => workload,
            AnyBlockWorkload::Repeated(workload) => workload,
        }
    }
}
