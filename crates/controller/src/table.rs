//! The blocks of an array as a cleaner sees them: live units, state and age of each.

use crate::region::{Region, Use};
use nvlab_units::geometry::Divider;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockState {
    /// Erased.
    Free,
    /// Being filled.
    Open,
    /// Full; may be cleaned.
    Closed,
    /// Being cleaned.
    Cleaning,
    /// Holds a checkpoint of the map; not cleaned.
    Map,
    /// Retired.
    Bad,
}

/// The blocks of an array, die by die.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockTable {
    /// Per block: units that cleaning it would not gain ([`BlockTable::kept`]).
    kept: Vec<u32>,
    state: Vec<BlockState>,
    birth: Vec<u64>,
    /// Units each block can hold, if they differ (a superblock with a bad member); empty if all are equal.
    capacity: Vec<u32>,
    /// Per die: units that are not live, except those of blocks that hold no host data (bad, or the map's). Not counted
    /// on a single die, where there is nothing to compare with.
    spare: Vec<i64>,
    spare_of_all: i64,
    blocks_per_die: u32,
    by_die: Divider,
    units_per_block: u32,
    gain_min: u32,
}

impl BlockTable {
    /// A table of free blocks. Cleaning a block is worthwhile only if it gains `gain_min` units: a page, because
    /// the last page of the moved units may be partly filled.
    pub fn new(dies: u32, blocks_per_die: u32, units_per_block: u32, gain_min: u32) -> BlockTable {
        let blocks = (dies * blocks_per_die) as usize;
        BlockTable {
            kept: vec![0; blocks],
            state: vec![BlockState::Free; blocks],
            birth: vec![0; blocks],
            capacity: Vec::new(),
            spare_of_all: blocks as i64 * units_per_block as i64,
            spare: vec![blocks_per_die as i64 * units_per_block as i64; dies as usize],
            blocks_per_die,
            by_die: Divider::new(blocks_per_die),
            units_per_block,
            gain_min,
        }
    }
    /// Live units of a block.
    #[inline]
    pub fn live(&self, block: BlockId) -> u32 {
        self.kept(block) - (self.units_per_block - self.capacity(block))
    }
    /// Units that cleaning the block does not gain: the live ones, and those lost to bad members.
    #[inline]
    pub fn kept(&self, block: BlockId) -> u32 {
        self.kept[block.0 as usize]
    }
    /// Units of the block became live.
    #[inline]
    pub fn gain_many(&mut self, block: BlockId, units: u32) {
        self.kept[block.0 as usize] += units;
        self.change_spare(block, -(units as i64));
    }
    /// A unit of the block became live.
    #[inline]
    pub fn gain(&mut self, block: BlockId) {
        self.gain_many(block, 1);
    }
    /// Units of a block that is not closed died.
    pub fn lose_many(&mut self, block: BlockId, units: u32) {
        self.kept[block.0 as usize] -= units;
        self.change_spare(block, units as i64);
    }
    /// A unit of the block died. Returns true if the block is closed, so that the policy must be notified.
    #[inline]
    pub fn lose(&mut self, block: BlockId) -> bool {
        self.kept[block.0 as usize] -= 1;
        self.change_spare(block, 1);
        self.state[block.0 as usize] == BlockState::Closed
    }
    /// What the block is used for.
    #[inline]
    pub fn state(&self, block: BlockId) -> BlockState {
        self.state[block.0 as usize]
    }
    /// Changes what the block is used for.
    pub fn set_state(&mut self, block: BlockId, state: BlockState) {
        let before = std::mem::replace(&mut self.state[block.0 as usize], state);
        let held = |state| if holds_data(state) { self.capacity(block) as i64 } else { 0 };
        let units = held(state) - held(before);
        self.change_spare(block, units);
    }
    /// True if all blocks have the same capacity.
    #[inline]
    pub fn is_uniform(&self) -> bool {
        self.capacity.is_empty()
    }
    /// Units the block can hold.
    #[inline]
    pub fn capacity(&self, block: BlockId) -> u32 {
        self.capacity.get(block.0 as usize).copied().unwrap_or(self.units_per_block)
    }
    /// Sets the units a block, which no policy may choose now, can hold from now on: a part of it is bad.
    pub fn set_capacity(&mut self, block: BlockId, units: u32) {
        if self.capacity.is_empty() {
            self.capacity = vec![self.units_per_block; self.kept.len()];
        }
        let before = std::mem::replace(&mut self.capacity[block.0 as usize], units);
        self.kept[block.0 as usize] += before - units;
        if holds_data(self.state(block)) {
            self.change_spare(block, units as i64 - before as i64);
        }
    }
    /// When the youngest data of the block was written, as the number of host units written before.
    #[inline]
    pub fn birth(&self, block: BlockId) -> u64 {
        self.birth[block.0 as usize]
    }
    /// Sets when the block's youngest data was written.
    pub fn set_birth(&mut self, block: BlockId, birth: u64) {
        self.birth[block.0 as usize] = birth;
    }
    /// True if cleaning the block gains enough.
    #[inline]
    pub fn gains(&self, block: BlockId) -> bool {
        self.kept(block) + self.gain_min <= self.units_per_block
    }
    /// The block as shown on the live page.
    pub fn region(&self, block: BlockId) -> Region {
        let used = match self.state(block) {
            BlockState::Free => Use::Erased,
            BlockState::Open | BlockState::Closed => Use::Data,
            BlockState::Cleaning => Use::Emptying,
            BlockState::Map => Use::Map,
            BlockState::Bad => Use::Retired,
        };
        Region { live: self.live(block), used }
    }
    /// Units of one block without bad members.
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block
    }
    /// Blocks of one die.
    pub fn blocks_per_die(&self) -> u32 {
        self.blocks_per_die
    }
    /// The die of a block.
    #[inline]
    pub fn die_of(&self, block: BlockId) -> Die {
        Die(self.by_die.divide(block.0))
    }
    /// The blocks of a die.
    pub fn die_blocks(&self, die: Die) -> impl Iterator<Item = BlockId> + use<> {
        (die.0 * self.blocks_per_die..(die.0 + 1) * self.blocks_per_die).map(BlockId)
    }
    /// The closed blocks of a die.
    pub fn closed(&self, die: Die) -> impl Iterator<Item = BlockId> {
        self.die_blocks(die).filter(|&block| self.state(block) == BlockState::Closed)
    }
    /// Per die, if there are several: units that are not live, erased or dead. The space its cleaner has to work with.
    #[inline]
    pub fn spare(&self) -> &[i64] {
        &self.spare
    }
    /// The sum of [`BlockTable::spare`] over all dies.
    #[inline]
    pub fn spare_of_all(&self) -> i64 {
        self.spare_of_all
    }
    #[inline]
    fn change_spare(&mut self, block: BlockId, units: i64) {
        if self.spare.len() > 1 {
            self.spare[self.by_die.divide(block.0) as usize] += units;
            self.spare_of_all += units;
        }
    }
    /// Blocks of a die in a state.
    pub fn count(&self, die: Die, state: BlockState) -> u32 {
        self.die_blocks(die).filter(|&block| self.state(block) == state).count() as u32
    }
    /// Bytes of memory this table takes.
    pub fn memory_bytes(&self) -> u64 {
        self.kept.len() as u64 * (4 + 1 + 8) + self.capacity.len() as u64 * 4
    }
}

fn holds_data(state: BlockState) -> bool {
    !matches!(state, BlockState::Map | BlockState::Bad)
}
