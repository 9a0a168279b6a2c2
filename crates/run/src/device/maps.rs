//! Maps of a device for the live page: the contents and the wear of each region of its media.
//!
//! They are independent of the medium: a region is a block of flash, a segment of eNVy, a range of lines of a memory.
//! Values that a controller does not count are left out. They are made on request; no I/O request pays for them.

use super::ArrayInsides;
use super::pram::Pram;
use nvlab_controller::{Region, Use};
use nvlab_medium::Store;

/// Regions of a memory whose lines wear: more lines share a region.
const MEMORY_REGIONS_MAX: usize = 1 << 12;

/// A map of one medium of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionMap {
    /// What the medium holds: "data", "log", "PRAM".
    pub name: &'static str,
    /// What a region is: "blocks", "segments", "regions".
    pub regions: &'static str,
    /// The components that work in parallel, each with the same number of regions: "dies", "memories".
    pub parts: &'static str,
    /// How many of these there are.
    pub part_count: u32,
    /// The contents of each region, and its capacity in units; `None`: not counted.
    pub held: Option<Held>,
    /// The wear of each region; `None`: the medium does not wear, or its wear is not counted.
    pub wear: Option<Worn>,
}

/// What regions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Region by region.
    pub regions: Vec<Region>,
    /// Units of a region.
    pub units: u32,
}

/// How worn regions are.
#[derive(Clone, Debug, PartialEq)]
pub struct Worn {
    /// Region by region, since it was new.
    pub counts: Vec<u32>,
    /// What is counted: "erases", "writes of the most written line".
    pub what: &'static str,
    /// How many the part is rated for.
    pub rated: u64,
}

impl RegionMap {
    /// Of an array of flash, with what its blocks hold.
    pub(super) fn of_flash(name: &'static str, array: &ArrayInsides<'_>, regions: Vec<Region>) -> RegionMap {
        let units = array.geometry.units_per_block();
        RegionMap {
            name,
            regions: "blocks",
            parts: "dies",
            part_count: array.geometry.dies(),
            held: Some(Held { regions, units }),
            wear: Some(Worn {
                counts: array.cells.erase_counts().to_vec(),
                what: "erases",
                rated: array.cells.config.endurance.cycles as u64,
            }),
        }
    }

    /// Of memories that are alike; `None` if their wear is not counted.
    pub(super) fn of_memories<'a, S: Store + 'a>(
        name: &'static str,
        memories: impl Iterator<Item = &'a Pram<S>> + Clone,
    ) -> Option<RegionMap> {
        let part_count = memories.clone().count();
        let rated = memories.clone().next()?.pcm().config().wear?.endurance;
        let most = (MEMORY_REGIONS_MAX / part_count).max(1);
        let worst = |lines: &[u32]| lines.iter().copied().max().unwrap_or(0);
        let counts = memories.flat_map(|memory| {
            let lines = memory.pcm().wear();
            lines.chunks(lines.len().div_ceil(most).max(1)).map(worst)
        });
        Some(RegionMap {
            name,
            regions: "regions",
            parts: "memories",
            part_count: part_count as u32,
            held: None,
            wear: Some(Worn {
                counts: counts.collect(),
                what: "writes of the most written line",
                rated: rated as u64,
            }),
        })
    }

    /// How many regions there are.
    pub fn len(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |held| held.regions.len());
        self.wear.as_ref().map_or(held, |wear| wear.counts.len())
    }

    /// True if there are no regions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Live units of all regions, if they are counted.
    pub fn live(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.regions.iter().map(|region| region.live as u64).sum())
    }

    /// True if regions have this use.
    pub fn uses(&self, used: Use) -> bool {
        self.held.as_ref().is_some_and(|held| held.regions.iter().any(|region| region.used == used))
    }
}

/// The maps of a device, or why it has none.
pub type Maps = Result<Vec<RegionMap>, &'static str>;

/// How full the write buffer of a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// How much of it waits to be written.
    pub used: u32,
    /// How much it has room for.
    pub room: u32,
    /// Of what: "units", "pages", "lines".
    pub what: &'static str,
}
