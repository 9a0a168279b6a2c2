//! Windowed greedy: the block with the fewest live units among the `window` blocks filled first (Hu et al.,
//! SYSTOR 2009). A window of 1 is FIFO, a window of every block is greedy.

use super::CleaningPolicy;
use super::list::Lists;
use crate::table::BlockTable;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WindowedGreedy {
    lists: Lists,
    window: u32,
}

impl WindowedGreedy {
    /// Over the blocks of a table.
    pub fn new(table: &BlockTable, dies: u32, window: u32) -> WindowedGreedy {
        let lists = Lists::new((dies * table.blocks_per_die()) as usize, dies as usize);
        WindowedGreedy { lists, window }
    }
}

impl CleaningPolicy for WindowedGreedy {
    fn closed(&mut self, table: &BlockTable, block: BlockId) {
        self.lists.push(table.die_of(block).index(), block);
    }
    fn taken(&mut self, table: &BlockTable, block: BlockId) {
        self.lists.unlink(table.die_of(block).index(), block);
    }
    fn choose(&mut self, table: &BlockTable, die: Die, _now: u64) -> Option<BlockId> {
        let list = die.index();
        let window = self.lists.iter(list).take(self.window as usize);
        let emptiest = window.min_by_key(|&block| table.kept(block)).filter(|&block| table.gains(block));
        // A window full of live data gains nothing: continue after it.
        emptiest.or_else(|| self.lists.iter(list).find(|&block| table.gains(block)))
    }
}
