//! Writing to a device, unmeasured, until its write amplification is constant.
//!
//! Write amplification is measured in windows of half a capacity, from the moment every block has been erased twice on
//! average (earlier the cleaner has had little to do); it is constant when the later half of all windows and the earlier half
//! agree within 1 %. The span grows with the search, so that a slow drift is not missed. Of a coarse twin ([`super::coarse`]), the
//! first quarter of the windows may be left out, since its device is looked at again: a device whose state was taken from that
//! of its twin is there when a window agrees with the one before, the first, of an eighth of a capacity, with the twin's; each
//! window is twice as long as the one before, up to half a capacity.
//!
//! A workload that goes over all its addresses before it comes back to one (fio's random map) has no constant write amplification
//! but one that repeats with every pass: its windows are whole passes.
//!
//! Between two windows nothing is in flight: there the device can be kept, and its preparation continued by another run
//! with the same result ([`Settling`]).

use super::drive::{DeviceUnderTest, DriveError, Limit, Progress, Watch, drive};
use super::{OnProgress, tenants};
use crate::result::Precondition;
use nvlab_access::Attached;
use nvlab_controller::PageMap;
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request, Workload};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Windows of half a capacity after which `steady` gives up and reports that it has not converged.
const WINDOWS_MAX: u64 = 100;
/// Windows on each side of the comparison, at least.
const WINDOWS_MIN: usize = 2;
const AGREE: f64 = 0.01;
/// Share of a capacity of the first window after a twin, as a power of one half.
const FIRST_AFTER_TWIN: u64 = 3;
/// Erases of the mean block before windows count.
const ERASES_BEFORE: u64 = 2;
pub(super) const DEPTH: u32 = 32;
/// Bytes of the requests that fill a device, at least.
const FILL_BYTES: u32 = 1 << 20;

/// Who follows a preparation.
pub(crate) struct Steps<'a> {
    /// Told what is done; returns false to stop.
    pub on_progress: OnProgress<'a>,
    /// Called between two windows, when the device may be kept.
    pub between: &'a mut dyn FnMut(&Attached<PageMap>, &Settling),
}

/// How far a device is on its way to the steady state, between two windows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settling {
    /// Requests served and simulated time.
    pub done: Progress,
    /// What will be reported.
    pub report: Precondition,
    /// Requests or ranks drawn from the source of the writes: those that the next window begins after.
    pub drawn: u64,
    /// The writes are uniform ones, since the workload hardly writes.
    pub uniform: bool,
    rounds: u64,
    written_bytes: u64,
    windows: Vec<f64>,
    /// Erases before the first window; `None`: there was none yet.
    erases_before: Option<u64>,
}

impl Settling {
    /// Before the first window.
    pub fn new(done: Progress, report: Precondition) -> Settling {
        Settling::done(done, Precondition { converged: false, ..report })
    }

    /// Nothing to settle: `report` is all there is to say.
    pub fn done(done: Progress, report: Precondition) -> Settling {
        Settling {
            done,
            report,
            drawn: 0,
            uniform: false,
            rounds: 0,
            written_bytes: 0,
            windows: Vec::new(),
            erases_before: None,
        }
    }

    /// The same with uniform writes, from the beginning.
    pub fn with_uniform_writes(self) -> Settling {
        Settling { uniform: true, ..Settling::new(self.done, self.report) }
    }

    /// What is known at a share of the next window, for people.
    fn tell(&self, erases_share: f64) -> String {
        let round = self.rounds + 1;
        let [a, b] = self.report.last_windows;
        match b > 0.0 {
            false => format!("settling: round {round}, {:.0} % of the first erases", 100.0 * erases_share),
            true => {
                let apart = 100.0 * (a - b).abs() / b;
                format!("settling: round {round}, WA {b:.2}, {apart:.1} % apart (1 % wanted)")
            }
        }
    }

