//! The configuration of a page-mapped controller: plain data, filled from a design.

use super::pieces::Pieces;
use crate::cleaning::Cleaning;
use crate::wear::WearLevelling;
use nvlab_medium::flash::FlashConfig;
use nvlab_units::{Geometry, Span};
use serde::{Deserialize, Serialize};

/// A page-mapped controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageMapConfig {
    /// Units the host may address; the rest of the array is over-provisioning.
    pub logical_units: u32,
    /// What is opened, filled, cleaned and erased as a whole.
    pub allocation: Allocation,
    /// Which block is cleaned next.
    pub cleaning: Cleaning,
    /// Cleaning begins when a die has no more erased blocks than this; at least 1.
    pub free_blocks_min: u32,
    /// Which data shares a block.
    pub streams: Streams,
    /// How wear is evened out.
    pub wear: WearLevelling,
    /// Whether the host's trims are honoured.
    pub trim: bool,
    /// Whether a unit's checksum is verified when the host reads it: on a mismatch it is unreadable. Only if the medium
    /// keeps payload. If false, damaged data is returned as it is.
    pub verify_reads: bool,
    /// Write buffer; `None`: a write is acknowledged when its page is programmed.
    pub buffer: Option<WriteBuffer>,
    /// Host units in the course of which the whole map is written to flash, piece by piece; `None`: recovery scans the
    /// whole array.
    pub checkpoint_units: Option<u64>,
    /// A map that is read from flash on demand; `None`: all of it is in memory.
    pub demand: Option<DemandMap>,
    /// Time the controller itself takes for a request, before it accesses the medium.
    pub overhead: Span,
    /// Seed of random choices (d-choices).
    pub seed: u64,
}

impl PageMapConfig {
    /// Greedy cleaning, one stream, trims honoured; no buffer, wear levelling, checkpoints or map in flash.
    pub fn plain(logical_units: u32) -> PageMapConfig {
        PageMapConfig {
            logical_units,
            allocation: Allocation::Dynamic,
            cleaning: Cleaning::Greedy,
            free_blocks_min: 2,
            streams: Streams::One,
            wear: WearLevelling { dynamic: false, static_threshold: None },
            trim: true,
            verify_reads: false,
            buffer: None,
            checkpoint_units: None,
            demand: None,
            overhead: Span::ZERO,
            seed: 1,
        }
    }
}

/// A map of which only a part is in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemandMap {
    /// Map entries of a translation page, which is a unit; at most a quarter of its bytes.
    pub entries: u32,
    /// Translation pages that fit on the controller's chip; at least one.
    pub cache_pages: u32,
    /// Translation pages that fit into a buffer in the host's memory, besides.
    pub host_pages: u32,
    /// Time to read from that buffer.
    pub host_read: Span,
}

impl DemandMap {
    /// Translation pages of a device.
    pub fn pages(&self, logical_units: u32) -> u32 {
        logical_units.div_ceil(self.entries)
    }

    /// Blocks of all translation pages and of those that fit in memory, rounded up.
    fn blocks(&self, logical_units: u32, units_per_block: u64) -> (u64, u64) {
        let pages = self.pages(logical_units) as u64;
        let cached = (self.cache_pages as u64 + self.host_pages as u64).min(pages);
        (pages.div_ceil(units_per_block), cached.div_ceil(units_per_block))
    }

    /// Blocks of the log of translation pages: twice what they take, so that half of a block is dead when it is rewritten,
    /// and what turns write of changed ones in between; blocks being filled, and directories.
    pub(super) fn log_blocks(&self, logical_units: u32, geometry: &Geometry) -> u64 {
        let (all, cached) = self.blocks(logical_units, geometry.units_per_block() as u64);
        2 * all + 6 * cached + 2 * geometry.dies() as u64 + 6
    }

