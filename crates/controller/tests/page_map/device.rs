//! A page map beside a plain array, for the model tests and the power-cut tests.

use nvlab_controller::page_map::{
    Cleaning, Media, PageMapConfig, RecoveryReport, Streams, WearLevelling, WriteBuffer,
};
use nvlab_controller::{Controller, ControllerError, PageMap};
use nvlab_medium::MemStore;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_units::{Extent, Geometry, Interruption, Rate, Rng, Span, Time};

pub const UNIT: usize = 32;

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub cleaning: Cleaning,
    pub streams: Streams,
    pub buffer: Option<bool>,
    pub checkpoint: Option<u64>,
    pub units_per_page: u32,
    pub dies: u32,
    pub faults: Faults,
    pub static_wear: bool,
    /// Blocks of each die beyond the 20, to be retired in time.
    pub spare_blocks: u32,
}

impl Setup {
    pub fn flash(&self) -> FlashConfig {
        FlashConfig {
            rules: CellRules::Nand,
            geometry: Geometry {
                channels: self.dies,
                dies_per_channel: 1,
                blocks_per_die: 20 + self.spare_blocks,
                pages_per_block: 8,
                units_per_page: self.units_per_page,
                unit_bytes: UNIT as u32,
            },
            timing: FlashTiming {
                read: vec![Span::from_us(25)],
                units_per_read: 1,
                program: Span::from_us(200),
                erase: Span::from_us(1500),
                transfer: Rate::from_bytes_per_second(40_000_000),
                interruption: Interruption::Suspend { latency: Span::from_us(5), resume: Span::from_us(20) },
                copy_back: true,
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults: self.faults,
        }
    }

    pub fn config(&self) -> PageMapConfig {
        let units = self.dies * 20 * 8 * self.units_per_page;
        PageMapConfig {
            logical_units: units * if self.dies == 1 { 38 } else { 50 } / 100,
            cleaning: self.cleaning,
            // Failures take erased blocks and a cut leaves open ones behind: more must be in reserve.
            free_blocks_min: if self.spare_blocks > 0 { 5 } else { 2 },
            streams: self.streams,
            wear: WearLevelling { dynamic: true, static_threshold: self.static_wear.then_some(4) },
            trim: true,
            buffer: self.buffer.map(|protected| WriteBuffer {
                units: 4 * self.dies * self.units_per_page + 3,
                protected,
                store: Span::from_us(1),
            }),
            checkpoint_units: self.checkpoint,
            overhead: Span::from_us(2),
            seed: 1,
        }
    }

    pub fn device(&self) -> PageMap<MemStore> {
        let flash = self.flash();
        let store = MemStore::new(Nand::<MemStore>::store_bytes(&flash.geometry));
        PageMap::new(self.config(), Nand::new(flash, store)).unwrap()
    }

    pub fn recover(&self, media: Media<MemStore>, at: Time) -> (PageMap<MemStore>, RecoveryReport) {
        PageMap::recover(self.config(), media, at).unwrap()
    }
}

/// Every combination worth its time, without faults.
pub fn setups() -> Vec<Setup> {
    let cleanings = [
        Cleaning::Greedy,
        Cleaning::Fifo,
        Cleaning::CostBenefit,
        Cleaning::DChoices { d: 4 },
        Cleaning::WindowedGreedy { window: 6 },
    ];
    let streams = [Streams::One, Streams::HostAndRelocated, Streams::HotColdRelocated { hot_within: 0.3 }];
    let mut setups = Vec::new();
    for (i, buffer) in [None, Some(false), Some(true)].into_iter().enumerate() {
        for (j, &streams) in streams.iter().enumerate() {
            for (k, &units_per_page) in [1, 4].iter().enumerate() {
                for (l, checkpoint) in [None, Some(90)].into_iter().enumerate() {
                    setups.push(Setup {
                        cleaning: cleanings[(i + j + k + l) % cleanings.len()],
                        streams,
                        buffer,
                        checkpoint,
                        units_per_page,
                        dies: if (i + k + l) % 2 == 0 { 1 } else { 3 },
                        faults: Faults::NONE,
                        static_wear: (j + l) % 2 == 0,
                        spare_blocks: 0,
                    });
                }
            }
        }
    }
    setups
}

/// What the host may ask.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Read(Extent),
    Write(Extent),
    Trim(Extent),
    Flush,
}