    /// Rounds that it will take in all, as far as can be said: until every block was erased twice at the pace so far, then
    /// as many windows as the drift needs, which halves when the windows double.
    fn rounds_expected(&self, erases_share: f64) -> f64 {
        let least = 2.0 * WINDOWS_MIN as f64;
        let [a, b] = self.report.last_windows;
        let rounds = self.rounds as f64;
        if self.report.twin_units > 1 {
            return rounds + 1.0;
        }
        if self.windows.is_empty() {
            return rounds / erases_share.clamp(0.01, 1.0) + least;
        }
        let windows = self.windows.len() as f64;
        let apart = if b > 0.0 { (a - b).abs() / b / AGREE } else { 1.0 };
        (rounds - windows + (windows * apart).max(windows + 1.0).max(least)).min(WINDOWS_MAX as f64)
    }
}

/// Requests of one unmeasured source, as fast as the device takes them.
pub(super) struct Unmeasured<F> {
    pub footprint: Range<u64>,
    /// [`BlockWorkload::fill`].
    pub fill: F,
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

/// Large sequential writes over the first bytes of a device, and over a later range. They are of whole units: a unit written in
/// two parts is written twice, and the dead versions would stay among data that is never written again.
pub(super) fn sequential_fill(unit_bytes: u32, first: u64, then: Range<u64>) -> impl BlockWorkload + use<> {
    let piece = FILL_BYTES.next_multiple_of(unit_bytes) as u64;
    let ranges = [then, 0..first];
    let mut ranges: Vec<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
    let fill = move |batch: &mut Batch| {
        let before = batch.len();
        while let Some(range) = ranges.last_mut().filter(|_| batch.room() > 0) {
            let bytes = (range.end - range.start).min(piece) as u32;
            batch.push(Request { offset: range.start, bytes, op: Op::Write, ..Request::default() });
            range.start += bytes as u64;
            if range.is_empty() {
                ranges.pop();
            }
        }
        batch.len() - before
    };
    Unmeasured { footprint: 0..end, fill }
}

/// Drives a device without measuring it.
pub(super) fn unmeasured(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    at: nvlab_units::Time,
    limit: &Limit,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Progress, DriveError> {
    let watch = Watch { meter: None, go_on };
    match workload.tenants() {
        // Each keeps its pace: what they write in proportion depends on it.
        Some(tenants) => {
            tenants::drive(device, tenants, at, DEPTH, limit, watch).map(|(progress, _)| progress)
        }
        None => drive(device, workload, at, DEPTH, limit, watch),
    }
}

/// Writes one window; returns its write amplification, `None` if the workload wrote less than a window.
fn window(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    (window, limit): (u64, &Limit),
    steps: &mut Steps<'_>,
) -> Result<Option<f64>, DriveError> {
    let before = device.counters();
    let needed = (ERASES_BEFORE * device.blocks() as u64).max(1) as f64;
    let erases = before.erases - settling.erases_before.unwrap_or(before.erases);
    let text = settling.tell((erases as f64 / needed).min(1.0));
    let (rounds, expected) = (settling.rounds as f64, settling.rounds_expected(erases as f64 / needed));
    let share = |progress: &Progress| (rounds + progress.written_bytes as f64 / window as f64) / expected;
    let on_progress = &mut *steps.on_progress;
    let go_on = &mut |progress: &Progress| on_progress(&text, share(progress).min(0.99));
    let mut drawn = 0;
    let footprint = workload.footprint();
    let progress = if workload.tenants().is_some() {
        unmeasured(device, workload, settling.done.now, limit, go_on)?
    } else {
        let fill = |batch: &mut Batch| {
            let count = workload.fill(batch);
            drawn += count as u64;
            count
        };
        unmeasured(device, &mut Unmeasured { footprint, fill }, settling.done.now, limit, go_on)?
    };
    settling.drawn += drawn;
    (settling.done.now, settling.done.requests) = (progress.now, settling.done.requests + progress.requests);
    if progress.written_bytes < window {
        settling.written_bytes *= (progress.written_bytes * 2 >= window) as u64;
        return Ok(None);
    }
    settling.rounds += 1;
    settling.written_bytes += progress.written_bytes;
    settling.report.host_bytes += progress.written_bytes;
    let after = device.counters();
    let programmed = (after.programmed_units - before.programmed_units) as f64;
    Ok(Some(programmed / (after.host_units - before.host_units) as f64))
}

/// Lets the device be kept between two windows.
fn between(device: &dyn DeviceUnderTest, settling: &Settling, steps: &mut Steps<'_>) {
    if let Some(device) = device.page_map() {
        (steps.between)(device, settling);
    }
}

/// What is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settles {
    /// A device: all windows count.
    Device,
    /// A coarse twin: the windows of its way to the steady state, up to a quarter of all, need not agree with the others.
    Twin,
}

/// The means of the earlier and the later half of windows, and whether they agree.
fn halves(windows: &[f64]) -> ([f64; 2], bool) {
    let (earlier, later) = windows.split_at(windows.len() / 2);
    let mean = |windows: &[f64]| windows.iter().sum::<f64>() / windows.len().max(1) as f64;
    let [a, b] = [mean(earlier), mean(later)];
    ([a, b], earlier.len() >= WINDOWS_MIN && (a - b).abs() <= AGREE * b)
}

/// Writes until two halves of the windows agree; returns the bytes written, 0 if the workload hardly writes.
pub(super) fn settle(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    settles: Settles,
    steps: &mut Steps<'_>,
) -> Result<u64, DriveError> {
    let capacity = device.capacity_bytes();
    let unit = device.unit_bytes() as u64;
    // A window must hold enough blocks for its mean to be steady: half a capacity, at least 64 Ki units.
    let bytes = (capacity / 2).max(unit << 16);
    // Within a pass over all addresses write amplification rises and falls: windows are whole passes.
    let bytes = match workload.pass_bytes() {
        Some(pass @ 1..) => bytes.div_ceil(pass) * pass,
        _ => bytes,
    };
    // A workload that writes less than a tenth of what it does would take too long.
    let limit = Limit { written_bytes: bytes, bytes: bytes.saturating_mul(10), ..Limit::NONE };
    let blocks = device.blocks() as u64;
    let filled = *settling.erases_before.get_or_insert(device.counters().erases);
    while settling.rounds < WINDOWS_MAX {
        let Some(found) = window(device, workload, settling, (bytes, &limit), steps)? else {
            return Ok(settling.written_bytes);
        };
        if device.counters().erases - filled >= ERASES_BEFORE * blocks {
            settling.windows.push(found);
            let (mut means, mut agree) = halves(&settling.windows);
            if settles == Settles::Twin && !agree {
                (means, agree) = halves(&settling.windows[settling.windows.len() / 4..]);
            }
            (settling.report.last_windows, settling.report.converged) = (means, agree);
            if agree {
                break;
            }
        }
        // How far each of several tenants is could not be told by the number of requests drawn.
        if workload.tenants().is_none() {
            between(device, settling, steps);
        }
    }
    Ok(settling.written_bytes)
}

/// Writes to a device that came from its twin until a window agrees with the one before, the first with the write
/// amplification of the twin, which `settling` begins with. The first is short: at its end a device as amplified as 4 has
/// programmed half of its blocks, and a state that is not steady shows at once, before the device has come closer to it.
pub(super) fn settle_from(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    steps: &mut Steps<'_>,
) -> Result<(), DriveError> {
    while settling.rounds < WINDOWS_MAX {
        let shorter = FIRST_AFTER_TWIN.saturating_sub(settling.rounds).max(1);
        let bytes = device.capacity_bytes() >> shorter;
        let limit = Limit { written_bytes: bytes, ..Limit::NONE };
        let Some(found) = window(device, workload, settling, (bytes, &limit), steps)? else { break };
        settling.report.last_windows = [settling.report.last_windows[1], found];
        let [a, b] = settling.report.last_windows;
        if (a - b).abs() <= AGREE * b {
            settling.report.converged = true;
            break;
        }
        between(device, settling, steps);
    }
    Ok(())
}
