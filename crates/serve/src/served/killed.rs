//! The program ends between any two stores to the array or the battery, as a server that is killed: nothing is undone,
//! nothing more is done, and only the bytes are left. Everything acknowledged must be there, trims too; what was under way
//! may be old or new. The device is so small that its rings wrap, and some of its programs fail.

use crate::mapped_store::MappedStore;
use crate::slots::tests::{between_stores, spend_from, until_killed};
use crate::slots::{SlotLayout, Slots};
use nvlab_controller::page_map::{PageMapConfig, PageMapMedia, Streams, WearLevelling, WriteBuffer};
use nvlab_controller::{Background, Controller, PageMap, Powered};
use nvlab_medium::Store;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_os::Mapping;
use nvlab_run::device::backed::Backed;
use nvlab_run::device::battery::Battery;
use nvlab_units::{Extent, Geometry, Interruption, Lpa, Rate, Rng, Span, Time};
use std::cell::Cell;
use std::fs::File;
use std::panic::catch_unwind;
use std::rc::Rc;

const UNIT: usize = 32;
const NEVER: u64 = u64::MAX;

/// Bytes that outlive the device; the program ends when the budget of stores is used up.
struct Mortal {
    store: MappedStore,
}

impl Store for Mortal {
    const KEEPS: bool = true;
    const SHOWS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        self.store.read(offset, into);
    }
    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        self.store.view(offset, bytes)
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        between_stores();
        self.store.write(offset, data);
    }
    fn copy(&mut self, from: u64, to: u64, bytes: usize) {
        self.store.copy(from, to, bytes);
    }
    fn discard(&mut self, offset: u64, bytes: u64) {
        self.store.discard(offset, bytes);
    }
    fn holds(&self, offset: u64) -> bool {
        self.store.holds(offset)
    }
    fn is_unverified(&self, offset: u64) -> bool {
        self.store.is_unverified(offset)
    }
    fn set_verified(&mut self, offset: u64) {
        self.store.set_verified(offset);
    }
}

/// The files of a device.
struct World {
    flash: FlashConfig,
    config: PageMapConfig,
    nand: File,
    battery: File,
    budget: Rc<Cell<u64>>,
}

impl World {
    fn new(units_per_page: u32, faults: Faults, buffer: u32, absorb: bool) -> World {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 2,
            blocks_per_die: 40,
            pages_per_block: 8,
            units_per_page,
            unit_bytes: UNIT as u32,
        };
        let flash = FlashConfig {
            rules: CellRules::Nand,
            geometry,
            timing: FlashTiming {
                transfer: Rate::from_bytes_per_second(40_000_000),
                interruption: Interruption::Suspend {
                    latency: Span::from_us(5),
                    resume: Span::from_us(20),
                    limit: u32::MAX,
                },
                copy_back: true,
                ..FlashTiming::plain(Span::from_us(25), Span::from_us(200), Span::from_us(1500))
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults,
        };
        let config = PageMapConfig {
            free_blocks_min: 3,
            streams: Streams::HostAndRelocated,
            wear: WearLevelling { dynamic: true, static_threshold: None },
            buffer: Some(WriteBuffer { units: buffer, protected: true, absorb, store: Span::from_us(1) }),
            checkpoint_units: Some(150),
            overhead: Span::from_us(2),
            ..PageMapConfig::plain(60 * units_per_page)
        };
        let (nand, battery) = (nameless(), nameless());
        nand.set_len(SlotLayout::new(&geometry).unwrap().bytes()).unwrap();
        battery.set_len(Battery::<Mortal>::bytes(buffer, &geometry)).unwrap();
        let budget = Rc::new(Cell::new(NEVER));
        spend_from(budget.clone());
        World { flash, config, nand, battery, budget }
    }

    /// The array's store: its payload is in slots.
    fn array(&self, is_used: bool) -> Mortal {
        let layout = SlotLayout::new(&self.flash.geometry).unwrap();
        let mapping = Mapping::shared(&self.nand, layout.bytes()).unwrap();
        let file = self.nand.try_clone().unwrap();
        let slots = Slots::of_file(layout, &mapping, (file, "nand"), is_used).unwrap();
        Mortal { store: MappedStore::slotted(mapping, slots) }
    }

    fn battery(&self) -> Battery<Mortal> {
        let units = self.config.buffer.unwrap().units;
        let mapping = Mapping::shared(&self.battery, self.battery.metadata().unwrap().len()).unwrap();
        Battery::new(Mortal { store: MappedStore::streaming(mapping) }, units, &self.flash.geometry)
    }

    fn fresh(&self) -> Backed<Mortal> {
        let nand = Nand::new(self.flash.clone(), self.array(false));
        let map = PageMap::new(self.config.clone(), nand).unwrap();
        Backed::new(map, Some(self.battery()))
    }

    fn found(&self) -> Backed<Mortal> {
        let battery = self.battery();
        let mut media = PageMapMedia::new(Nand::reopen(self.flash.clone(), self.array(true), None));
        battery.give(&mut media).unwrap();
        Backed::recovered(self.config.clone(), None, media, Some(battery)).unwrap().0
    }
}

