//! Units that were damaged and moved.

use crate::found::{Found, stays_unreadable};
use crate::page_map::device::{Setup, cached_setups, demand_setups, of_superblocks, setups};
use nvlab_medium::flash::{Faults, Nand};

fn explore(setups: &[Setup]) {
    let mut left = 0;
    for (seed, setup) in setups.iter().enumerate() {
        for forgets in [false, true] {
            let geometry = setup.flash().geometry;
            let store = Found::new(Nand::<Found>::store_bytes(&geometry), forgets);
            let device = setup.device_over(store.clone());
            let what = format!("seed {seed}, forgets {forgets}, {setup:?}");
            left += stays_unreadable(device, &[(&store, geometry)], seed as u64, what);
        }
    }
    assert!(left > 20, "only {left} units were damaged");
}

#[test]
fn damaged_units_stay_unreadable_when_they_are_moved() {
    explore(&setups());
}

#[test]
fn damaged_units_stay_unreadable_in_superblocks_behind_a_cache_and_with_a_map_on_demand() {
    explore(&of_superblocks(setups()));
    explore(&cached_setups());
    explore(&demand_setups());
}

#[test]
fn damaged_units_stay_unreadable_where_programs_and_erases_fail() {
    let faults = Faults { program_failure: 600.0, erase_failure: 600.0, seed: 5, ..Faults::NONE };
    let setups = setups().into_iter().chain(of_superblocks(setups()));
    let setups: Vec<Setup> = setups.map(|setup| Setup { faults, spare_blocks: 16, ..setup }).collect();
    explore(&setups);
}
