//! A discard of all of a device that was written at random, from a volatile buffer with a journal of trims: what it leaves waits
//! for the record of the discard, in little memory.

use crate::page_map::device::{Setup, setups};
use crate::page_map::forgetting::{Forgetful, forgetful};
use nvlab_controller::{Background, Controller, PageMap, Use};
use nvlab_medium::flash::{FlashConfig, Nand};
use nvlab_units::{Extent, Geometry, Lpa, Ppa, Rng, Time};

/// A device of blocks of 1024 units, and when all of it was written, at random.
fn written(setup: &Setup) -> (PageMap<Forgetful>, Time) {
    let flash = setup.flash();
    let geometry = Geometry { pages_per_block: 256, ..flash.geometry };
    let flash = FlashConfig { geometry, ..flash };
    let units = geometry.units() as u32 * 2 / 5;
    let config = nvlab_controller::page_map::PageMapConfig { logical_units: units, ..setup.config() };
    let mut device = PageMap::new(config, Nand::new(flash, forgetful(&geometry))).unwrap();
    let (mut rng, mut now) = (Rng::new(1), Time::ZERO);
    let mut order: Vec<u32> = (0..units).collect();
    (1..order.len()).rev().for_each(|at| order.swap(at, rng.below(at as u64 + 1) as usize));
    for unit in order {
        now = device.write(now, Extent::one(Lpa(unit)), &[unit as u8 | 1; crate::array::UNIT]).unwrap().end;
        device.settle(now);
    }
    now = device.flush(now).unwrap().end;
    now = device.idle_at(now).unwrap();
    device.settle(now);
    (device, now)
}

fn held(device: &PageMap<Forgetful>) -> usize {
    (0..device.nand().geometry().units() as u32).filter(|&unit| device.nand().holds(Ppa(unit))).count()
}

#[test]
fn a_large_discard_takes_a_bit_for_each_unit() {
    let unprotected = |setup: &Setup| setup.buffer == Some(false) && setup.checkpoint.is_some();
    for setup in setups().into_iter().filter(|setup| unprotected(setup) && setup.units_per_page == 4) {
        let (mut device, mut now) = written(&setup);
        let geometry = *device.nand().geometry();
        let (units, before) = (device.capacity_units(), device.memory_bytes());
        assert!(held(&device) >= units as usize);
        let mut most = 0;
        for start in (0..units).step_by(1000) {
            let extent = Extent { start: Lpa(start), count: 1000.min(units - start) };
            now = device.trim(now, extent).unwrap().end;
            device.settle(now);
            most = most.max(device.memory_bytes() - before);
        }
        assert!(held(&device) >= units as usize, "{setup:?}: forgotten before the record is programmed");
        let allowed = geometry.units() / 8 + geometry.blocks() as u64 * 64;
        assert!(most > units as u64 / 8 && most <= allowed, "{setup:?}: {most} B, allowed {allowed}");
        now = device.flush(now).unwrap().end;
        now = device.idle_at(now).unwrap();
        device.settle(now);
        assert_eq!(device.memory_bytes(), before, "{setup:?}");
        let of_map = device.regions().iter().filter(|region| region.used == Use::Map).count();
        let most = of_map * geometry.units_per_block() as usize;
        assert!(held(&device) <= most, "{setup:?}: {} units are left", held(&device));
    }
}
