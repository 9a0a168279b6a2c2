//! Wear levelling and retirement.
//!
//! Dynamic: among erased blocks, host data takes the least worn and relocated (colder) data the most worn.
//! Static: cold data is moved from the least worn blocks to the most worn ones, in a stream of its own. There it stays, while
//! the blocks that it leaves are written again. Among relocated data, part of which is hot, every block would in time hold
//! data of both kinds, and the cleaner would move the cold data again with each block. Retirement: a block whose program or
//! erase failed is emptied and never used again.

use super::PageMap;
use super::array::{Array, Queued};
use super::clean::MoveCause;
use super::frontier::{NO_BLOCK, NO_SLOT, Placed, Staged, Unit};
use super::spare::{Kind, Spare};
use crate::ControllerError;
use crate::cleaning::CleaningPolicy;
use crate::table::BlockState;
use crate::wear::{self, Levelling, Take};
use nvlab_medium::Store;
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_units::{BlockId, Die, Ppa, Time};

impl<S: Store> PageMap<S> {
    /// Takes an erased block of a die.
    pub(super) fn take_free(&mut self, die: Die, take: Take) -> Result<BlockId, ControllerError> {
        let free = &mut self.dies[die.index()].free;
        let taken = wear::take_free(free, self.config.wear.dynamic, take, |block| self.array.worn(block));
        taken.ok_or_else(|| self.end_of_life(die))
    }

    /// Which erased block a stream takes. Behind a cache of blocks in SLC mode, what is relocated is the data that the host wrote last,
    /// and wears blocks more than the host does.
    pub(super) fn take_for(&self, stream: u32) -> Take {
        let is_levelled = stream >= self.config.streams.count();
        if self.writers.is_host(stream) || self.cache.is_some() && !is_levelled {
            Take::LeastWorn
        } else if is_levelled {
            Take::MostWorn
        } else {
            self.config.wear.take_moved()
        }
    }

    /// Begins to move the cold data of the least worn block of a die if the most worn erased one, which it will take, was
    /// erased more than the threshold times more often.
    pub(super) fn level_wear(&mut self, die: Die) {
        let Some(threshold) = self.config.wear.static_threshold else { return };
        if self.dies[die.index()].erases < wear::LOOK_EVERY {
            return;
        }
        let erases = |block: BlockId| self.array.worn(block);
        let worn = self.most_erased(die).unwrap_or(0);
        let lagging = wear::lagging(self.cold(die), worn, threshold, erases);
        // Its data must fit in the erased space. With one stream, and whenever relocated data has just opened a block,
        // a die has fewer erased blocks than its reserve; what is moved beyond that is gained back (see `Die::debt`).
        let fits = lagging.is_none_or(|block| {
            let live = self.table.live(block);
            !self.is_short_for(die, live, MoveCause::Wear)
                && (self.fills(die, live) || self.dead(die) >= self.geometry.units_per_block())
        });
        if !fits {
            return;
        }
        self.dies[die.index()].erases = 0;
        let Some(block) = lagging else { return };
        self.stats.wear_moves += self.array.members_per_block() as u64;
        self.begin(block, MoveCause::Wear);
    }

    /// True if so many units fill the block for cold data of a die, so that it does not stay open.
    fn fills(&self, die: Die, live: u32) -> bool {
        let frontier = &self.writers[self.moved_to(die, MoveCause::Wear)];
        let begun = if frontier.block == NO_BLOCK { 0 } else { frontier.next };
        begun + live == self.geometry.units_per_block()
    }

    /// Units of the full blocks of a die that are not live: the most that cleaning can gain.
    fn dead(&self, die: Die) -> u32 {
        let units = self.geometry.units_per_block();
        self.table.closed(die).map(|block| units - self.table.kept(block)).sum()
    }

    /// The state of static wear levelling; `None` without it.
    pub fn levelling(&self) -> Option<Levelling> {
        let threshold = self.config.wear.static_threshold?;
        let erases = |block: BlockId| self.array.worn(block);
        let lead = |die: Die| Some(self.most_erased(die)?.saturating_sub(self.cold(die).map(erases).min()?));
        let cold: usize = self.geometry.all_dies().map(|die| self.cold(die).count()).sum();
        Some(Levelling {
            threshold,
            lead: self.geometry.all_dies().filter_map(lead).max().unwrap_or(0),
            cold: cold as f64 / self.geometry.blocks() as f64,
        })
    }

    /// How often the most worn erased block of a die was erased.
    fn most_erased(&self, die: Die) -> Option<u32> {
        self.dies[die.index()].free.iter().map(|&block| self.array.worn(block)).max()
    }

    fn cold(&self, die: Die) -> impl Iterator<Item = BlockId> {
        wear::cold(&self.table, die, self.numbers.sequence, self.config.logical_units)
    }

    /// Cleans until every die has its reserve again: retirement uses erased blocks and returns none. A die
    /// that cannot is at its end of life, and the next write to it gets the error.
    #[cold]
    pub(super) fn replenish(&mut self, at: Time) {
        self.retired = false;
        for die in self.geometry.all_dies() {
            for _ in 0..self.geometry.blocks_per_die {
                let short = self.erased_blocks(die) < self.config.free_blocks_min;
                if !short || self.clean(at, die).is_err() {
                    break;
                }
            }
        }
    }

