//! The power fails before, during and after every operation of NAND and PRAM, and again during the mount. A write
//! that was acknowledged is never lost, nothing reads as torn, and a mount scans nothing.

use crate::array::{Ask, Model, draw, perform, read_all};
use crate::hftl::device::{Levelled, Setup, setups};
use nvlab_controller::hftl::{Hftl, HftlMedia};
use nvlab_controller::{Background, BesidePram, Controller};
use nvlab_medium::flash::Faults;
use nvlab_medium::{InPlace, MemStore, PowerCut};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

/// A device after some requests, ready to lose its power.
struct Moment<P> {
    device: Hftl<MemStore, P>,
    model: Model,
    at: Time,
    end: Time,
    last: Ask,
}

fn all(units: u32) -> Extent {
    Extent { start: Lpa(0), count: units }
}

/// A device that has been written for a while, so that it cleans.
fn used<P: InPlace + PowerCut>(mut device: Hftl<MemStore, P>, (seed, cleans): (u64, u64)) -> Moment<P> {
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut rng = Rng::stream(seed, "before");
    let mut now = perform(&mut device, &mut model, Time::ZERO, Ask::Write(all(units))).unwrap();
    while device.stats().cleans < cleans {
        now = perform(&mut device, &mut model, now, draw(&mut rng, units)).unwrap();
    }
    now = perform(&mut device, &mut model, now, Ask::Flush).unwrap();
    model.durable(all(units), true);
    device.settle(now);
    Moment { device, model, at: now, end: now, last: Ask::Flush }
}

/// Writes and trims are durable when they are acknowledged.
fn acknowledge(model: &mut Model, ask: Ask) {
    if let Ask::Write(extent) | Ask::Trim(extent) = ask {
        model.durable(extent, true);
    }
}

/// Cuts at `cut`, recovers, cuts the recovery, recovers, checks, continues to write, checks.
fn cut_and_check<P: InPlace + PowerCut + Clone>(setup: &Setup, moment: &Moment<P>, cut: Time, seed: u64) {
    let mut model = moment.model.clone();
    if cut >= moment.end {
        acknowledge(&mut model, moment.last);
    }
    let context = || format!("seed {seed}, cut at {} ps after {:?} of {setup:?}", cut.ps(), moment.last);
    let media: HftlMedia<MemStore, P> = moment.device.clone().power_cut(cut);
    let (mut device, report) = setup.mount(media, cut);
    device.check();
    // Bisection in the two open blocks of each die, and in their predecessors if those are not known to be full.
    let reads_max = setup.dies as u64 * 4 * (setup.pages_per_block.ilog2() as u64 + 1);
    assert!(report.nand_reads <= reads_max, "{report:?}: {}", context());
    let mut rng = Rng::new(cut.ps());
    let found = read_all(&mut device.clone(), &model, cut + report.time, &context);
    for again in 0..3 {
        let second = cut + (report.time * (again * 5 + 1 + rng.below(4))) / 8;
        let (mut twice, later) = setup.mount(device.clone().power_cut(second), second);
        twice.check();
        read_all(&mut twice, &model, second + later.time, &|| {
            format!("{} and again at {}", context(), second.ps())
        });
    }
    model.settle_on(&found);
    let mut now = cut + report.time;
    for _ in 0..20 {
        let ask = draw(&mut rng, moment.device.capacity_units());
        now = perform(&mut device, &mut model, now, ask).unwrap();
    }
    device.check();
}

