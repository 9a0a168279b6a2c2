//! The power fails at every request, inside merges, and again during recovery. Afterwards every page must read
//! as a version that was acknowledged or a newer one, never as anything torn.

use crate::array::{Ask, Model, perform, read_all};
use crate::block_map::device::{Setup, setups};
use crate::block_map::model::Requests;
use nvlab_controller::block_map::{Cause, Log};
use nvlab_controller::{Background, BlockMap, Controller};
use nvlab_medium::MemStore;
use nvlab_medium::flash::Faults;
use nvlab_units::{Extent, Lpa, Rng, Time};

const REQUESTS: u32 = 250;

/// A device after some requests, ready to lose its power.
struct Moment {
    device: BlockMap<MemStore>,
    model: Model,
    at: Time,
    end: Time,
    last: Ask,
}

/// Everything acknowledged is durable; a trim is advice.
fn acknowledge(model: &mut Model, ask: Ask) {
    if let Ask::Write(extent) = ask {
        model.durable(extent, false);
    }
}

/// A device that has been written for a while.
fn used(setup: &Setup, requests: &mut Requests) -> Moment {
    let mut device = setup.device();
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut now = Time::ZERO;
    for _ in 0..200 {
        now = perform(&mut device, &mut model, now, requests.draw()).unwrap();
    }
    model.durable(Extent { start: Lpa(0), count: units }, false);
    device.settle(now);
    Moment { device, model, at: now, end: now, last: Ask::Flush }
}

/// Cuts at `cut`, recovers, cuts the recovery, recovers, checks, continues to write, checks. Returns the
/// pages the recovery programmed.
fn cut_and_check(setup: &Setup, moment: &Moment, cut: Time, seed: u64) -> u64 {
    let mut model = moment.model.clone();
    if cut >= moment.end {
        acknowledge(&mut model, moment.last);
    }
    let context = || format!("seed {seed}, cut at {} ps after {:?} of {setup:?}", cut.ps(), moment.last);
    let (mut device, report) = setup.recover(moment.device.clone().power_cut(cut), cut);
    let programs = device.stats().data.of(Cause::Recovery).programs;
    device.check();
    let mut rng = Rng::new(cut.ps());
    let found = read_all(&mut device.clone(), &model, cut + report.time, &context);
    // Again during recovery, and while its merges and erases are still queued.
    let idle = device.clone().idle_at(cut + report.time).unwrap();
    for again in 0..4 {
        let second = cut + (idle.since(cut) * (again * 5 + 1 + rng.below(4))) / 20;
        let (mut twice, later) = setup.recover(device.clone().power_cut(second), second);
        twice.check();
        read_all(&mut twice, &model, second + later.time, &|| {
            format!("{} and again at {}", context(), second.ps())
        });
    }
    model.settle_on(&found);
    let mut now = cut + report.time;
    let mut requests = Requests::new(rng, setup, device.capacity_units());
    for _ in 0..40 {
        now = perform(&mut device, &mut model, now, requests.draw()).unwrap();
    }
    device.check();
    programs
}

/// Returns the pages recoveries programmed, and the blocks retired on the way.
fn cut_everywhere(setup: &Setup, seed: u64) -> (u64, u64) {
    let units = setup.config().logical_units;
    let mut requests = Requests::new(Rng::stream(seed, "requests"), setup, units);
    let mut moment = used(setup, &mut requests);
    let mut rng = Rng::stream(seed, "cuts");
    let mut programs = 0;
    for _ in 0..REQUESTS {
        let ask = requests.draw();
        let (at, previous) = (moment.at, moment.end);
        moment.end = perform(&mut moment.device, &mut moment.model, at, ask).unwrap();
        moment.last = ask;
        // To the end of the background work it caused: merges and erases that no request waits for.
        let idle = moment.device.clone().idle_at(moment.end).unwrap();
        let within = at + moment.end.since(at) * rng.below(1000) / 1000;
        let after = moment.end + idle.since(moment.end) * rng.below(1000) / 1000;
        let early = at + idle.since(at) * rng.below(1000) / 1000;
        for cut in [at, early, within, moment.end, after] {
            programs += cut_and_check(setup, &moment, cut.max(previous), seed);
        }
        acknowledge(&mut moment.model, ask);
        moment.at = if rng.chance(0.5) { after } else { moment.end };
    }
    (programs, moment.device.stats().retired_blocks)
}

/// Goes through set-ups on two threads; returns the sums of what [`cut_everywhere`] returns.
fn explore(setups: &[Setup]) -> (u64, u64) {
    let work = std::sync::Mutex::new(setups.iter().enumerate());
    let sums = std::sync::Mutex::new((0, 0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((index, setup)) = work.lock().unwrap().next() else { break };
                    let (programs, retired) = cut_everywhere(setup, index as u64);
                    let mut sums = sums.lock().unwrap();
                    (sums.0, sums.1) = (sums.0 + programs, sums.1 + retired);
                }
            });
        }
    });
    sums.into_inner().unwrap()
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_torn_is_returned() {
    let (programs, _) = explore(&setups());
    assert!(programs > 100, "recoveries programmed only {programs} pages");
}

#[test]
fn nothing_acknowledged_is_lost_where_programs_and_erases_fail() {
    // Rated life 1000 cycles, the test reaches about ten: (10 / 1000)^2 of these rates is about one operation in 100.
    let faults =
        Faults { factory_bad: 0.02, program_failure: 200.0, erase_failure: 300.0, seed: 3, ..Faults::NONE };
    let setups: Vec<Setup> =
        setups().into_iter().map(|setup| Setup { faults, spare_blocks: 40, ..setup }).collect();
    let (_, retired) = explore(&setups);
    assert!(retired > 15, "too few faults: {retired} blocks retired");
}

/// The test itself must be able to fail: a write acknowledged before it is programmed is caught.
#[test]
#[should_panic(expected = "went back to version")]
fn a_write_acknowledged_too_early_is_caught() {
    let setup = Setup::small(Log::Shared { sequential: false, random_blocks: 2 });
    let mut requests = Requests::new(Rng::stream(1, "requests"), &setup, setup.config().logical_units);
    let mut moment = used(&setup, &mut requests);
    for _ in 0..REQUESTS {
        let ask = requests.draw();
        perform(&mut moment.device, &mut moment.model, moment.at, ask).unwrap();
        (moment.last, moment.end) = (ask, moment.at);
        cut_and_check(&setup, &moment, moment.at, 1);
    }
}
