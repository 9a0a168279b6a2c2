//! The blocks of an array as a cleaner sees them: how much is live, what state each is in, how old it is.

use nvlab_units::BlockId;
use nvlab_units::geometry::Divider;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug)]
pub struct BlockTable {
    /// Of each block what cleaning it would not gain ([`BlockTable::kept`]).
    kept: Vec<u32>,
    state: Vec<BlockState>,
    birth: Vec<u64>,
    /// Units each block can hold, where they differ (a superblock with a bad member); empty where all are alike.
    capacity: Vec<u32>,
    /// Of each die: units that hold nothing live, without those of blocks that hold no data of the host's (bad, or the
    /// map's). Not counted if there is nothing to compare it with: on a single die.
    spare: Vec<i64>,
    spare_of_all: i64,
    blocks_per_die: u32,
    by_die: Divider,
    units_per_block: u32,
    gain_min: u32,
}

impl BlockTable {
    /// A table of free blocks. Cleaning a block is worth it only if it gains `gain_min` units: a page, because
    /// what is moved may end in a page that is not full.
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
    /// Units that cleaning the block does not gain: the live ones, and those a bad part of it cannot hold.
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
    /// A unit of the block died. True if the block is closed, so that a policy wants to know.
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
    /// True if every block can hold as much as the others.
    #[inline]
    pub fn is_uniform(&self) -> bool {
        self.capacity.is_empty()
    }
    /// Units the block can hold.
    #[inline]
    pub fn capacity(&self, block: BlockId) -> u32 {
        self.capacity.get(block.0 as usize).copied().unwrap_or(self.units_per_block)
    }
    /// The block, which no policy may choose now, can hold so many units from now on: a part of it is bad.
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
    /// When the youngest data of the block was written, in host units written before.
    #[inline]
    pub fn birth(&self, block: BlockId) -> u64 {
        self.birth[block.0 as usize]
    }
    /// Sets the age of the block's youngest data.
    pub fn set_birth(&mut self, block: BlockId, birth: u64) {
        self.birth[block.0 as usize] = birth;
    }
    /// True if cleaning the block gains enough.
    #[inline]
    pub fn gains(&self, block: BlockId) -> bool {
        self.kept(block) + self.gain_min <= self.units_per_block
    }
    /// Units of one block without a bad part.
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block
    }
    /// Blocks of one die.
    pub fn blocks_per_die(&self) -> u32 {
        self.blocks_per_die
    }
    /// The die of a block.
    #[inline]
    pub fn die_of(&self, block: BlockId) -> u32 {
        self.by_die.divide(block.0)
    }
    /// The blocks of a die.
    pub fn die_blocks(&self, die: u32) -> impl Iterator<Item = BlockId> + use<> {
        (die * self.blocks_per_die..(die + 1) * self.blocks_per_die).map(BlockId)
    }
    /// The closed blocks of a die.
    pub fn closed(&self, die: u32) -> impl Iterator<Item = BlockId> {
        self.die_blocks(die).filter(|&block| self.state(block) == BlockState::Closed)
    }
    /// Of each of several dies: units that hold nothing live, erased or dead. What its cleaner lives on.
    #[inline]
    pub fn spare(&self) -> &[i64] {
        &self.spare
    }
    /// Of all of them.
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
    pub fn count(&self, die: u32, state: BlockState) -> u32 {
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
