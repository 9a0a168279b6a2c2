//! The erased blocks of each die, and how many of them empty zones will take.
//!
//! Invariant: a die has as many erased blocks as the empty zones of its group will take, or its group has no empty zone
//! that could take fewer.

use crate::ControllerError;
use crate::wear::{self, Take};
use nvlab_medium::flash::Nand;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Ticket, Time};

#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub free: Vec<Vec<u32>>,
    /// Blocks of each die of a group that its empty zones will take.
    pub claimed: Vec<u32>,
    dynamic: bool,
    /// Blocks to be marked bad when the last work of their dies is done; those that were.
    retiring: Vec<(BlockId, Ticket)>,
    pub retired: u64,
}

impl Pool {
    /// Without any block.
    pub fn new(dies: u32, groups: u32, dynamic: bool) -> Pool {
        Pool {
            free: vec![Vec::new(); dies as usize],
            claimed: vec![0; groups as usize],
            dynamic,
            retiring: Vec::new(),
            retired: 0,
        }
    }

    /// Lists the blocks of a factory-new array.
    pub fn fill<S: Store>(&mut self, nand: &Nand<S>) {
        for block in (0..nand.geometry().blocks()).map(BlockId) {
            if !nand.cells().is_bad(block) {
                self.free[nand.die_of(block).index()].push(block.0);
            }
        }
        self.free.iter_mut().for_each(|free| wear::order_new(free, self.dynamic));
    }

    /// True if a die cannot give its group what that claims.
    pub fn is_short(&self, group: u32, die: Die) -> bool {
        self.free[die.index()].len() < self.claimed[group as usize] as usize
    }

    /// Takes the erased block of a die that is worn least.
    pub fn take<S: Store>(&mut self, nand: &Nand<S>, die: Die) -> Result<u32, ControllerError> {
        let worn = |block| nand.cells().worn(BlockId(block));
        let taken = wear::take_free(&mut self.free[die.index()], self.dynamic, Take::LeastWorn, worn);
        taken.ok_or_else(|| {
            let geometry = nand.geometry();
            let bad = geometry.blocks_of(die).filter(|&block| nand.cells().is_bad(block)).count();
            ControllerError::EndOfLife { die, bad: bad as u32, blocks: geometry.blocks_per_die }
        })
    }

    /// The die with the most erased blocks.
    pub fn roomiest(&self) -> Die {
        let dies = (0..self.free.len() as u32).rev().map(Die);
        dies.max_by_key(|die| self.free[die.index()].len()).unwrap_or_default()
    }

    /// Erases a block that is not needed any more, not before `at`, unless it is erased; returns when it is done. A block
    /// whose erase fails is retired.
    pub fn release<S: Store>(&mut self, nand: &mut Nand<S>, at: Time, block: u32) -> Time {
        let (id, die) = (BlockId(block), nand.die_of(BlockId(block)));
        if nand.pages_written(id) == 0 {
            self.free[die.index()].push(block);
            return at;
        }
        match nand.erase(at, id) {
            Ok(_) => self.free[die.index()].push(block),
            Err(MediumError::EraseFailed(_)) => self.will_be_bad(nand, id),
            Err(other) => panic!("block {block} broke a rule of the medium: {other}"),
        }
        let last = nand.last(die);
        nand.finish(die, last, at)
    }

    /// Retires a block one of whose programs failed: it is erased, so that nothing of it is found again, and not used again.
    /// Returns when it is erased.
    pub fn retire<S: Store>(&mut self, nand: &mut Nand<S>, at: Time, block: u32) -> Time {
        let (id, die) = (BlockId(block), nand.die_of(BlockId(block)));
        match nand.erase(at, id) {
            Ok(_) | Err(MediumError::EraseFailed(_)) => self.will_be_bad(nand, id),
            Err(other) => panic!("block {block} broke a rule of the medium: {other}"),
        }
        let last = nand.last(die);
        nand.finish(die, last, at)
    }

    /// A block is marked bad once its erase is done: until then a power cut brings back what it holds, and that must be erased
    /// again.
    fn will_be_bad<S: Store>(&mut self, nand: &mut Nand<S>, block: BlockId) {
        let last = nand.last(nand.die_of(block));
        self.retiring.push((block, last));
        if !S::KEEPS {
            self.mark_bad(nand, Time::MAX);
        }
    }

    /// True if the block waits to be marked bad.
    pub fn is_retiring(&self, block: u32) -> bool {
        self.retiring.iter().any(|(retiring, _)| retiring.0 == block)
    }

    /// Marks the blocks whose last erase is done for sure.
    pub fn mark_bad<S: Store>(&mut self, nand: &mut Nand<S>, sure: Time) {
        let done = |&mut (block, ticket): &mut (BlockId, Ticket)| {
            let is_done = sure == Time::MAX || nand.is_done(nand.die_of(block), ticket, sure);
            if is_done {
                nand.mark_bad(block);
            }
            is_done
        };
        self.retired += self.retiring.extract_if(.., done).count() as u64;
    }
}
