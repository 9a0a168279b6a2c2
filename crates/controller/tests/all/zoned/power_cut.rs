//! The power fails at every request, inside resets and finishes, and again during recovery. Afterwards every zone holds a
//! beginning of what was written to it, with everything that was durable, and its write pointer says how much.

use super::device::{Buffered, Setup, setups};
use super::model::{Ask, Model};
use nvlab_controller::{Background, ZoneMap};
use nvlab_medium::MemStore;
use nvlab_medium::flash::Faults;
use nvlab_units::{Rng, Time};

const REQUESTS: u32 = 260;

/// A device ready to lose its power, and what it may hold then.
struct Moment {
    device: ZoneMap<MemStore>,
    model: Model,
    /// Before the last request.
    before: Model,
    end: Time,
    last: Ask,
}

/// Checks a recovered device; the model of what it holds.
fn check(
    device: &ZoneMap<MemStore>,
    moment: &Moment,
    cut: Time,
    at: Time,
    context: &dyn Fn() -> String,
) -> Model {
    device.check();
    let before = (cut < moment.end).then_some(&moment.before);
    let mut reader = device.clone();
    let zones = 0..moment.model.zones.len() as u32;
    let found = zones.map(|zone| moment.model.found(&mut reader, (at, zone), before, context)).collect();
    let mut model = moment.model.clone();
    model.settle_on(found);
    model.compare(device);
    model
}

/// Cuts at `cut`, recovers, cuts the recovery, recovers, checks, goes on, checks. Returns the units that recoveries copied.
fn cut_and_check(setup: &Setup, moment: &Moment, cut: Time, seed: u64) -> u64 {
    let context = || format!("seed {seed}, cut at {} ps after {:?} of {setup:?}", cut.ps(), moment.last);
    let (mut device, report) = setup.recover(moment.device.clone().power_cut(cut), cut);
    let copied = device.stats().retire_units;
    let mut rng = Rng::new(cut.ps());
    let ready = cut + report.time;
    let mut model = check(&device, moment, cut, ready, &context);
    let idle = device.clone().idle_at(ready).unwrap();
    for again in 0..4 {
        let second = cut + (idle.since(cut) * (again * 5 + 1 + rng.below(4))) / 20;
        let (twice, later) = setup.recover(device.clone().power_cut(second), second);
        let context = || format!("{} and again at {}", context(), second.ps());
        let found = check(&twice, moment, cut, second + later.time, &context);
        // What was found once is durable once the host is served.
        if second >= ready {
            assert_eq!(found.zones, model.zones, "{}", context());
        }
    }
    let mut now = ready;
    for _ in 0..30 {
        let ask = model.draw(&mut rng);
        now = model.perform(&mut device, now, ask);
    }
    device.check();
    copied
}

/// Returns the units recoveries copied.
fn cut_everywhere(setup: &Setup, seed: u64) -> u64 {
    let mut rng = Rng::stream(seed, "cuts");
    let model = Model::new(setup);
    let mut moment =
        Moment { device: setup.device(), before: model.clone(), model, end: Time::ZERO, last: Ask::Flush };
    let (mut at, mut copied) = (Time::ZERO, 0);
    for _ in 0..REQUESTS {
        let ask = moment.model.draw(&mut rng);
        let previous = moment.end;
        moment.before = moment.model.clone();
        moment.end = moment.model.perform(&mut moment.device, at, ask);
        moment.last = ask;
        let idle = moment.device.clone().idle_at(moment.end).unwrap();
        let within = at + moment.end.since(at) * rng.below(1000) / 1000;
        let after = moment.end + idle.since(moment.end) * rng.below(1000) / 1000;
        for cut in [at, within, moment.end, after] {
            copied += cut_and_check(setup, &moment, cut.max(previous), seed);
        }
        at = if rng.chance(0.3) { after } else { moment.end };
        if rng.chance(0.5) {
            moment.device.settle(at);
        }
    }
    copied
}

/// Goes through set-ups on two threads; returns the sum of what [`cut_everywhere`] returns.
fn explore(setups: &[Setup]) -> u64 {
    let work = std::sync::Mutex::new(setups.iter().enumerate());
    let sum = std::sync::Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((index, setup)) = work.lock().unwrap().next() else { break };
                    let copied: u64 =
                        (0..30).map(|more| cut_everywhere(setup, index as u64 + 1000 * more)).sum();
                    *sum.lock().unwrap() += copied;
                }
            });
        }
    });
    sum.into_inner().unwrap()
}

#[test]
fn a_zone_is_never_torn_and_nothing_durable_is_lost() {
    let copied = explore(&setups());
    assert!(copied > 100, "recoveries copied only {copied} units");
}

#[test]
fn a_zone_is_never_torn_where_programs_and_erases_fail() {
    // Rated life 1000 cycles, the test reaches about ten: (10 / 1000)^2 of these rates is about one operation in 100.
    let faults = Faults { program_failure: 200.0, erase_failure: 300.0, seed: 3, ..Faults::NONE };
    let setups: Vec<Setup> = setups()
        .into_iter()
        .filter(|setup| setup.buffer == Buffered::Protected || setup.units_per_page > 1)
        .map(|setup| Setup { faults, spare_blocks: 60, ..setup })
        .collect();
    explore(&setups);
}

/// The test itself must be able to fail: a flush that ends too early is caught.
#[test]
#[should_panic(expected = "allowed:")]
fn a_flush_acknowledged_too_early_is_caught() {
    let setup = Setup::small(Buffered::Volatile);
    let mut rng = Rng::new(1);
    let model = Model::new(&setup);
    let mut moment =
        Moment { device: setup.device(), before: model.clone(), model, end: Time::ZERO, last: Ask::Flush };
    let mut at = Time::ZERO;
    for _ in 0..REQUESTS {
        let ask = moment.model.draw(&mut rng);
        moment.before = moment.model.clone();
        let end = moment.model.perform(&mut moment.device, at, ask);
        (moment.last, moment.end) = (ask, at);
        cut_and_check(&setup, &moment, at, 1);
        at = end;
    }
}
