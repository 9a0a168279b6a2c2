//! Statistics of the hybrid controller. Units are pages; every program is attributed to a cause.

/// Counts since creation, or since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HftlStats {
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
    /// Units moved to clean a block.
    pub clean_units: u64,
    /// Units moved to level wear.
    pub wear_units: u64,
    /// Units moved out of retired blocks, and failed programs.
    pub retire_units: u64,
    /// Blocks chosen for cleaning, and the live units they held then.
    pub cleans: u64,
    /// See `cleans`.
    pub clean_live_units: u64,
    /// Cleanings the host had to wait for.
    pub clean_waits: u64,
    /// Blocks moved to level wear.
    pub wear_moves: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Units lost: their only copy could not be read when it had to be moved. A unit that moves again counts again.
    pub lost_units: u64,
    /// Updates of the metadata in PRAM: of map entries, block table entries and live bits.
    pub map_updates: u64,
    /// See `map_updates`.
    pub block_updates: u64,
    /// See `map_updates`.
    pub live_updates: u64,
}

impl HftlStats {
    /// Units programmed for every unit the host wrote; 0 if it wrote none.
    pub fn write_amplification(&self) -> f64 {
        match self.host_write_units {
            0 => 0.0,
            host => (host + self.clean_units + self.wear_units + self.retire_units) as f64 / host as f64,
        }
    }
}
