//! Bringing a device to a known state before anything is measured.
//!
//! `full`: every logical unit is written once, in order. `scattered`: once, in random order, so that neighbours in
//! address lie far apart on the medium and no locality of addresses is one of blocks. `steady`: as `full`, then the workload's own writes (or uniform
//! ones of a unit, if it has too few), as fast as the device takes them, until write amplification stops moving.
//! It is measured in windows of half a capacity, from the moment every block has been erased twice on average
//! (before that the cleaner has hardly been met); it has stopped when the later half of all windows and the
//! earlier half agree within 1 %. The span grows with the search, so that a slow drift is not taken for rest.

use super::OnProgress;
use super::device::Observed;
use super::drive::{DriveError, Limit, Progress, Watch, drive, idle_at};
use crate::result::Precondition;
use nvlab_access::BlockDevice;
use nvlab_units::{Rng, Time};
use nvlab_workload::generator::Scatter as Permutation;
use nvlab_workload::{Access, AccessKind, Batch, Op, Pacing, Request, WindowWorkload, Workload};

/// How a device is brought to a known state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// As it comes from the factory.
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
    /// The state of a name.
    pub fn parse(name: &str) -> Option<State> {
        [State::Fresh, State::Full, State::Scattered, State::Steady]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// Windows of half a capacity after which `steady` gives up waiting and says so.
const WINDOWS_MAX: usize = 100;
/// Windows on each side of the comparison, at least.
const WINDOWS_MIN: usize = 2;
const AGREE: f64 = 0.01;
/// Erases of the mean block before windows count.
const ERASES_BEFORE: u64 = 2;
const DEPTH: u32 = 32;
/// A workload that makes so many transactions without filling a batch with stores is taken for one without any.
const BARREN_MAX: u32 = 10_000;

/// Large sequential writes over a whole device.
struct Fill {
    next: u64,
    end: u64,
}

impl Workload for Fill {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        while batch.room() > 0 && self.next < self.end {
            let bytes = (self.end - self.next).min(1 << 20) as u32;
            batch.push(Request { offset: self.next, bytes, op: Op::Write, ..Request::default() });
            self.next += bytes as u64;
        }
        batch.len() - before
    }
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..self.end
    }
}

/// Writes of one unit over a whole device, every unit once, in random order.
struct ScatteredFill {
    next: u64,
    order: Permutation,
    units: u64,
    unit_bytes: u32,
}

impl ScatteredFill {
    fn new<D: BlockDevice + Observed>(device: &D, seed: u64) -> ScatteredFill {
        let unit_bytes = device.unit_bytes();
        let units = device.capacity_bytes() / unit_bytes as u64;
        let order = Permutation::new(units, Rng::stream(seed, "fill").bits());
        ScatteredFill { next: 0, order, units, unit_bytes }
    }
}

impl Workload for ScatteredFill {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let count = (batch.room() as u64).min(self.units - self.next) as usize;
        batch.extend(count, || {
            self.next += 1;
            let offset = self.order.place(self.next - 1) * self.unit_bytes as u64;
            Request { offset, bytes: self.unit_bytes, op: Op::Write, ..Request::default() }
        });
        count
    }
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..self.units * self.unit_bytes as u64
    }
}

/// Uniform writes of one unit.
struct Scatter {
    rng: Rng,
    first: u64,
    units: u64,
    unit_bytes: u32,
}

impl Workload for Scatter {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let room = batch.room();
        batch.extend(room, || Request {
            offset: (self.first + self.rng.below(self.units)) * self.unit_bytes as u64,
            bytes: self.unit_bytes,
            op: Op::Write,
            ..Request::default()
        });
        room
    }
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        self.first * self.unit_bytes as u64..(self.first + self.units) * self.unit_bytes as u64
    }
}

/// A workload as fast as the device takes it, whatever its own pace.
struct AtOnce<'a>(&'a mut dyn Workload);

impl Workload for AtOnce<'_> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        self.0.fill(batch)
    }
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        self.0.footprint()
    }
}

/// The requests before the first that is measured ([`Workload::prepare`]).
struct Preparation<'a>(&'a mut dyn Workload);

