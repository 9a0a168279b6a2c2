//! Statistics of a zoned controller.

use nvlab_units::Total;

/// Counts since creation, or since the last reset of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneStats {
    /// Units the host read and wrote, appends included.
    pub host_read_units: u64,
    /// See `host_read_units`.
    pub host_write_units: u64,
    /// Of the units read, those that hold no data: beyond a write pointer.
    pub unwritten_read_units: u64,
    /// Of the units read, those of a page still being filled.
    pub buffer_hits: u64,
    /// Flushes.
    pub flushes: u64,
    /// Zones reset that held something.
    pub resets: u64,
    /// Zones finished before they were full.
    pub finishes: u64,
    /// Open zones that were closed because another was written.
    pub implicit_closes: u64,
    /// Units programmed without data, to finish zones.
    pub padding_units: u64,
    /// Units programmed to the log of partly filled pages, padding included.
    pub log_units: u64,
    /// Units copied because a block failed, or by a recovery.
    pub retire_units: u64,
    /// Blocks retired.
    pub retired_blocks: u64,
    /// Host time spent waiting for room in the write buffer.
    pub buffer_wait: Total,
}
