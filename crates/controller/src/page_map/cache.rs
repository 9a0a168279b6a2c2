//! A cache of blocks in SLC mode, in front of blocks with several bits per cell.
//!
//! Host data fills blocks in SLC mode while the die has room for them; otherwise it is written directly, with
//! all bits per cell. Relocated data is always written with all bits: cleaning a block of the cache *folds* it, and
//! since it is at most a third or a quarter full, the cleaner prefers it. When the host has sent no request for
//! a while, blocks are folded in the order they were filled, in the idle time, so that the cache is empty when
//! the host returns.
//!
//! The cache is dynamic: it uses ordinary blocks of the array, and its size depends on how many are erased.
//! It always gets `blocks_min` of them, however full the device is.

use super::PageMap;
use super::clean::MoveCause;
use crate::table::BlockState;
use crate::{Background, ControllerError};
use nvlab_medium::Store;
use nvlab_medium::flash::Nand;
use nvlab_units::{BlockId, Die, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A cache of blocks in SLC mode. Blocks are counted on each die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlcCache {
    /// Host data goes to the cache while it has fewer blocks than this, even if erased blocks are scarce.
    pub blocks_min: u32,
    /// The most blocks the cache may have.
    pub blocks_max: u32,
    /// Erased blocks beyond the cleaner's reserve that the cache leaves alone when it grows above `blocks_min`.
    pub blocks_spared: u32,
    /// Blocks are folded after this long without a request; `None`: only by cleaning, or when the cache is full.
    pub fold_after: Option<Span>,
    /// What it stores.
    pub takes: CacheTakes,
    /// What happens to the host's data when it is full.
    pub when_full: CacheFull,
}

/// What a cache stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheTakes {
    /// All host data: the write cache of current drives.
    All,
    /// The hot stream ([`super::Streams::HotColdRelocated`]): hot data in SLC, the rest with all bits; data not
    /// overwritten by the time its block is emptied has cooled and migrates (reference 9 of Nam, Na and Lee,
    /// APWeb 2010; there the SLC blocks are a separate chip).
    Hot,
}

/// What happens to the host's data when a cache is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheFull {
    /// It is written directly, with all bits.
    WriteDirectly,
    /// The block filled first is folded to make room.
    FoldOldest,
}

/// A controller's state of its cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cache {
    config: SlcCache,
    /// Units of a page and of a block in SLC mode, in the block's numbering (including slots without a unit).
    pub slots: u32,
    pub end: u32,
    /// Blocks in SLC mode on each die, and those that may still be folded, in the order they were filled.
    blocks: Vec<u32>,
    filled: Vec<VecDeque<BlockId>>,
    /// When the host's last request arrived.
    last_request: Time,
    /// Live units that it held when the statistics were reset.
    held_before: u64,
}

impl Cache {
    /// Takes over the blocks of another one that is as large.
    pub fn take_blocks(&mut self, like: &Cache) {
        self.blocks.clone_from(&like.blocks);
        self.filled.clone_from(&like.filled);
    }
}

impl<S: Store> PageMap<S> {
    /// Adds a cache of blocks in SLC mode to the controller, or returns why that is impossible. After a recovery
    /// it adopts the blocks it finds in SLC mode.
    pub fn with_cache(mut self, config: SlcCache) -> Result<PageMap<S>, String> {
        let Some(mode) = self.array.nand().cells().slc_mode().copied() else {
            return Err("a cache of SLC blocks needs a part that supports SLC mode".into());
        };
        if self.config.streams.count() < 2 {
            return Err("with a cache of SLC blocks relocated data needs a stream of its own".into());
        }
        if config.takes == CacheTakes::Hot && self.config.streams.count() < 3 {
            return Err("a cache of hot data needs hot and cold streams".into());
        }
        if config.blocks_min > config.blocks_max || config.blocks_max > self.geometry.blocks_per_die {
            return Err(format!(
                "a cache of {} to {} blocks per die does not fit: a die has {}",
                config.blocks_min, config.blocks_max, self.geometry.blocks_per_die
            ));
        }
        let dies = self.geometry.dies() as usize;
        let mut cache = Cache {
            config,
            slots: mode.units_per_page,
            end: mode.pages_per_block * self.array.members_per_block() * self.geometry.units_per_page,
            blocks: vec![0; dies],
            filled: vec![VecDeque::new(); dies],
            last_request: Time::ZERO,
            held_before: 0,
        };
        let mut found: Vec<BlockId> = (0..self.geometry.blocks()).map(BlockId).collect();
        found.retain(|&block| self.array.is_slc(block) && self.table.state(block) != BlockState::Bad);
        found.sort_by_key(|&block| self.table.birth(block));
        for block in found {
            let die = self.geometry.die_of(block).index();
            // Counts every block that will be erased, also one that a damaged record puts into this mode.
            cache.blocks[die] += 1;
            if self.table.state(block) == BlockState::Closed {
                cache.filled[die].push_back(block);
            }
        }
        self.cache = Some(cache);
        Ok(self)
    }

    /// The configuration of its cache, if it has one.
    pub fn cache(&self) -> Option<SlcCache> {
        self.cache.as_ref().map(|cache| cache.config)
    }

    /// Blocks of the array in SLC mode.
    pub fn cache_blocks(&self) -> u32 {
        let members = self.array.members_per_block();
        self.cache.as_ref().map_or(0, |cache| cache.blocks.iter().sum::<u32>() * members)
    }

    /// Live units in its cache.
    fn cached_units(&self) -> u64 {
        let blocks = (0..self.geometry.blocks()).map(BlockId).filter(|&block| self.array.is_slc(block));
        blocks.map(|block| self.table.live(block) as u64).sum()
    }

