//! The power fails at every request, before and during and after, and again during recovery. Afterwards every
//! unit must read as a version that was flushed or a newer one, never as anything torn.

use crate::array::read_all;
use crate::page_map::device::{Ask, Model, Setup, draw, of_superblocks, perform, setups};
use nvlab_controller::page_map::{PageMapConfig, PageMapMedia, WriteBuffer};
use nvlab_controller::{Background, Controller, PageMap};
use nvlab_medium::flash::{Faults, Nand};
use nvlab_medium::{MemStore, PowerCut};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

const REQUESTS: u32 = 160;

/// A device after some requests, ready to lose its power.
pub struct Moment {
    pub device: PageMap<MemStore>,
    pub model: Model,
    pub at: Time,
    end: Time,
    last: Ask,
    draw: fn(&mut Rng, u32) -> Ask,
}

/// A device that has been written for a while.
pub fn used(setup: &Setup, seed: u64) -> Moment {
    used_on(setup, seed, setup.device(), Time::ZERO)
}

/// The same with a device all of whose units hold zeros or nothing.
pub fn used_on(setup: &Setup, seed: u64, mut device: PageMap<MemStore>, mut now: Time) -> Moment {
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut rng = Rng::stream(seed, "before");
    for _ in 0..200 {
        now = perform(&mut device, &mut model, now, draw(&mut rng, units)).unwrap();
    }
    now = perform(&mut device, &mut model, now, Ask::Flush).unwrap();
    model.durable(Extent { start: Lpa(0), count: units }, setup.trims_last());
    device.settle(now);
    Moment { device, model, at: now, end: now, last: Ask::Flush, draw }
}

/// Draws a request for the first eighth of the units.
fn draw_hot(rng: &mut Rng, units: u32) -> Ask {
    draw(rng, units.div_ceil(8))
}

/// A device all of whose units were written, and then few of them until wear levelling began to move the others.
fn levelling(setup: &Setup, seed: u64) -> Moment {
    let (mut device, mut now) = (setup.device(), Time::ZERO);
    let mut model = Model::new(device.capacity_units());
    for start in 0..device.capacity_units() {
        let ask = Ask::Write(Extent { start: Lpa(start), count: 1 });
        now = perform(&mut device, &mut model, now, ask).unwrap();
    }
    let mut rng = Rng::stream(seed, "before");
    for _ in 0..20_000 {
        if device.stats().wear_moves > 0 {
            break;
        }
        let ask = draw_hot(&mut rng, device.capacity_units());
        now = perform(&mut device, &mut model, now, ask).unwrap();
    }
    now = perform(&mut device, &mut model, now, Ask::Flush).unwrap();
    model.durable(Extent { start: Lpa(0), count: device.capacity_units() }, setup.trims_last());
    device.settle(now);
    Moment { device, model, at: now, end: now, last: Ask::Flush, draw: draw_hot }
}

pub fn acknowledge(setup: &Setup, model: &mut Model, ask: Ask, units: u32) {
    match ask {
        // With checkpoints a flushed trim is durable; without, it is advice.
        Ask::Flush => model.durable(Extent { start: Lpa(0), count: units }, setup.trims_last()),
        Ask::Write(extent) if setup.buffer != Some(false) => model.durable(extent, false),
        _ => {}
    }
}

/// Cuts at `cut`, recovers, cuts the recovery, recovers, checks, continues to write, checks.
fn cut_and_check(setup: &Setup, moment: &Moment, cut: Time, seed: u64) -> u64 {
    let mut model = moment.model.clone();
    if cut >= moment.end {
        acknowledge(setup, &mut model, moment.last, moment.device.capacity_units());
    }
    let context = || format!("seed {seed}, cut at {} ps after {:?} of {setup:?}", cut.ps(), moment.last);
    let media: PageMapMedia<MemStore> = moment.device.clone().power_cut(cut);
    let (mut device, report) = setup.recover(media, cut);
    let restored = device.stats().restored_units;
    device.check();
    let mut rng = Rng::new(cut.ps());
    let found = read_all(&mut device.clone(), &model, cut + report.time, &context);
    // Again during recovery, or shortly after it, when its erases and rewrites are still queued; there are many first cuts.
    let second = cut + (report.time * (rng.below(3) * 5 + 1 + rng.below(4))) / 8;
    let (mut twice, later) = setup.recover(device.clone().power_cut(second), second);
    twice.check();
    read_all(&mut twice, &model, second + later.time, &|| {
        format!("{} and again at {}", context(), second.ps())
    });
    model.settle_on(&found);
    let mut now = cut + report.time;
    for _ in 0..40 {
        let ask = draw(&mut rng, moment.device.capacity_units());
        now = perform(&mut device, &mut model, now, ask).unwrap();
    }
    device.check();
    restored
}