/// Performs requests; cuts at every step of `step` through each, and some time after.
fn cut_everywhere<P: InPlace + PowerCut + Clone>(
    setup: &Setup,
    device: Hftl<MemStore, P>,
    seed: u64,
    (cleans, requests, step): (u64, u32, Span),
) -> Hftl<MemStore, P> {
    let mut moment = used(device, (seed, cleans));
    let mut rng = Rng::stream(seed, "cuts");
    let units = moment.device.capacity_units();
    for _ in 0..requests {
        let ask = draw(&mut rng, units);
        let (at, previous) = (moment.at, moment.end);
        moment.end = perform(&mut moment.device, &mut moment.model, at, ask).unwrap();
        moment.last = ask;
        let after = moment.end + Span::from_us(rng.below(4000));
        // Never more than some dozens of cuts for one request: cleaning makes a few very long.
        let length = after.since(at);
        let stride = Span::from_ps(step.ps().max(length.ps() / 24));
        let mut cut = at;
        while cut <= after {
            cut_and_check(setup, &moment, cut.max(previous), seed);
            cut += stride;
        }
        cut_and_check(setup, &moment, moment.end, seed);
        acknowledge(&mut moment.model, ask);
        moment.at = if rng.chance(0.5) { moment.end } else { after };
        moment.device.settle(moment.at);
    }
    moment.device
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_torn_is_returned() {
    for (seed, setup) in setups().iter().enumerate() {
        let requests = if setup.pages_per_block > 8 { 12 } else { 40 };
        cut_everywhere(setup, setup.device(), seed as u64, (4, requests, Span::from_us(7)));
    }
}

#[test]
fn nothing_acknowledged_is_lost_behind_start_gap() {
    for (seed, setup) in setups().iter().enumerate().filter(|(_, setup)| setup.pages_per_block == 8) {
        let device: Hftl<MemStore, Levelled> = setup.levelled();
        let device = cut_everywhere(setup, device, seed as u64, (4, 15, Span::from_us(9)));
        assert!(device.pram().moved() > 100, "the gap moved only {} times", device.pram().moved());
    }
}

#[test]
fn nothing_acknowledged_is_lost_where_programs_and_erases_fail() {
    let mut retired = 0;
    for (seed, setup) in setups().into_iter().enumerate().filter(|(_, setup)| setup.pages_per_block == 8) {
        // Rated life 1000 cycles, the test reaches about two: (2 / 1000)^2 of these rates is one operation in 100.
        let faults = Faults {
            factory_bad: 0.02,
            program_failure: 2500.0,
            erase_failure: 2500.0,
            seed: 3,
            ..Faults::NONE
        };
        let setup = Setup { faults, spare_blocks: 16, free_blocks_min: 5, ..setup };
        let device = cut_everywhere(&setup, setup.device(), seed as u64, (90, 30, Span::from_us(20)));
        retired += device.stats().retired_blocks;
    }
    assert!(retired > 8, "too few faults: {retired} blocks retired");
}

/// The finest comb: every 10 us word of PRAM and both sides of its end, through writes that clean.
#[test]
fn every_word_of_pram() {
    let setup = &setups()[1];
    assert_eq!(setup.program, Span::from_us(15));
    let mut moment = used(setup.device(), (77, 4));
    let units = moment.device.capacity_units();
    let mut rng = Rng::new(5);
    for _ in 0..6 {
        let lpa = rng.below(units as u64) as u32;
        moment.last = Ask::Write(Extent::one(Lpa(lpa)));
        let at = moment.at;
        moment.end = perform(&mut moment.device, &mut moment.model, at, moment.last).unwrap();
        let mut cut = at;
        while cut < moment.end + Span::from_us(60) {
            cut_and_check(setup, &moment, cut, 77);
            cut += Span::from_ns(2500);
        }
        for cut in [moment.end.before(Span::from_ps(1)), moment.end] {
            cut_and_check(setup, &moment, cut, 77);
        }
        acknowledge(&mut moment.model, moment.last);
        moment.at = moment.end + Span::from_us(60);
        moment.device.settle(moment.at);
    }
}

/// The test itself must be able to fail: a write that is taken for acknowledged too early is caught.
#[test]
#[should_panic(expected = "went back to version")]
fn an_early_acknowledgement_is_caught() {
    let setup = &setups()[0];
    let mut moment = used(setup.device(), (1, 4));
    let at = moment.at;
    moment.last = Ask::Write(Extent::one(Lpa(3)));
    let end = perform(&mut moment.device, &mut moment.model, at, moment.last).unwrap();
    moment.end = end.before(Span::from_us(60));
    cut_and_check(setup, &moment, moment.end, 1);
}

/// The size of the array does not matter: the same reads for 16 times the blocks.
#[test]
fn a_mount_reads_as_much_of_a_large_array_as_of_a_small_one() {
    let reads = |spare_blocks: u32| {
        let setup = Setup { spare_blocks, ..setups()[0].clone() };
        let mut device = setup.device();
        let units = device.capacity_units();
        let mut model = Model::new(units);
        let now = perform(&mut device, &mut model, Time::ZERO, Ask::Write(all(units - 3))).unwrap();
        let (_, report) = setup.mount(device.power_cut(now), now);
        report.nand_reads
    };
    assert_eq!(reads(0), reads(300));
    assert!((1..=4).contains(&reads(0)), "{}", reads(0));
}
