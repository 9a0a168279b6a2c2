//! Which blocks of an array are used with one bit per cell ([`SlcMode`]).

use super::config::SlcMode;
use crate::MediumError;
use nvlab_units::{BlockId, Geometry};
use serde::{Deserialize, Serialize};

/// The mode of every block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Modes {
    /// Whether each block is in SLC mode; empty if the part has no such mode.
    slc: Vec<bool>,
    pages_per_block: u32,
    units_per_page: u32,
}

impl Modes {
    pub fn new(mode: &SlcMode, geometry: &Geometry) -> Modes {
        let fits = (1..=geometry.pages_per_block).contains(&mode.pages_per_block)
            && (1..=geometry.units_per_page).contains(&mode.units_per_page);
        assert!(fits, "blocks of {mode:?} are larger than those of {geometry:?}");
        Modes {
            slc: vec![false; geometry.blocks() as usize],
            pages_per_block: mode.pages_per_block,
            units_per_page: mode.units_per_page,
        }
    }

    #[inline]
    pub fn is_slc(&self, block: BlockId) -> bool {
        self.slc.get(block.0 as usize) == Some(&true)
    }

    pub fn set(&mut self, block: BlockId, slc: bool) {
        if slc || !self.slc.is_empty() {
            self.slc[block.0 as usize] = slc;
        }
    }

    /// Units that one program of the block writes.
    #[inline]
    pub fn units_per_page(&self, block: BlockId, geometry: &Geometry) -> u32 {
        if self.is_slc(block) { self.units_per_page } else { geometry.units_per_page }
    }

    /// Pages of the block.
    pub fn pages_per_block(&self, block: BlockId, geometry: &Geometry) -> u32 {
        if self.is_slc(block) { self.pages_per_block } else { geometry.pages_per_block }
    }

    /// Rejects page numbers that a block in SLC mode does not have.
    #[inline]
    pub fn check_pages(&self, block: BlockId, page: u32, count: u32, next: u32) -> Result<(), MediumError> {
        match page + count > self.pages_per_block {
            true => Err(MediumError::OutOfOrder { block, page, next }),
            false => Ok(()),
        }
    }
}
