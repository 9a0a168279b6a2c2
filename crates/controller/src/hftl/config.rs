//! The configuration of the hybrid controller: plain data, filled from a design.

use crate::cleaning::Cleaning;
use crate::wear::WearLevelling;
use nvlab_medium::flash::FlashConfig;
use nvlab_units::{Geometry, Span};

/// A page map in byte-addressable non-volatile memory over a NAND array.
#[derive(Clone, Debug, PartialEq)]
pub struct HftlConfig {
    /// Pages the host may address; the rest of the array is over-provisioning.
    pub logical_units: u32,
    /// Which block is cleaned next.
    pub cleaning: Cleaning,
    /// Erased blocks of a die at which background cleaning begins; at least 2. The host waits for it only if
    /// fewer are left: those are reserved for relocated data, and to replace blocks that fail.
    pub free_blocks_min: u32,
    /// How wear is evened out.
    pub wear: WearLevelling,
    /// Whether the host's trims are honoured. They are durable because the map is.
    pub trim: bool,
    /// Whether a unit's checksum is verified when the host reads it: on a mismatch it is unreadable. Only if the medium
    /// keeps payload. If false, damaged data is returned as it is.
    pub verify_reads: bool,
    /// Time to look up one map entry (PRAM: one asynchronous and one synchronous word, 90 ns). A look-up is served
    /// between two words being programmed, so it does not queue behind updates accepted for later.
    pub lookup: Span,
    /// Time the controller itself takes for a request, before it accesses the media.
    pub overhead: Span,
    /// Seed of random choices (d-choices).
    pub seed: u64,
}

impl HftlConfig {
    /// Bytes of memory that the map and the block table of an array need.
    pub fn pram_bytes(&self, geometry: &Geometry) -> u64 {
        super::metadata::MetadataLayout::new(self.logical_units, geometry).bytes()
    }

    /// Checks that it can work on an array and a memory of `pram_bytes` for the map; otherwise returns the reason.
    pub fn check(&self, flash: &FlashConfig, pram_bytes: u64) -> Result<(), String> {
        let geometry = &flash.geometry;
        geometry.check()?;
        if geometry.units_per_page != 1 {
            return Err(format!(
                "hftl maps whole pages: a mapping unit must be a page, but a page holds {} units",
                geometry.units_per_page
            ));
        }
        if geometry.pages_per_block > u16::MAX as u32 {
            return Err(format!("the block table counts at most {} pages per block", u16::MAX));
        }
        if self.free_blocks_min < 2 {
            return Err(format!(
                "free_blocks_min is {}: at least 2 blocks of a die must be erased when cleaning starts, one for the \
             host and one for relocated data",
                self.free_blocks_min
            ));
        }
        // With static wear levelling cold data has an open block of its own.
        let open = 2 + self.wear.static_threshold.is_some() as u64;
        let set_apart = (self.free_blocks_min as u64 + open) * geometry.dies() as u64;
        let left = (geometry.blocks() as u64).saturating_sub(set_apart) * geometry.units_per_block() as u64;
        if self.logical_units == 0 || self.logical_units as u64 > left {
            return Err(format!(
                "{} logical pages do not fit: {set_apart} of {} blocks are reserved for cleaning and open blocks, {left} \
                 pages are left",
                self.logical_units,
                geometry.blocks()
            ));
        }
        let needed = self.pram_bytes(geometry);
        if needed > pram_bytes {
            return Err(format!(
                "the map and the block table take {needed} B, but their memory has {pram_bytes} B"
            ));
        }
        Ok(())
    }
}
