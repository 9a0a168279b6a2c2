//! A map that is not all in memory: through power cuts, the time of hits and misses, and what its programs come to.

use crate::page_map::device::{Setup, demand_setups, draw, of_superblocks, perform};
use crate::page_map::power_cut::{cut_again_and_again, explore, used};
use nvlab_controller::page_map::{Cleaning, DemandMap, PageMapConfig, Streams, WearLevelling, WriteBuffer};
use nvlab_controller::{Background, Controller, PageMap};
use nvlab_medium::flash::{Faults, FlashTiming, Nand, PlaneReads};
use nvlab_units::{Extent, Geometry, Interruption, Lpa, Rate, Rng, Span, Time};

/// Superblocks of the log are long, and there are few of them.
fn superblocks() -> Vec<Setup> {
    let setups = of_superblocks(demand_setups());
    setups.into_iter().map(|setup| Setup { spare_blocks: 36, ..setup }).collect()
}

#[test]
fn power_cuts_lose_nothing_flushed() {
    for setup in demand_setups().iter().chain(&superblocks()) {
        let stats = *used(setup, 0).device.stats();
        let turns = stats.map.directory_units > 0;
        assert!(turns || setup.checkpoint.is_none(), "no turn was completed: {stats:?}, {setup:?}");
        assert_eq!(stats.map.loads > 10, setup.demand.as_ref().unwrap().cache_pages < 200, "{stats:?}");
    }
    let (restored, _) = explore(&demand_setups());
    assert!(restored > 30, "the protected buffers restored only {restored} units");
    explore(&superblocks());
}

#[test]
fn power_cuts_lose_nothing_flushed_where_programs_and_erases_fail() {
    let faults = Faults {
        factory_bad: 0.02,
        program_failure: 20_000.0,
        erase_failure: 20_000.0,
        seed: 3,
        ..Faults::NONE
    };
    let setups = demand_setups().into_iter().chain(superblocks());
    let setups: Vec<Setup> =
        setups.map(|setup| Setup { faults, spare_blocks: setup.spare_blocks + 16, ..setup }).collect();
    let (_, retired) = explore(&setups);
    assert!(retired > 10, "too few faults: {retired} blocks retired");
}

/// Turns that a cut ended leave pages and directories behind, and the next turns and cuts find them.
#[test]
fn repeated_power_cuts_lose_nothing_flushed() {
    cut_again_and_again(demand_setups().into_iter().chain(superblocks()));
}

/// The log keeps its size for ever, and the reserve of erased blocks too.
#[test]
fn long_runs_never_exhaust_the_log_of_the_map() {
    for setup in demand_setups().into_iter().chain(superblocks()) {
        let mut device = setup.device();
        let (units, mut rng) = (device.capacity_units(), Rng::new(9));
        let mut model = crate::page_map::device::Model::new(units);
        let mut now = Time::ZERO;
        for _ in 0..6000 {
            now = perform(&mut device, &mut model, now, draw(&mut rng, units)).unwrap();
            device.settle(now);
        }
        device.check();
        let stats = device.stats();
        let fits = setup.demand.as_ref().unwrap().cache_pages == 200;
        assert!(stats.clean_units > 0 && (stats.map.rewrites == 0) == fits, "{stats:?} {setup:?}");
        assert!(stats.map.directory_units > 0, "{stats:?} {setup:?}");
    }
}

/// A larger device without payload, of 16 Ki units, four in a page.
fn plain(entries: u32, cache_pages: u32, host_pages: u32) -> PageMap {
    let (setup, us) = (&demand_setups()[0], Span::from_us);
    let mut flash = setup.flash();
    flash.geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        blocks_per_die: 64,
        pages_per_block: 64,
        units_per_page: 4,
        unit_bytes: 4096,
    };
    flash.timing = FlashTiming {
        units_per_read: 1,
        reads: PlaneReads::ONE,
        interruption: Interruption::Wait,
        transfer: Rate::from_bytes_per_second(1_000_000_000),
        ..flash.timing
    };
    let demand = DemandMap { entries, cache_pages, host_pages, host_read: us(1) };
    let buffer = Some(WriteBuffer { units: 128, protected: true, absorb: false, store: us(1) });
    let config = PageMapConfig {
        logical_units: 16 << 10,
        demand: Some(demand),
        wear: WearLevelling { dynamic: true, static_threshold: None },
        checkpoint_units: None,
        streams: Streams::HostAndRelocated,
        cleaning: Cleaning::Greedy,
        buffer,
        ..setup.config()
    };
    PageMap::new(config, Nand::new(flash, ())).unwrap()
}

fn fill(map: &mut PageMap) -> Time {
    let mut now = Time::ZERO;
    for unit in 0..map.capacity_units() {
        now = map.write(now, Extent::one(Lpa(unit)), &[]).unwrap().end;
    }
    now = map.drain(now).unwrap();
    map.idle_at(now).unwrap()
}

