//! The steady state in a fraction of the time: a coarse twin of the device, with `k` units as one, is written to until its
//! write amplification is constant, which takes `k` times fewer writes; then the device takes its state over and is written
//! to at full size until a window agrees. See `nvlab_controller::page_map::coarse` for why that is the same state.
//!
//! Only for workloads that draw every address anew ([`BlockWorkload::draws`](nvlab_workload::BlockWorkload::draws)): a unit
//! of the twin stands for neighbours in rank, which are about equally likely. The rank of each write is drawn as at full
//! size and divided, so that the twin's units are as popular as theirs together. Other workloads, controllers that have no
//! twin, and devices that are quickly settled anyway are written to at full size from the beginning.

use super::device::{Observed, Twin};
use super::drive::{DeviceUnderTest, DriveError, Limit, Progress, idle_at};
use super::settle::{Settles, Settling, Steps, Unmeasured, sequential_fill, settle, settle_from, unmeasured};
use crate::result::Precondition;
use nvlab_access::BlockDevice;
use nvlab_units::Rng;
use nvlab_workload::block::Draws;
use nvlab_workload::{Batch, Op, Request};

/// Units of a device, at least: smaller ones settle in a second.
const UNITS_MIN: u64 = 1 << 20;

/// Units of a write among writes of several sizes, at most. What is written together dies together, which the twin does not
/// show: with 32 units, a 72nd of a block, write amplification agrees within 0.3 %, with 256 the twin's is 9 % too high.
const SLOTS_MOST: u32 = 16;

/// How units of a device and units of its twin correspond.
#[derive(Debug)]
struct Scale {
    /// Units that are one in the twin, and slots.
    units: u64,
    slots: u64,
    /// Units of a slot.
    slot_units: u64,
    /// The first unit of the twin with slots, and the one behind the last.
    first: u64,
    end: u64,
    /// The units of the device with slots.
    start_unit: u64,
    end_unit: u64,
    /// Units of the twin that stand for units of the device.
    all: u64,
    /// Groups of neighbours in rank in the order in which their first slots lie on the device, and the place of each in it.
    /// So the first fill leaves as much of what is written often beside what is not as that of the device would: under a
    /// greedy cleaner, that may matter for good.
    groups: Vec<u32>,
    places: Vec<u32>,
}

impl Scale {
    /// `filled_units` of the device are written at all.
    fn new(draws: &Draws, unit_bytes: u64, units: u64, filled_units: u64) -> Option<Scale> {
        let slot_units = draws.bytes as u64 / unit_bytes;
        let slots = units / slot_units;
        let start_unit = draws.start / unit_bytes;
        let first = start_unit / units;
        let mut groups: Vec<u32> = (0..(draws.slots / slots) as u32).collect();
        groups.sort_by_cached_key(|&group| draws.ranks.slot_of(group as u64 * slots));
        let mut places = vec![0; groups.len()];
        (0..).zip(&groups).for_each(|(place, &group)| places[group as usize] = place);
        let scale = Scale {
            units,
            slots,
            slot_units,
            first,
            end: first + draws.slots / slots,
            start_unit,
            end_unit: start_unit + draws.slots * slot_units,
            all: filled_units / units,
            groups,
            places,
        };
        let is_even = draws.start.is_multiple_of(unit_bytes * units);
        (is_even && scale.first < scale.end && scale.end <= scale.all).then_some(scale)
    }

    /// The `nth` of the units that `unit` of the twin stands for.
    fn member(&self, draws: &Draws, unit: u32, nth: u32) -> Option<u32> {
        let (unit, nth) = (unit as u64, nth as u64);
        if (self.first..self.end).contains(&unit) {
            let group = self.groups[(unit - self.first) as usize] as u64;
            let rank = group * self.slots + nth / self.slot_units;
            let slot = draws.ranks.slot_of(rank);
            return Some((self.start_unit + slot * self.slot_units + nth % self.slot_units) as u32);
        }
        let same = unit * self.units + nth;
        let is_free = unit < self.all && !(self.start_unit..self.end_unit).contains(&same);
        is_free.then_some(same as u32)
    }

