//! Units that were damaged and merged.

use crate::block_map::device::setups;
use crate::found::{Found, stays_unreadable};

#[test]
fn damaged_units_stay_unreadable_when_they_are_merged() {
    let mut left = 0;
    for (seed, setup) in setups().iter().enumerate() {
        let stores = std::cell::RefCell::new(Vec::new());
        let device = setup.with(|bytes| {
            let store = Found::new(bytes, seed % 2 == 0);
            stores.borrow_mut().push(store.clone());
            store
        });
        let geometries = [Some(setup.data()), setup.log_array()].into_iter().flatten();
        let stores = stores.into_inner();
        let stores: Vec<_> = stores.iter().zip(geometries.map(|flash| flash.geometry)).collect();
        left += stays_unreadable(device, &stores, seed as u64, format!("seed {seed}, {setup:?}"));
    }
    assert!(left > 20, "only {left} units were damaged");
}