    /// Erased pages of the log below which a turn begins.
    pub(super) fn left_at_turn(&self, logical_units: u32, geometry: &Geometry) -> u64 {
        let (all, cached) = self.blocks(logical_units, geometry.units_per_block() as u64);
        (all.div_ceil(2) + 3 * cached + geometry.dies() as u64 + 3) * geometry.pages_per_block as u64
    }

    /// Blocks that a turn should free.
    pub(super) fn freed_by_turn(&self, logical_units: u32, units_per_block: u64) -> u64 {
        let (all, cached) = self.blocks(logical_units, units_per_block);
        all.div_ceil(2) + 2 * cached + 2
    }

    /// Checks that it can work with units of a size.
    fn check(&self, unit_bytes: u32) -> Result<(), String> {
        if self.cache_pages == 0 {
            return Err("the cache of the map is smaller than a translation page: at least one unit".into());
        }
        if self.entries == 0 || self.entries > unit_bytes / 4 {
            return Err(format!(
                "a translation page of {unit_bytes} B holds 1 to {} entries, not {}",
                unit_bytes / 4,
                self.entries
            ));
        }
        Ok(())
    }
}

/// What is opened, filled, cleaned and erased as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allocation {
    /// A block of one die; the host's next page goes to a die with room and a short queue.
    Dynamic,
    /// A superblock: the blocks of the same number on all dies, filled round-robin, a page at a time.
    Superblock,
}

impl Allocation {
    /// The geometry as its blocks are allocated: superblocks are the long blocks of one die.
    pub fn geometry(self, array: &Geometry) -> Geometry {
        match self {
            Allocation::Dynamic => *array,
            Allocation::Superblock => Geometry {
                channels: 1,
                dies_per_channel: 1,
                pages_per_block: array.pages_per_block * array.dies(),
                ..*array
            },
        }
    }
}

/// Which data shares a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Streams {
    /// Host writes and relocated data fill the same block.
    One,
    /// Host writes in one block, relocated data in another.
    HostAndRelocated,
    /// Host writes to recently written units in one block, other host writes in a second, relocated data in
    /// a third.
    HotColdRelocated {
        /// A unit is hot if the youngest data of its block was written less than this many logical capacities of
        /// host writes ago: needs no memory per unit, and is close enough if a block's data was written together.
        hot_within: f64,
    },
}

/// A write buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteBuffer {
    /// Its size in units; at least one page of the array per stream and die.
    pub units: u32,
    /// A battery or capacitor preserves it through a power cut.
    pub protected: bool,
    /// A write to a unit that is still in it, in a page whose program has not begun, replaces that: one program fewer. Only
    /// if it is protected.
    pub absorb: bool,
    /// Time to store one unit in it.
    pub store: Span,
}

impl Streams {
    /// How many there are.
    pub fn count(self) -> u32 {
        match self {
            Streams::One => 1,
            Streams::HostAndRelocated => 2,
            Streams::HotColdRelocated { .. } => 3,
        }
    }
    /// The stream that relocated data goes to: the last of them.
    pub(super) fn relocated(self) -> u32 {
        self.count() - 1
    }
}

impl PageMapConfig {
    /// Blocks of a die that may be filled at the same time: one for each stream, and with static wear levelling one for the cold
    /// data that it moves.
    pub fn open_blocks(&self) -> u32 {
        self.streams.count() + self.wear.static_threshold.is_some() as u32
    }

