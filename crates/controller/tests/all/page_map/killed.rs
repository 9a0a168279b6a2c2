//! The process ends between any two stores to the array, with a protected buffer that absorbs overwrites; what the buffer held is
//! kept outside. Of each unit the version that was acknowledged last is there, or, of what was under way, the newer one.

use crate::array::{Model, UNIT, content};
use crate::mortal::{Mortal, until_killed};
use crate::page_map::device::{Setup, setups};
use nvlab_controller::page_map::{PageMapConfig, PageMapMedia, WriteBuffer};
use nvlab_controller::{Background, Controller, PageMap};
use nvlab_medium::flash::Nand;
use nvlab_units::{Extent, Lpa, Rng, Time};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::rc::Rc;

/// What a protected buffer holds, by the places in it: unit, number, contents.
type Battery = BTreeMap<u64, (u32, u64, Vec<u8>)>;

/// Overwrites of a few units mostly, which are acknowledged when the battery has them.
fn write(device: &mut PageMap<Mortal>, model: &mut Model, battery: &mut Battery, rng: &mut Rng) {
    let mut now = Time::ZERO;
    for _ in 0..60 {
        let space = if rng.chance(0.8) { 9 } else { device.capacity_units() as u64 - 3 };
        let start = rng.below(space) as u32;
        let extent = Extent { start: Lpa(start), count: 1 + rng.below(3) as u32 };
        let (first, data) = (device.sequence(), model.write(extent));
        now = device.write(now, extent, &data).unwrap().end;
        device.held_since(first, |place, lpa, number, data| {
            battery.insert(place, (lpa.0, number, data.to_vec()));
        });
        model.durable(extent, true);
        device.settle(now);
    }
}

/// A history that ends at a store; returns whether it reached it and how many overwrites were absorbed.
fn ends_at(setup: &Setup, stop: u64, seed: u64) -> (bool, u64) {
    let flash = setup.flash();
    let budget = Rc::new(Cell::new(stop));
    let store = Mortal::new(Nand::<Mortal>::store_bytes(&flash.geometry), &budget);
    let buffer = setup.config().buffer.map(|buffer| WriteBuffer { absorb: true, ..buffer });
    let config = PageMapConfig { buffer, verify_reads: true, ..setup.config() };
    let mut device = PageMap::new(config.clone(), Nand::new(flash.clone(), store.clone())).unwrap();
    let (mut model, mut battery) = (Model::new(device.capacity_units()), Battery::new());
    let mut rng = Rng::stream(seed, "killed");
    let killed = until_killed(|| write(&mut device, &mut model, &mut battery, &mut rng));
    let absorbed = device.stats().absorbed_units;
    drop(device);
    budget.set(u64::MAX);
    let mut media = PageMapMedia::new(Nand::reopen(flash, store, None));
    let mut held: Vec<_> = battery.into_values().collect();
    held.sort_by_key(|&(_, number, _)| number);
    held.into_iter().for_each(|(lpa, number, data)| media.hold(Lpa(lpa), number, data));
    let (mut device, report) = PageMap::recover(config, None, media, Time::ZERO).unwrap();
    let context = || format!("seed {seed}, store {stop} of {setup:?}");
    let mut found = [0; UNIT];
    for lpa in 0..device.capacity_units() {
        let read = device.read(Time::ZERO + report.time, Extent::one(Lpa(lpa)), &mut found);
        read.unwrap_or_else(|error| panic!("{}: {error}", context()));
        model.identify(lpa, &found, &context);
        // The version under way is the only one after the durable one.
        let versions = &model.versions[lpa as usize];
        assert!(versions.iter().rev().take(2).any(|&version| content(lpa, version) == found));
    }
    (killed, absorbed)
}

#[test]
fn an_overwrite_that_is_absorbed_is_there_or_is_not() {
    let (mut broken, mut stops, mut absorbed) = (Vec::new(), 0, 0);
    for (seed, setup) in setups().iter().filter(|setup| setup.buffer == Some(true)).enumerate() {
        for stop in 0.. {
            stops += 1;
            match catch_unwind(|| ends_at(setup, stop, seed as u64)) {
                Ok((true, _)) => {}
                Ok((false, count)) => {
                    absorbed += count;
                    break;
                }
                Err(_) => broken.push((seed, stop)),
            }
        }
    }
    assert!(stops > 2000 && absorbed > 300, "{stops} stops, {absorbed} absorbed overwrites");
    assert!(broken.is_empty(), "{} of {stops} kills lost something: {:?}", broken.len(), broken.first());
}
