//! A page map with a cache of blocks in SLC mode: counted by hand, against a plain array, and through power cuts.

use crate::page_map::device::{Setup, cached_setups, of_superblocks};
use crate::page_map::model::run;
use crate::page_map::power_cut::explore;
use nvlab_controller::page_map::{CacheFull, CacheTakes, SlcCache, Streams};
use nvlab_controller::{Background, Controller, PageMap};
use nvlab_medium::flash::{Faults, Nand};
use nvlab_units::{Extent, Lpa, Span, Time};

const DIRECT: SlcCache = SlcCache {
    blocks_min: 0,
    blocks_max: 0,
    blocks_spared: 0,
    fold_after: None,
    takes: CacheTakes::All,
    when_full: CacheFull::WriteDirectly,
};

#[test]
fn every_cached_setup_behaves_like_an_array() {
    let mut folds = 0;
    for setup in cached_setups().into_iter().chain(of_superblocks(cached_setups())) {
        for seed in 0..3 {
            let (served, device) = run(&setup, seed, 1500);
            let stats = device.stats();
            assert_eq!((served, stats.lost_units), (1500, 0), "{setup:?}");
            assert!(stats.cache_units > 100, "the cache was not tried: {stats:?} {setup:?}");
            folds += stats.folds;
        }
    }
    assert!(folds > 100, "only {folds} folds");
}

#[test]
fn power_cuts_lose_nothing_flushed() {
    explore(&cached_setups());
    explore(&of_superblocks(cached_setups()));
}

#[test]
fn power_cuts_lose_nothing_flushed_where_programs_and_erases_fail() {
    let faults =
        Faults { factory_bad: 0.02, program_failure: 250.0, erase_failure: 250.0, seed: 3, ..Faults::NONE };
    let setups = cached_setups().into_iter();
    let setups: Vec<Setup> = setups.map(|setup| Setup { faults, spare_blocks: 60, ..setup }).collect();
    let (_, retired) = explore(&setups);
    assert!(retired > 5, "too few faults: {retired} blocks retired");
}

/// One die, 20 blocks of 8 pages of 6 units; in SLC mode 8 pages of 2 units. No buffer: a request is programmed
/// when it is told.
fn small(cache: SlcCache) -> (Setup, PageMap) {
    let mut setup = cached_setups().swap_remove(0);
    (setup.dies, setup.units_per_page, setup.cache) = (1, 6, Some(cache));
    (setup.buffer, setup.checkpoint, setup.static_wear) = (None, None, false);
    setup.streams = Streams::HostAndRelocated;
    let nand = Nand::new(setup.flash(), ()).with_slc_mode(setup.slc_mode());
    let device = PageMap::new(setup.config(), nand).unwrap().with_cache(cache).unwrap();
    (setup, device)
}

#[test]
fn the_cache_takes_what_fits_and_the_rest_is_written_directly() {
    let cache = SlcCache { blocks_min: 0, blocks_max: 2, blocks_spared: 0, fold_after: None, ..DIRECT };
    let (_, mut device) = small(cache);
    let mut now = Time::ZERO;
    // Two blocks in SLC mode hold 2 * 8 * 2 units: 16 programs of 60 us.
    for lpa in (0..32).step_by(2) {
        let served = device.write(now, Extent { start: Lpa(lpa), count: 2 }, &[]).unwrap();
        now = served.end;
        assert!(
            now.since(served.start) < Span::from_us(60 + 6),
            "program and transfer: {}",
            now.since(served.start)
        );
    }
    assert_eq!((device.cache_blocks(), device.stats().cache_units), (2, 32));
    // The next go to a block with all bits, six units to a program of 200 us.
    let served = device.write(now, Extent { start: Lpa(32), count: 6 }, &[]).unwrap();
    assert!(served.end.since(served.start) > Span::from_us(200));
    assert_eq!(device.stats().cache_units, 32);
    let (all, slc) = (device.nand().stats(), device.nand().cells().slc_operations());
    assert_eq!((all.programs, slc.programs, slc.erases), (17, 16, 0));
    assert_eq!(all.program_time.ps(), (Span::from_us(60) * 16 + Span::from_us(200)).ps() as u128);
    // A read of the cache senses one page of it.
    device.read(served.end, Extent::one(Lpa(0)), &mut []).unwrap();
    assert_eq!(device.nand().stats().read_time.ps(), Span::from_us(10).ps() as u128);
    device.check();
}

