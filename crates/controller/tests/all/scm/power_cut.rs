//! The power fails at every step of every write, of its move of the gap, and again during the recovery. A unit that was
//! acknowledged (or flushed, where writes are posted) is never lost, and nothing reads as something never written.

use crate::array::{Ask, Model, draw, perform, read_all};
use crate::scm::device::{Setup, setups};
use nvlab_controller::{Background, Controller, Powered, Scm};
use nvlab_medium::{InPlace, PowerCut};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

fn durable_at_once(setup: &Setup) -> bool {
    setup.posted.is_none_or(|posting| posting.protected)
}

/// Cuts at `cut`, checks, cuts the recovery, checks, continues to write, checks.
fn cut_and_check<M: InPlace + PowerCut + Clone>(device: &Scm<M>, model: &Model, cut: Time, seed: u64) {
    let context = || format!("seed {seed}, cut at {} ps", cut.ps());
    let (mut after, report) = device.clone().power_cycle(cut).unwrap();
    let ready = cut + report.time;
    let found = read_all(&mut after.clone(), model, ready, &context);
    let mut model = model.clone();
    model.settle_on(&found);
    for eighth in [1, 4] {
        let second = cut + report.time * eighth / 8;
        let (mut twice, later) = after.clone().power_cycle(second).unwrap();
        let again = read_all(&mut twice, &model, second + later.time, &context);
        assert_eq!(again, found, "{}", context());
    }
    let units = after.capacity_units();
    let (mut rng, mut now) = (Rng::new(cut.ps()), ready);
    for _ in 0..10 {
        let ask = Ask::Write(Extent { start: Lpa(rng.below(units as u64 - 3) as u32), count: 3 });
        now = perform(&mut after, &mut model, now, ask).unwrap();
    }
    read_all(&mut after, &model, now, &context);
}

fn cut_everywhere<M: InPlace + PowerCut + Clone>(setup: &Setup, mut device: Scm<M>, seed: u64) -> Scm<M> {
    let units = device.capacity_units();
    let all = Extent { start: Lpa(0), count: units };
    let (mut model, mut rng) = (Model::new(units), Rng::stream(seed, "cuts"));
    let mut now = perform(&mut device, &mut model, Time::ZERO, Ask::Write(all)).unwrap();
    now = perform(&mut device, &mut model, now, Ask::Flush).unwrap();
    model.durable(all, true);
    for _ in 0..25 {
        let ask = match draw(&mut rng, units) {
            Ask::Trim(_) if !setup.trim => Ask::Flush,
            ask => ask,
        };
        device.settle(now);
        let end = perform(&mut device, &mut model, now, ask).unwrap();
        let acknowledge = |model: &mut Model| match ask {
            Ask::Flush => model.durable(all, true),
            Ask::Write(extent) if durable_at_once(setup) => model.durable(extent, true),
            Ask::Trim(extent) => model.durable(extent, true),
            _ => {}
        };
        // Into the move of the gap, which comes after the write: copy and count take a microsecond.
        let last = end + Span::from_ns(1500);
        let mut cut = now;
        while cut < last {
            let mut model = model.clone();
            if cut >= end {
                acknowledge(&mut model);
            }
            cut_and_check(&device, &model, cut, seed);
            cut += Span::from_ns(53).max(last.since(now) / 24);
        }
        acknowledge(&mut model);
        for cut in [end, device.idle_at(end).unwrap()] {
            cut_and_check(&device, &model, cut, seed);
        }
        now = if rng.chance(0.5) { end } else { last };
    }
    device
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_torn_is_returned() {
    for (seed, setup) in setups().iter().enumerate() {
        cut_everywhere(setup, setup.plain(), seed as u64);
    }
}

#[test]
fn nothing_acknowledged_is_lost_behind_start_gap() {
    for (seed, setup) in setups().iter().enumerate() {
        let device = cut_everywhere(setup, setup.levelled(), seed as u64);
        let moved: u64 = device.memories().map(|memory| memory.moved()).sum();
        assert!(moved > 20, "the gaps moved only {moved} times: {setup:?}");
    }
}

/// The test itself must be able to fail: a posted write that is taken for durable before a flush is caught.
#[test]
#[should_panic(expected = "went back to version")]
fn an_early_acknowledgement_is_caught() {
    let setup = setups().into_iter().find(|setup| !durable_at_once(setup)).unwrap();
    let mut device = setup.plain();
    let mut model = Model::new(device.capacity_units());
    let unit = Extent::one(Lpa(3));
    let end = perform(&mut device, &mut model, Time::ZERO, Ask::Write(unit)).unwrap();
    model.durable(unit, true);
    cut_and_check(&device, &model, end, 1);
}