/// Returns the units restored by protected buffers and the blocks retired on the way.
fn cut_everywhere(setup: &Setup, seed: u64, mut moment: Moment) -> (u64, u64) {
    let mut rng = Rng::stream(seed, "cuts");
    let units = moment.device.capacity_units();
    let mut restored = 0;
    for _ in 0..REQUESTS {
        let ask = (moment.draw)(&mut rng, units);
        let (at, previous) = (moment.at, moment.end);
        moment.end = perform(&mut moment.device, &mut moment.model, at, ask).unwrap();
        moment.last = ask;
        let length = moment.end.since(at);
        let within = at + length * rng.below(1000) / 1000;
        let after = moment.end + length * rng.below(4000) / 1000;
        for cut in [at, within, moment.end, after] {
            restored += cut_and_check(setup, &moment, cut.max(previous), seed);
        }
        acknowledge(setup, &mut moment.model, ask, units);
        moment.at = after.max(moment.end);
    }
    (restored, moment.device.stats().retired_blocks)
}

/// Turns of requests, each ended by a cut: what is found after one is where the next begins.
pub fn cut_again_and_again(setups: impl IntoIterator<Item = Setup>) {
    for (seed, setup) in setups.into_iter().enumerate() {
        let mut moment = used(&setup, seed as u64);
        let (units, mut rng) = (moment.device.capacity_units(), Rng::stream(seed as u64, "again"));
        for round in 0..60 {
            let (mut device, mut now, mut cut) = (moment.device, moment.at, moment.at);
            for _ in 0..1 + rng.below(40) {
                let ask = draw(&mut rng, units);
                let end = perform(&mut device, &mut moment.model, now, ask).unwrap();
                acknowledge(&setup, &mut moment.model, ask, units);
                cut = end + end.since(now) * rng.below(3);
                device.settle(now);
                now = end;
            }
            let (mut device, report) = setup.recover(device.power_cut(cut), cut);
            device.check();
            moment.at = cut + report.time;
            let context = || format!("round {round} of {setup:?}");
            let found = read_all(&mut device, &moment.model, moment.at, &context);
            moment.model.settle_on(&found);
            moment.device = device;
        }
    }
}

/// Goes through set-ups on two threads; returns the sums of what [`cut_everywhere`] returns.
pub fn explore(setups: &[Setup]) -> (u64, u64) {
    explore_from(setups, used)
}

/// The same from the moments that `begin` makes.
pub fn explore_from(setups: &[Setup], begin: fn(&Setup, u64) -> Moment) -> (u64, u64) {
    let work = std::sync::Mutex::new(setups.iter().enumerate());
    let sums = std::sync::Mutex::new((0, 0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((index, setup)) = work.lock().unwrap().next() else { break };
                    let (restored, retired) = cut_everywhere(setup, index as u64, begin(setup, index as u64));
                    let mut sums = sums.lock().unwrap();
                    (sums.0, sums.1) = (sums.0 + restored, sums.1 + retired);
                }
            });
        }
    });
    sums.into_inner().unwrap()
}

#[test]
fn nothing_flushed_is_lost_and_nothing_torn_is_returned() {
    let (restored, _) = explore(&setups());
    assert!(restored > 100, "the protected buffers restored only {restored} units");
}

#[test]
fn nothing_flushed_is_lost_with_superblocks() {
    let mut setups = of_superblocks(setups());
    // Without a buffer all but what was moved is promised at once, so that it seldom lags behind: more histories.
    let unbuffered = setups.iter().filter(|setup| setup.buffer.is_none() && setup.units_per_page == 1);
    let unbuffered: Vec<Setup> = unbuffered.cloned().collect();
    (0..3).for_each(|_| setups.extend_from_slice(&unbuffered));
    let (restored, _) = explore(&setups);
    assert!(restored > 100, "the protected buffers restored only {restored} units");
}

#[test]
fn nothing_flushed_is_lost_where_programs_and_erases_fail() {
    // Rated life 1000 cycles, the test reaches two or three: (2 / 1000)^2 of these rates is about one operation in 100.
    let faults =
        Faults { factory_bad: 0.02, program_failure: 2600.0, erase_failure: 2600.0, seed: 3, ..Faults::NONE };
    let setups = setups().into_iter().chain(of_superblocks(setups()));
    let setups: Vec<Setup> = setups.map(|setup| Setup { faults, spare_blocks: 16, ..setup }).collect();
    let (_, retired) = explore(&setups);
    assert!(retired > 30, "too few faults: {retired} blocks retired");
}

