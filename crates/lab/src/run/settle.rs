//! Writing to a device, unmeasured, until its write amplification is constant.
//!
//! Write amplification is measured in windows of half a capacity, from the moment every block has been erased twice on
//! average (earlier the cleaner has had little to do); it is constant when the later half of all windows and the earlier half
//! agree within 1 %. The span grows with the search, so that a slow drift is not missed. A device whose state was taken from
//! that of a coarse twin ([`super::coarse`]) is there when a window agrees with the one before, the first with the twin's.

use super::device::Observed;
use super::drive::{DriveError, Limit, Progress, Watch, drive};
use super::{OnProgress, tenants};
use crate::result::Precondition;
use nvlab_access::BlockDevice;
use nvlab_units::Time;
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request, Workload};
use std::ops::Range;

/// Windows of half a capacity after which `steady` gives up and reports that it has not converged.
const WINDOWS_MAX: usize = 100;
/// Windows on each side of the comparison, at least.
const WINDOWS_MIN: usize = 2;
const AGREE: f64 = 0.01;
/// Erases of the mean block before windows count.
const ERASES_BEFORE: u64 = 2;
pub(super) const DEPTH: u32 = 32;

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

/// Large sequential writes over a whole device.
pub(super) fn sequential_fill(capacity_bytes: u64) -> impl BlockWorkload {
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

/// Drives a device without measuring it.
pub(super) fn unmeasured<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    at: Time,
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

/// Writes until two windows agree; returns the bytes written, 0 if the workload hardly writes.
pub(super) fn settle<D: BlockDevice + Observed>(
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
    let (footprint, together) = (workload.footprint(), workload.tenants().is_some());
    for round in 0..WINDOWS_MAX {
        let before = device.counters();
        let share = |progress: &Progress| round as f64 + progress.written_bytes as f64 / window as f64;
        let go_on = &mut |progress: &Progress| on_progress("settling", share(progress) / 2.0);
        let progress = if together {
            unmeasured(device, workload, done.now, &limit, go_on)?
        } else {
            let fill = |batch: &mut Batch| workload.fill(batch);
            let mut at_once = Unmeasured { footprint: footprint.clone(), fill };
            unmeasured(device, &mut at_once, done.now, &limit, go_on)?
        };
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

/// Writes to a device whose write amplification should be `expected` until a window agrees with the one before, the first
/// with that.
pub(super) fn settle_from<D: BlockDevice + Observed>(
    device: &mut D,
    workload: &mut dyn BlockWorkload,
    expected: f64,
    done: &mut Progress,
    report: &mut Precondition,
    on_progress: OnProgress<'_>,
) -> Result<(), DriveError> {
    let window = device.capacity_bytes() / 2;
    let limit = Limit { written_bytes: window, ..Limit::NONE };
    report.last_windows = [expected; 2];
    report.converged = false;
    for round in 0..WINDOWS_MAX {
        let before = device.counters();
        let share = |progress: &Progress| round as f64 + progress.written_bytes as f64 / window as f64;
        let go_on = &mut |progress: &Progress| on_progress("settling", share(progress) / 2.0);
        let progress = unmeasured(device, workload, done.now, &limit, go_on)?;
        (done.now, done.requests) = (progress.now, done.requests + progress.requests);
        report.host_bytes += progress.written_bytes;
        let after = device.counters();
        let programmed = (after.programmed_units - before.programmed_units) as f64;
        let found = programmed / (after.host_units - before.host_units) as f64;
        report.last_windows = [report.last_windows[1], found];
        let [a, b] = report.last_windows;
        if (a - b).abs() <= AGREE * b {
            report.converged = true;
            break;
        }
    }
    Ok(())
}
