//! A controller that was used without payload and is given a store: it holds zeros, goes on as before, and survives power
//! cuts like any other.

use crate::array::read_all;
use crate::page_map::device::{Model, Setup, cached_setups, demand_setups, draw, of_superblocks, setups};
use crate::page_map::power_cut::{Moment, explore_from, used_on};
use nvlab_controller::{Controller, PageMap};
use nvlab_medium::MemStore;
use nvlab_medium::flash::Faults;
use nvlab_units::{Lpa, Rng, Time};

/// A device that was used without payload, the units it holds, and when it is idle.
fn given_a_store(setup: &Setup, seed: u64) -> (PageMap<MemStore>, Vec<bool>, Time) {
    use crate::page_map::device::Ask;
    let mut device = setup.device_over(());
    let units = device.capacity_units();
    let (mut rng, mut now) = (Rng::stream(seed, "without payload"), Time::ZERO);
    for _ in 0..500 {
        let served = match draw(&mut rng, units) {
            Ask::Read(extent) => device.read(now, extent, &mut []),
            Ask::Write(extent) => device.write(now, extent, &[]),
            Ask::Trim(extent) => device.trim(now, extent),
            Ask::Flush => device.flush(now),
        };
        now = served.unwrap().end;
    }
    let mapped = (0..units).map(|unit| device.is_mapped(Lpa(unit))).collect();
    let (device, idle) = device.with_payload(setup.store(), now).unwrap();
    (device, mapped, idle)
}

fn all() -> Vec<Setup> {
    let superblocks = of_superblocks(demand_setups());
    let superblocks = superblocks.into_iter().map(|setup| Setup { spare_blocks: 36, ..setup });
    let plain = setups().into_iter().chain(of_superblocks(setups())).chain(cached_setups());
    plain.chain(demand_setups()).chain(superblocks).collect()
}

#[test]
fn a_device_given_a_store_holds_zeros_in_the_same_units_also_after_a_power_cut() {
    for (seed, setup) in all().into_iter().enumerate() {
        let context = || format!("{setup:?}");
        let (mut device, mapped, now) = given_a_store(&setup, seed as u64);
        device.check();
        let holds = |device: &PageMap<MemStore>| -> Vec<bool> {
            (0..mapped.len() as u32).map(|unit| device.is_mapped(Lpa(unit))).collect()
        };
        assert_eq!(holds(&device), mapped, "{setup:?}");
        let model = Model::new(mapped.len() as u32);
        read_all(&mut device, &model, now, &context);
        let (mut found, report) = setup.recover(device.power_cut(now), now);
        found.check();
        assert_eq!(holds(&found), mapped, "{setup:?}");
        read_all(&mut found, &model, now + report.time, &context);
    }
}

fn used_without_payload(setup: &Setup, seed: u64) -> Moment {
    let (device, _, now) = given_a_store(setup, seed);
    used_on(setup, seed, device, now)
}

#[test]
fn power_cuts_lose_nothing_flushed() {
    let some: Vec<Setup> = all().into_iter().step_by(3).collect();
    let (restored, _) = explore_from(&some, used_without_payload);
    assert!(restored > 30, "the protected buffers restored only {restored} units");
}

#[test]
fn power_cuts_lose_nothing_flushed_where_programs_and_erases_fail() {
    let faults =
        Faults { factory_bad: 0.02, program_failure: 30.0, erase_failure: 30.0, seed: 3, ..Faults::NONE };
    let setups = setups().into_iter().step_by(4).chain(of_superblocks(setups()).into_iter().step_by(4));
    let setups: Vec<Setup> = setups.map(|setup| Setup { faults, spare_blocks: 16, ..setup }).collect();
    let (_, retired) = explore_from(&setups, used_without_payload);
    assert!(retired > 5, "too few faults: {retired} blocks retired");
}
