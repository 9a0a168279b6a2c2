//! Units that were damaged and moved.

use crate::found::{Found, stays_unreadable};
use crate::hftl::device::setups;
use nvlab_controller::Hftl;
use nvlab_medium::flash::{Faults, Nand};

#[test]
fn damaged_units_stay_unreadable_when_they_are_moved() {
    let mut left = 0;
    let failing = Faults { program_failure: 1500.0, seed: 3, ..Faults::NONE };
    for (seed, setup) in setups().iter().cycle().take(2 * setups().len()).enumerate() {
        let mut setup = setup.clone();
        if seed >= setups().len() {
            (setup.faults, setup.spare_blocks) = (failing, 16);
        }
        let flash = setup.flash();
        let geometry = flash.geometry;
        let store = Found::new(Nand::<Found>::store_bytes(&geometry), seed % 2 == 0);
        let device = Hftl::new(setup.config(), Nand::new(flash, store.clone()), setup.pcm()).unwrap();
        left +=
            stays_unreadable(device, &[(&store, geometry)], seed as u64, format!("seed {seed}, {setup:?}"));
    }
    assert!(left > 20, "only {left} units were damaged");
}
