//! The configuration of the separator: plain data, filled from a design.

use super::SECTOR;
use super::slots::{SlotLayout, Update};
use nvlab_units::{Extent, Span};

/// A separator of file-system metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct FsmsConfig {
    /// Sectors that always count as metadata. Without payload they are the only ones: nothing can be learnt.
    pub regions: Vec<Extent>,
    /// Bytes of PRAM, after the part the controller behind uses; `None`: all the rest.
    pub pram_bytes: Option<u64>,
    /// How a sector in PRAM is overwritten.
    pub update: Update,
    /// Records of the journal, used round-robin, so that none wears faster than what it protects. At least 1.
    pub journal_records: u32,
    /// "Logical delete" (system 003, backup slide): clusters whose FAT entries became free are trimmed at the next
    /// flush.
    pub logical_delete: bool,
    /// Time the driver itself takes for a request.
    pub overhead: Span,
}

impl FsmsConfig {
    /// The part of a PRAM of `pram_bytes` that this uses, as (offset, bytes), if the controller behind uses `taken`
    /// bytes and has `units` of `unit_bytes`; or why it cannot work.
    pub fn check(
        &self,
        (units, unit_bytes): (u32, u32),
        pram_bytes: u64,
        taken: u64,
    ) -> Result<(u64, u64), String> {
        if !unit_bytes.is_multiple_of(SECTOR as u32) {
            return Err(format!(
                "the device below has units of {unit_bytes} B: they must be whole sectors of {SECTOR} B"
            ));
        }
        let sectors = units as u64 * (unit_bytes / SECTOR as u32) as u64;
        if sectors >= u32::MAX as u64 {
            return Err(format!(
                "the device below has {sectors} sectors; fewer than {} can be numbered",
                u32::MAX
            ));
        }
        if let Some(region) = self.regions.iter().find(|region| region.end() > sectors) {
            return Err(format!(
                "metadata sectors {} to {} are configured, but the device ends at {sectors}",
                region.start,
                region.end()
            ));
        }
        if self.journal_records == 0 {
            return Err("the journal needs at least 1 record".into());
        }
        // Aligned to a sector, so that it shares no wear line of the part with the controller behind.
        let offset = taken.next_multiple_of(SECTOR as u64);
        let left = pram_bytes.saturating_sub(offset);
        let bytes = self.pram_bytes.unwrap_or(left);
        if bytes > left {
            return Err(format!("{bytes} B of PRAM are configured, but {left} B are free"));
        }
        match SlotLayout::new((offset, bytes), self.journal_records).slots {
            0 => Err(format!(
                "a PRAM of {bytes} B has no room for a sector next to a journal of {} records",
                self.journal_records
            )),
            _ => Ok((offset, bytes)),
        }
    }
}
