//! Bringing a device to a known state before anything is measured.
//!
//! `full`: every logical unit is written once, in the order of the addresses; with `order=random` (alone: `scattered`) in random
//! order, so that neighbours in address are far apart on the medium and locality of addresses is not locality of blocks. `log-full`: as `full`, then the
//! workload's own writes until all log blocks of a block map are in use. `steady`: as `full`, then
//! the workload's own writes, as fast as the device takes them, until write amplification is constant (`settle`), or to the same
//! state by way of a coarse twin (`coarse`); where it depends on the pace, then at that of the run (`at_own_pace`). A workload
//! with an end is repeated; what it never writes stays as it was filled, and a workload that writes nothing leaves the device
//! filled.
//! After each of them the device is left idle until a cache that it empties in idle time is empty.

use super::coarse;
use super::drive::{DeviceUnderTest, DriveError, Limit, Progress, idle_at, within_time};
use super::preparation::{Preparation, State};
use super::settle::{Settles, Settling, Steps, fill_log, settle, settle_at_own_pace, unmeasured};
use super::writes::{DEPTH, Unmeasured, sequential_fill, zone_fill};
use crate::result::{PassResult, Precondition};
use crate::run_plan::OnProgress;
use nvlab_controller::Controller;
use nvlab_units::{Lpa, Rng, Span, Time};
use nvlab_workload::addresses::Scatter;
use nvlab_workload::block::Draws;
use nvlab_workload::block::repeated::PassWrites;
use nvlab_workload::block::together::Tenant;
use nvlab_workload::{
    AccessKind, AnyMemoryWorkload, Batch, BlockWorkload, Op, Pacing, Program, Request, Workload,
};
use std::ops::Range;
use std::sync::Arc;

/// Whose writes bring a device to its steady state.
const OWN: &str = "the workload's own writes";

/// Share of the host's writes that a write buffer may absorb before the pace matters: write amplification does not change by more.
const ABSORBED_MAX: f64 = 0.01;

/// A workload that needs more transactions than this to fill a batch with stores counts as one without stores.
const BARREN_MAX: u32 = 10_000;

/// Writes of a unit of so many bytes over the first bytes of a device, every unit once, in random order.
fn scattered_fill(bytes: u32, filled_bytes: u64, seed: u64) -> impl BlockWorkload {
    let units = filled_bytes / bytes as u64;
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
struct Opening<'a>(&'a mut dyn BlockWorkload);

impl BlockWorkload for Opening<'_> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        self.0.prepare(batch)
    }
    fn carries_payload(&self) -> bool {
        self.0.carries_payload()
    }
    fn payload(&self, request: &Request) -> &[u8] {
        self.0.payload(request)
    }
    fn appends(&self) -> bool {
        self.0.appends()
    }
    // What follows is of the requests that are measured.
    fn prepare(&mut self, _: &mut Batch) -> usize {
        0
    }
    fn client_bytes(&self) -> Option<u64> {
        None
    }
    fn draws(&self) -> Option<Vec<Draws>> {
        None
    }
    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        None
    }
    fn pass_bytes(&self) -> Option<u64> {
        None
    }
    fn ramp_time(&self) -> Span {
        Span::ZERO
    }
    fn begin_again(&mut self) -> bool {
        false
    }
    fn pass_writes(&self, _: u32) -> Option<PassWrites> {
        None
    }
    fn program(&self) -> Option<Arc<Program>> {
        None
    }
}

impl Workload for Opening<'_> {
    fn pacing(&self) -> Pacing {
        match self.0.pacing() {
            // The program has not begun yet.
            Pacing::Program => Pacing::Closed { depth: DEPTH },
            pacing => pacing,
        }
    }
    fn threads(&self) -> u32 {
        self.0.threads()
    }
    fn footprint(&self) -> Range<u64> {
        self.0.footprint()
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    // What follows is of the requests that are measured.
    fn len_hint(&self) -> Option<u64> {
        None
    }
    fn time_limit(&self) -> Option<Span> {
        None
    }
    fn has_end(&self) -> bool {
        true
    }
}

/// Runs the preparation of the workload itself, from `at` on; returns when the device is idle.
pub fn prepare(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    at: Time,
    on_progress: OnProgress<'_>,
) -> Result<Time, DriveError> {
    let go_on = &mut |_: &Progress| on_progress("preparing", 0.0);
    let progress = unmeasured(device, &mut Opening(workload), at, &Limit::NONE, go_on)?;
    if progress.requests == 0 { Ok(at) } else { idle_at(device, progress.now, progress.requests) }
}