    /// Live units in its cache beyond those that it held when the statistics were reset. Unless the host overwrites them
    /// first, they will be programmed once more, with all bits.
    pub fn unfolded_units(&self) -> u64 {
        let held_before = self.cache.as_ref().map(|cache| cache.held_before);
        held_before.map_or(0, |before| self.cached_units().saturating_sub(before))
    }

    /// The statistics are reset.
    pub(super) fn note_cached_units(&mut self) {
        if self.cache.is_some() {
            let held = self.cached_units();
            self.cache.iter_mut().for_each(|cache| cache.held_before = held);
        }
    }

    /// Makes room in the cache for a block about to be opened for a host stream on a die.
    pub(super) fn make_room_in_cache(&mut self, at: Time, die: Die, stream: u32) {
        let Some(cache) = &self.cache else { return };
        let takes = cache.config.takes == CacheTakes::All || stream == 0;
        let full = cache.blocks[die.index()] >= cache.config.blocks_max;
        if takes && full && cache.config.when_full == CacheFull::FoldOldest {
            self.fold_oldest(die, at);
        }
    }

    /// Whether the block being opened for a host stream on a die, already taken from the free ones, joins the
    /// cache.
    pub(super) fn joins_cache(&mut self, die: Die, stream: u32) -> bool {
        let erased = self.dies[die.index()].free.len() as u32;
        let Some(cache) = &mut self.cache else { return false };
        if cache.config.takes == CacheTakes::Hot && stream > 0 {
            return false;
        }
        let blocks = &mut cache.blocks[die.index()];
        let spared = self.config.free_blocks_min + cache.config.blocks_spared;
        let joins =
            *blocks < cache.config.blocks_min || *blocks < cache.config.blocks_max && erased >= spared;
        *blocks += joins as u32;
        joins
    }

    /// Notes that a block, if it is in the cache, is full.
    pub(super) fn cache_filled(&mut self, block: BlockId) {
        let die = self.geometry.die_of(block).index();
        if self.array.is_slc(block)
            && let Some(cache) = &mut self.cache
        {
            cache.filled[die].push_back(block);
        }
    }

    /// Removes a block that is about to be erased or retired from the cache, if it is in it.
    pub(super) fn remove_from_cache(&mut self, block: BlockId) {
        let die = self.geometry.die_of(block).index();
        if self.array.is_slc(block)
            && let Some(cache) = &mut self.cache
        {
            cache.blocks[die] -= 1;
            cache.filled[die].retain(|&other| other != block);
        }
    }

    /// Notes a host request at `at`, and folds in the idle time before it.
    #[inline]
    pub(super) fn fold_when_idle(&mut self, at: Time) {
        if self.cache.is_some() {
            self.fold_since_last_request(at);
        }
    }

    /// Separate, so that a device without a cache pays one comparison per request and the caller stays inlined.
    #[inline(never)]
    fn fold_since_last_request(&mut self, at: Time) {
        let Some(cache) = &mut self.cache else { return };
        let last_request = cache.last_request;
        cache.last_request = at.max(last_request);
        if let Some(after) = cache.config.fold_after
            && last_request + after < at
        {
            for die in self.geometry.all_dies() {
                self.fold_die(die, last_request + after, at);
            }
        }
    }

    /// Leaves the device idle from `at` until its cache is folded, as a host that is silent for long does; returns
    /// when that is done. Nothing happens if it does not fold in idle time.
    pub fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        let Some(Cache { last_request, config: SlcCache { fold_after: Some(after), .. }, filled, .. }) =
            &self.cache
        else {
            return Ok(at);
        };
        if filled.iter().all(VecDeque::is_empty) {
            return Ok(at);
        }
        let from = at.max(*last_request + *after);
        for die in self.geometry.all_dies() {
            while self.fold_oldest(die, from) {}
        }
        self.idle_at(from)
    }

    /// Folds blocks of a die that is idle from `from` to `until`; the last one may take longer.
    #[cold]
    fn fold_die(&mut self, die: Die, from: Time, until: Time) {
        if !self.array.is_idle(die, from) {
            return;
        }
        let (before, lanes) = (busy(self.array.nand()), self.array.members_per_block());
        while busy(self.array.nand()) - before < (until - from).ps() as u128 * lanes as u128 {
            if !self.fold_oldest(die, from) {
                return;
            }
        }
    }

    /// Folds the block of a die's cache that was filled first; returns false if that is impossible now.
    fn fold_oldest(&mut self, die: Die, at: Time) -> bool {
        let filled = self.cache.as_ref().map(|cache| &cache.filled[die.index()]);
        let Some(&block) = filled.and_then(|filled| filled.front()) else { return false };
        let being_cleaned = self.table.state(block) != BlockState::Closed;
        // Without an erased block for its live units, it is left to the cleaner.
        if being_cleaned || (self.dies[die.index()].free.len() as u32) < self.config.free_blocks_min {
            return false;
        }
        self.stats.folds += self.array.members_per_block() as u64;
        if self.relocate(at, block, MoveCause::Fold).is_err() {
            // The rest goes back to the cleaner; the next request that needs an erased block gets the error.
            self.offer(block);
            return false;
        }
        self.erase(at, block);
        self.table.state(block) != BlockState::Closed
    }
}

/// Die time spent so far.
fn busy<S: Store>(nand: &Nand<S>) -> u128 {
    let stats = nand.stats();
    stats.read_time.ps() + stats.program_time.ps() + stats.erase_time.ps()
}
