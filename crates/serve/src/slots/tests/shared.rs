//! Units that share a slot: an array whose payload is in slots against one with a place for each unit, through power cuts and starts;
//! and a block map, whose merges copy, killed between any two stores.

use super::{SlotLayout, Slots, open, spend_from, until_killed};
use crate::mapped_store::MappedStore;
use nvlab_controller::block_map::{BlockMapConfig, BlockMapMedia, BlockWear, Log};
use nvlab_controller::{Background, BlockMap, Controller};
use nvlab_medium::flash::nand::{Data, Payload};
use nvlab_medium::flash::{
    CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand, PlaneReads, SPARE_BYTES,
};
use nvlab_medium::{PowerCut, Store};
use nvlab_os::Mapping;
use nvlab_units::{BlockId, Extent, Geometry, Interruption, Lpa, Ppa, Rate, Rng, Span, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::rc::Rc;

const UNIT: usize = 32;

impl Slots {
    /// Every slot has the names that are counted, and one without a name is free.
    pub(crate) fn check(&self, mapping: &Mapping) {
        let mut names = BTreeMap::new();
        for unit in 0..self.layout.units {
            if let super::Held::Slot(slot) = self.get(mapping, unit) {
                *names.entry(slot).or_insert(0) += 1;
            }
        }
        assert_eq!(names.len(), self.room.used() as usize);
        for (slot, count) in names {
            assert_eq!(self.names.are_several(slot), count > 1, "slot {slot} has {count} names");
        }
    }
}

/// Clones are the same bytes, which outlive their array.
#[derive(Clone, Debug)]
struct Whole(Rc<RefCell<Vec<u8>>>);

impl Store for Whole {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow()[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.0.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

fn flash(blocks: u32, units_per_page: u32, rules: CellRules, seed: u64) -> FlashConfig {
    FlashConfig {
        rules,
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: blocks,
            pages_per_block: 8,
            units_per_page,
            unit_bytes: UNIT as u32,
        },
        timing: FlashTiming {
            read: vec![Span::from_us(25)],
            units_per_read: 1,
            reads: PlaneReads::ONE,
            decode: Span::ZERO,
            one_shot: 1,
            programs: None,
            program: Span::from_us(200),
            erase: Span::from_us(1500),
            transfer: Rate::from_bytes_per_second(40_000_000),
            interruption: Interruption::Wait,
            copy_back: true,
        },
        endurance: Endurance { cycles: 1000, spread: 0.0 },
        faults: Faults { seed, ..Faults::NONE },
    }
}

fn file_for(layout: SlotLayout) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(layout.bytes()).unwrap();
    file
}

/// The same array twice.
struct Pair {
    flash: FlashConfig,
    file: File,
    bytes: Whole,
    slotted: Nand<MappedStore>,
    whole: Nand<Whole>,
    now: Time,
    rng: Rng,
    copies: u64,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut rng = Rng::stream(seed, "shared");
        let flash = flash(4, 1 + rng.below(3) as u32, CellRules::Nand, seed);
        let layout = SlotLayout::new(&flash.geometry).unwrap();
        let file = file_for(layout);
        let bytes = Nand::<Whole>::store_bytes(&flash.geometry);
        let bytes = Whole(Rc::new(RefCell::new(vec![0; bytes as usize])));
        let slotted = Nand::new(flash.clone(), open(&file, layout, true));
        let whole = Nand::new(flash.clone(), bytes.clone());
        Pair { flash, file, bytes, slotted, whole, now: Time::ZERO, rng, copies: 0 }
    }

    fn readable(&self) -> Vec<Ppa> {
        let units = (0..self.flash.geometry.units() as u32).map(Ppa);
        units.filter(|&unit| self.whole.is_readable(unit)).collect()
    }

    fn program(&mut self, copies: bool) {
        let blocks = (0..4).map(BlockId).filter(|&block| self.whole.pages_written(block) < 8);
        let blocks: Vec<BlockId> = blocks.collect();
        let (readable, units) = (self.readable(), self.flash.geometry.units_per_page as usize);
        if blocks.is_empty() || copies && readable.is_empty() {
            return;
        }
        let block = blocks[self.rng.below(blocks.len() as u64) as usize];
        let page = self.whole.pages_written(block);
        let bytes: Vec<u8> = (0..units * UNIT).map(|_| self.rng.bits() as u8).collect();
        let count = readable.len() as u64;
        let mut any = |_| readable[self.rng.below(count) as usize];
        let from: Vec<Ppa> = if copies { (0..units).map(&mut any).collect() } else { Vec::new() };
        let spare = vec![self.rng.bits() as u8; units * SPARE_BYTES];
        let data = if copies { Data::Copies(&from) } else { Data::Bytes(&bytes) };
        let payload = Payload { data, spare: &spare };
        self.slotted.program(self.now, block, page, 1, payload, false).unwrap();
        self.whole.program(self.now, block, page, 1, payload, false).unwrap();
        self.copies += copies as u64;
    }

    fn step(&mut self) {
        self.now += Span::from_us(self.rng.below(300));
        match self.rng.below(32) {
            0..10 => self.program(false),
            10..22 => self.program(true),
            22..26 => {
                let block = BlockId(self.rng.below(4) as u32);
                self.slotted.erase(self.now, block).unwrap();
                self.whole.erase(self.now, block).unwrap();
            }
            26..30 => {
                self.slotted.settle(self.now);
                self.whole.settle(self.now);
            }
            30 => {
                let at = self.now + Span::from_us(self.rng.below(2000));
                self.slotted.cut(at);
                self.whole.cut(at);
                self.now = at;
            }
            _ => {
                // The program ends and another finds what it left.
                let layout = SlotLayout::new(&self.flash.geometry).unwrap();
                self.slotted = Nand::reopen(self.flash.clone(), open(&self.file, layout, false), None);
                self.whole = Nand::reopen(self.flash.clone(), self.bytes.clone(), None);
            }
        }
    }

    fn compare(&self, what: &str) {
        let (mut one, mut other) = ((vec![1; UNIT], [0; SPARE_BYTES]), (vec![2; UNIT], [1; SPARE_BYTES]));
        for unit in (0..self.flash.geometry.units() as u32).map(Ppa) {
            let read = self.slotted.peek(unit, &mut one.0, &mut one.1);
            assert_eq!(read, self.whole.peek(unit, &mut other.0, &mut other.1), "{what}");
            assert!(read.is_err() || one == other, "{what}: unit {unit:?} holds something else");
        }
    }
}