/// Brings a device to a state and returns when it is reached. `workload` is a copy of the one to be measured, with a seed
/// of its own; `None` if it writes nothing.
pub fn precondition(
    device: &mut dyn DeviceUnderTest,
    preparation: &Preparation,
    workload: Option<&mut dyn BlockWorkload>,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), DriveError> {
    let (mut workload, mut steps) = (workload, Steps { on_progress, between: &mut |_, _| {} });
    let fast = prepared(device, preparation, reborrow(&mut workload), None, &mut steps)?;
    at_own_pace(device, fast, workload, steps.on_progress)
}

/// The same workload for a while.
pub(super) fn reborrow<'a>(
    workload: &'a mut Option<&mut dyn BlockWorkload>,
) -> Option<&'a mut dyn BlockWorkload> {
    match workload {
        Some(workload) => Some(&mut **workload),
        None => None,
    }
}

/// True if the write amplification of a device that was written to as fast as it takes it may be another one at the pace of a
/// workload: its write buffer, always full, absorbs more overwrites, and its cache is never folded in idle time. Streams of several
/// keep their pace anyway unless a twin was written to.
pub(super) fn depends_on_pace(report: &Precondition, workload: &mut dyn BlockWorkload) -> bool {
    let is_fast = report.converged && report.writes.is_some() && report.own_pace_bytes == 0;
    let is_alone = workload.tenants().is_none_or(|tenants| tenants.len() == 1);
    let is_known = workload.pacing() != Pacing::Program && (report.twin_units > 1 || is_alone);
    let did = report.last_window.as_ref().filter(|_| is_fast && is_known);
    did.is_some_and(|did| did.absorbed > ABSORBED_MAX || did.fold > 0.0)
}

/// Has a workload run at its own pace on a device that is steady when it is written to as fast as it takes it, until it is steady
/// again; returns how the device was prepared in all, and when it is idle.
pub(super) fn at_own_pace(
    device: &mut dyn DeviceUnderTest,
    (report, ready): (Precondition, Time),
    workload: Option<&mut dyn BlockWorkload>,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), DriveError> {
    let Some(workload) = workload else { return Ok((report, ready)) };
    if !depends_on_pace(&report, workload) {
        return Ok((report, ready));
    }
    let before = report.host_bytes;
    let mut settling = Settling::new(Progress { now: ready, ..Progress::default() }, report);
    settle_at_own_pace(device, workload, &mut settling, on_progress)?;
    settling.report.own_pace_bytes = settling.report.host_bytes - before;
    rested(device, settling)
}

/// The same with a device that may be kept on its way, and that goes on from where it was `kept`.
pub(super) fn prepared(
    device: &mut dyn DeviceUnderTest,
    preparation: &Preparation,
    workload: Option<&mut dyn BlockWorkload>,
    kept: Option<Settling>,
    steps: &mut Steps<'_>,
) -> Result<(Precondition, Time), DriveError> {
    // Without erase blocks nothing depends on what was written before.
    if preparation.state == State::Fresh || device.blocks() == 0 {
        return Ok((Precondition::none(&preparation.to_string()), Time::ZERO));
    }
    let mut settling = match kept {
        Some(kept) => resumed(device, workload, kept, steps)?,
        None => begun(device, preparation, workload, steps)?,
    };
    settling.report.writes =
        (settling.report.host_bytes > settling.report.fill_bytes).then(|| OWN.to_string());
    rested(device, settling)
}

/// The measured run begins on an idle device, rested like the drives in benchmarks: its cache is folded.
fn rested(device: &mut dyn DeviceUnderTest, settling: Settling) -> Result<(Precondition, Time), DriveError> {
    let now = settling.done.now;
    let flushed = device.flush(now).map_err(|source| DriveError::Failed {
        number: 0,
        op: Op::Flush,
        bytes: 0,
        offset: 0,
        at: now,
        source,
    })?;
    let Settling { report, done, .. } = settling;
    let idle = idle_at(device, flushed.end, done.requests)?;
    let rested = device.rest(idle).map_err(|source| DriveError::Unfinished { at: idle, source })?;
    let filled = report.fill_bytes as f64 / device.capacity_bytes() as f64;
    let held = report.writes.as_ref().and_then(|_| held(device)).filter(|held| *held < filled - HELD_WITHIN);
    let report = Precondition { rested_s: rested.since(idle).seconds(), held, ..report };
    Ok((report, within_time(rested, done.requests)?))
}

/// The share of a device's units that hold data is told within this: twice the standard error of so many samples at most.
const HELD_WITHIN: f64 = 0.001;
const SAMPLES_MIN: u32 = 1 << 20;

