//! Checkpoints in several pieces: through power cuts, how evenly they are written, and what a recovery reads.

use crate::page_map::device::{Setup, of_superblocks, setups};
use crate::page_map::power_cut::{cut_again_and_again, explore, used};
use nvlab_controller::page_map::Streams;
use nvlab_controller::{Background, Controller};
use nvlab_medium::flash::Faults;
use nvlab_units::{Extent, Lpa, Rng, Time};

/// Set-ups with checkpoints, whose maps are divided: into four pieces without a buffer and with one stream, into two with a
/// buffer, of which several must fit between two pieces. A turn takes 300 units.
fn in_pieces() -> Vec<Setup> {
    let with = setups().into_iter().filter(|setup| setup.checkpoint.is_some() && setup.units_per_page == 4);
    with.map(|setup| Setup { checkpoint: Some(300), dies: 3, ..setup }).collect()
}

#[test]
fn power_cuts_lose_nothing_flushed() {
    let setups = in_pieces();
    assert_eq!(setups.len(), 9);
    for setup in setups.iter().chain(&of_superblocks(setups.clone())) {
        // 31 pages at least take the map of 960 units.
        let units = used(setup, 0).device.stats().map_units;
        assert!(units > 31 * 4, "no turn was completed: {units} units of pieces, {setup:?}");
    }
    explore(&setups);
    explore(&of_superblocks(setups));
}

#[test]
fn power_cuts_lose_nothing_flushed_where_programs_and_erases_fail() {
    let faults = Faults {
        factory_bad: 0.02,
        program_failure: 80_000.0,
        erase_failure: 80_000.0,
        seed: 3,
        ..Faults::NONE
    };
    let setups = in_pieces().into_iter().chain(of_superblocks(in_pieces()));
    let setups: Vec<Setup> = setups.map(|setup| Setup { faults, spare_blocks: 24, ..setup }).collect();
    let (_, retired) = explore(&setups);
    assert!(retired > 10, "too few faults: {retired} blocks retired");
}

/// Turns that a cut ended leave their pieces behind, and the next turns and cuts find them.
#[test]
fn repeated_power_cuts_lose_nothing_flushed() {
    cut_again_and_again(in_pieces().into_iter().chain(of_superblocks(in_pieces())));
}

/// One unbuffered stream: four pieces of 10, 10, 10 and 2 pages, one after every 75 units.
fn four_pieces() -> Setup {
    let one = in_pieces().into_iter().find(|setup| setup.buffer.is_none() && setup.streams == Streams::One);
    one.expect("one stream without a buffer")
}

#[test]
fn pieces_are_written_evenly_and_cost_what_a_whole_map_costs() {
    let mut device = four_pieces().device();
    let mut rng = Rng::new(2);
    let (mut now, units) = (Time::ZERO, device.capacity_units());
    let write = |device: &mut nvlab_controller::PageMap<_>, rng: &mut Rng, now: &mut Time| {
        let extent = Extent::one(Lpa(rng.below(units as u64) as u32));
        *now = device.write(*now, extent, &[7; crate::page_map::device::UNIT]).unwrap().end;
        device.settle(*now);
    };
    (0..3000).for_each(|_| write(&mut device, &mut rng, &mut now));
    let (mut most, before) = (0, device.stats().map_units);
    const TURNS: u64 = 20;
    for _ in 0..TURNS * 4 {
        let at = device.stats().map_units;
        (0..75).for_each(|_| write(&mut device, &mut rng, &mut now));
        most = most.max(device.stats().map_units - at);
    }
    let turn = (device.stats().map_units - before) as f64 / 4.0 / TURNS as f64;
    // A map of 960 entries and a header of 40 B fill 30.3 pages of 128 B.
    assert!((30.0..=32.0).contains(&turn), "{turn} pages for each turn");
    assert!(most <= 2 * 10 * 4, "{most} units of the map between two pieces of 40 units");
    device.check();
}

#[test]
fn a_recovery_reads_the_pieces_and_what_was_opened_since() {
    // 2,880 pages, of which a turn writes 300, one for each unit.
    let setup = Setup { spare_blocks: 100, ..four_pieces() };
    let without = Setup { checkpoint: None, ..setup.clone() };
    let reads = |setup: &Setup| {
        let (mut all, mut device, mut rng) = (Vec::new(), setup.device(), Rng::new(3));
        let mut now = Time::ZERO;
        for i in 0..4000 {
            let extent = Extent::one(Lpa(rng.below(device.capacity_units() as u64) as u32));
            now = device.write(now, extent, &[1; crate::page_map::device::UNIT]).unwrap().end;
            device.settle(now);
            if i > 2000 && i % 40 == 0 {
                all.push(setup.recover(device.clone().power_cut(now), now).1.nand_reads);
            }
        }
        all.iter().sum::<u64>() as f64 / all.len() as f64
    };
    let (with, without) = (reads(&setup), reads(&without));
    // Besides the first page of each block: two turns of the map, and the pages of a turn and of the blocks open at its
    // beginning; a page with four units is sensed in two reads.
    let most = 360.0 + 2.0 * (2.0 * 32.0 + 300.0 + 6.0 * 8.0);
    assert!(
        with < most && most < 0.5 * without,
        "{with} reads with pieces, {without} without, {most} expected"
    );
}
