//! Overwrites of what is still in the write buffer. That no acknowledged version is lost is tested where the power fails.

use crate::array::UNIT;
use crate::page_map::device::{Setup, setups};
use nvlab_controller::page_map::{PageMapConfig, PageMapStats, WriteBuffer};
use nvlab_controller::{Background, Controller, PageMap};
use nvlab_medium::flash::Nand;
use nvlab_units::{Extent, Lpa, Rng, Time};

const WRITES: u64 = 5000;

/// A protected set-up with so many units in a page.
fn protected(units_per_page: u32) -> Setup {
    let fits = |setup: &Setup| setup.buffer == Some(true) && setup.units_per_page == units_per_page;
    setups().into_iter().find(fits).unwrap()
}

fn device(setup: &Setup, absorb: bool) -> PageMap<nvlab_medium::MemStore> {
    let config = setup.config();
    let buffer = config.buffer.map(|buffer| WriteBuffer { absorb, ..buffer });
    PageMap::new(PageMapConfig { buffer, ..config }, Nand::new(setup.flash(), setup.store())).unwrap()
}

/// Writes one after the other to units that `unit` names; every one is then read back.
fn write(setup: &Setup, absorb: bool, mut unit: impl FnMut(u64) -> u32) -> (PageMapStats, Time) {
    let mut device = device(setup, absorb);
    let mut newest = vec![0u8; device.capacity_units() as usize];
    let mut now = Time::ZERO;
    for nth in 0..WRITES {
        let lpa = unit(nth);
        newest[lpa as usize] = 1 + (nth % 251) as u8;
        let data = [newest[lpa as usize]; UNIT];
        now = device.write(now, Extent::one(Lpa(lpa)), &data).unwrap().end;
        device.settle(now);
    }
    device.check();
    let stats = *device.stats();
    for at in [now, device.idle_at(now).unwrap()] {
        for (lpa, byte) in newest.iter().enumerate() {
            let mut data = [0; UNIT];
            device.read(at, Extent::one(Lpa(lpa as u32)), &mut data).unwrap();
            assert_eq!(data, [*byte; UNIT], "unit {lpa}");
        }
    }
    (stats, now)
}

/// While the page is not full it is never programmed; a page of one unit is programmed as often as a die can, since a program that
/// has begun is not changed.
#[test]
fn overwrites_of_one_unit_do_not_wear_the_flash() {
    for units_per_page in [1, 4] {
        let setup = protected(units_per_page);
        let (plain, _) = write(&setup, false, |_| 3);
        assert_eq!((plain.host_programmed_units(), plain.absorbed_units), (WRITES, 0));
        let (absorbed, end) = write(&setup, true, |_| 3);
        assert_eq!(absorbed.host_write_units, WRITES);
        let programs = absorbed.host_programmed_units();
        let program = setup.flash().timing.program;
        // One on each die in this time, one that waits on each, and the first.
        let most = setup.dies as u64 * (end.since(Time::ZERO).ps() / program.ps() + 2);
        assert!(
            programs >= 1 && programs <= if units_per_page == 1 { most } else { 1 },
            "{programs} of {most}"
        );
        assert!(absorbed.write_amplification() < 0.1, "{absorbed:?}");
    }
}

/// Units that are written at random are absorbed no more often than they can be in the buffer, and never programmed more often
/// than without.
#[test]
fn only_what_is_in_the_buffer_is_absorbed() {
    for units_per_page in [1, 4] {
        let setup = protected(units_per_page);
        let mut rng = Rng::new(5);
        let units = setup.config().logical_units as u64;
        let (stats, _) = write(&setup, true, |_| rng.below(units) as u32);
        let share = stats.absorbed_units as f64 / WRITES as f64;
        let most = setup.config().buffer.unwrap().units as f64 / units as f64;
        // At random it is in the buffer with at most this probability.
        assert!(share > 0.1 * most && share < 1.1 * most, "{share} of at most {most}");
    }
}

#[test]
fn a_buffer_that_loses_its_data_absorbs_nothing() {
    let config = protected(4).config();
    let buffer = config.buffer.map(|buffer| WriteBuffer { absorb: true, protected: false, ..buffer });
    let refused = PageMapConfig { buffer, ..config }.check(&protected(4).flash());
    assert!(refused.unwrap_err().contains("cannot absorb overwrites"));
}