/// The share of its units that hold data, of a page map.
fn held(device: &dyn DeviceUnderTest) -> Option<f64> {
    let map = device.page_map()?.controller();
    let units = map.capacity_units();
    let asked = (0..units).map(Lpa).step_by((units / SAMPLES_MIN).max(1) as usize);
    let (count, held) =
        asked.fold((0, 0), |(count, held), lpa| (count + 1, held + map.is_mapped(lpa) as u32));
    Some(held as f64 / f64::from(count))
}

/// Prepares a new device.
fn begun(
    device: &mut dyn DeviceUnderTest,
    preparation: &Preparation,
    workload: Option<&mut dyn BlockWorkload>,
    steps: &mut Steps<'_>,
) -> Result<Settling, DriveError> {
    let report = Precondition::none(&preparation.to_string());
    let is_steady = preparation.state == State::Steady;
    let capacity = device.capacity_bytes();
    // Whole units: see `sequential_fill`.
    let unit = device.unit_bytes() as u64;
    let filled = (preparation.fill_bytes(capacity) / unit).max(1) * unit;
    // A twin is filled in the order of its addresses.
    let has_twin = preparation.twin && !preparation.is_scattered;
    let draws = workload.as_ref().filter(|_| is_steady && has_twin).and_then(|workload| workload.draws());
    let twin = draws.map(|draws| coarse::settled(device, draws, filled, &report, steps)).transpose()?;
    if let Some(settling) = twin.flatten() {
        return Ok(settling);
    }
    let share = |progress: &Progress| progress.written_bytes as f64 / filled as f64;
    let on_progress = &mut *steps.on_progress;
    let go_on = &mut |progress: &Progress| on_progress("filling", share(progress));
    let done = if let Some((size, held)) = device.zones() {
        let mut fill = zone_fill(device.unit_bytes(), filled, (size, held));
        unmeasured(device, &mut fill, Time::ZERO, &Limit::NONE, go_on)?
    } else if preparation.is_scattered {
        device.expect_scattered_fill();
        let mut fill = scattered_fill(device.unit_bytes(), filled, preparation.seed);
        unmeasured(device, &mut fill, Time::ZERO, &Limit::NONE, go_on)?
    } else {
        let mut fill = sequential_fill(device.unit_bytes(), filled, 0..0);
        unmeasured(device, &mut fill, Time::ZERO, &Limit::NONE, go_on)?
    };
    let filled =
        device.zones().map_or(filled, |(size, held)| filled / size * held + (filled % size).min(held));
    let report = Precondition { host_bytes: filled, fill_bytes: filled, ..report };
    match preparation.state {
        State::LogFull => {
            let mut settling = Settling::new(done, report);
            if let Some(workload) = workload {
                fill_log(device, workload, &mut settling, steps)?;
            }
            Ok(settling)
        }
        State::Steady => {
            let pass = workload.as_ref().and_then(|workload| workload.pass_writes(device.unit_bytes()));
            let pass = pass.map(|PassWrites { bytes, distinct_bytes, trimmed_bytes }| PassResult {
                bytes,
                distinct_bytes,
                trimmed_bytes,
            });
            let report = Precondition { pass, ..report };
            settled(device, workload, Settling::new(done, report), steps)
        }
        State::Fresh | State::Full => Ok(Settling::done(done, report)),
    }
}

/// Goes on with the preparation of a device that was kept.
fn resumed(
    device: &mut dyn DeviceUnderTest,
    mut workload: Option<&mut dyn BlockWorkload>,
    kept: Settling,
    steps: &mut Steps<'_>,
) -> Result<Settling, DriveError> {
    if kept.report.twin_units > 1 {
        let draws = workload.and_then(|workload| workload.draws());
        return coarse::resumed(device, draws.expect("a twin was drawn for"), kept, steps);
    }
    if let Some(workload) = &mut workload {
        skip(&mut **workload, kept.drawn);
    }
    // Only page maps are kept, which have no log blocks.
    settled(device, workload, kept, steps)
}

/// Drops the first `count` requests of a workload.
fn skip(workload: &mut dyn BlockWorkload, count: u64) {
    let (mut batch, mut drawn) = (Batch::new(), 0);
    while drawn < count {
        batch.clear();
        match workload.fill(&mut batch) {
            0 => break,
            more => drawn += more as u64,
        }
    }
}

/// Has a workload write to a filled device until it is steady.
fn settled(
    device: &mut dyn DeviceUnderTest,
    workload: Option<&mut dyn BlockWorkload>,
    mut settling: Settling,
    steps: &mut Steps<'_>,
) -> Result<Settling, DriveError> {
    // Nothing is cleaned where zones are: a device whose zones were all written is in its steady state.
    match workload.filter(|_| device.zones().is_none()) {
        Some(workload) => settle(device, workload, &mut settling, Settles::Device, steps)?,
        None => settling.report.converged = true,
    }
    Ok(settling)
}
