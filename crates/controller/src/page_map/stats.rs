//! Statistics of a page-mapped controller. Units are mapping units; every program is attributed to a cause.

use nvlab_units::Total;
use serde::{Deserialize, Serialize};

/// Counts since creation, or since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageMapStats {
    /// Units the host read, wrote and trimmed.
    pub host_read_units: u64,
    /// See `host_read_units`.
    pub host_write_units: u64,
    /// See `host_read_units`.
    pub host_trim_units: u64,
    /// Of the units read, those that hold no data: never written, or trimmed. No cell was read for them.
    pub unwritten_read_units: u64,
    /// Flushes.
    pub flushes: u64,
    /// Reads served from a page still being filled.
    pub buffer_hits: u64,
    /// Units the host wrote that replaced a version still in the write buffer: programmed once for both.
    pub absorbed_units: u64,
    /// Units moved to clean a block.
    pub clean_units: u64,
    /// Host units written to blocks in SLC mode.
    pub cache_units: u64,
    /// Blocks folded in idle time or to make room in the cache (every member of a superblock counts), and the units
    /// moved for that. (What the cleaner folds counts as cleaning.)
    pub folds: u64,
    /// See `folds`.
    pub fold_units: u64,
    /// Units moved to level wear.
    pub wear_units: u64,
    /// Units that a recovery wrote again because a protected buffer held them.
    pub restored_units: u64,
    /// Units moved out of retired blocks, and host units written again after a failed program.
    pub retire_units: u64,
    /// Units written for checkpoints of the map and the journal of trims.
    pub map_units: u64,
    /// Units of padding in pages programmed before they were full.
    pub padding_units: u64,
    /// Blocks chosen for cleaning (every member of a superblock counts), and the live units they held then.
    pub cleans: u64,
    /// See `cleans`.
    pub clean_live_units: u64,
    /// Blocks moved to level wear (every member of a superblock counts).
    pub wear_moves: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Units lost: their only copy could not be read when it had to be moved. A unit that moves again counts again.
    pub lost_units: u64,
    /// What a map that is read on demand did.
    pub map: MapStats,
    /// Host time spent waiting for room in the write buffer.
    pub buffer_wait: Total,
}

/// Of a map that is read on demand. Its programs are among the units of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapStats {
    /// Translation pages looked up for reads and writes: one for each that a request touches.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// Those that were in memory, and of these those in the host's.
    pub read_hits: u64,
    /// See `read_hits`.
    pub write_hits: u64,
    /// See `read_hits`.
    pub host_hits: u64,
    /// Translation pages read from flash for the host.
    pub loads: u64,
    /// Translation pages read from flash to be rewritten.
    pub rewrite_reads: u64,
    /// Changed translation pages programmed from memory.
    pub write_backs: u64,
    /// Translation pages that were not in memory and were rewritten because units had moved.
    pub rewrites: u64,
    /// Translation pages moved to free blocks of their log.
    pub moved: u64,
    /// Units of directories.
    pub directory_units: u64,
    /// Units of padding in pages of translation pages.
    pub padding_units: u64,
    /// Time that reads waited for the map, and that unbuffered writes did.
    pub read_wait: Total,
    /// See `read_wait`.
    pub write_wait: Total,
}

impl PageMapStats {
    /// Units programmed for every unit the host wrote; 0 if it wrote none.
    pub fn write_amplification(&self) -> f64 {
        let moved = self.clean_units
            + self.fold_units
            + self.wear_units
            + self.retire_units
            + self.map_units
            + self.padding_units;
        match self.host_write_units {
            0 => 0.0,
            host => (self.host_programmed_units() + moved) as f64 / host as f64,
        }
    }
    /// Units programmed because the host wrote them: all it wrote, but those that the write buffer absorbed.
    pub fn host_programmed_units(&self) -> u64 {
        self.host_write_units - self.absorbed_units
    }
    /// Units moved by the cleaner for every unit the host wrote (eNVy's cleaning cost).
    pub fn cleaning_cost(&self) -> f64 {
        match self.host_write_units {
            0 => 0.0,
            host => self.clean_units as f64 / host as f64,
        }
    }
}
