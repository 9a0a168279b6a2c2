//! Static wear levelling: the least worn data block is swapped with the most worn erased block, so that blocks with
//! cold data take their share.

use super::{BlockMap, Cause, DATA, NOTHING};
use nvlab_medium::Store;
use nvlab_units::{BlockId, Die, Time};

impl<S: Store> BlockMap<S> {
    /// Moves the least worn data block of each die whose erase counts have diverged too far.
    #[inline]
    pub(super) fn level_wear(&mut self, at: Time) {
        let Some(threshold) = self.config.wear.static_threshold else { return };
        // This examines every block, so not too often.
        if self.erased >= (self.areas[DATA].geometry.blocks() / 8).max(16) {
            self.erased = 0;
            for die in self.areas[DATA].geometry.all_dies() {
                self.level_die(at, die, threshold);
            }
        }
    }

    fn level_die(&mut self, at: Time, die: Die, threshold: u32) {
        let dies = self.areas[DATA].geometry.dies();
        let cells = self.areas[DATA].nand.cells();
        // A logical block with its own log block is merged soon anyway.
        let own_log = |lbn: u32| {
            self.fast.sequential.is_some_and(|open| open.lbn == lbn) || self.bast.of(lbn).is_some()
        };
        let settled = (die.0..self.data.len() as u32).step_by(dies as usize).filter(|&lbn| {
            let block = self.data[lbn as usize];
            block != NOTHING && !cells.is_bad(BlockId(block)) && !own_log(lbn)
        });
        let worn = |&lbn: &u32| cells.worn(BlockId(self.data[lbn as usize]));
        let Some(lbn) = settled.min_by_key(worn) else { return };
        let least = worn(&lbn);
        let most = self.areas[DATA].most_worn_free(die);
        if let Some((block, _)) = most.filter(|&(_, most)| most > least.saturating_add(threshold)) {
            self.areas[DATA].take_this(die, block);
            // If the move fails, nothing has moved, and the next request that needs an erased block gets the error.
            if self.merge_into(at, lbn, Some(block), Cause::Wear).is_ok() {
                self.stats.wear_moves += 1;
            }
        }
    }
}
