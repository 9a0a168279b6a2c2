//! hFTL against a plain array: random requests, with and without faults.

use crate::array::{Ask, Model, UNIT, content, draw, perform};
use crate::hftl::device::{Setup, setups};
use nvlab_controller::{BesidePram, Controller, ControllerError, Hftl};
use nvlab_medium::MemStore;
use nvlab_medium::flash::Faults;
use nvlab_medium::pcm::Pcm;
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

type Device = Hftl<MemStore, Pcm<MemStore>>;

/// Fills the device, then runs random requests; returns how many were served before its end of life.
fn run(setup: &Setup, seed: u64, requests: u32) -> (u32, Device) {
    let mut device = setup.device();
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut rng = Rng::stream(seed, "model");
    let fill = Ask::Write(Extent { start: Lpa(0), count: units });
    let mut now = perform(&mut device, &mut model, Time::ZERO, fill).unwrap();
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
        if i % 16 == 0 {
            device.check();
        }
    }
    device.check();
    (requests, device)
}

/// At the end of its life a device refuses writes; what it holds stays readable.
fn read_back(device: &mut Device, model: &Model, at: Time, context: impl Fn() -> String) {
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

#[test]
fn every_setup_behaves_like_an_array() {
    for setup in setups() {
        for seed in 0..3 {
            let requests = if setup.pages_per_block > 8 { 6000 } else { 2000 };
            let (served, device) = run(&setup, seed, requests);
            assert_eq!(served, requests, "{setup:?}");
            assert!(device.stats().cleans > 20, "the cleaner was not tried: {:?} {setup:?}", device.stats());
            assert_eq!(device.stats().lost_units, 0);
        }
    }
}

#[test]
fn faults_lose_nothing_until_the_end_of_life() {
    let mut retired = 0;
    for setup in setups() {
        let faults = Faults { factory_bad: 0.03, program_failure: 0.5, erase_failure: 0.5, ..Faults::NONE };
        for seed in 0..3 {
            let faulty = Setup { faults: Faults { seed, ..faults }, spare_blocks: 4, ..setup.clone() };
            let (served, device) = run(&faulty, seed, 4000);
            assert!(served > 200, "only {served} requests served: {setup:?}");
            retired += device.stats().retired_blocks;
            assert_eq!(device.stats().lost_units, 0);
        }
    }
    assert!(retired > 50, "too few faults: {retired} blocks retired");
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |setup: &Setup| Hftl::new(setup.config(), setup.nand(), setup.pcm()).unwrap_err();
    let big = Setup { pages_per_block: 1000, ..setups()[0].clone() };
    assert!(refused(&big).contains("but their memory has 32768 B"), "{}", refused(&big));
    let tight = Setup { free_blocks_min: 1, ..setups()[0].clone() };
    assert!(refused(&tight).contains("at least 2 blocks"));
}

#[test]
fn the_same_seed_gives_the_same_device() {
    let setup = &setups()[4];
    let (_, a) = run(setup, 4, 1000);
    let (_, b) = run(setup, 4, 1000);
    assert_eq!(
        (a.stats(), a.nand().stats(), a.pram().stats()),
        (b.stats(), b.nand().stats(), b.pram().stats())
    );
}

/// Without payload the same operations take the same time.
#[test]
fn payload_does_not_change_the_time() {
    for setup in setups() {
        let mut kept = setup.device();
        let pcm = Pcm::new(setup.pcm().config().clone(), ());
        let nand = nvlab_medium::flash::Nand::new(setup.flash(), ());
        let mut bare = Hftl::new(setup.config(), nand, pcm).unwrap();
        let units = kept.capacity_units();
        let mut model = Model::new(units);
        let mut rng = Rng::new(12);
        let mut now = Time::ZERO;
        for i in 0..3000 {
            let ask = draw(&mut rng, units);
            let served = match ask {
                Ask::Read(extent) => bare.read(now, extent, &mut []),
                Ask::Write(extent) => bare.write(now, extent, &[]),
                Ask::Trim(extent) => bare.trim(now, extent),
                Ask::Flush => bare.flush(now),
            };
            let end = perform(&mut kept, &mut model, now, ask).unwrap();
            assert_eq!(served.unwrap().end, end, "request {i} {ask:?} of {setup:?}");
            now = end + Span::from_us(rng.below(2000));
        }
        assert_eq!(kept.stats(), bare.stats());
        assert_eq!(kept.pram().stats(), bare.pram().stats());
        bare.check();
    }
}
