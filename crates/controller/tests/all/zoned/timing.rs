//! What requests cost, by hand. Times of the set-ups: read 60 us, program 600 us, erase 3 ms; a page of 32 B crosses a channel
//! in 800 ns, the controller takes 2 us.

use super::device::{Buffered, Setup};
use nvlab_controller::zoned::{ZoneAction, ZoneConfig};
use nvlab_controller::{Background, Controller, ZoneMap, Zoned};
use nvlab_medium::flash::Nand;
use nvlab_units::{Span, Time};

const US: fn(u64) -> Span = Span::from_us;

fn device(setup: &Setup, overhead: Span) -> ZoneMap {
    let config = ZoneConfig { overhead, ..setup.config() };
    ZoneMap::new(config, Nand::new(setup.flash(), ())).unwrap()
}

/// A zone of `superblocks` on two of four dies.
fn zone(superblocks: u32, pages: u32) -> Setup {
    let small = Setup::small(Buffered::Protected);
    Setup { dies: 4, superblocks, pages, open_max: None, active_max: None, ..small }
}

/// When pages that are programmed one after another on each of two dies are done, from 0 on: the first of each is sent first.
fn programmed(pages_per_die: u64) -> Time {
    Time::ZERO + Span::from_ns(800) + US(600) * pages_per_die
}

fn nearly(found: Time, wanted: Time, within: Span) {
    let apart = if found > wanted { found - wanted } else { wanted - found };
    assert!(apart <= within, "{found:?} instead of {wanted:?}");
}

#[test]
fn a_zone_is_as_fast_as_its_dies_and_zones_on_others_do_not_disturb_it() {
    let setup = zone(2, 32);
    for zones in [1, 2] {
        let mut device = device(&setup, Span::ZERO);
        // Zones 0 and 1 are on different dies, 0 and 2 on the same. They share the buffer, so they take turns.
        for zone in (0..100).flat_map(|_| 0..zones) {
            device.append(Time::ZERO, zone, 1, &[]).unwrap();
        }
        let end = device.idle_at(Time::ZERO).unwrap();
        nearly(end, programmed(50), US(50));
    }
    let mut device = device(&setup, Span::ZERO);
    for zone in (0..100).flat_map(|_| [0, 2]) {
        device.append(Time::ZERO, zone, 1, &[]).unwrap();
    }
    nearly(device.idle_at(Time::ZERO).unwrap(), programmed(100), US(100));
}

#[test]
fn a_reset_takes_an_erase_for_each_block_that_was_written() {
    let setup = zone(3, 8);
    // Units of a zone: 47. Superblocks of 15 (the last page of the first block is free), 16 and 16.
    for (units, erases) in
        [(0, 0), (1, 1), (2, 2), (15, 2), (16, 2), (17, 3), (31, 3), (32, 3), (33, 4), (47, 4)]
    {
        let mut device = device(&setup, US(2));
        if units > 0 {
            device.append(Time::ZERO, 0, units, &[]).unwrap();
        }
        let idle = device.idle_at(Time::ZERO).unwrap();
        let served = device.manage(idle, 0, ZoneAction::Reset).unwrap();
        // The first block is erased before the others, which each die erases one after another.
        let overhead = US(2);
        assert_eq!(served.end, idle + overhead + US(3000) * erases, "{units} units");
        // What is written next to the zone waits for it, to others not.
        let (next, _) = device.append(idle, 0, 1, &[]).unwrap();
        assert!(next.end >= served.end);
        let (other, _) = device.append(idle, 1, 1, &[]).unwrap();
        assert_eq!(other.end, idle + overhead + Span::from_ns(300));
    }
}

#[test]
fn a_read_waits_for_the_erases_of_its_die_while_a_zone_is_reset() {
    let setup = zone(3, 8);
    let mut device = device(&setup, Span::ZERO);
    device.append(Time::ZERO, 0, 47, &[]).unwrap();
    device.append(Time::ZERO, 2, 10, &[]).unwrap();
    let idle = device.idle_at(Time::ZERO).unwrap();
    let reset = device.manage(idle, 0, ZoneAction::Reset).unwrap();
    // When a reset ends was promised, so nothing gets ahead of its erases: three on this die. Drives put reads first
    // (Doekemeijer et al. 2023): here a reset disturbs them more.
    let at = idle + US(100);
    let read = device.read(at, nvlab_units::Extent::one(device.report(2).extent.start), &mut []).unwrap();
    assert_eq!(read.end - at, US(3 * 3000 - 100 + 60) + Span::from_ns(800));
    assert!(reset.end - idle == US(12_000));
}

#[test]
fn a_finish_writes_what_is_left() {
    let setup = zone(2, 16);
    let capacity = setup.capacity() as u64;
    for units in [0, 1, 20, 40, 62] {
        let mut device = device(&setup, Span::ZERO);
        if units > 0 {
            device.append(Time::ZERO, 0, units as u32, &[]).unwrap();
        }
        let idle = device.idle_at(Time::ZERO).unwrap();
        let served = device.manage(idle, 0, ZoneAction::Finish).unwrap();
        let left = capacity - units;
        nearly(served.end, idle + US(600) * left.div_ceil(2), US(600) + Span::from_ns(800 * left));
        assert_eq!(device.stats().padding_units, left);
        let again = device.manage(served.end, 0, ZoneAction::Finish).unwrap();
        assert_eq!(again.end, served.end);
    }
}
