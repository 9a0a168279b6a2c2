//! A page map that takes its state over from a coarse twin: every invariant holds, blocks are as full and as worn as the
//! twin's, and it goes on as if it had written everything itself.

use nvlab_controller::page_map::{
    Allocation, CacheFull, CacheTakes, Cleaning, DemandMap, PageMapConfig, SlcCache, Streams, WearLevelling,
    WriteBuffer,
};
use nvlab_controller::{Background, Controller, PageMap};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand, SlcMode};
use nvlab_units::{BlockId, Extent, Geometry, Lpa, Rate, Rng, Span, Time};

fn device(
    units_per_page: u32,
    cleaning: Cleaning,
    streams: Streams,
    checkpoint_units: Option<u64>,
) -> PageMap {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        blocks_per_die: 24,
        pages_per_block: 4096 / units_per_page,
        units_per_page,
        unit_bytes: 4096,
    };
    let timing = FlashTiming {
        transfer: Rate::from_bytes_per_second(1_600_000_000),
        ..FlashTiming::plain(Span::from_us(60), Span::from_us(200), Span::from_ms(5))
    };
    let faults = Faults { factory_bad: 0.03, seed: 7, ..Faults::NONE };
    let endurance = Endurance { cycles: 1000, spread: 0.0 };
    let flash = FlashConfig { rules: CellRules::Nand, geometry, timing, endurance, faults };
    let config = PageMapConfig {
        // Not a multiple of any factor.
        logical_units: (geometry.units() * 3 / 5) as u32 + 3,
        cleaning,
        streams,
        wear: WearLevelling { dynamic: true, static_threshold: Some(20) },
        buffer: Some(WriteBuffer {
            units: 12 * units_per_page,
            protected: true,
            absorb: false,
            store: Span::from_us(1),
        }),
        checkpoint_units,
        ..PageMapConfig::plain(0)
    };
    PageMap::new(config, Nand::new(flash, ())).unwrap()
}

/// A device like that, new, with a cache of two to six blocks of each die in SLC mode.
fn with_cache(like: PageMap, when_full: CacheFull) -> PageMap {
    let flash = like.nand().config().clone();
    let mode = SlcMode {
        pages_per_block: flash.geometry.pages_per_block,
        units_per_page: flash.geometry.units_per_page / 4,
        read: Span::from_us(25),
        program: Span::from_us(50),
        erase: Span::from_ms(5),
        cycles: 30_000,
    };
    let (fold_after, takes) = (Some(Span::from_ms(100)), CacheTakes::All);
    let cache = SlcCache { blocks_min: 2, blocks_max: 6, blocks_spared: 1, fold_after, takes, when_full };
    PageMap::new(like.config().clone(), Nand::new(flash, ()).with_slc_mode(mode))
        .unwrap()
        .with_cache(cache)
        .unwrap()
}

/// Writes uniformly; returns when the last write is done.
fn write(map: &mut PageMap, count: u32, rng: &mut Rng, mut at: Time) -> Time {
    for _ in 0..count {
        let unit = rng.below(map.capacity_units() as u64) as u32;
        at = map.write(at, Extent::one(Lpa(unit)), &[]).unwrap().end;
    }
    at
}

