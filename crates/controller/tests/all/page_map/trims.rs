//! Histories of many trims where programs fail, those of the trim journal too. The power fails in the middle: a trim that was
//! flushed stays a trim.

use crate::array::read_all;
use crate::page_map::device::{Ask, Model, Setup, perform, setups};
use crate::page_map::power_cut::acknowledge;
use nvlab_controller::{Background, Controller, ControllerError, PageMap};
use nvlab_medium::MemStore;
use nvlab_medium::flash::Faults;
use nvlab_units::{Extent, Lpa, Rng, Time};
use std::panic::{AssertUnwindSafe, catch_unwind};

const REQUESTS: u32 = 600;

/// Small scattered trims mostly, so that few of them merge in the journal; flushes; some writes between.
fn draw(rng: &mut Rng, units: u32) -> Ask {
    let start = rng.below(units as u64) as u32;
    let extent = Extent { start: Lpa(start), count: (1 + rng.below(3) as u32).min(units - start) };
    match rng.below(20) {
        0..=13 => Ask::Trim(extent),
        14 => Ask::Flush,
        _ => Ask::Write(extent),
    }
}

/// Every set-up with checkpoints: without them a trim is advice. One program of `one_in` fails in a block that was erased
/// twice, more in those of the journal, which are erased more often.
fn checkpointed(one_in: f64) -> Vec<Setup> {
    // Rated life 1000 cycles.
    let program_failure = (1000.0f64 / 2.0).powi(2) / one_in;
    let faults = Faults { program_failure, ..Faults::NONE };
    let with = setups().into_iter().filter(|setup| setup.checkpoint.is_some());
    with.map(|setup| Setup { faults, spare_blocks: 30, ..setup }).collect()
}

/// The power fails at `cut`, again while everything is found again, and once more after that.
fn cut_and_check(setup: &Setup, device: PageMap<MemStore>, model: &Model, cut: Time, rng: &mut Rng) {
    let context = || format!("cut at {} ps of {setup:?}", cut.ps());
    let (mut device, report) = setup.recover(device.power_cut(cut), cut);
    device.check();
    let second = cut + report.time * rng.below(9) / 8;
    let (mut again, later) = setup.recover(device.clone().power_cut(second), second);
    read_all(&mut device, model, cut + report.time, &context);
    read_all(&mut again, model, second + later.time, &context);
}

/// Panics if a promise is broken; an error: the device came to its end of life.
fn history(setup: &Setup, seed: u64) -> Result<(), ControllerError> {
    let setup = Setup { faults: Faults { seed, ..setup.faults }, ..setup.clone() };
    let mut device = setup.device();
    let units = device.capacity_units();
    let (mut model, mut rng) = (Model::new(units), Rng::stream(seed, "trims"));
    let mut now = Time::ZERO;
    for request in 0..REQUESTS {
        let ask = draw(&mut rng, units);
        let end = perform(&mut device, &mut model, now, ask)?;
        acknowledge(&setup, &mut model, ask, units);
        device.settle(now);
        if matches!(ask, Ask::Flush) && request > REQUESTS / 4 {
            let cut = end + (end - now) * rng.below(3);
            cut_and_check(&setup, device.clone(), &model, cut, &mut rng);
        }
        now = end;
    }
    Ok(())
}

/// Goes through histories; returns those that broke a promise, and how many devices ended too early.
fn explore(seeds: std::ops::Range<u64>) -> (Vec<u64>, u32) {
    let setups = checkpointed(12.0);
    let (mut broken, mut ended) = (Vec::new(), 0);
    for seed in seeds {
        let setup = &setups[seed as usize % setups.len()];
        let end = catch_unwind(AssertUnwindSafe(|| history(setup, seed)));
        match end {
            Ok(Ok(())) => {}
            Ok(Err(ControllerError::EndOfLife { .. })) => ended += 1,
            Ok(Err(other)) => panic!("seed {seed}: {other}"),
            Err(_) => broken.push(seed),
        }
    }
    (broken, ended)
}

#[test]
fn flushed_trims_stay_where_programs_fail() {
    let seeds = std::env::var("NVLAB_TEST_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let (broken, ended) = explore(0..seeds);
    println!("{} of {seeds} histories broken, {ended} ended early", broken.len());
    assert!(ended < seeds as u32 / 10, "{ended} of {seeds} devices ended before the power failed");
    assert!(broken.is_empty(), "{} of {seeds} seeds went back behind a flush: {broken:?}", broken.len());
}