/// Draws a request: overwrites mostly, in a small hot range half of the time.
pub fn draw(rng: &mut Rng, units: u32) -> Ask {
    let space = if rng.chance(0.5) { units / 5 } else { units };
    let start = rng.below(space as u64) as u32;
    let count = (1 + rng.below(6) as u32).min(units - start);
    let extent = Extent { start, count };
    match rng.below(20) {
        0..=3 => Ask::Read(extent),
        4 => Ask::Trim(extent),
        5 | 6 => Ask::Flush,
        _ => Ask::Write(extent),
    }
}

/// The bytes of version `version` of a unit; version 0 is zero.
pub fn content(lpa: u32, version: u64) -> [u8; UNIT] {
    let mut bytes = [0; UNIT];
    if version > 0 {
        let mut rng = Rng::new(version << 32 | lpa as u64);
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&rng.bits().to_le_bytes());
        }
    }
    bytes
}

/// Every version each unit had, and from which on it may not be lost.
#[derive(Clone, Debug)]
pub struct Model {
    pub versions: Vec<Vec<u64>>,
    durable_from: Vec<usize>,
    next: u64,
}

impl Model {
    pub fn new(units: u32) -> Model {
        Model { versions: vec![vec![0]; units as usize], durable_from: vec![0; units as usize], next: 1 }
    }
    pub fn current(&self, lpa: u32) -> u64 {
        *self.versions[lpa as usize].last().unwrap()
    }
    pub fn write(&mut self, extent: Extent) -> Vec<u8> {
        let mut data = Vec::new();
        for lpa in extent.units() {
            self.versions[lpa as usize].push(self.next);
            data.extend(content(lpa, self.next));
            self.next += 1;
        }
        data
    }
    pub fn trim(&mut self, extent: Extent) {
        for lpa in extent.units() {
            self.versions[lpa as usize].push(0);
            self.durable_from[lpa as usize] = 0;
        }
    }
    /// The current versions of these units may not be lost any more; a trim only if `trims` are durable.
    pub fn durable(&mut self, extent: Extent, trims: bool) {
        for lpa in extent.units() {
            if trims || self.current(lpa) != 0 {
                self.durable_from[lpa as usize] = self.versions[lpa as usize].len() - 1;
            }
        }
    }
    /// The version these bytes are, which must be an allowed one.
    pub fn identify(&self, lpa: u32, bytes: &[u8], context: &dyn Fn() -> String) -> u64 {
        let versions = &self.versions[lpa as usize];
        let from = self.durable_from[lpa as usize];
        let found = versions.iter().rposition(|&version| content(lpa, version) == bytes);
        match found {
            Some(index) if index >= from => versions[index],
            Some(index) => panic!(
                "{}: unit {lpa} went back to version {} of {versions:?}, durable is {}",
                context(),
                versions[index],
                versions[from]
            ),
            None => panic!("{}: unit {lpa} reads as something never written (torn?)", context()),
        }
    }
    /// After a power cut: what was found is all there is.
    pub fn settle_on(&mut self, found: &[u64]) {
        for (lpa, &version) in found.iter().enumerate() {
            self.versions[lpa] = vec![version];
            self.durable_from[lpa] = 0;
        }
    }
}

/// Carries out a request and checks what a read returns; gives when it was done.
pub fn perform(
    device: &mut PageMap<MemStore>,
    model: &mut Model,
    at: Time,
    ask: Ask,
) -> Result<Time, ControllerError> {
    let served = match ask {
        Ask::Read(extent) => {
            let mut bytes = vec![0xee; extent.count as usize * UNIT];
            let served = device.read(at, extent, &mut bytes)?;
            for (lpa, bytes) in extent.units().zip(bytes.chunks(UNIT)) {
                assert_eq!(bytes, content(lpa, model.current(lpa)), "unit {lpa} at {at}");
            }
            served
        }
        Ask::Write(extent) => {
            let data = model.write(extent);
            device.write(at, extent, &data)?
        }
        Ask::Trim(extent) => {
            model.trim(extent);
            device.trim(at, extent)?
        }
        Ask::Flush => device.flush(at)?,
    };
    assert!(served.start >= at && served.end >= served.start);
    Ok(served.end)
}
