//! Statistics of an eNVy controller. Pages are flash pages; every program is attributed to a cause.

use nvlab_units::Total;

/// Counts since creation, or since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnvyStats {
    /// Words the host loaded and stored.
    pub loads: u64,
    /// See `loads`.
    pub stores: u64,
    /// Of the words loaded, those of pages that hold no data: never stored, or trimmed. No cell was read for them.
    pub unwritten_loads: u64,
    /// Stores that found their page in SRAM.
    pub buffer_hits: u64,
    /// Pages copied to SRAM because of a store.
    pub copies_on_write: u64,
    /// Lookups that missed the cache of mappings.
    pub mapping_misses: u64,
    /// Pages trimmed.
    pub trimmed_pages: u64,
    /// Pages flushed from the buffer to flash.
    pub flushed_pages: u64,
    /// Pages the cleaner programmed within a partition.
    pub clean_pages: u64,
    /// Pages the cleaner moved to another partition.
    pub transfer_pages: u64,
    /// Pages programmed for wear swaps.
    pub wear_pages: u64,
    /// Segments cleaned, and the live pages they held then.
    pub cleans: u64,
    /// See `cleans`.
    pub clean_live_pages: u64,
    /// Wear swaps.
    pub wear_swaps: u64,
    /// Segments erased.
    pub erases: u64,
    /// Transactions committed and aborted.
    pub commits: u64,
    /// See `commits`.
    pub aborts: u64,
    /// Host time spent waiting for room in the buffer.
    pub buffer_wait: Total,
    /// Controller time spent on loads.
    pub load_time: Total,
    /// Time spent on stores, without the copies on write.
    pub store_time: Total,
    /// Time spent copying pages to SRAM because of a store.
    pub copy_time: Total,
    /// Queued time of flushes.
    pub flush_time: Total,
    /// Queued time of cleaning.
    pub clean_time: Total,
    /// Queued time of moves between partitions.
    pub transfer_time: Total,
    /// Queued time of wear swaps.
    pub wear_time: Total,
    /// Queued time of erases.
    pub erase_time: Total,
}

impl EnvyStats {
    /// Pages the cleaner programmed per page flushed: the paper's cleaning cost (section 4.1), including moves
    /// between partitions. 0 if nothing was flushed.
    pub fn cleaning_cost(&self) -> f64 {
        self.per_flush(self.clean_pages + self.transfer_pages)
    }

    /// Pages programmed per page flushed.
    pub fn write_amplification(&self) -> f64 {
        self.per_flush(self.flushed_pages + self.clean_pages + self.transfer_pages + self.wear_pages)
    }

    fn per_flush(&self, pages: u64) -> f64 {
        match self.flushed_pages {
            0 => 0.0,
            flushed => pages as f64 / flushed as f64,
        }
    }
}