#[test]
fn a_device_goes_on_where_its_twin_stopped() {
    let kinds = [
        (1, Cleaning::Greedy, Streams::One, None, None),
        (4, Cleaning::Fifo, Streams::HostAndRelocated, None, None),
        (64, Cleaning::CostBenefit, Streams::HostAndRelocated, Some(50_000), None),
        (
            16,
            Cleaning::WindowedGreedy { window: 6 },
            Streams::HotColdRelocated { hot_within: 0.3 },
            None,
            None,
        ),
        (2, Cleaning::DChoices { d: 4 }, Streams::One, Some(20_000), None),
        (64, Cleaning::Greedy, Streams::HostAndRelocated, Some(50_000), Some(CacheFull::WriteDirectly)),
        (64, Cleaning::Greedy, Streams::HostAndRelocated, None, Some(CacheFull::FoldOldest)),
    ];
    for (units_per_page, cleaning, streams, checkpoint, cache) in kinds {
        let mut map = device(units_per_page, cleaning, streams, checkpoint);
        if let Some(when_full) = cache {
            map = with_cache(map, when_full);
        }
        let (mut twin, k) = map.twin(&[2], true).unwrap_or_else(|| panic!("{cleaning:?}: no twin"));
        assert_eq!(k, 16, "4096 units of a block over at least 256");
        let mut rng = Rng::new(5);
        let mut at = Time::ZERO;
        for unit in 0..twin.capacity_units() {
            at = twin.write(at, Extent::one(Lpa(unit)), &[]).unwrap().end;
        }
        let count = twin.capacity_units();
        at = write(&mut twin, 4 * count, &mut rng, at);
        twin.reset_stats();
        // Several capacities: what a cleaner moves swings with its passes over the few blocks.
        at = write(&mut twin, 4 * count, &mut rng, at);
        let of_twin = twin.stats().clean_units as f64 / twin.stats().host_write_units as f64;
        at = twin.drain(at).unwrap();
        at = twin.idle_at(at).unwrap();
        twin.check();
        let (all, stride) = (map.capacity_units() / k, 7919);
        // Any permutation of the units will do; the last group stays unmapped.
        let member = |unit: Lpa, nth: u32| {
            let member = (unit.0 * k + nth) as u64 * stride % ((all - 1) * k) as u64;
            (unit.0 < all - 1).then_some(Lpa(member as u32))
        };
        assert!(map.split(&twin, k, member), "{cleaning:?}");
        map.check();
        let mapped = (0..map.capacity_units()).filter(|&lpa| map.is_mapped(Lpa(lpa))).count() as u32;
        assert_eq!(mapped, (all - 1) * k, "{cleaning:?}");
        let blocks = || (0..96).map(BlockId);
        for block in blocks() {
            assert_eq!(map.nand().cells().erase_count(block), twin.nand().cells().erase_count(block));
            assert_eq!(map.nand().is_slc(block), twin.nand().is_slc(block));
            assert!(map.table().live(block) <= twin.table().live(block) * k);
        }
        assert_eq!(map.cache_blocks() > 0, cache.is_some(), "{cleaning:?}");
        let live: u32 = blocks().map(|block| map.table().live(block)).sum();
        assert_eq!(live, mapped, "{cleaning:?}");
        for unit in 0..map.capacity_units() {
            if !map.is_mapped(Lpa(unit)) {
                at = map.write(at, Extent::one(Lpa(unit)), &[]).unwrap().end;
            }
        }
        let count = 4 * map.capacity_units();
        map.reset_stats();
        write(&mut map, count, &mut rng, at);
        map.check();
        let moved = map.stats().clean_units as f64 / count as f64;
        assert!((moved / of_twin - 1.0).abs() < 0.1, "{cleaning:?}: {moved} moved, {of_twin} by its twin");
    }
}

#[test]
fn a_device_whose_twin_would_differ_has_none() {
    let plain = device(4, Cleaning::Greedy, Streams::One, None);
    assert!(plain.twin(&[1], false).is_some());
    assert!(plain.twin(&[1, 3], false).is_none(), "4096 units are no multiple of 3");
    let mut flash = plain.nand().config().clone();
    flash.faults.program_failure = 0.01;
    let failing = PageMap::new(plain.config().clone(), Nand::new(flash.clone(), ())).unwrap();
    assert!(failing.twin(&[1], false).is_none(), "programs that fail");
    flash.faults = Faults::NONE;
    let demand = DemandMap { entries: 1024, cache_pages: 16, host_pages: 0, host_read: Span::ZERO };
    let config = PageMapConfig { demand: Some(demand), ..plain.config().clone() };
    let on_demand = PageMap::new(config, Nand::new(flash.clone(), ())).unwrap();
    assert!(on_demand.twin(&[1], false).is_none(), "a map that is not all in memory");
    let config = PageMapConfig { allocation: Allocation::Superblock, buffer: None, ..plain.config().clone() };
    let superblocks =
        PageMap::new(PageMapConfig { logical_units: 150_000, ..config }, Nand::new(flash, ())).unwrap();
    assert!(superblocks.twin(&[1], false).is_none(), "superblocks");
}
