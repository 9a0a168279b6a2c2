//! The page map against a plain array: random requests, every policy, with and without faults.

use crate::page_map::device::{Model, Setup, UNIT, content, draw, of_superblocks, perform, seen, setups};
use nvlab_controller::{Background, Controller, ControllerError, PageMap};
use nvlab_medium::MemStore;
use nvlab_medium::flash::{BitErrors, Faults};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

/// Runs `requests` random requests; returns how many were served before the device reached its end of life.
pub fn run(
    setup: &Setup,
    seed: u64,
    requests: u32,
) -> (u32, nvlab_controller::PageMap<nvlab_medium::MemStore>) {
    let mut device = setup.device();
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut rng = Rng::stream(seed, "model");
    let mut now = Time::ZERO;
    for i in 0..requests {
        let ask = draw(&mut rng, units);
        match perform(&mut device, &mut model, now, ask) {
            Ok(end) => now = if rng.chance(0.5) { end } else { now + Span::from_us(rng.below(300)) },
            Err(ControllerError::EndOfLife { .. }) => {
                read_back(&mut device, &model, now, || format!("seed {seed}, request {i}, {setup:?}"));
                return (i, device);
            }
            Err(error) => panic!("seed {seed}, request {i} {ask:?}, {setup:?}: {error}"),
        }
        if i % 64 == 0 {
            device.check();
        }
    }
    device.check();
    (requests, device)
}

/// At the end of its life a device refuses writes; what it holds stays readable. A write that was refused, or
/// waited in the buffer for a page that could not be programmed, may be missing.
fn read_back(device: &mut PageMap<MemStore>, model: &Model, at: Time, context: impl Fn() -> String) {
    device.check();
    let mut bytes = vec![0; UNIT];
    for lpa in 0..device.capacity_units() {
        let read = device.read(at, Extent::one(Lpa(lpa)), &mut bytes);
        read.unwrap_or_else(|error| panic!("{}: {error}", context()));
        let versions = &model.versions[lpa as usize];
        assert!(
            versions.iter().any(|&v| bytes == content(lpa, v)),
            "{}: unit {lpa} holds rubbish",
            context()
        );
    }
}

/// Also no device without faults comes to the end of its life: one in seven without a buffer did, under the FIFO cleaner, since of a
/// page that was padded only the padding was counted as used up, so that the cleaner fell behind.
#[test]
fn every_setup_behaves_like_an_array() {
    for setup in setups().into_iter().chain(of_superblocks(setups())) {
        for seed in 0..20 {
            let (served, device) = run(&setup, seed, 1500);
            assert_eq!(served, 1500, "{setup:?}");
            assert!(device.stats().cleans > 20, "the cleaner was not tried: {:?} {setup:?}", device.stats());
            assert_eq!(device.stats().lost_units, 0);
        }
    }
}

#[test]
fn faults_lose_nothing_until_the_end_of_life() {
    let mut retired = 0;
    for setup in setups().into_iter().chain(of_superblocks(setups())) {
        // Rated life 1000 cycles; these tests reach about 60, so (60/1000)^2 of this rate applies.
        let faults = Faults {
            factory_bad: 0.03,
            program_failure: 0.5,
            erase_failure: 0.5,
            wear_out: false,
            bit_errors: None,
            seed: 5,
        };
        for seed in 0..3 {
            let (served, device) =
                run(&Setup { faults: Faults { seed, ..faults }, ..setup.clone() }, seed, 3000);
            assert!(served > 200, "only {served} requests served: {setup:?}");
            retired += device.stats().retired_blocks;
            assert_eq!(device.stats().lost_units, 0);
        }
    }
    assert!(retired > 200, "too few faults: {retired} blocks retired");
}

#[test]
fn worn_out_blocks_end_the_device_with_an_error_and_not_before() {
    let setup = Setup { faults: Faults { wear_out: true, ..Faults::NONE }, ..setups()[13].clone() };
    let mut device = setup.device();
    let mut rng = Rng::new(3);
    let mut model = Model::new(device.capacity_units());
    let mut now = Time::ZERO;
    let error = loop {
        let ask = draw(&mut rng, device.capacity_units());
        match perform(&mut device, &mut model, now, ask) {
            Ok(end) => now = end,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ControllerError::EndOfLife { .. }), "{error}");
    let worn: u64 = device.nand().cells().erase_counts().iter().map(|&n| n as u64).sum();
    let rated = 1000 * setup.flash().geometry.blocks() as u64;
    assert!(worn > rated / 2, "the device died after {worn} of {rated} rated erases");
}

#[test]
fn read_errors_are_retried_and_then_reported() {
    let errors = BitErrors {
        rate_fresh: 4e-3,
        rate_worn: 8e-3,
        codeword_bits: 256,
        correctable: 2,
        retries: 1,
        retry_factor: 0.8,
    };
    let setup = Setup { faults: Faults { bit_errors: Some(errors), ..Faults::NONE }, ..setups()[0].clone() };
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_units());
    let (mut now, mut unreadable) = (Time::ZERO, 0);
    let mut rng = Rng::new(8);
    for _ in 0..4000 {
        let ask = draw(&mut rng, device.capacity_units());
        match perform(&mut device, &mut model, now, ask) {
            Ok(end) => now = end,
            Err(ControllerError::Unreadable { .. }) => unreadable += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let stats = device.nand().stats();
    assert!(stats.retries > 10 && unreadable > 0, "{stats:?} {unreadable}");
    assert_eq!(stats.failures[0], unreadable);
}

/// What a read into a buffer and one in place cost and count is the same, and so is what they find.
#[test]
fn reads_in_place_equal_reads_into_a_buffer() {
    for setup in setups() {
        let (_, mut device) = run(&setup, 9, 300);
        let extent = Extent { start: Lpa(0), count: device.capacity_units() };
        let mut other = device.clone();
        let mut bytes = vec![0xee; extent.count as usize * UNIT];
        let at = device.idle_at(Time::ZERO).unwrap();
        assert_eq!(device.read(at, extent, &mut bytes), other.read(at, extent, &mut []));
        assert_eq!((device.stats(), device.nand().stats()), (other.stats(), other.nand().stats()));
        assert!(seen(&other, extent) == bytes, "{setup:?}");
        assert_eq!(device.view(Extent { count: extent.count + 1, ..extent }), None);
    }
}

#[test]
fn a_unit_past_the_end_is_refused() {
    let mut device = setups()[0].device();
    let extent = nvlab_units::Extent { start: Lpa(device.capacity_units()), count: 1 };
    let error = device.trim(Time::ZERO, extent).unwrap_err();
    assert_eq!(error.to_string(), "units 60 to 61 are out of range: the device ends at 60");
}

#[test]
fn the_same_seed_gives_the_same_device() {
    let setup = &setups()[7];
    let (_, a) = run(setup, 4, 1000);
    let (_, b) = run(setup, 4, 1000);
    assert_eq!((a.stats(), a.nand().stats()), (b.stats(), b.nand().stats()));
    assert_eq!(a.nand().cells().erase_counts(), b.nand().cells().erase_counts());
}
