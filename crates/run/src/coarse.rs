//! Reaches the steady state in a fraction of the time: a coarse twin of the device, with `k` units as one, is written
//! until its write amplification is constant, which takes `k` times fewer writes; then the device takes over its
//! state and is written at full size until a window agrees. See `nvlab_controller::page_map::coarse` for the reasons
//! why that is the same state.
//!
//! Only for workloads that draw every address independently
//! ([`BlockWorkload::draws`](nvlab_workload::BlockWorkload::draws)): a unit of the twin stands for neighbours in
//! rank, which are about equally likely. The rank of each write is drawn as at full size and divided, so that the
//! twin's units are as popular as the sum of theirs. Other workloads, controllers without a twin, and devices that
//! settle quickly are written at full size from the beginning.
//!
//! Several streams are drawn from in proportion to their write rates: to their rates if all have one, to their depths
//! if all are closed loops with the same share of writes, which then have the same latency. Where the regions of
//! several overlap, all but one of them must be uniform, so that neighbours in rank are about equally likely for all
//! of them together.

mod scale;

use super::device::{Observed, Twin};
use super::drive::{DeviceUnderTest, DriveError, Limit, Progress, idle_at};
use super::settle::{Settles, Settling, Steps, settle, settle_from, unmeasured};
use super::writes::{Unmeasured, sequential_fill};
use crate::result::Precondition;
use nvlab_access::BlockDevice;
use nvlab_design::{Design, Ftl};
use nvlab_units::Rng;
use nvlab_workload::block::{Draws, Often};
use nvlab_workload::{Batch, BlockWorkload, Op, Request};
use scale::Scale;

/// Units of a device, at least: smaller ones settle in a second.
const UNITS_MIN: u64 = 1 << 20;

/// Units of a write among writes of several sizes, at most. What is written together dies together, which the twin does not
/// show: with 32 units, a 72nd of a block, write amplification agrees within 0.3 %, with 256 the twin's is 9 % too high.
const SLOTS_MOST: u32 = 16;

/// How often each of several streams writes, in proportion; `None`: that depends on more than what they say.
fn proportions(draws: &[Draws]) -> Option<Vec<f64>> {
    if let [_] = draws {
        return Some(vec![1.0]);
    }
    let rate = |draws: &Draws| match draws.often {
        Often::Rate(rate) => Some(rate),
        Often::Closed { .. } => None,
    };
    let depth = |draws: &Draws| match draws.often {
        Often::Rate(_) => None,
        Often::Closed { depth, write_share } => Some((depth as f64, write_share)),
    };
    draws.iter().map(rate).collect::<Option<Vec<f64>>>().or_else(|| {
        let depths = draws.iter().map(depth).collect::<Option<Vec<(f64, f64)>>>()?;
        let is_like = depths.iter().all(|(_, write_share)| *write_share == depths[0].1);
        is_like.then(|| depths.into_iter().map(|(depth, _)| depth).collect())
    })
}

/// Why writes that are drawn so are made at full size; the device may have reasons of its own
/// (`PageMapConfig::twin_obstacle`).
fn obstacle(draws: &[Draws], unit_bytes: u64) -> Option<&'static str> {
    let is_whole = |draws: &Draws| {
        let slot = draws.bytes as u64;
        let is_fit = match draws.sizes {
            None => slot.is_multiple_of(unit_bytes),
            // Units of a slot that some writes do not reach are not as popular as the others.
            Some(_) => slot == unit_bytes && draws.slots_most() <= SLOTS_MOST,
        };
        is_fit && draws.start.is_multiple_of(unit_bytes)
    };
    if !draws.iter().all(is_whole) {
        return Some("writes are not whole mapping units, or differ too much in size");
    }
    if proportions(draws).is_none() {
        return Some(
            "the share of the writes that each stream makes depends on the device: some streams have a rate and some a depth, \
             or they have different shares of reads",
        );
    }
    None
}

/// Why the writes that bring a device of this design to its steady state are made at full size; `None`: a twin does for them.
pub(crate) fn why_full_size(design: &Design, workload: &dyn BlockWorkload) -> Option<&'static str> {
    let Ftl::Page(page) = &design.ftl else { return Some("the controller is not a page map") };
    let Some(draws) = workload.draws() else {
        return Some(
            "the addresses are not drawn independently (they are sequential, shuffled, from a trace or a program, trimmed, or \
             some streams wait for others)",
        );
    };
    if draws.is_empty() {
        return None;
    }
    let flushes = draws.iter().any(|draws| draws.flushes);
    let of_device = || page.config(0).twin_obstacle(&design.flash_config(0).faults, flushes);
    obstacle(&draws, page.unit_bytes as u64).or_else(of_device)
}

