//! Block-mapped controllers against a plain array: random and sequential requests, TRIM, faults.

use crate::array::{Ask, Model, UNIT, content, draw, perform};
use crate::block_map::device::{Setup, setups};
use nvlab_controller::block_map::{BlockWear, Log};
use nvlab_controller::{BlockMap, Controller, ControllerError};
use nvlab_medium::MemStore;
use nvlab_medium::flash::Faults;
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

/// Random requests, and now and then a sequential run of single pages or a trim of whole blocks.
pub struct Requests {
    rng: Rng,
    units: u32,
    pages: u32,
    run: Extent,
}

impl Requests {
    pub fn new(rng: Rng, setup: &Setup, units: u32) -> Requests {
        Requests { rng, units, pages: setup.pages, run: Extent { start: Lpa(0), count: 0 } }
    }
    pub fn draw(&mut self) -> Ask {
        if self.run.count > 0 {
            let next = self.run.start;
            self.run = Extent { start: next + 1, count: self.run.count - 1 };
            return Ask::Write(Extent::one(next));
        }
        match self.rng.below(30) {
            0 | 1 => {
                let block = self.rng.below((self.units / self.pages) as u64) as u32 * self.pages;
                let start = block + if self.rng.chance(0.7) { 0 } else { self.rng.below(4) as u32 };
                let length = 1 + self.rng.below(3 * self.pages as u64) as u32;
                self.run = Extent { start: Lpa(start), count: length.min(self.units - start) };
                self.draw()
            }
            2 => {
                let start = self.rng.below((self.units / self.pages) as u64) as u32 * self.pages;
                Ask::Trim(Extent { start: Lpa(start), count: self.pages.min(self.units - start) })
            }
            _ => draw(&mut self.rng, self.units),
        }
    }
}

/// Runs `requests` requests; returns how many were served before the device reached its end of life.
fn run(setup: &Setup, seed: u64, requests: u32) -> (u32, BlockMap<MemStore>) {
    let mut device = setup.device();
    let units = device.capacity_units();
    let mut model = Model::new(units);
    let mut source = Requests::new(Rng::stream(seed, "model"), setup, units);
    let mut rng = Rng::stream(seed, "pace");
    let mut now = Time::ZERO;
    for i in 0..requests {
        let ask = source.draw();
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
fn read_back(device: &mut BlockMap<MemStore>, model: &Model, at: Time, context: impl Fn() -> String) {
    device.check();
    let mut bytes = vec![0; UNIT];
    for lpa in 0..device.capacity_units() {
        let read = device.read(at, Extent::one(Lpa(lpa)), &mut bytes);
        read.unwrap_or_else(|error| panic!("{}: {error}", context()));
        let versions = &model.versions[lpa as usize];
        assert!(versions.iter().any(|&v| bytes == content(lpa, v)), "{}: {lpa} holds rubbish", context());
    }
}

/// What the controller counted is what the media did.
fn counts_agree(device: &BlockMap<MemStore>) {
    let data = (device.stats().data.total(), device.data().stats());
    let log = device.log().map(|log| (device.stats().log.total(), log.stats()));
    for (counted, done) in [Some(data), log].into_iter().flatten() {
        assert_eq!(
            (counted.reads, counted.programs, counted.erases),
            (done.reads - done.retries, done.programs, done.erases)
        );
    }
}

#[test]
fn every_setup_behaves_like_an_array() {
    for setup in setups() {
        for seed in 0..3 {
            let (served, device) = run(&setup, seed, 2000);
            assert_eq!(served, 2000, "{setup:?}");
            let stats = device.stats();
            assert!(
                stats.full_merges + stats.sequential_merges + stats.partial_merges > 20,
                "too few merges: {stats:?} {setup:?}"
            );
            match setup.log {
                Log::Shared { sequential: true, .. } if setup.own_log.is_some() => {
                    assert!(stats.sequential_merges > 5, "{stats:?} {setup:?}");
                }
                Log::Shared { sequential: true, .. } | Log::PerBlock { .. } => {
                    assert!(stats.partial_merges > 5 && stats.switch_merges > 0, "{stats:?} {setup:?}");
                }
                _ => {}
            }
            counts_agree(&device);
        }
    }
}

#[test]
fn faults_lose_nothing_until_the_end_of_life() {
    let mut retired = 0;
    for setup in setups() {
        // Rated life 1000 cycles; these tests reach about 100, so (100/1000)^2 of this rate applies.
        let faults = Faults { factory_bad: 0.03, program_failure: 0.3, erase_failure: 0.5, ..Faults::NONE };
        for seed in 0..3 {
            let faults = Faults { seed, ..faults };
            let setup = Setup { faults, spare_blocks: 6, ..setup.clone() };
            let (served, device) = run(&setup, seed, 3000);
            assert!(served > 200, "only {served} requests served: {setup:?}");
            retired += device.stats().retired_blocks;
            counts_agree(&device);
        }
    }
    assert!(retired > 100, "too few faults: {retired} blocks retired");
}

#[test]
fn static_wear_levelling_bounds_the_spread() {
    let spread = |static_threshold| {
        let wear = BlockWear { dynamic: true, static_threshold };
        let log = Log::Shared { sequential: false, random_blocks: 2 };
        let mut device = Setup { home_blocks: 20, wear, ..Setup::small(log) }.with(|_| ());
        let mut now = Time::ZERO;
        for lpa in 0..device.capacity_units() {
            now = device.write(now, Extent::one(Lpa(lpa)), &[]).unwrap().end;
        }
        // Four logical blocks are hot, sixteen never change.
        let mut rng = Rng::new(4);
        for _ in 0..6000 {
            now = device.write(now, Extent::one(Lpa(rng.below(32) as u32)), &[]).unwrap().end;
        }
        device.check();
        let erases = device.data().cells().erase_counts();
        (erases.iter().max().unwrap() - erases.iter().min().unwrap(), device.stats().wear_moves)
    };
    let (uneven, moves) = spread(None);
    assert_eq!(moves, 0);
    let (even, moves) = spread(Some(10));
    assert!(moves > 10 && even < 40 && uneven > 4 * even, "{even} with, {uneven} without, {moves} moves");
}

#[test]
fn a_design_that_cannot_work_is_refused() {
    let setup = Setup::small(Log::Shared { sequential: true, random_blocks: 3 });
    let flash = setup.data();
    let nand = |flash| nvlab_medium::flash::Nand::new(flash, ());
    let error = |config, flash| BlockMap::new(config, nand(flash), None).unwrap_err();
    let mut strict = flash.clone();
    strict.rules = nvlab_medium::flash::CellRules::Nand;
    assert!(error(setup.config(), strict).contains("any order"));
    let mut many = setup.config();
    many.logical_units = 6 * 8;
    assert!(error(many, flash.clone()).contains("give more spare"));
    let mut none = setup.config();
    none.log = Log::Shared { sequential: true, random_blocks: 0 };
    assert!(error(none, flash).contains("every die needs one"));
}

#[test]
fn the_same_seed_gives_the_same_device() {
    for setup in [&setups()[5], &setups()[15]] {
        let (_, a) = run(setup, 4, 1000);
        let (_, b) = run(setup, 4, 1000);
        assert_eq!((a.stats(), a.data().stats()), (b.stats(), b.data().stats()));
        assert_eq!(a.data().cells().erase_counts(), b.data().cells().erase_counts());
    }
}
