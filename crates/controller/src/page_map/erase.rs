//! Erasing: when a block without live units may be erased, and what happens to it then.

use super::PageMap;
use super::array::Erased;
use crate::table::BlockState;
use nvlab_medium::Store;
use nvlab_units::{BlockId, Die, Ppa, Time};

impl<S: Store> PageMap<S> {
    /// Erases a block without live units and adds it to the free ones; a block that fails is retired.
    pub(super) fn erase(&mut self, at: Time, block: BlockId) {
        let protected = self.buffer.is_protected();
        let mut not_before = match protected {
            // The copies of its units are programmed before its erase: on the same die by order, elsewhere by time.
            true if self.array.members_per_block() == 1 => at,
            true => self.array.finish_programs(at),
            false => self.program_newer_versions(at, block),
        };
        if self.trims_pending() {
            // A protected buffer keeps the trims that cannot be recorded now.
            self.record_trims(at);
            if !protected && !self.record_trims_at_once(at, self.geometry.die_of(block)) {
                return self.postpone_erase(block);
            }
            not_before = not_before.max(self.array.finish_programs(at));
        }
        self.erase_from(not_before, block);
    }

    /// Postpones the erase of an emptied superblock until its copies are programmed: promising their end now would
    /// delay reads.
    pub(super) fn erase_later(&mut self, block: BlockId) {
        let copies = self.array.last_programs();
        self.dies[self.geometry.die_of(block).index()].emptied.push_back((block, copies));
    }

    /// Erases the superblocks whose copies are programmed by `at`; the first one in any case if `needed`. Returns false
    /// if it erased none.
    pub(super) fn erase_emptied(&mut self, at: Time, die: Die, needed: bool) -> bool {
        let mut erased = false;
        while let Some((block, copies)) = self.dies[die.index()].emptied.front() {
            let (block, done) = (*block, self.array.passed(copies, at));
            if !done && (erased || !needed) {
                break;
            }
            self.dies[die.index()].emptied.pop_front();
            if done && !self.trims_pending() {
                self.erase_from(at, block);
            } else {
                self.erase(at, block);
            }
            erased = true;
        }
        erased
    }

    pub(super) fn erase_from(&mut self, not_before: Time, block: BlockId) {
        let die = self.geometry.die_of(block);
        self.dies[die.index()].erases += 1;
        self.remove_from_cache(block);
        if self.erase_at(not_before, block) {
            self.table.set_state(block, BlockState::Free);
            self.dies[die.index()].free.push(block);
        }
    }

    /// Queues the erase of a block. Returns false if no part of it can be used again.
    pub(super) fn erase_at(&mut self, at: Time, block: BlockId) -> bool {
        if S::KEEPS {
            self.forget_replaced(block);
        }
        let Erased { failed, left } = self.array.erase(at, block);
        self.note_bad(block, failed);
        left > 0
    }

    /// Returns a block without live units that cannot be erased yet to the cleaner.
    #[cold]
    fn postpone_erase(&mut self, block: BlockId) {
        self.offer(block);
    }

    /// The last flushed version of a unit may be dead in the block about to be erased while a newer one is not yet
    /// programmed. Programs the pages in which such units are staged, and returns when all queued programs are
    /// done.
    fn program_newer_versions(&mut self, at: Time, victim: BlockId) -> Time {
        for index in 0..self.writers.all().len() as u32 {
            let staged = &self.writers[index].staged;
            if staged.iter().any(|unit| unit.replaces != Ppa::NONE && self.block_of(unit.replaces) == victim)
            {
                // If the program fails, its units are staged again and nothing is lost with the victim: the next
                // program returns the error.
                let _ = self.pad(at, index, true);
            }
        }
        // Without a buffer every host program was promised when it was queued.
        let one_die = self.array.members_per_block() == 1;
        if self.buffer.config().is_none() && self.geometry.units_per_page == 1 && one_die {
            return at.max(self.acknowledged.all);
        }
        self.array.finish_programs(at)
    }
}