    /// The units that no unit of the twin stands for: the slots and units left over.
    fn left_over(&self, draws: &Draws, filled_units: u64) -> Vec<u64> {
        let ranks = (self.end - self.first) * self.slots..draws.slots;
        let slots = ranks.map(|rank| self.start_unit + draws.ranks.slot_of(rank) * self.slot_units);
        let units = slots.flat_map(|first| first..first + self.slot_units);
        units.chain(self.end_unit.max(self.all * self.units)..filled_units).collect()
    }
}

/// The writes, and how many were drawn.
struct Drawn {
    draws: Draws,
    drawn: u64,
    /// For the twin alone: which slot of a write it writes, and slots of the largest write.
    slots: Rng,
    slots_most: u64,
}

impl Drawn {
    fn new(draws: Draws) -> Drawn {
        let slots_most = draws.slots_most() as u64;
        Drawn { draws, drawn: 0, slots: Rng::stream(0, "slots of a write"), slots_most }
    }

    /// Draws a write.
    fn write(&mut self) -> Request {
        self.drawn += 1;
        let (rank, bytes) = self.draws.draw();
        let slot = self.draws.ranks.slot_of(rank);
        let offset = self.draws.start + slot * self.draws.bytes as u64;
        Request { offset, bytes, op: Op::Write, ..Request::default() }
    }

    /// Draws the rank of a slot, each as often as it is written. Of a write of several slots it is one, and of a write of few
    /// slots often none, so that the slots of one do not follow each other: many of them are one unit of the twin.
    fn rank(&mut self) -> u64 {
        loop {
            self.drawn += 1;
            let (rank, bytes) = self.draws.draw();
            let nth = if self.slots_most > 1 { self.slots.below(self.slots_most) } else { 0 };
            if nth < bytes.div_ceil(self.draws.bytes) as u64 {
                return rank + nth;
            }
        }
    }
}

/// Brings a new device to its steady state under `draws` by way of a twin; the first `filled_bytes` are written. `None`:
/// there is none for it, and nothing was written.
pub(super) fn settled(
    device: &mut dyn DeviceUnderTest,
    draws: Draws,
    filled_bytes: u64,
    report: &Precondition,
    steps: &mut Steps<'_>,
) -> Result<Option<Settling>, DriveError> {
    let unit_bytes = device.unit_bytes() as u64;
    let capacity_units = device.capacity_bytes() / unit_bytes;
    let filled_units = filled_bytes / unit_bytes;
    let is_fit = match draws.sizes {
        None => (draws.bytes as u64).is_multiple_of(unit_bytes),
        // Units of a slot that some writes do not reach are not as popular as the others.
        Some(_) => draws.bytes as u64 == unit_bytes && draws.slots_most() <= SLOTS_MOST,
    };
    if capacity_units < UNITS_MIN || !is_fit {
        return Ok(None);
    }
    let Some(mut twin) = device.twin(draws.bytes / unit_bytes as u32, (draws.start / unit_bytes) as u32)
    else {
        return Ok(None);
    };
    let Some(scale) = Scale::new(&draws, unit_bytes, twin.factor as u64, filled_units) else {
        return Ok(None);
    };
    let mut drawn = Drawn::new(draws);
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
    let go_on = &mut |_: &Progress| (steps.on_progress)("filling what the twin left over", 0.0);
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
    mut draws: Draws,
    mut settling: Settling,
    steps: &mut Steps<'_>,
) -> Result<Settling, DriveError> {
    for _ in 0..settling.drawn {
        draws.draw();
    }
    let drawn = Drawn { drawn: settling.drawn, ..Drawn::new(draws) };
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
    let fill = |batch: &mut Batch| {
        let room = batch.room();
        batch.extend(room, || drawn.write());
        room
    };
    let mut writes = Unmeasured { footprint: 0..device.capacity_bytes(), fill };
    settle_from(device, &mut writes, settling, steps)
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
    let last = scale.places.len() as u64 - 1;
    let like = Request { bytes: unit_bytes, op: Op::Write, ..Request::default() };
    let fill = |batch: &mut Batch| {
        let room = batch.room();
        batch.extend(room, || {
            // The few ranks left over are the least likely: the last group stands in for them.
            let group = (drawn.rank() / scale.slots).min(last);
            let unit = scale.first + scale.places[group as usize] as u64;
            Request { offset: unit * unit_bytes as u64, ..like }
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
