//! What the maps of a device say is true, for every kind of controller: the live units of all maps are those that a plain model of
//! what was written has, the erases of all regions are those that were counted, and uses fit what regions hold.

use nvlab_controller::Use;
use nvlab_design::Design;
use nvlab_run::device::{self, AnyDevice, BuildError, InMemory, Maps, RegionMap};
use nvlab_units::{Rng, Time};

/// Writes units at random places, most of them to a tenth of the device.
#[derive(Clone, Copy)]
struct Write {
    writes: u32,
    /// Units of the device that are written at all.
    units_max: u64,
}

/// What was written, and what the device shows of it.
struct Shown {
    maps: Maps,
    written: u64,
    waiting: u64,
    erases: u64,
    blocks: u32,
    line_writes_max: Option<u32>,
}

impl Write {
    fn to(self, device: &mut dyn AnyDevice) -> Shown {
        let bytes = device.unit_bytes();
        let units = (device.capacity_bytes() / bytes as u64).min(self.units_max);
        let (mut rng, mut now, mut model) = (Rng::new(7), Time::ZERO, vec![false; units as usize]);
        for _ in 0..self.writes {
            let unit = if rng.chance(0.8) { rng.below(units.div_ceil(10)) } else { rng.below(units) };
            now = device.write(now, unit * bytes as u64, bytes, &[]).unwrap().end;
            model[unit as usize] = true;
        }
        now = device.flush(now).unwrap().end;
        now = device.idle_at(now).unwrap();
        let fill = device.buffered(now);
        assert!(fill.is_none_or(|fill| fill.used <= fill.room), "{fill:?}");
        // A memory's buffer is not emptied by a flush; what is in it is the newest version.
        let waiting = fill.filter(|fill| fill.what == "pages").map_or(0, |fill| fill.used as u64);
        let pram = device.insides(now.since(Time::ZERO)).pram;
        Shown {
            waiting,
            written: model.iter().filter(|written| **written).count() as u64,
            erases: device.counters().erases,
            blocks: device.blocks(),
            line_writes_max: pram.map(|pram| pram.line_writes_max),
            maps: device.maps(),
        }
    }
}

fn shown(name: &str, sets: &[&str], write: Write) -> Shown {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let design = Design::load(name, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let mut device = match device::any(&design, 1, Some(InMemory { filled: false })) {
        // This machine has no room for its bytes; its maps are the same without.
        Err(BuildError::Memory(_)) => device::any(&design, 1, None).unwrap(),
        built => built.unwrap(),
    };
    write.to(&mut *device)
}

fn check(name: &str, map: &RegionMap) {
    let held = map.held.as_ref().unwrap();
    assert_eq!(held.regions.len() % map.part_count as usize, 0, "{name}");
    for (number, region) in held.regions.iter().enumerate() {
        let fits = match region.used {
            Use::Erased | Use::Retired => region.live == 0,
            _ => region.live <= held.units,
        };
        assert!(fits, "{name}: region {number} is {region:?}");
    }
}

const FLASH: [(&str, &[&str], u32); 14] = [
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"], 60_000),
    ("qlc-pslc", &[], 20_000),
    ("dramless-hmb-512gb", &[], 20_000),
    ("cxl-ms-ssd", &[], 5_000),
    ("mlc-block", &["media.mlc.blocks=64"], 3_000),
    ("mlc-bast", &["media.mlc.blocks=64"], 20_000),
    ("mlc-fast", &["media.mlc.blocks=64"], 20_000),
    ("fusion-fast", &["media.mlc.blocks=64"], 20_000),
    ("hybrid-slc-mlc", &["media.mlc.blocks=64"], 20_000),
    ("lbftl", &[], 20_000),
    ("lbftl-fsms", &[], 20_000),
    ("hftl", &["media.nand.blocks=512", "ftl.capacity=115 MiB"], 100_000),
    ("hftl-fsms", &["media.nand.blocks=512", "ftl.capacity=115 MiB"], 100_000),
    ("envy-128m", &[], 800_000),
];

#[test]
fn live_units_and_erases_are_those_of_a_plain_model() {
    for (name, sets, writes) in FLASH {
        let shown = shown(name, sets, Write { writes, units_max: u64::MAX });
        let maps = shown.maps.unwrap();
        let flash: Vec<&RegionMap> = maps.iter().filter(|map| map.held.is_some()).collect();
        flash.iter().for_each(|map| check(name, map));
        assert_eq!(flash[0].len(), shown.blocks as usize, "{name}");
        let live: u64 = flash.iter().map(|map| map.live().unwrap()).sum();
        assert_eq!(live + shown.waiting, shown.written, "{name}");
        let worn = |map: &&RegionMap| {
            map.wear.as_ref().unwrap().counts.iter().map(|&count| count as u64).sum::<u64>()
        };
        assert_eq!(flash.iter().map(worn).sum::<u64>(), shown.erases, "{name}");
        let uses = |used| maps.iter().any(|map| map.uses(used));
        let has_log =
            ["mlc-bast", "mlc-fast", "fusion-fast", "hybrid-slc-mlc", "lbftl", "lbftl-fsms"].contains(&name);
        assert!(uses(Use::Data) && uses(Use::Erased) && uses(Use::Log) == has_log, "{name}");
        // The log of two arrays has a map of its own.
        assert_eq!(flash.len(), if name == "hybrid-slc-mlc" { 2 } else { 1 }, "{name}");
        assert!(shown.erases > 0 || writes <= 20_000, "{name}: nothing was cleaned");
        eprintln!("{name}: {live} live of {} written, {} erases", shown.written, shown.erases);
    }
}

#[test]
fn memories_show_the_wear_of_their_lines() {
    for (name, sets, count, memories) in [
        ("bench-scm", &[][..], 5_000, 8),
        ("moneta", &["media.pcm.size=1GiB"], 5_000, 8),
        ("hftl", &[], 3_000, 1),
    ] {
        let shown = shown(name, sets, Write { writes: count, units_max: 4096 });
        let maps = shown.maps.unwrap();
        let memory = maps.last().unwrap();
        assert!(memory.held.is_none() && memory.len() <= 4096, "{name}: {}", memory.len());
        let worn = memory.wear.as_ref().unwrap();
        assert!(shown.line_writes_max.unwrap() > 0, "{name}");
        assert_eq!(worn.counts.iter().max().copied(), shown.line_writes_max, "{name}");
        assert_eq!((memory.part_count, memory.len() % memory.part_count as usize), (memories, 0), "{name}");
    }
}

#[test]
fn what_has_no_map_says_why() {
    for (name, why) in [("disk-2010", "disk"), ("nvramdisk", "RAM disk")] {
        let shown = shown(name, &[], Write { writes: 100, units_max: 1000 });
        let said = shown.maps.unwrap_err();
        assert!(said.contains(why), "{name}: {said}");
    }
}