/// With cold data on its way to worn blocks, in a block of its own.
#[test]
fn nothing_flushed_is_lost_while_wear_is_levelled() {
    let levelled = |setups: Vec<Setup>| setups.into_iter().filter(|setup| setup.static_wear).step_by(3);
    let setups: Vec<Setup> = levelled(setups()).chain(levelled(of_superblocks(setups()))).collect();
    let mut moved = 0;
    for (seed, setup) in setups.iter().enumerate() {
        let mut moment = levelling(setup, seed as u64);
        let before = moment.device.stats().wear_units;
        assert!(moment.device.stats().wear_moves > 0, "{setup:?}");
        let mut rng = Rng::stream(seed as u64, "cuts");
        for _ in 0..REQUESTS {
            let ask = draw_hot(&mut rng, moment.device.capacity_units());
            moment.at = perform(&mut moment.device, &mut moment.model, moment.at, ask).unwrap();
        }
        moved += (moment.device.stats().wear_units > before) as usize;
    }
    assert!(moved == setups.len(), "wear was levelled in {moved} of {} set-ups", setups.len());
    explore_from(&setups, levelling);
}

/// The test itself must be able to fail: a controller that acknowledges a flush without doing it is caught.
#[test]
#[should_panic(expected = "went back to version")]
fn a_flush_that_does_nothing_is_caught() {
    let setup = &setups()[12];
    assert_eq!(setup.buffer, Some(false));
    let mut moment = used(setup, 1);
    let units = moment.device.capacity_units();
    let mut rng = Rng::new(5);
    for _ in 0..REQUESTS {
        let ask = draw(&mut rng, units);
        let skipped = matches!(ask, Ask::Flush);
        if !skipped {
            moment.end = perform(&mut moment.device, &mut moment.model, moment.at, ask).unwrap();
        }
        moment.last = ask;
        cut_and_check(setup, &moment, moment.end, 1);
        acknowledge(setup, &mut moment.model, ask, units);
        moment.at = moment.end;
    }
}

#[test]
fn settling_forgets_only_what_is_done() {
    let setup = &setups()[12];
    let moment = used(setup, 2);
    let (mut settled, mut plain) = (moment.device.clone(), moment.device);
    let (mut a, mut b) = (moment.model.clone(), moment.model);
    let mut rng = Rng::new(6);
    let mut now = moment.at;
    for _ in 0..60 {
        let ask = draw(&mut rng, settled.capacity_units());
        let end = perform(&mut settled, &mut a, now, ask).unwrap();
        assert_eq!(perform(&mut plain, &mut b, now, ask).unwrap(), end);
        settled.nand_mut().settle(now);
        now = end;
    }
    let (mut one, _) = setup.recover(settled.power_cut(now), now);
    let (mut two, _) = setup.recover(plain.power_cut(now), now);
    let context = || "settled".to_string();
    assert_eq!(read_all(&mut one, &a, now, &context), read_all(&mut two, &b, now, &context));
}

/// A small protected buffer makes a long request wait for its own first units, and these must not be torn by a cut that the
/// medium was told too much for: the buffer and the array lose their power at the same moment.
#[test]
fn a_cut_within_a_request_longer_than_the_buffer_loses_nothing() {
    for (number, setup) in setups().into_iter().enumerate().filter(|(_, setup)| setup.buffer == Some(true)) {
        for dies in [1, 3] {
            cut_within_long_requests(number as u64, &Setup { dies, ..setup.clone() });
        }
    }
}

fn cut_within_long_requests(number: u64, setup: &Setup) {
    let units = setup.streams.count() * setup.dies * setup.units_per_page;
    let buffer = Some(WriteBuffer {
        units,
        protected: true,
        absorb: number.is_multiple_of(2),
        store: Span::from_us(1),
    });
    let config = PageMapConfig { buffer, ..setup.config() };
    let mut flash = setup.flash();
    flash.timing.erase = Span::from_us(400);
    let store = MemStore::new(Nand::<MemStore>::store_bytes(&flash.geometry));
    let mut device = PageMap::new(config.clone(), Nand::new(flash, store)).unwrap();
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut rng = Rng::stream(number, "long requests");
    let mut now = Time::ZERO;
    for i in 0..400 {
        let count = 1 + rng.below(40.min(units as u64 / 2)) as u32;
        let ask = Ask::Write(Extent { start: Lpa(rng.below((units - count) as u64) as u32), count });
        let end = perform(&mut device, &mut model, now, ask).unwrap();
        for part in (0..4).filter(|_| i > 60) {
            let cut = now + end.since(now) * part / 4;
            let context = || format!("set-up {number}, {} dies, request {i}, part {part}", setup.dies);
            let media = device.clone().power_cut(cut);
            let (mut found, report) = PageMap::recover(config.clone(), None, media, cut).unwrap();
            read_all(&mut found, &model, cut + report.time, &context);
        }
        acknowledge(setup, &mut model, ask, units);
        now = end;
        device.settle(now);
    }
}