impl Workload for Preparation<'_> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        self.0.prepare(batch)
    }
    fn payload(&self, request: &Request) -> &[u8] {
        self.0.payload(request)
    }
    fn pacing(&self) -> Pacing {
        match self.0.pacing() {
            // It has not begun yet.
            Pacing::Program => Pacing::Closed { depth: DEPTH },
            pacing => pacing,
        }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        self.0.footprint()
    }
}

/// Runs the preparation of the workload itself, from `at` on; returns when the device has nothing left to do.
pub fn prepare<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn Workload,
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
    workload: &mut dyn Workload,
    at: Time,
    limit: &Limit,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Progress, DriveError> {
    drive(device, workload, at, DEPTH, limit, Watch { meter: None, go_on })
}

/// The stores of transactions, each as the page it changes.
pub struct Stores<W> {
    workload: W,
    page_bytes: u64,
    accesses: Vec<Access>,
    next: usize,
}

impl<W: WindowWorkload> Stores<W> {
    /// The stores of `workload` on a memory of such pages.
    pub fn new(workload: W, page_bytes: u32) -> Stores<W> {
        Stores { workload, page_bytes: page_bytes as u64, accesses: Vec::new(), next: 0 }
    }
}

impl<W: WindowWorkload> Workload for Stores<W> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        let before = batch.len();
        let mut transactions = 0;
        while batch.room() > 0 {
            let Some(access) = self.accesses.get(self.next) else {
                self.next = 0;
                transactions += 1;
                if transactions > BARREN_MAX || self.workload.next(&mut self.accesses).is_none() {
                    self.accesses.clear();
                    break;
                }
                continue;
            };
            self.next += 1;
            if access.kind == AccessKind::Store {
                let offset = access.offset / self.page_bytes * self.page_bytes;
                let bytes = self.page_bytes as u32;
                batch.push(Request { offset, bytes, op: Op::Write, ..Request::default() });
            }
        }
        batch.len() - before
    }
    fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: DEPTH }
    }
    fn footprint(&self) -> std::ops::Range<u64> {
        0..self.workload.footprint_bytes()
    }
}

/// Brings a device to a state and returns when it is there. `workload` is a copy of the one to be measured, with a seed
/// of its own; `None` if its writes are not to be used (a trace).
pub fn precondition<D: BlockDevice + Observed>(
    device: &mut D,
    state: State,
    workload: Option<&mut dyn Workload>,
    seed: u64,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), DriveError> {
    let mut report =
        Precondition { kind: state.name().into(), host_bytes: 0, last_windows: [0.0; 2], converged: true };
    if state == State::Fresh {
        return Ok((report, Time::ZERO));
    }
    let capacity = device.capacity_bytes();
    let share = |progress: &Progress| progress.written_bytes as f64 / capacity as f64;
    let go_on = &mut |progress: &Progress| on_progress("filling", share(progress));
    let mut done = if state == State::Scattered {
        device.expect_scattered_fill();
        let mut fill = ScatteredFill::new(device, seed);
        unmeasured(device, &mut fill, Time::ZERO, &Limit::NONE, go_on)?
    } else {
        let mut fill = Fill { next: 0, end: capacity };
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
            let unit_bytes = device.unit_bytes();
            let (first, end) = (footprint.start / unit_bytes as u64, footprint.end / unit_bytes as u64);
            let rng = Rng::stream(seed, "precondition");
            let mut scatter = Scatter { rng, first, units: (end - first).max(1), unit_bytes };
            settle(device, &mut scatter, &mut done, &mut report, on_progress)?;
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
    // The measured run begins on a device that has nothing left to do.
    Ok((report, idle_at(device, flushed.end, done.requests)?))
}

/// Writes until two windows agree; returns the bytes written, 0 if the workload hardly writes.
fn settle<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn Workload,
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
    for round in 0..WINDOWS_MAX {
        let before = device.counters();
        let share = |progress: &Progress| round as f64 + progress.written_bytes as f64 / window as f64;
        let go_on = &mut |progress: &Progress| on_progress("settling", share(progress) / 2.0);
        let progress = unmeasured(device, &mut AtOnce(workload), done.now, &limit, go_on)?;
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