    /// Notes that `count` members of a block were marked bad.
    pub(super) fn note_bad(&mut self, block: BlockId, count: u32) {
        if count == 0 {
            return;
        }
        self.retired = true;
        self.stats.retired_blocks += count as u64;
        let left = self.array.capacity(block);
        if left == 0 {
            self.table.set_state(block, BlockState::Bad);
        } else {
            self.table.set_capacity(block, left);
        }
    }

    /// Retires a block after a failed program. Of a superblock, which no longer holds live units, only the failed
    /// member is retired; the others are erased.
    pub(super) fn retire(&mut self, at: Time, block: BlockId, page: u32) {
        if self.array.capacity(block) <= self.array.nand().geometry().units_per_block() {
            self.remove_from_cache(block);
        }
        self.array.mark_bad(block, page);
        self.note_bad(block, 1);
        if self.table.state(block) != BlockState::Bad {
            self.erase(at, block);
        }
    }

    /// Handles a failed program of the staged page: its units are written elsewhere on the die, then everything else
    /// in the block is moved, and the block is retired. If no erased block is left, the units revert to the versions
    /// they replaced, which are still there, and the device is at its end of life.
    #[cold]
    pub(super) fn program_failed(&mut self, at: Time, index: u32) -> Result<Queued, ControllerError> {
        self.checkpoint.forget_staged();
        if let Some(demand) = &mut self.demand {
            demand.turn.forget_staged();
        }
        let die = self.writers.die_of(index);
        let frontier = &mut self.writers[index];
        let block = BlockId(std::mem::replace(&mut frontier.block, NO_BLOCK));
        let staged: Vec<Staged> = frontier.staged.drain(..).collect();
        let (data, spare) = (std::mem::take(&mut frontier.data), std::mem::take(&mut frontier.spare));
        let page = frontier.programmed;
        let first = self.geometry.first_unit(block) + page * self.geometry.units_per_page;
        self.offer(block);
        let bytes = if S::KEEPS { self.geometry.unit_bytes as usize } else { 0 };
        // Opening a block may erase the one with a version that is replaced.
        let life = |array: &Array<S>, staged: &Staged| {
            (staged.replaces != Ppa::NONE).then(|| array.dead(staged.replaces))
        };
        let replaced: Vec<_> = staged.iter().map(|staged| life(&self.array, staged)).collect();
        let (mut lane, mut refused) = (self.array.lane_of(first), None);
        for (i, staged) in staged.iter().enumerate() {
            let failed = first + i as u32;
            if self.map.get(staged.lpa) != Some(failed) {
                // Padding, or overwritten since: not needed, so its slot is free.
                self.free_slot(staged.slot);
                continue;
            }
            if refused.is_none() && self.writers[index].block == NO_BLOCK {
                refused = self.open(at, die, index).err();
            }
            if refused.is_some() {
                self.revert(failed, *staged);
                continue;
            }
            let (mut sequence, mut damaged) = (0, false);
            if S::KEEPS {
                let spare = Spare::of_known(&spare[i * SPARE_BYTES..][..SPARE_BYTES]);
                (sequence, damaged) = (spare.sequence, spare.damaged);
            }
            let data = &data[i * bytes..(i + 1) * bytes];
            let Staged { lpa, slot, .. } = *staged;
            let unit = Unit { kind: Kind::Data, lpa, damaged, sequence, slot, data };
            let is_there = life(&self.array, staged) == replaced[i];
            let replaces = if is_there { staged.replaces } else { Ppa::NONE };
            let Placed { block, address, fills_page } = self.place(index, unit, replaces);
            self.map.point(lpa, failed, address);
            self.note_change(lpa);
            self.table.gain(block);
            self.lose(failed);
            self.stats.retire_units += 1;
            if fills_page {
                lane = self.program_pages(at, index, data, true)?.lane;
            }
        }
        if let Some(error) = refused {
            return Err(error);
        }
        if self.writers[index].block != NO_BLOCK && !self.page_is_full(index) {
            lane = self.pad(at, index, true)?.lane;
        }
        self.relocate(at, block, MoveCause::Retire)?;
        self.retire(at, block, page);
        Ok(self.array.last_on(lane))
    }

    fn free_slot(&mut self, slot: u64) {
        if slot != NO_SLOT {
            self.buffer.queued(slot, Queued::default());
            self.buffer.held_queued(slot, Queued::default());
        }
    }

    /// Reverts a unit whose program failed and that cannot be written elsewhere: the version it replaced is current
    /// again, if it is still there.
    fn revert(&mut self, failed: Ppa, staged: Staged) {
        let Staged { lpa, slot, replaces } = staged;
        self.free_slot(slot);
        self.lose(failed);
        self.note_change(lpa);
        let is_there = replaces != Ppa::NONE && self.map.owner(replaces) == lpa && {
            let state = self.table.state(self.block_of(replaces));
            matches!(state, BlockState::Open | BlockState::Closed | BlockState::Cleaning)
        };
        if !is_there {
            self.map.unmap(lpa);
            self.stats.lost_units += 1;
            return;
        }
        self.map.point(lpa, failed, replaces);
        // A closed block gains a live unit: remove it from the policy and add it again.
        let block = self.block_of(replaces);
        let closed = self.table.state(block) == BlockState::Closed;
        if closed {
            self.policy.taken(&self.table, block);
        }
        self.table.gain(block);
        if closed {
            self.policy.closed(&self.table, block);
        }
    }
}