/// The writes of all streams, and how many were drawn.
struct Drawn {
    draws: Vec<Draws>,
    drawn: u64,
    /// Which stream writes next, by the sums of their proportions: at full size, and in the twin, where a slot counts.
    streams: Rng,
    requests: Vec<f64>,
    slots: Vec<f64>,
    /// For the twin alone: which slot of a write it writes.
    nth: Rng,
}

impl Drawn {
    fn new(draws: Vec<Draws>) -> Option<Drawn> {
        let proportions = proportions(&draws)?;
        let sums = |of: &dyn Fn(&Draws) -> f64| {
            let mut sum = 0.0;
            let weights = draws.iter().zip(&proportions).map(|(draws, often)| often * of(draws));
            weights
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect::<Vec<f64>>()
        };
        let (requests, slots) =
            (sums(&|_| 1.0), sums(&|draws| draws.bytes as f64 * draws.slots_most() as f64));
        let (streams, nth) = (Rng::stream(0, "streams"), Rng::stream(0, "slots of a write"));
        Some(Drawn { draws, drawn: 0, streams, requests, slots, nth })
    }

    /// Draws a stream: its number among those with these sums of proportions.
    #[inline]
    fn stream(streams: &mut Rng, sums: &[f64]) -> usize {
        match sums {
            [_] => 0,
            sums => {
                let at = streams.unit() * sums[sums.len() - 1];
                sums.iter().position(|&sum| at < sum).unwrap_or(sums.len() - 1)
            }
        }
    }

    /// Draws a write.
    fn write(&mut self) -> Request {
        self.drawn += 1;
        let draws = &mut self.draws[Drawn::stream(&mut self.streams, &self.requests)];
        let (rank, bytes) = draws.draw();
        let offset = draws.start + draws.ranks.slot_of(rank) * draws.bytes as u64;
        Request { offset, bytes, op: Op::Write, ..Request::default() }
    }

    /// Draws a stream and the rank of a slot of it, each as often as it is written. Of a write of several slots it is one,
    /// and of a write of few slots often none, so that the slots of one do not follow each other: many of them are one unit
    /// of the twin.
    fn rank(&mut self) -> (usize, u64) {
        loop {
            self.drawn += 1;
            let stream = Drawn::stream(&mut self.streams, &self.slots);
            let draws = &mut self.draws[stream];
            let most = draws.slots_most() as u64;
            let (rank, bytes) = draws.draw();
            let nth = if most > 1 { self.nth.below(most) } else { 0 };
            if nth < bytes.div_ceil(draws.bytes) as u64 {
                return (stream, rank + nth);
            }
        }
    }
}

/// Brings a new device to its steady state under `draws` by way of a twin; the first `filled_bytes` are written. `None`:
/// there is none for it, and nothing was written.
pub(super) fn settled(
    device: &mut dyn DeviceUnderTest,
    draws: Vec<Draws>,
    filled_bytes: u64,
    report: &Precondition,
    steps: &mut Steps<'_>,
) -> Result<Option<Settling>, DriveError> {
    let unit_bytes = device.unit_bytes() as u64;
    let capacity_units = device.capacity_bytes() / unit_bytes;
    let filled_units = filled_bytes / unit_bytes;
    if capacity_units < UNITS_MIN || draws.is_empty() || obstacle(&draws, unit_bytes).is_some() {
        return Ok(None);
    }
    let flushes = draws.iter().any(|draws| draws.flushes);
    let slots: Vec<u32> = draws.iter().map(|draws| draws.bytes / unit_bytes as u32).collect();
    let Some(mut twin) = device.twin(&slots, flushes) else { return Ok(None) };
    let Some(scale) = Scale::new(&draws, unit_bytes, twin.factor as u64, filled_units) else {
        return Ok(None);
    };
    let Some(mut drawn) = Drawn::new(draws) else { return Ok(None) };
    let spare = capacity_units / twin.factor as u64;
    let twin_report = Precondition { host_bytes: 0, fill_bytes: 0, ..report.clone() };
    let mut settling = settle_twin(&mut twin, &mut drawn, (&scale, spare), twin_report, steps)?;
    let draws = &drawn.draws;
    if !settling.report.converged || !device.split(&twin, &mut |unit, nth| scale.member(draws, unit, nth)) {
        return Ok(None);
    }
    let mut rest = scale.left_over(draws, filled_units).into_iter();
    let fill = |batch: &mut Batch| {
        let before = batch.len();
        for unit in rest.by_ref().take(batch.room()) {
            let offset = unit * unit_bytes;
            batch.push(Request { offset, bytes: unit_bytes as u32, op: Op::Write, ..Request::default() });
        }
        batch.len() - before
    };
    let mut fill = Unmeasured { footprint: 0..device.capacity_bytes(), fill };
    let go_on = &mut |_: &Progress| (steps.on_progress)("filling what the coarse twin left over", 0.0);
    let filled = unmeasured(device, &mut fill, settling.done.now, &Limit::NONE, go_on)?;
    (settling.done.now, settling.done.requests) = (filled.now, settling.done.requests + filled.requests);
    let expected = settling.report.last_windows[1];
    let own = settling.report.host_bytes - settling.report.fill_bytes;
    settling.report = Precondition {
        host_bytes: filled_bytes + own,
        fill_bytes: filled_bytes,
        last_windows: [expected; 2],
        twin_units: twin.factor,
        ..settling.report
    };
    let mut fine = Settling::new(settling.done, settling.report);
    fine.drawn = drawn.drawn;
    finish(device, drawn, &mut fine, steps)?;
    Ok(Some(fine))
}

