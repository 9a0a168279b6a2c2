//! The zoned controllers the tests go through.

use crate::array::UNIT;
use nvlab_controller::zoned::{ZoneBuffer, ZoneConfig, ZoneMedia};
use nvlab_controller::{RecoveryReport, ZoneMap};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_medium::{MemStore, Store};
use nvlab_units::{Geometry, Rate, Span, Time};

/// Whether there is a write buffer, and whether it survives a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffered {
    No,
    Volatile,
    Protected,
}

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub dies: u32,
    pub zone_dies: u32,
    pub zones: u32,
    pub superblocks: u32,
    pub pages: u32,
    pub units_per_page: u32,
    pub buffer: Buffered,
    pub open_max: Option<u32>,
    pub active_max: Option<u32>,
    /// Blocks of each die beyond what zones need.
    pub spare_blocks: u32,
    pub faults: Faults,
}

impl Setup {
    /// Six zones, each a block of either of two dies, of pages of one unit.
    pub fn small(buffer: Buffered) -> Setup {
        Setup {
            dies: 2,
            zone_dies: 2,
            zones: 6,
            superblocks: 1,
            pages: 4,
            units_per_page: 1,
            buffer,
            open_max: Some(2),
            active_max: Some(4),
            spare_blocks: 3,
            faults: Faults::NONE,
        }
    }

    pub fn geometry(&self) -> Geometry {
        let groups = self.dies / self.zone_dies;
        Geometry {
            channels: self.dies,
            dies_per_channel: 1,
            blocks_per_die: self.zones.div_ceil(groups) * self.superblocks + self.spare_blocks,
            pages_per_block: self.pages,
            units_per_page: self.units_per_page,
            unit_bytes: UNIT as u32,
        }
    }

    pub fn flash(&self) -> FlashConfig {
        let [read, program, erase] = [60, 600, 3000].map(Span::from_us);
        FlashConfig {
            rules: CellRules::Nand,
            geometry: self.geometry(),
            timing: FlashTiming {
                transfer: Rate::from_bytes_per_second(40_000_000),
                ..FlashTiming::plain(read, program, erase)
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults: self.faults,
        }
    }

    /// Units of a zone that can be written.
    pub fn capacity(&self) -> u32 {
        (self.superblocks * self.zone_dies * self.pages - 1) * self.units_per_page
    }

    pub fn config(&self) -> ZoneConfig {
        let pages = 3 + self.active_max.unwrap_or(self.zones);
        let buffer = |protected| ZoneBuffer { pages, protected, store: Span::from_ns(300) };
        ZoneConfig {
            zones: self.zones,
            // A gap after each zone.
            size_units: self.capacity() + 3,
            capacity_units: self.capacity(),
            dies: self.zone_dies,
            open_max: self.open_max,
            active_max: self.active_max,
            buffer: match self.buffer {
                Buffered::No => None,
                Buffered::Volatile => Some(buffer(false)),
                Buffered::Protected => Some(buffer(true)),
            },
            wear_dynamic: true,
            trim: true,
            verify_reads: true,
            overhead: Span::from_us(2),
        }
    }

    /// A device that keeps payload, or none.
    pub fn with<S: Store>(&self, store: impl Fn(u64) -> S) -> ZoneMap<S> {
        let flash = self.flash();
        let bytes = Nand::<S>::store_bytes(&flash.geometry);
        ZoneMap::new(self.config(), Nand::new(flash, store(bytes))).unwrap()
    }
    pub fn device(&self) -> ZoneMap<MemStore> {
        self.with(MemStore::new)
    }

    pub fn recover(&self, media: ZoneMedia<MemStore>, at: Time) -> (ZoneMap<MemStore>, RecoveryReport) {
        ZoneMap::recover(self.config(), media, at).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Every combination worth its time, without faults.
pub fn setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    for buffer in [Buffered::No, Buffered::Volatile, Buffered::Protected] {
        let small = Setup::small(buffer);
        setups.push(small.clone());
        setups.push(Setup { dies: 1, zone_dies: 1, superblocks: 2, pages: 3, ..small.clone() });
        setups.push(Setup {
            dies: 4,
            superblocks: 2,
            zones: 5,
            open_max: None,
            active_max: None,
            ..small.clone()
        });
        if buffer != Buffered::No {
            setups.push(Setup { units_per_page: 3, pages: 6, ..small.clone() });
            setups.push(Setup {
                dies: 3,
                zone_dies: 3,
                units_per_page: 4,
                pages: 6,
                superblocks: 2,
                ..small
            });
        }
    }
    setups
}