/// A unit is read in 25 us and transferred in 4.096 us; the controller takes 2 us.
#[test]
fn hits_and_misses_take_their_time() {
    let mut map = plain(64, 4, 8);
    let mut now = fill(&mut map);
    let mut read = |map: &mut PageMap, page: u32, units: u32| {
        now = map.idle_at(now).unwrap();
        let served = map.read(now, Extent { start: Lpa(page * 64), count: units }, &mut []).unwrap();
        let took = served.end.since(now);
        now = served.end;
        took
    };
    let unit = Span::from_us(25) + Span::from_ns(4096);
    let hit = Span::from_us(2) + unit;
    // The pages changed last leave memory, and their programs would be in the way.
    (0..24).for_each(|page| assert!(read(&mut map, page, 1) >= hit + unit));
    (100..112).for_each(|page| assert_eq!(read(&mut map, page, 1), hit + unit, "a miss, page {page}"));
    assert_eq!(read(&mut map, 111, 1), hit, "used last: on the chip");
    assert_eq!(read(&mut map, 108, 1), hit, "the fourth");
    assert_eq!(read(&mut map, 107, 1), hit + Span::from_us(1), "the fifth: in the host's memory");
    assert_eq!(read(&mut map, 107, 1), hit, "now on the chip");
    assert_eq!(read(&mut map, 50, 1), hit + unit, "pushes the least recently used one out");
    assert_eq!(read(&mut map, 101, 1), hit + Span::from_us(1), "the last that stayed");
    assert_eq!(read(&mut map, 100, 1), hit + unit, "the one that left");
    let stats = *map.stats();
    let before = (stats.map.reads, stats.map.read_hits, stats.map.host_hits, stats.map.loads);
    read(&mut map, 99, 64);
    let stats = map.stats().map;
    let after = (stats.reads, stats.read_hits, stats.host_hits, stats.loads);
    assert_eq!(after, (before.0 + 1, before.1, before.2, before.3 + 1), "one page for a long request");
    // Two requests that need the same page at the same time wait for one read.
    let at = map.idle_at(now).unwrap();
    let first = map.read(at, Extent::one(Lpa(80 * 64)), &mut []).unwrap().end;
    let second = map.read(at, Extent::one(Lpa(80 * 64 + 7)), &mut []).unwrap().end;
    assert_eq!(first.since(at), hit + unit);
    assert!(second.since(at) >= hit + unit && second.since(at) <= hit + unit + unit, "{second} after {at}");
    assert_eq!(map.stats().map.loads, stats.loads + 1);
}

/// Uniform random writes of which the cache covers a share h. A write changes a page that is in memory with probability h;
/// otherwise one comes and a changed one leaves: 1 - h programs for each write. A unit that is moved changes a page that is
/// not in memory with probability 1 - h, and few of those that wait are the same.
#[test]
fn programs_of_the_map_agree_with_a_closed_form() {
    for (cache_pages, share) in [(64, 1.0 / 16.0), (128, 1.0 / 8.0), (256, 1.0 / 4.0)] {
        let mut map = plain(16, cache_pages, 0);
        let mut now = fill(&mut map);
        let mut rng = Rng::new(cache_pages as u64);
        let mut write = |map: &mut PageMap, count: u32| {
            for _ in 0..count {
                let unit = rng.below(map.capacity_units() as u64) as u32;
                now = map.write(now, Extent::one(Lpa(unit)), &[]).unwrap().end;
            }
        };
        write(&mut map, 60_000);
        map.reset_stats();
        write(&mut map, 120_000);
        let stats = *map.stats();
        let per_write = |count: u64| count as f64 / stats.host_write_units as f64;
        let missed = 1.0 - per_write(stats.map.write_hits);
        assert!((missed / (1.0 - share) - 1.0).abs() < 0.01, "{missed} missed of {}", 1.0 - share);
        let (moved, written) = (per_write(stats.clean_units), per_write(stats.map.write_backs));
        // A turn programs all that is in memory, half way to the end of the list on average. Until it leaves, a page is
        // changed again with probability h / (1 - h) / 2.
        let turns = per_write(stats.map.directory_units / 4);
        let again = turns * cache_pages as f64 * share / (1.0 - share) / 2.0;
        let expected = 1.0 - share + again;
        assert!((written / expected - 1.0).abs() < 0.02, "{written} for {expected}");
        let rewritten = per_write(stats.map.rewrites);
        // 64 are moved in a step, after which 16 pages wait.
        let expected = moved * (1.0 - share) * (1.0 - (64.0 / 2.0 + 16.0) / 1024.0);
        assert!((rewritten / expected - 1.0).abs() < 0.03, "{rewritten} for {expected}");
        let map_units = stats.map.write_backs
            + stats.map.rewrites
            + stats.map.moved
            + stats.map.directory_units
            + stats.map.padding_units;
        assert_eq!(stats.map_units, map_units);
    }
}