#[test]
fn idle_time_folds_the_cache_in_the_order_it_was_filled() {
    let after = Span::from_ms(1);
    let cache =
        SlcCache { blocks_min: 0, blocks_max: 4, blocks_spared: 0, fold_after: Some(after), ..DIRECT };
    let (_, mut device) = small(cache);
    let mut now = Time::ZERO;
    // Two full blocks and a begun one. Of the first, four units are overwritten in the third.
    let mut heard = now;
    for lpa in (0..32).step_by(2).chain([0, 2]) {
        heard = now;
        now = device.write(now, Extent { start: Lpa(lpa), count: 2 }, &[]).unwrap().end;
    }
    assert_eq!(device.cache_blocks(), 3);
    // Silent for as long as it takes and no longer: nothing.
    now = device.read(heard + after, Extent::one(Lpa(0)), &mut []).unwrap().end;
    assert_eq!(device.stats().folds, 0);
    // Silent for long: both full blocks are folded. 12 units in 2 programs, 16 in 3, the last one padded by 2.
    device.reset_stats();
    now += Span::from_ms(100);
    device.read(now, Extent::one(Lpa(0)), &mut []).unwrap();
    let stats = *device.stats();
    assert_eq!((stats.folds, stats.fold_units, stats.padding_units), (2, 28, 2));
    assert_eq!(device.cache_blocks(), 1);
    let (all, slc) = (device.nand().stats(), device.nand().cells().slc_operations());
    // Of the cache every page with a live unit: 28 reads of 1 unit each; the host's read besides.
    assert_eq!((all.programs, all.erases, slc.erases, slc.programs), (5, 2, 2, 0));
    assert_eq!((slc.reads, all.reads), (28 + 1, 28 + 1));
    // It was done in the idle time: the die is free again.
    assert_eq!(device.idle_at(now).unwrap(), now);
    device.check();
}

#[test]
fn a_rested_device_has_folded_its_cache() {
    let after = Some(Span::from_ms(1));
    let cache = SlcCache { blocks_min: 0, blocks_max: 4, blocks_spared: 0, fold_after: after, ..DIRECT };
    let written = |cache| {
        let (_, mut device) = small(cache);
        let mut now = Time::ZERO;
        // Three full blocks in SLC mode.
        for lpa in (0..48).step_by(2) {
            now = device.write(now, Extent { start: Lpa(lpa), count: 2 }, &[]).unwrap().end;
        }
        (device, now)
    };
    let (mut device, now) = written(cache);
    let rested = device.rest(now).unwrap();
    let stats = *device.stats();
    assert_eq!((stats.folds, stats.fold_units, device.cache_blocks()), (3, 48, 0));
    // A millisecond of silence since the last request at least, then 3 x 16 reads, 3 programs and an erase of each block.
    let work = (Span::from_us(10) * 16 + Span::from_us(200) * 3 + Span::from_us(1000)) * 3;
    let (least, most) = (now + work, now + Span::from_ms(1) + work + Span::from_us(48 * 6));
    assert!((least..=most).contains(&rested), "{} after {}", rested.since(now), work);
    assert_eq!(device.rest(rested).unwrap(), rested, "there is nothing left to fold");
    device.check();
    // Without folding in idle time the cache stays as it is.
    let (mut device, now) = written(SlcCache { fold_after: None, ..cache });
    assert_eq!((device.rest(now).unwrap(), device.cache_blocks()), (now, 3));
}

#[test]
fn a_cache_that_cannot_be_is_refused() {
    let cache = SlcCache { blocks_min: 3, blocks_max: 2, blocks_spared: 0, fold_after: None, ..DIRECT };
    let (setup, _) = small(SlcCache { blocks_max: 3, ..cache });
    let device = |setup: &Setup| PageMap::new(setup.config(), Nand::new(setup.flash(), ())).unwrap();
    assert!(device(&setup).with_cache(cache).unwrap_err().contains("supports SLC mode"));
    let nand = Nand::new(setup.flash(), ()).with_slc_mode(setup.slc_mode());
    let device = PageMap::new(setup.config(), nand).unwrap();
    assert!(device.with_cache(cache).unwrap_err().contains("3 to 2 blocks"));
}

#[test]
fn hot_data_stays_in_slc_and_cooled_data_migrates() {
    let cache = SlcCache {
        blocks_min: 2,
        blocks_max: 2,
        takes: CacheTakes::Hot,
        when_full: CacheFull::FoldOldest,
        ..DIRECT
    };
    let mut setup = cached_setups().swap_remove(0);
    (setup.dies, setup.units_per_page, setup.cache) = (1, 6, Some(cache));
    (setup.buffer, setup.checkpoint, setup.static_wear) = (None, None, false);
    // A unit is hot if it was written less than one capacity (364 units) ago.
    setup.streams = Streams::HotColdRelocated { hot_within: 1.0 };
    let nand = Nand::new(setup.flash(), ()).with_slc_mode(setup.slc_mode());
    let mut device: PageMap = PageMap::new(setup.config(), nand).unwrap().with_cache(cache).unwrap();
    let mut now = Time::ZERO;
    let mut write = |device: &mut PageMap, start| {
        now = device.write(now, Extent { start, count: 2 }, &[]).unwrap().end;
    };
    (0..60).step_by(2).for_each(|lpa| write(&mut device, Lpa(lpa)));
    assert_eq!((device.stats().cache_units, device.cache_blocks()), (0, 0), "first writes are cold");
    // Sixteen units are written again and again; the other overwritten ones once each, before and between.
    for lpa in [40, 42] {
        write(&mut device, Lpa(lpa));
    }
    for _ in 0..4 {
        (0..16).step_by(2).for_each(|lpa| write(&mut device, Lpa(lpa)));
    }
    // 4 + 64 units make 4 blocks of 16 units in SLC mode and a begun one. Two blocks there may be, so three were
    // folded; each time the hot units were newer elsewhere, and only 40 to 43 were moved.
    let stats = *device.stats();
    assert_eq!((stats.cache_units, device.cache_blocks()), (68, 2));
    assert_eq!((stats.folds, stats.fold_units), (3, 4), "what had cooled migrates, once");
    device.check();
}
