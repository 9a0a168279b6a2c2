//! Statistics of the separator. A word is 2 B, a PRAM word of system 003.

/// Counts since creation, or since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsmsStats {
    /// Sectors the host read and wrote.
    pub read_sectors: u64,
    /// See `read_sectors`.
    pub written_sectors: u64,
    /// Of these, those read from and written to PRAM.
    pub pram_read_sectors: u64,
    /// See `pram_read_sectors`.
    pub pram_written_sectors: u64,
    /// Sectors read from the device behind only because the host wrote parts of its units.
    pub merged_sectors: u64,
    /// Metadata sectors that went to the device behind because PRAM was full: a warning.
    pub spilled_sectors: u64,
    /// Sectors moved into PRAM and out of it.
    pub claimed: u64,
    /// See `claimed`.
    pub released: u64,
    /// Words of sectors overwritten in PRAM, and those of them that changed (payload only).
    pub overwritten_words: u64,
    /// See `overwritten_words`.
    pub changed_words: u64,
    /// Clusters recognised as directories, and as freed.
    pub directories_learnt: u64,
    /// See `directories_learnt`.
    pub clusters_freed: u64,
    /// Clusters trimmed because they became free.
    pub clusters_trimmed: u64,
}

impl FsmsStats {
    /// Share of words that change when a metadata sector is overwritten (system 003 slide 12: 0.16); 0 if there was
    /// none.
    pub fn changed_share(&self) -> f64 {
        match self.overwritten_words {
            0 => 0.0,
            words => self.changed_words as f64 / words as f64,
        }
    }
}
