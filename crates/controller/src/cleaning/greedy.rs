//! Greedy: the block with the fewest live units; among equals, the one that has had so few the longest.
//!
//! One list of blocks per count of live units: when a unit dies, its block moves one list down; the victim is the
//! first block of the lowest non-empty list. Both are O(1). The few segments of an eNVy pool are all examined instead
//! (section 4.2): lists would cost time at every store.

use super::CleaningPolicy;
use super::list::Lists;
use crate::table::BlockTable;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greedy {
    lists: Lists,
    lowest: Vec<u32>,
    /// Lists of one die: one for each count of live units from 0 to all.
    stride: u32,
}

impl Greedy {
    /// Over the blocks of a table.
    pub fn new(table: &BlockTable, dies: u32) -> Greedy {
        let stride = table.units_per_block() + 1;
        let blocks = (dies * table.blocks_per_die()) as usize;
        let lists = Lists::new(blocks, dies as usize * stride as usize);
        Greedy { lists, lowest: vec![stride; dies as usize], stride }
    }

    #[inline]
    fn list(&self, die: Die, live: u32) -> usize {
        (die.0 * self.stride + live) as usize
    }
}

impl CleaningPolicy for Greedy {
    fn closed(&mut self, table: &BlockTable, block: BlockId) {
        let (die, live) = (table.die_of(block), table.kept(block));
        self.lists.push(self.list(die, live), block);
        self.lowest[die.index()] = self.lowest[die.index()].min(live);
    }

    #[inline]
    fn lost(&mut self, table: &BlockTable, block: BlockId) {
        let (die, live) = (table.die_of(block), table.kept(block));
        self.lists.unlink(self.list(die, live + 1), block);
        self.lists.push(self.list(die, live), block);
        let lowest = &mut self.lowest[die.index()];
        *lowest = (*lowest).min(live);
    }

    fn taken(&mut self, table: &BlockTable, block: BlockId) {
        let die = table.die_of(block);
        self.lists.unlink(self.list(die, table.kept(block)), block);
    }

    fn choose(&mut self, table: &BlockTable, die: Die, _now: u64) -> Option<BlockId> {
        while self.lowest[die.index()] < self.stride {
            let live = self.lowest[die.index()];
            if let Some(block) = self.lists.first(self.list(die, live)) {
                return Some(block).filter(|&block| table.gains(block));
            }
            self.lowest[die.index()] += 1;
        }
        None
    }
}
