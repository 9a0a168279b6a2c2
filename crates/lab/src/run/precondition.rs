//! Bringing a device to a known state before anything is measured.
//!
//! `full`: every logical unit is written once, in order. `scattered`: once, in random order, so that neighbours in
//! address are far apart on the medium and locality of addresses is not locality of blocks. `steady`: as `full`, then
//! the workload's own writes (or uniform ones of a unit, if it has too few), as fast as the device takes them, until
//! write amplification is constant. It is measured in windows of half a capacity, from the moment every block has been
//! erased twice on average (earlier the cleaner has had little to do); it is constant when the later half of all windows
//! and the earlier half agree within 1 %. The span grows with the search, so that a slow drift is not missed.

use super::OnProgress;
use super::device::Observed;
use super::drive::{DriveError, Limit, Progress, Watch, drive, idle_at};
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

/// Windows of half a capacity after which `steady` gives up and reports that it has not converged.
const WINDOWS_MAX: usize = 100;
/// Windows on each side of the comparison, at least.
const WINDOWS_MIN: usize = 2;
const AGREE: f64 = 0.01;
/// Erases of the mean block before windows count.
const ERASES_BEFORE: u64 = 2;
const DEPTH: u32 = 32;
/// A workload that needs more transactions than this to fill a batch with stores counts as one without stores.
const BARREN_MAX: u32 = 10_000;

/// Requests of one unmeasured source, as fast as the device takes them.
struct Unmeasured<F> {
    footprint: Range<u64>,
    /// [`BlockWorkload::fill`].
    fill: F,
}

impl<F> Workload for Unmeasured<F> {
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> Range<u64> {
        self.footprint.clone()
    }
}

impl<F: FnMut(&mut Batch) -> usize> BlockWorkload for Unmeasured<F> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        (self.fill)(batch)
    }
}

/// Large sequential writes over a whole device.
fn sequential_fill(capacity_bytes: u64) -> impl BlockWorkload {
    let mut next = 0;
    let fill = move |batch: &mut Batch| {
        let before = batch.len();
        while batch.room() > 0 && next < capacity_bytes {
            let bytes = (capacity_bytes - next).min(1 << 20) as u32;
            batch.push(Request { offset: next, bytes, op: Op::Write, ..Request::default() });
            next += bytes as u64;
        }
        batch.len() - before
    };
    Unmeasured { footprint: 0..capacity_bytes, fill }
}

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

/// Drives a device without measuring it.
fn unmeasured<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    at: Time,
    limit: &Limit,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Progress, DriveError> {
    drive(device, workload, at, DEPTH, limit, Watch { meter: None, go_on })
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
    let mut report =
        Precondition { kind: state.name().into(), host_bytes: 0, last_windows: [0.0; 2], converged: true };
    // Without erase blocks nothing depends on what was written before.
    if state == State::Fresh || device.blocks() == 0 {
        return Ok((report, Time::ZERO));
    }
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
            written = settle(device, workload, &mut done, &mut report, on_progress)?;
        }
        if written == 0 {
            let mut writes = uniform_writes(footprint, device.unit_bytes(), seed);
            settle(device, &mut writes, &mut done, &mut report, on_progress)?;
        }
    }
    let now = done.now;
    let flushed = device.flush(now).map_err(|source| DriveError::Failed {
        number: 0,
        op: Op::Flush,
        bytes: 0,
        offset: 0,
        at: now,
        source,
    })?;
    // The measured run begins on an idle device.
    Ok((report, idle_at(device, flushed.end, done.requests)?))
}

/// Writes until two windows agree; returns the bytes written, 0 if the workload hardly writes.
fn settle<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    done: &mut Progress,
    report: &mut Precondition,
    on_progress: OnProgress<'_>,
) -> Result<u64, DriveError> {
    let capacity = device.capacity_bytes();
    let unit = device.unit_bytes() as u64;
    // A window must hold enough blocks for its mean to be steady: half a capacity, at least 64 Ki units.
    let window = (capacity / 2).max(unit << 16);
    // A workload that writes less than a tenth of what it does would take too long.
    let limit = Limit { written_bytes: window, bytes: window.saturating_mul(10), ..Limit::NONE };
    let blocks = device.blocks() as u64;
    let filled = device.counters().erases;
    let (mut total, mut windows) = (0, Vec::new());
    let footprint = workload.footprint();
    let mut at_once = Unmeasured { footprint, fill: |batch: &mut Batch| workload.fill(batch) };
    for round in 0..WINDOWS_MAX {
        let before = device.counters();
        let share = |progress: &Progress| round as f64 + progress.written_bytes as f64 / window as f64;
        let go_on = &mut |progress: &Progress| on_progress("settling", share(progress) / 2.0);
        let progress = unmeasured(device, &mut at_once, done.now, &limit, go_on)?;
        (done.now, done.requests) = (progress.now, done.requests + progress.requests);
        if progress.written_bytes < window {
            return Ok(if progress.written_bytes * 2 < window { 0 } else { total });
        }
        total += progress.written_bytes;
        report.host_bytes += progress.written_bytes;
        let after = device.counters();
        if after.erases - filled < ERASES_BEFORE * blocks {
            continue;
        }
        let programmed = (after.programmed_units - before.programmed_units) as f64;
        windows.push(programmed / (after.host_units - before.host_units) as f64);
        let (earlier, later) = windows.split_at(windows.len() / 2);
        let mean = |windows: &[f64]| windows.iter().sum::<f64>() / windows.len().max(1) as f64;
        report.last_windows = [mean(earlier), mean(later)];
        let [a, b] = report.last_windows;
        if earlier.len() >= WINDOWS_MIN && (a - b).abs() <= AGREE * b {
            report.converged = true;
            break;
        }
    }
    Ok(total)
}
