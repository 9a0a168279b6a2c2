//! Bringing a device to a known state before anything is measured.
//!
//! `full`: every logical unit is written once, in order. `scattered`: once, in random order, so that neighbours in
//! address are far apart on the medium and locality of addresses is not locality of blocks. `steady`: as `full`, then
//! the workload's own writes (or uniform ones of a unit, if it has too few), as fast as the device takes them, until
//! write amplification is constant ([`super::settle`]), or to the same state by way of a coarse twin ([`super::coarse`]).
//! After each of them the device is left idle until a cache that it empties in idle time is empty.

use super::device::Observed;
use super::drive::{DriveError, Limit, Progress, idle_at, within_time};
use super::settle::{DEPTH, Unmeasured, sequential_fill, settle, unmeasured};
use super::{OnProgress, coarse};
use crate::result::Precondition;
use nvlab_access::BlockDevice;
use nvlab_units::{Rng, Time};
use nvlab_workload::addresses::Scatter;
use nvlab_workload::{AccessKind, AnyMemoryWorkload, Batch, BlockWorkload, Op, Pacing, Request, Workload};
use std::ops::Range;

/// How a device is brought to a known state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Factory-new.
    Fresh,
    /// Every logical unit written once, in order.
    Full,
    /// Every logical unit written once, in random order.
    Scattered,
    /// Full, then written until write amplification has converged.
    #[default]
    Steady,
}

impl State {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            State::Fresh => "fresh",
            State::Full => "full",
            State::Scattered => "scattered",
            State::Steady => "steady",
        }
    }
    /// The state with this name.
    pub fn parse(name: &str) -> Option<State> {
        [State::Fresh, State::Full, State::Scattered, State::Steady]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// A workload that needs more transactions than this to fill a batch with stores counts as one without stores.
const BARREN_MAX: u32 = 10_000;

/// Writes of one unit over a whole device, every unit once, in random order.
fn scattered_fill<D: BlockDevice + Observed>(device: &D, seed: u64) -> impl BlockWorkload + use<D> {
    let bytes = device.unit_bytes();
    let units = device.capacity_bytes() / bytes as u64;
    let order = Scatter::new(units, Rng::stream(seed, "fill").bits());
    let mut next = 0;
    let fill = move |batch: &mut Batch| {
        let count = (batch.room() as u64).min(units - next) as usize;
        batch.extend(count, || {
            next += 1;
            let offset = order.place(next - 1) * bytes as u64;
            Request { offset, bytes, op: Op::Write, ..Request::default() }
        });
        count
    };
    Unmeasured { footprint: 0..units * bytes as u64, fill }
}

/// Uniform writes of one unit within `footprint`, without an end.
fn uniform_writes(footprint: Range<u64>, bytes: u32, seed: u64) -> impl BlockWorkload {
    let (first, end) = (footprint.start / bytes as u64, footprint.end / bytes as u64);
    let units = (end - first).max(1);
    let mut rng = Rng::stream(seed, "precondition");
    let fill = move |batch: &mut Batch| {
        let room = batch.room();
        batch.extend(room, || {
            let offset = (first + rng.below(units)) * bytes as u64;
            Request { offset, bytes, op: Op::Write, ..Request::default() }
        });
        room
    };
    Unmeasured { footprint, fill }
}

/// The stores of transactions, each as a write of the page that it changes.
pub fn stores(mut workload: AnyMemoryWorkload, page_bytes: u32) -> impl BlockWorkload {
    let footprint = workload.footprint();
    let (mut accesses, mut next) = (Vec::new(), 0);
    let fill = move |batch: &mut Batch| {
        let before = batch.len();
        let mut transactions = 0;
        while batch.room() > 0 {
            let Some(access) = accesses.get(next) else {
                next = 0;
                transactions += 1;
                if transactions > BARREN_MAX || workload.next(&mut accesses).is_none() {
                    accesses.clear();
                    break;
                }
                continue;
            };
            next += 1;
            if access.kind == AccessKind::Store {
                let offset = access.offset / page_bytes as u64 * page_bytes as u64;
                batch.push(Request { offset, bytes: page_bytes, op: Op::Write, ..Request::default() });
            }
        }
        batch.len() - before
    };
    Unmeasured { footprint, fill }
}

/// The requests before the first that is measured ([`BlockWorkload::prepare`]).
struct Preparation<'a>(&'a mut dyn BlockWorkload);

