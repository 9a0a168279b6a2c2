//! FIFO: the block that was filled first (eNVy section 4.4; the least recently written of LFS).
//!
//! A block whose cleaning would gain nothing is skipped.

use super::CleaningPolicy;
use super::list::Lists;
use crate::table::BlockTable;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fifo {
    lists: Lists,
}

impl Fifo {
    /// Over the blocks of a table.
    pub fn new(table: &BlockTable, dies: u32) -> Fifo {
        Fifo { lists: Lists::new((dies * table.blocks_per_die()) as usize, dies as usize) }
    }
}

impl CleaningPolicy for Fifo {
    fn closed(&mut self, table: &BlockTable, block: BlockId) {
        self.lists.push(table.die_of(block).index(), block);
    }
    fn taken(&mut self, table: &BlockTable, block: BlockId) {
        self.lists.unlink(table.die_of(block).index(), block);
    }
    fn choose(&mut self, table: &BlockTable, die: Die, _now: u64) -> Option<BlockId> {
        self.lists.iter(die.index()).find(|&block| table.gains(block))
    }
}
