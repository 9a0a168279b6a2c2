//! Which pages of an array are programmed, under either rule for their order ([`CellRules`]).
//!
//! In strict order a count per block suffices; in any order there is also a bit per page.

use super::config::CellRules;
use crate::MediumError;
use nvlab_units::bits::words_of;
use nvlab_units::{BlockId, Geometry};
use serde::{Deserialize, Serialize};

/// The pages of every block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Programmed {
    /// One past the highest programmed page of each block.
    #[serde(with = "nvlab_units::plain")]
    written: Vec<u32>,
    /// A bit per page, `words` words per block; empty in strict order.
    #[serde(with = "nvlab_units::plain")]
    bits: Vec<u64>,
    words: usize,
    pages: u32,
}

/// The programmed pages of one block, saved for undo.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pages {
    pub written: u32,
    bits: Vec<u64>,
}

impl Programmed {
    pub fn new(geometry: &Geometry, rules: CellRules) -> Programmed {
        let words = match rules {
            CellRules::NandAnyOrder => geometry.pages_per_block.div_ceil(64) as usize,
            CellRules::Nand | CellRules::Nor => 0,
        };
        let blocks = geometry.blocks() as usize;
        Programmed {
            written: vec![0; blocks],
            bits: vec![0; blocks * words],
            words,
            pages: geometry.pages_per_block,
        }
    }

    #[inline]
    pub fn written(&self, block: BlockId) -> u32 {
        self.written[block.0 as usize]
    }

    /// Programmed pages of a block.
    pub fn count(&self, block: BlockId) -> u32 {
        if self.words == 0 {
            return self.written(block);
        }
        let words = block.0 as usize * self.words..(block.0 as usize + 1) * self.words;
        self.bits[words].iter().map(|word| word.count_ones()).sum()
    }

    /// True if a block whose pages of `units_per_page` are programmed in order holds its unit of this number.
    #[inline(always)]
    pub fn reaches(&self, block: BlockId, unit: u32, units_per_page: u32) -> bool {
        self.written.get(block.0 as usize).is_some_and(|pages| unit < pages * units_per_page)
    }

    /// True if the page is programmed; `None` if the block does not exist.
    #[inline]
    pub fn holds(&self, block: BlockId, page: u32) -> Option<bool> {
        let below = page < *self.written.get(block.0 as usize)?;
        Some(below && (self.words == 0 || self.word(block, page) & bit(page) != 0))
    }

    #[inline]
    fn word(&self, block: BlockId, page: u32) -> u64 {
        self.bits[block.0 as usize * self.words + page as usize / 64]
    }

    /// Marks pages as programmed, if the rules allow it now.
    #[inline]
    pub fn program(&mut self, block: BlockId, page: u32, count: u32) -> Result<(), MediumError> {
        let written = &mut self.written[block.0 as usize];
        let end = page as u64 + count as u64;
        if page == *written && end <= self.pages as u64 && self.words == 0 {
            *written = end as u32;
            return Ok(());
        }
        self.program_out_of_order(block, page, count)
    }

    /// [`Programmed::program`] of pages that are not the next ones, or if any order is allowed.
    #[inline(never)]
    fn program_out_of_order(&mut self, block: BlockId, page: u32, count: u32) -> Result<(), MediumError> {
        let next = self.written[block.0 as usize];
        let fits = page as u64 + count as u64 <= self.pages as u64;
        if self.words == 0 || !fits {
            return Err(MediumError::OutOfOrder { block, page, next });
        }
        if let Some(page) = (page..page + count).find(|&page| self.word(block, page) & bit(page) != 0) {
            return Err(MediumError::Programmed { block, page });
        }
        self.set(block, page, count);
        Ok(())
    }

    /// Marks pages as programmed without checking the rules.
    pub fn set(&mut self, block: BlockId, page: u32, count: u32) {
        let written = &mut self.written[block.0 as usize];
        *written = (*written).max(page + count);
        if self.words > 0 {
            let first = block.0 as usize * self.words;
            for (word, mask) in words_of(page as u64, count as u64) {
                self.bits[first + word] |= mask;
            }
        }
    }

    /// Reverses the newest program of a block, which had not started.
    pub fn unset(&mut self, block: BlockId, page: u32) {
        if self.words > 0 {
            self.bits[block.0 as usize * self.words + page as usize / 64] &= !bit(page);
        }
        let highest =
            (0..page).rev().find(|&page| self.words == 0 || self.word(block, page) & bit(page) != 0);
        let written = &mut self.written[block.0 as usize];
        if *written == page + 1 {
            *written = highest.map_or(0, |page| page + 1);
        }
    }

    /// Marks a block erased. Returns its programmed pages, complete only if `remember`, for [`Programmed::put_back`].
    pub fn take(&mut self, block: BlockId, remember: bool) -> Pages {
        let words = block.0 as usize * self.words..(block.0 as usize + 1) * self.words;
        let bits = if remember { self.bits[words.clone()].to_vec() } else { Vec::new() };
        self.bits[words].fill(0);
        Pages { written: std::mem::take(&mut self.written[block.0 as usize]), bits }
    }

    pub fn put_back(&mut self, block: BlockId, pages: &Pages) {
        self.written[block.0 as usize] = pages.written;
        let first = block.0 as usize * self.words;
        self.bits[first..first + self.words].copy_from_slice(&pages.bits);
    }
}

fn bit(page: u32) -> u64 {
    1 << (page % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_block(rules: CellRules) -> Programmed {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 2,
            pages_per_block: 130,
            units_per_page: 1,
            unit_bytes: 512,
        };
        Programmed::new(&geometry, rules)
    }

    #[test]
    fn any_order_programs_each_page_once() {
        let mut pages = one_block(CellRules::NandAnyOrder);
        let block = BlockId(1);
        pages.set(block, 60, 70);
        assert_eq!(pages.written(block), 130);
        assert_eq!((pages.holds(block, 59), pages.holds(block, 60)), (Some(false), Some(true)));
        assert_eq!((pages.holds(block, 129), pages.holds(BlockId(2), 0)), (Some(true), None));
        assert_eq!((pages.count(block), pages.count(BlockId(0))), (70, 0));
        assert_eq!(pages.clone().program(block, 3, 57), Ok(()));
        assert_eq!(pages.program(block, 3, 58), Err(MediumError::Programmed { block, page: 60 }));
        pages.unset(block, 129);
        assert_eq!((pages.written(block), pages.clone().program(block, 129, 1)), (129, Ok(())));
        assert!(pages.program(block, 129, 2).is_err(), "past the end of the block");
        let held = pages.take(block, true);
        assert_eq!((pages.written(block), pages.holds(block, 70)), (0, Some(false)));
        pages.put_back(block, &held);
        assert_eq!((pages.written(block), pages.holds(block, 70)), (129, Some(true)));
    }

    #[test]
    fn strict_order_is_the_default_rule() {
        let mut pages = one_block(CellRules::Nand);
        pages.set(BlockId(0), 0, 3);
        assert_eq!(
            pages.program(BlockId(0), 5, 1),
            Err(MediumError::OutOfOrder { block: BlockId(0), page: 5, next: 3 })
        );
        pages.unset(BlockId(0), 2);
        assert_eq!((pages.written(BlockId(0)), pages.holds(BlockId(0), 2)), (2, Some(false)));
    }
}
