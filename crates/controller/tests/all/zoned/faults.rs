//! Blocks that fail, and how wear is spread: zones move to other blocks, lose capacity, can only be read, are offline.

use super::device::{Buffered, Setup};
use crate::array::UNIT;
use nvlab_controller::zoned::{ZoneAction, ZoneError, ZoneState};
use nvlab_controller::{Background, Controller, ControllerError, ZoneMap, Zoned};
use nvlab_medium::flash::{Faults, Nand};
use nvlab_units::{BlockId, Extent, Rng, Time};

/// Writes a whole zone and resets it `times` times.
fn cycle(device: &mut ZoneMap, zone: u32, times: u32) -> Result<(), ControllerError> {
    for _ in 0..times {
        let capacity = device.report(zone).capacity;
        let (served, _) = device.append(Time::ZERO, zone, capacity, &[])?;
        device.manage(served.end, zone, ZoneAction::Reset)?;
    }
    Ok(())
}

/// One zone is written all the time, but all blocks of the pool take part: those of empty zones too.
#[test]
fn wear_is_spread_over_all_that_is_erased() {
    let setup = Setup { spare_blocks: 2, ..Setup::small(Buffered::Protected) };
    for (dynamic, cold) in [(true, 0), (true, 3), (false, 0)] {
        let config = nvlab_controller::zoned::ZoneConfig { wear_dynamic: dynamic, ..setup.config() };
        let mut device = ZoneMap::new(config, Nand::new(setup.flash(), ())).unwrap();
        for zone in 1..=cold {
            let capacity = device.report(zone).capacity;
            device.append(Time::ZERO, zone, capacity, &[]).unwrap();
        }
        cycle(&mut device, 0, 160).unwrap();
        let erases = device.nand().cells().erase_counts();
        // 160 erases on each die, of the 8 blocks less those that hold what stays.
        let (least, most) = (160 / (8 - cold), 160u32.div_ceil(8 - cold));
        let used = erases.iter().filter(|&&erases| erases > 0);
        assert_eq!(used.clone().count() as u32, 2 * (8 - cold), "{erases:?}");
        assert!(used.clone().all(|&erases| (least..=most).contains(&erases)), "{erases:?}");
        device.check();
    }
}

#[test]
fn zones_move_to_other_blocks_until_there_are_none() {
    for (units_per_page, buffer) in [(1, Buffered::No), (3, Buffered::Protected)] {
        let faults = Faults { program_failure: 6_000.0, erase_failure: 1_500.0, seed: 5, ..Faults::NONE };
        let pages = 2 + 2 * units_per_page.max(2);
        let setup =
            Setup { superblocks: 2, spare_blocks: 6, pages, units_per_page, faults, ..Setup::small(buffer) };
        let mut device = setup.with(|_| ());
        let full = device.report(0).capacity;
        let mut rng = Rng::new(3);
        let (mut shrunk, mut refused, mut last) = (0, 0, 0);
        for _ in 0..4000 {
            let zone = rng.below(setup.zones as u64) as u32;
            let before = device.report(zone);
            match before.state {
                ZoneState::Offline => continue,
                ZoneState::ReadOnly => _ = device.manage(Time::ZERO, zone, ZoneAction::Offline).unwrap(),
                ZoneState::Full => _ = device.manage(Time::ZERO, zone, ZoneAction::Reset).unwrap(),
                _ => {
                    let left = before.capacity - before.written;
                    if let Err(error) = device.append(Time::ZERO, zone, left, &[]) {
                        assert_eq!(error, ControllerError::Zone { zone, source: ZoneError::ReadOnly });
                        assert_eq!(device.report(zone).state, ZoneState::ReadOnly);
                        refused += 1;
                    }
                }
            }
            device.check();
            let capacities: u32 = (0..setup.zones).map(|zone| device.report(zone).capacity).sum();
            shrunk += (device.report(zone).capacity < full) as u32;
            last = capacities;
        }
        let stats = device.stats();
        assert!(
            stats.retire_units > 20 && stats.retired_blocks > 10 && shrunk > 0,
            "{stats:?}, {shrunk} shrunk"
        );
        assert!(refused + (0..6).filter(|&zone| device.report(zone).state == ZoneState::Offline).count() > 0);
        assert!(last < 6 * full, "{last} units are left");
    }
}

/// Factory bad blocks cost the last zones capacity.
#[test]
fn too_few_good_blocks_shrink_the_last_zones() {
    let setup = Setup { superblocks: 3, spare_blocks: 2, ..Setup::small(Buffered::Protected) };
    let mut nand = Nand::new(setup.flash(), ());
    (0..5).for_each(|block| nand.mark_bad(BlockId(block)));
    let mut device = ZoneMap::new(setup.config(), nand).unwrap();
    let capacities: Vec<u32> = (0..6).map(|zone| device.report(zone).capacity).collect();
    // Three blocks of die 0 too few: the last zone has nothing.
    assert_eq!((capacities, device.report(5).state), (vec![23, 23, 23, 23, 23, 0], ZoneState::Offline));
    let mut into = [];
    let extent = Extent::one(device.report(5).extent.start);
    let offline = ControllerError::Zone { zone: 5, source: ZoneError::Offline };
    assert_eq!(device.read(Time::ZERO, extent, &mut into), Err(offline));
    cycle(&mut device, 4, 3).unwrap();
    assert_eq!(device.append(Time::ZERO, 5, 1, &[]).map(|_| ()), Err(offline));
    device.check();
}

/// What was acknowledged of a zone that became read only is still read, and after a power cut too.
#[test]
fn a_read_only_zone_keeps_what_it_has() {
    // Worn blocks: every program fails from some cycle on.
    let faults = Faults { program_failure: 1e6, seed: 1, ..Faults::NONE };
    let setup = Setup { faults, spare_blocks: 2, ..Setup::small(Buffered::No) };
    let mut device = setup.device();
    let mut now = Time::ZERO;
    let mut found = None;
    'worn: for round in 0..40u8 {
        for zone in 0..setup.zones {
            if device.report(zone).state == ZoneState::Offline {
                continue;
            }
            now = device.manage(now, zone, ZoneAction::Reset).unwrap().end;
            for _ in 0..device.report(zone).capacity {
                match device.append(now, zone, 1, &[round; UNIT]) {
                    Ok((served, _)) => now = served.end,
                    Err(ControllerError::Zone { source: ZoneError::ReadOnly, .. }) => {
                        found = Some((zone, round));
                        break 'worn;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
    let (zone, round) = found.expect("a zone that can only be read");
    let before = device.report(zone);
    let idle = device.idle_at(now).unwrap();
    let (mut device, report) = setup.recover(device.power_cut(idle), idle);
    let after = device.report(zone);
    // The unit whose program failed was not acknowledged.
    assert_eq!(after.written, before.written - 1);
    let mut data = vec![0; after.written as usize * UNIT];
    let extent = Extent { start: after.extent.start, count: after.written };
    device.read(idle + report.time, extent, &mut data).unwrap();
    assert!(data.iter().all(|&byte| byte == round));
    device.check();
}