/// A file that nobody else can find.
fn nameless() -> File {
    let name = format!("nvlab-backed-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

/// A plain array of versions, 0 for zeros, and what the request under way makes of its units.
struct Model {
    now: Vec<u64>,
    under_way: Option<(Extent, u64)>,
    version: u64,
    /// Where the last trim ended: the next often goes on there.
    trimmed: u32,
    /// Mostly overwrites of a few units.
    overwrites: bool,
}

fn content(lpa: u32, version: u64) -> Vec<u8> {
    let mut rng = Rng::new(version << 32 | lpa as u64);
    (0..UNIT).map(|_| if version == 0 { 0 } else { rng.bits() as u8 }).collect()
}

impl Model {
    fn step(&mut self, rng: &mut Rng, device: &mut Backed<Mortal>, now: Time) -> Time {
        let units = self.now.len() as u32;
        let goes_on = self.trimmed < units && rng.chance(if self.overwrites { 0.1 } else { 0.6 });
        let space = if self.overwrites && rng.chance(0.8) { 6 } else { units };
        let start = if goes_on { self.trimmed } else { rng.below(space as u64) as u32 };
        let extent = Extent { start: Lpa(start), count: (1 + rng.below(3) as u32).min(units - start) };
        let trims = rng.chance(if self.overwrites { 0.1 } else { 0.75 });
        self.version += 1;
        let version = if trims { 0 } else { self.version };
        self.under_way = Some((extent, version));
        device.settle(now);
        let served = if trims {
            self.trimmed = extent.end() as u32;
            device.trim(now, extent).unwrap()
        } else {
            let data: Vec<u8> = extent.units().flat_map(|lpa| content(lpa.0, version)).collect();
            device.write(now, extent, &data).unwrap()
        };
        self.under_way = None;
        extent.units().for_each(|lpa| self.now[lpa.index()] = version);
        served.end
    }

    /// Holds a device against the model; what was under way is settled.
    fn compare(&mut self, device: &mut Backed<Mortal>, what: &str) {
        let under_way = self.under_way.take();
        let mut found = vec![1; UNIT];
        for lpa in 0..self.now.len() as u32 {
            let read = device.read(Time::ZERO, Extent::one(Lpa(lpa)), &mut found);
            read.unwrap_or_else(|error| panic!("{what}: {error}"));
            let new = under_way.filter(|(extent, _)| extent.units().any(|unit| unit == Lpa(lpa)));
            let allowed = [Some(self.now[lpa as usize]), new.map(|(_, version)| version)];
            let version = allowed.into_iter().flatten().find(|&version| content(lpa, version) == found);
            self.now[lpa as usize] = version.unwrap_or_else(|| {
                let old = (0..=self.version).find(|&version| content(lpa, version) == found);
                panic!("{what}: unit {lpa} is version {old:?}, allowed are {allowed:?}")
            });
        }
    }
}

/// A history that ends at a store, and whether it reached it.
fn ends_at(stop: u64, seed: u64) -> bool {
    let what = format!("seed {seed}, store {stop}");
    let mut rng = Rng::stream(seed, "killed");
    let faults = Faults { program_failure: 25_000.0, seed, ..Faults::NONE };
    let faults = if rng.chance(0.5) { faults } else { Faults::NONE };
    let units_per_page = 1 + rng.below(2) as u32;
    let absorb = rng.chance(0.5);
    let world = World::new(units_per_page, faults, 4 * units_per_page + rng.below(9) as u32, absorb);
    let units = world.config.logical_units;
    let now = vec![0; units as usize];
    let mut model = Model { now, under_way: None, version: 0, trimmed: units, overwrites: absorb };
    let (mut now, mut device) = (Time::ZERO, world.fresh());
    for _ in 0..40 {
        now = model.step(&mut rng, &mut device, now);
    }
    world.budget.set(stop);
    let killed = until_killed(|| {
        for _ in 0..60 {
            now = model.step(&mut rng, &mut device, now);
        }
        device.power_down(now).unwrap();
    });
    drop(device);
    let mut rng = Rng::stream(seed ^ stop << 20, "found");
    while rng.chance(0.4) {
        world.budget.set(rng.below(300));
        until_killed(|| drop(world.found()));
    }
    world.budget.set(NEVER);
    let mut device = world.found();
    model.compare(&mut device, &what);
    // What recovery left behind in memory serves on, and through another kill.
    for _ in 0..30 {
        now = model.step(&mut rng, &mut device, now);
    }
    drop(device);
    model.compare(&mut world.found(), &format!("{what}, found again"));
    killed
}

#[test]
fn a_program_that_is_killed_between_any_two_stores_loses_nothing() {
    let mut broken = Vec::new();
    let mut stops = 0;
    for seed in 0..12 {
        for stop in 0.. {
            stops += 1;
            match catch_unwind(|| ends_at(stop, seed)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => broken.push((seed, stop)),
            }
        }
    }
    assert!(stops > 3000, "only {stops} places to stop");
    assert!(
        broken.is_empty(),
        "{} of {stops} kills lost something: {:?} ...",
        broken.len(),
        &broken[..broken.len().min(9)]
    );
}