#[test]
fn copies_hold_what_was_copied_through_cuts_and_starts() {
    let mut copies = 0;
    for seed in 0..150 {
        let mut pair = Pair::new(seed);
        for step in 0..300 {
            pair.step();
            pair.compare(&format!("seed {seed}, step {step}"));
        }
        copies += pair.copies;
        // Without a unit that holds anything no slot is used.
        let layout = SlotLayout::new(&pair.flash.geometry).unwrap();
        (0..4).for_each(|block| assert!(pair.slotted.erase(pair.now, BlockId(block)).is_ok()));
        pair.slotted.settle(pair.now + Span::from_ms(1000));
        let mapping = Mapping::shared(&pair.file, layout.bytes()).unwrap();
        let table = &mapping.as_slice()[layout.table_at as usize..];
        assert!(table.iter().all(|&byte| byte == 0), "seed {seed}");
    }
    assert!(copies > 5000, "only {copies} copies");
}

fn content(lpa: u32, version: u64) -> Vec<u8> {
    let mut rng = Rng::new(version << 32 | lpa as u64);
    (0..UNIT).map(|_| if version == 0 { 0 } else { rng.bits() as u8 }).collect()
}

/// A history of a block map that ends at a store to a slot, and whether it reached it.
fn ends_at(stop: u64, seed: u64) -> bool {
    let logs = [Log::PerBlock { blocks: 2 }, Log::Shared { sequential: true, random_blocks: 2 }, Log::None];
    let flash = flash(8, 1, CellRules::NandAnyOrder, seed);
    let config = BlockMapConfig {
        logical_units: 31,
        log: logs[seed as usize % 3],
        slc_log: false,
        second_chance: false,
        wear: BlockWear { dynamic: true, static_threshold: Some(3) },
        trim: true,
        verify_reads: false,
        overhead: Span::ZERO,
    };
    let layout = SlotLayout::new(&flash.geometry).unwrap();
    let file = file_for(layout);
    let nand = Nand::new(flash.clone(), open(&file, layout, true));
    let mut device = BlockMap::new(config.clone(), nand, None).unwrap();
    let (mut versions, under_way) = ([0u64; 31], Cell::new(None));
    let mut rng = Rng::stream(seed, "killed merges");
    let budget = Rc::new(Cell::new(stop));
    spend_from(budget.clone());
    let killed = until_killed(|| {
        let mut now = Time::ZERO;
        for version in 1..60 {
            let start = rng.below(31) as u32;
            let extent = Extent { start: Lpa(start), count: (1 + rng.below(3) as u32).min(31 - start) };
            let data: Vec<u8> = extent.units().flat_map(|lpa| content(lpa.0, version)).collect();
            device.settle(now);
            under_way.set(Some((extent, version)));
            now = device.write(now, extent, &data).unwrap().end;
            under_way.set(None);
            extent.units().for_each(|lpa| versions[lpa.index()] = version);
        }
    });
    drop(device);
    budget.set(u64::MAX);
    let media = BlockMapMedia::new(Nand::reopen(flash, open(&file, layout, false), None), None);
    let (mut device, report) = BlockMap::recover(config, media, Time::ZERO).unwrap();
    let mut found = vec![1; UNIT];
    for (lpa, &version) in (0..).zip(&versions) {
        let read = device.read(Time::ZERO + report.time, Extent::one(Lpa(lpa)), &mut found);
        read.unwrap_or_else(|error| panic!("seed {seed}, store {stop}: {error}"));
        let newer =
            under_way.get().filter(|(extent, _): &(Extent, u64)| extent.units().any(|unit| unit == Lpa(lpa)));
        let mut allowed = std::iter::once(version).chain(newer.map(|(_, version)| version));
        let is_right = allowed.any(|version| found == content(lpa, version));
        assert!(is_right, "seed {seed}, store {stop}: unit {lpa} is not version {version}");
    }
    killed
}

#[test]
fn merges_that_are_killed_between_any_two_stores_lose_nothing() {
    for seed in 0..6 {
        let stops = (0..).take_while(|&stop| ends_at(stop, seed)).count();
        assert!(stops > 300, "only {stops} places to stop");
    }
}
