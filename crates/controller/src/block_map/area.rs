//! A NAND array and its erased blocks: taken least worn first, returned by an erase, retired when they fail.

use super::stats::{ByCause, Cause};
use crate::ControllerError;
use crate::wear::{self, Take};
use nvlab_medium::flash::Nand;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Geometry, Layout, Ppa, Ticket, Time};

#[derive(Clone, Debug)]
pub(super) struct Area<S: Store> {
    pub nand: Nand<S>,
    pub geometry: Geometry,
    pub layout: Layout,
    /// Blocks of each die that are erased, or whose erase is queued (later work of the die follows it).
    pub free: Vec<Vec<u32>>,
    dynamic: bool,
}

impl<S: Store> Area<S> {
    /// An area whose erased blocks are not yet filled in.
    pub fn empty(nand: Nand<S>, dynamic: bool) -> Area<S> {
        let geometry = *nand.geometry();
        let dies = geometry.dies() as usize;
        let layout = Layout::new(&geometry);
        Area { nand, geometry, layout, free: vec![Vec::new(); dies], dynamic }
    }

    /// Lists every good block as erased: the array is factory-new.
    pub fn fresh(&mut self) {
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if !self.nand.cells().is_bad(block) {
                self.free[self.geometry.die_of(block).index()].push(block.0);
            }
        }
        self.free.iter_mut().for_each(|free| wear::order_new(free, self.dynamic));
    }

    #[inline]
    pub fn die_of(&self, block: u32) -> Die {
        self.layout.die_of(BlockId(block))
    }
    #[inline]
    pub fn block_of(&self, page: u32) -> u32 {
        self.layout.block_of(Ppa(page)).0
    }
    #[inline]
    pub fn first_page(&self, block: u32) -> u32 {
        block * self.geometry.pages_per_block
    }
    pub fn free_blocks(&self, die: Die) -> u32 {
        self.free[die.index()].len() as u32
    }
    #[inline]
    pub fn is_bad(&self, block: u32) -> bool {
        self.nand.cells().is_bad(BlockId(block))
    }

    /// Takes an erased block of a die.
    pub fn take(&mut self, die: Die) -> Result<u32, ControllerError> {
        let cells = self.nand.cells();
        let worn = |block| cells.worn(BlockId(block));
        let taken = wear::take_free(&mut self.free[die.index()], self.dynamic, Take::LeastWorn, worn);
        taken.ok_or_else(|| self.end_of_life(die))
    }

    /// The most worn erased block of a die and how worn it is.
    pub fn most_worn_free(&self, die: Die) -> Option<(u32, u32)> {
        let worn = |&block: &u32| (block, self.nand.cells().worn(BlockId(block)));
        self.free[die.index()].iter().map(worn).max_by_key(|&(_, worn)| worn)
    }

    /// Takes this erased block of a die.
    pub fn take_this(&mut self, die: Die, block: u32) {
        let free = &mut self.free[die.index()];
        let index = free.iter().position(|&free| free == block);
        free.swap_remove(index.unwrap_or_else(|| panic!("block {block} of die {die} is not erased")));
    }

    pub fn end_of_life(&self, die: Die) -> ControllerError {
        let bad =
            self.geometry.blocks_of(die).filter(|&block| self.nand.cells().is_bad(block)).count() as u32;
        ControllerError::EndOfLife { die, bad, blocks: self.geometry.blocks_per_die }
    }

    /// Erases a block that is no longer needed, not before `at`. Returns true if the erase failed and the block is now
    /// bad.
    pub fn release(&mut self, at: Time, block: u32, counts: &mut ByCause, cause: Cause) -> bool {
        if self.is_bad(block) {
            return false;
        }
        let die = self.die_of(block);
        counts.at(cause).erases += 1;
        match self.nand.erase(at, BlockId(block)) {
            Ok(_) => {
                self.free[die.index()].push(block);
                false
            }
            Err(MediumError::EraseFailed(block)) => {
                self.nand.mark_bad(block);
                true
            }
            Err(other) => panic!("block {block} broke a rule of the medium: {other}"),
        }
    }

    /// Promises the end of everything queued on a die and returns it.
    pub fn finish(&mut self, die: Die, at: Time) -> Time {
        let last: Ticket = self.nand.last(die);
        self.nand.finish(die, last, at)
    }
}