impl BlockWorkload for Preparation<'_> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        self.0.prepare(batch)
    }
    fn payload(&self, request: &Request) -> &[u8] {
        self.0.payload(request)
    }
}

impl Workload for Preparation<'_> {
    fn pacing(&self) -> Pacing {
        match self.0.pacing() {
            // The program has not begun yet.
            Pacing::Program => Pacing::Closed { depth: DEPTH },
            pacing => pacing,
        }
    }
    fn footprint(&self) -> Range<u64> {
        self.0.footprint()
    }
}

/// Runs the preparation of the workload itself, from `at` on; returns when the device is idle.
pub fn prepare<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    at: Time,
    on_progress: OnProgress<'_>,
) -> Result<Time, DriveError> {
    let go_on = &mut |_: &Progress| on_progress("preparing", 0.0);
    let progress = unmeasured(device, &mut Preparation(workload), at, &Limit::NONE, go_on)?;
    if progress.requests == 0 { Ok(at) } else { idle_at(device, progress.now, progress.requests) }
}

/// Brings a device to a state and returns when it is reached. `workload` is a copy of the one to be measured, with a seed
/// of its own; `None` if its writes are not to be used (a trace).
pub fn precondition<D: BlockDevice + Observed>(
    device: &mut D,
    state: State,
    workload: Option<&mut dyn BlockWorkload>,
    seed: u64,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), DriveError> {
    let mut report = Precondition::none(state.name());
    // Without erase blocks nothing depends on what was written before.
    if state == State::Fresh || device.blocks() == 0 {
        return Ok((report, Time::ZERO));
    }
    let draws = workload.as_ref().filter(|_| state == State::Steady).and_then(|workload| workload.draws());
    let settled = draws.map(|draws| coarse::settled(device, draws, &mut report, on_progress)).transpose()?;
    let done = match settled.flatten() {
        Some(done) => done,
        None => written(device, state, workload, seed, &mut report, on_progress)?,
    };
    let now = done.now;
    let flushed = device.flush(now).map_err(|source| DriveError::Failed {
        number: 0,
        op: Op::Flush,
        bytes: 0,
        offset: 0,
        at: now,
        source,
    })?;
    // The measured run begins on an idle device, rested like the drives in benchmarks: its cache is folded.
    let idle = idle_at(device, flushed.end, done.requests)?;
    let rested = device.rest(idle).map_err(|source| DriveError::Unfinished { at: idle, source })?;
    report.rested_s = rested.since(idle).seconds();
    Ok((report, within_time(rested, done.requests)?))
}

/// Fills a device at full size, and writes to it until it is in its state.
fn written<D: BlockDevice + Observed>(
    device: &mut D,
    state: State,
    workload: Option<&mut dyn BlockWorkload>,
    seed: u64,
    report: &mut Precondition,
    on_progress: OnProgress<'_>,
) -> Result<Progress, DriveError> {
    let capacity = device.capacity_bytes();
    let share = |progress: &Progress| progress.written_bytes as f64 / capacity as f64;
    let go_on = &mut |progress: &Progress| on_progress("filling", share(progress));
    let mut done = if state == State::Scattered {
        device.expect_scattered_fill();
        let mut fill = scattered_fill(device, seed);
        unmeasured(device, &mut fill, Time::ZERO, &Limit::NONE, go_on)?
    } else {
        let mut fill = sequential_fill(capacity);
        unmeasured(device, &mut fill, Time::ZERO, &Limit::NONE, go_on)?
    };
    report.host_bytes = capacity;
    if state == State::Steady {
        let footprint = workload.as_ref().map_or(0..capacity, |workload| workload.footprint());
        let mut written = 0;
        report.converged = false;
        if let Some(workload) = workload {
            written = settle(device, workload, &mut done, report, on_progress)?;
        }
        if written == 0 {
            let mut writes = uniform_writes(footprint, device.unit_bytes(), seed);
            settle(device, &mut writes, &mut done, report, on_progress)?;
        }
    }
    Ok(done)
}
