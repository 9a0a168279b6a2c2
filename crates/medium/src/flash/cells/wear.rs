//! Wear of blocks: erase counts at full density and in SLC mode.

use super::{BlockId, Cells};

impl Cells {
    /// Erases of a block that ended a use in SLC mode.
    pub(in crate::flash) fn slc_erase_count(&self, block: BlockId) -> u32 {
        self.slc_erases.get(block.0 as usize).copied().unwrap_or(0)
    }
    /// Sets the erase counts to those of an earlier run.
    pub(in crate::flash) fn set_erase_counts(&mut self, erases: &[u32]) {
        self.erases.copy_from_slice(erases);
    }
    /// Sets [`Cells::slc_erase_count`] to that of an earlier run.
    pub(in crate::flash) fn set_slc_erase_count(&mut self, block: BlockId, erases: u32) {
        self.slc_erases[block.0 as usize] = erases;
    }
    /// Sets the erase count of a block, e.g. to age it.
    pub(in crate::flash) fn set_erase_count(&mut self, block: BlockId, erases: u32) {
        self.erases[block.0 as usize] = erases;
    }
    /// The erases of a block as wear levelling counts them: whole ones of [`Cells::worn_by`].
    pub fn worn(&self, block: BlockId) -> u32 {
        if self.slc.is_none() { self.erase_count(block) } else { self.worn_by(block) as u32 }
    }
    /// Equivalent full-density erases of a block: SLC erases count by the share of the block's life that they take.
    pub fn worn_by(&self, block: BlockId) -> f64 {
        let all = self.erases[block.0 as usize];
        let Some(mode) = &self.slc else { return all as f64 };
        let slc = self.slc_erases[block.0 as usize];
        let share = self.config.endurance.cycles.max(1) as f64 / mode.cycles.max(1) as f64;
        (all - slc) as f64 + slc as f64 * share
    }
    pub(super) fn wear_ratio(&self, block: BlockId) -> f64 {
        self.worn_by(block) / self.config.endurance.cycles.max(1) as f64
    }
}