    /// Checks that it can work on an array; otherwise returns the reason.
    pub fn check(&self, flash: &FlashConfig) -> Result<(), String> {
        flash.geometry.check()?;
        let geometry = &self.allocation.geometry(&flash.geometry);
        if self.allocation == Allocation::Superblock && flash.timing.copy_back {
            return Err(
                "data relocated from a superblock may go to another die: copy-back is not possible".into()
            );
        }
        if self.free_blocks_min == 0 {
            return Err("at least one block of a die must stay erased for cleaning (free_blocks_min)".into());
        }
        if let Some(map) = &self.demand {
            map.check(geometry.unit_bytes)?;
        }
        let set_apart = self.set_apart(&flash.geometry);
        let left = (geometry.blocks() as u64).saturating_sub(set_apart) * geometry.units_per_block() as u64;
        if self.logical_units == 0 || self.logical_units as u64 > left {
            return Err(format!(
                "{} logical units of {} B do not fit: {set_apart} of {} {} are reserved for cleaning, open streams \
                 and checkpoints, {left} units are left; give more spare or more blocks",
                self.logical_units,
                geometry.unit_bytes,
                geometry.blocks(),
                match self.allocation {
                    Allocation::Dynamic => "blocks",
                    Allocation::Superblock => "superblocks",
                }
            ));
        }
        if let Some(buffer) = self.buffer {
            if buffer.absorb && !buffer.protected {
                return Err("a volatile write buffer cannot absorb overwrites".into());
            }
            let needed = self.streams.count() * geometry.dies() * geometry.units_per_page;
            if buffer.units < needed {
                return Err(format!(
                    "the write buffer holds {} units, but the open pages take {needed} ({} streams x {} dies x \
                 {} units per page)",
                    buffer.units,
                    self.streams.count(),
                    geometry.dies(),
                    geometry.units_per_page
                ));
            }
        }
        Ok(())
    }

    /// Blocks of an array, or superblocks, that are not available for host data: the erased reserve, one open block for each
    /// stream, two checkpoints and the journals of trims. Wear levelling opens one more only where there is room for it.
    pub fn set_apart(&self, array: &Geometry) -> u64 {
        let geometry = &self.allocation.geometry(array);
        let of_dies = (self.free_blocks_min + self.streams.count()) as u64 * geometry.dies() as u64;
        of_dies + self.blocks_of_map(geometry)
    }

    /// Of the blocks set apart, those without data at any time: the erased reserve but for the block in which cleaning
    /// begins, half of each open block, and the blocks of the map.
    pub fn empty_blocks(&self, array: &Geometry) -> f64 {
        let geometry = &self.allocation.geometry(array);
        let of_die = (self.free_blocks_min - 1) as f64 + self.streams.count() as f64 / 2.0;
        of_die * geometry.dies() as f64 + self.blocks_of_map(geometry) as f64
    }

    fn blocks_of_map(&self, geometry: &Geometry) -> u64 {
        match (&self.demand, self.checkpoint_units) {
            (Some(map), _) => map.log_blocks(self.logical_units, geometry) + 3,
            (None, Some(_)) => 2 * self.blocks_of_checkpoint(geometry) + 3,
            (None, None) => 0,
        }
    }

    /// How the map, or the directory of its translation pages, is divided, over blocks of `geometry`.
    pub(super) fn pieces(&self, geometry: &Geometry) -> Pieces {
        let open = geometry.dies() * self.open_blocks();
        if let Some(map) = &self.demand {
            return Pieces::whole(map.pages(self.logical_units), open, geometry);
        }
        let every = self.checkpoint_units.unwrap_or(u64::MAX);
        let buffer = self.buffer.map_or(0, |buffer| buffer.units);
        Pieces::new(self.logical_units, open, every, buffer, geometry)
    }

    /// Bytes of memory that a recovery takes beside the tables of the controller, over an array of `geometry`, in this program.
    pub fn recovery_bytes(&self, geometry: &Geometry) -> u64 {
        let geometry = self.allocation.geometry(geometry);
        let pieces = self.pieces(&geometry);
        // A piece as it was read and decoded, and where each of its units is.
        let piece = 2 * pieces.pages as u64 * geometry.page_bytes();
        piece + pieces.pages_of_all() * geometry.units_per_page as u64 * 4 + self.logical_units as u64 / 8
    }

    /// Blocks one checkpoint takes.
    pub(super) fn blocks_of_checkpoint(&self, geometry: &Geometry) -> u64 {
        self.pieces(geometry).pages_of_all().div_ceil(geometry.pages_per_block as u64)
    }
}