/// Goes on with a device that was kept after it had been split.
pub(super) fn resumed(
    device: &mut dyn DeviceUnderTest,
    draws: Vec<Draws>,
    mut settling: Settling,
    steps: &mut Steps<'_>,
) -> Result<Settling, DriveError> {
    let mut drawn = Drawn::new(draws).expect("a device is kept on its way under one stream");
    for _ in 0..settling.drawn {
        drawn.write();
    }
    finish(device, drawn, &mut settling, steps)?;
    Ok(settling)
}

/// Writes to a device that was split until its write amplification is constant.
fn finish(
    device: &mut dyn DeviceUnderTest,
    mut drawn: Drawn,
    settling: &mut Settling,
    steps: &mut Steps<'_>,
) -> Result<(), DriveError> {
    let is_one = drawn.draws.len() == 1;
    let fill = |batch: &mut Batch| {
        let room = batch.room();
        batch.extend(room, || drawn.write());
        room
    };
    let mut writes = Unmeasured { footprint: 0..device.capacity_bytes(), fill };
    match is_one {
        true => settle_from(device, &mut writes, settling, steps),
        // How far each of several streams is could not be told by the number of writes drawn.
        false => {
            let on_progress = &mut *steps.on_progress;
            let mut alone = Steps { on_progress, between: &mut |_, _| {} };
            settle_from(device, &mut writes, settling, &mut alone)
        }
    }
}

/// Fills a twin and writes to it until its write amplification is constant. Its units from `spare` on stand for none of the
/// device's.
fn settle_twin(
    twin: &mut Twin,
    drawn: &mut Drawn,
    (scale, spare): (&Scale, u64),
    report: Precondition,
    steps: &mut Steps<'_>,
) -> Result<Settling, DriveError> {
    let capacity = twin.device.capacity_bytes();
    let unit_bytes = Observed::unit_bytes(&twin.device);
    let share = |progress: &Progress| progress.written_bytes as f64 / capacity as f64;
    let go_on = &mut |progress: &Progress| (steps.on_progress)("filling a coarse twin", share(progress));
    // In one go if nothing is left out.
    let (first, rest) = match scale.all == spare {
        true => (capacity, 0..0),
        false => (scale.all * unit_bytes as u64, spare * unit_bytes as u64..capacity),
    };
    let mut fill = sequential_fill(unit_bytes, first, rest);
    let done = unmeasured(&mut twin.device, &mut fill, nvlab_units::Time::ZERO, &Limit::NONE, go_on)?;
    let host_bytes = done.written_bytes;
    let like = Request { bytes: unit_bytes, op: Op::Write, ..Request::default() };
    let fill = |batch: &mut Batch| {
        let room = batch.room();
        batch.extend(room, || {
            let (stream, rank) = drawn.rank();
            Request { offset: scale.unit_of(stream, rank) * unit_bytes as u64, ..like }
        });
        room
    };
    let mut writes = Unmeasured { footprint: 0..capacity, fill };
    let mut settling = Settling::new(done, Precondition { host_bytes, fill_bytes: host_bytes, ..report });
    let on_progress = &mut *steps.on_progress;
    let on_progress = &mut |text: &str, share: f64| on_progress(&format!("coarse {text}"), share);
    // A twin is not kept: it is settled in a fraction of the time.
    let mut alone = Steps { on_progress, between: &mut |_, _| {} };
    settle(&mut twin.device, &mut writes, &mut settling, Settles::Twin, &mut alone)?;
    let drained = twin.device.controller_mut().drain(settling.done.now);
    let now = drained.map_err(|source| DriveError::Unfinished { at: settling.done.now, source })?;
    settling.done.now = idle_at(&mut twin.device, now, settling.done.requests)?;
    Ok(settling)
}
