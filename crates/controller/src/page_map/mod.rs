//! A page map: any logical unit to any physical unit, written out of place, cleaned by copying.
//!
//! It does not model the firmware of one vendor. Features of drives beyond this (RAID inside the drive) belong in
//! another controller.
//!
//! Invariants
//! 1. A physical unit is live iff the map points to it; what is written together is in `map`.
//! 2. `table.live(block)` is the number of live units in the block.
//! 3. A block is erased only after every copy that replaces its live units, and (without a protected buffer)
//!    every newer version of its dead units, is programmed, or queued before the erase on the same die.
//! 4. Sequence numbers increase with every host write; a relocated unit keeps its own. The newest readable copy
//!    of a unit is the one with the highest number.
//! 5. At least `free_blocks_min` blocks of a die stay erased whenever host data opens one; with superblocks one or two
//!    fewer, and one where nothing can be cleaned.
//! 6. The erased space of a die is enough for the rest of the cleaning in progress (see `clean`).
//!
//! | file | what |
//! |---|---|
//! | [`config`] | its configuration |
//! | [`stats`] | its statistics |
//! | `map`, `bit_set` | the map itself; a set of units |
//! | `array` | blocks or superblocks: how blocks of the map correspond to blocks of the medium |
//! | `writers`, `frontier` | the open blocks; their pages |
//! | `spread` | which die the host's next page goes to |
//! | `read`, `write` | host reads and writes |
//! | `clean`, `erase`, `wear` | relocation; erasing emptied blocks; wear levelling and retirement |
//! | `numbers` | sequence numbers and stamps |
//! | `buffer` | the write buffer: what a write waits for, what survives a cut |
//! | `absorb` | overwrites of what is still in it |
//! | [`cache`] | blocks in SLC mode in front of the others |
//! | `dead` | which payload no power cut can bring back |
//! | `coarse` | its steady state from that of a coarse twin |
//! | `kept` | a controller in a file |
//! | `payload` | a controller that was used without payload, given a store |
//! | `checkpoint`, `pieces`, `pieces_found` | checkpoints, written in pieces; the form of a piece; the map from them |
//! | `demand`, `residency` | a map that is not all in memory; which of its pages are |
//! | `map_log`, `directory`, `directory_found` | its pages on flash; where they are; the map from them |
//! | `trim`, [`recover`] | the journal of trims; recovery from both |

mod absorb;
mod array;
mod bit_set;
mod buffer;
pub mod cache;
mod checkpoint;
mod clean;
mod coarse;
pub mod config;
mod dead;
mod demand;
mod directory;
mod directory_found;
mod erase;
mod frontier;
mod kept;
mod map;
mod map_log;
mod numbers;
mod payload;
mod pieces;
mod pieces_found;
mod read;
pub mod recover;
mod residency;
mod spread;
pub mod stats;
mod trim;
mod wear;
mod write;
mod writers;

pub use crate::cleaning::Cleaning;
pub use crate::wear::{Levelling, WearLevelling};
pub use cache::{CacheFull, CacheTakes, SlcCache};
pub use config::{Allocation, DemandMap, PageMapConfig, Streams, WriteBuffer};
pub use recover::PageMapMedia;
pub use stats::{MapStats, PageMapStats};
pub use trim::trims_pending_max;

use crate::cleaning::{CleaningPolicy, Policy};
use crate::spare;
use crate::table::{BlockState, BlockTable};
use crate::{Background, Controller, ControllerError, Powered, RecoveryReport, Region, Use};
use array::Array;
use buffer::Buffer;
use cache::Cache;
use demand::Demand;
use frontier::NO_BLOCK;
use map::Map;
use numbers::Numbers;
use nvlab_medium::flash::Nand;
use nvlab_medium::{MediumError, PowerCut, Store};
use nvlab_units::{BlockId, Die, Extent, Geometry, Layout, Lpa, Ppa, Served, Ticket, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use writers::Writers;

/// A page-mapped controller over a NAND array.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageMap<S: Store = ()> {
    config: PageMapConfig,
    geometry: Geometry,
    layout: Layout,
    array: Array<S>,
    map: Map,
    table: BlockTable,
    policy: Policy,
    dies: Vec<DieState>,
    writers: Writers,
    buffer: Buffer,
    cache: Option<Cache>,
    /// The state of a map that is not all in memory.
    demand: Option<Box<Demand>>,
    /// A block was retired since the reserve of erased blocks was last checked.
    retired: bool,
    acknowledged: write::Acknowledged,
    numbers: Numbers,
    checkpoint: checkpoint::State,
    journal: trim::Journal,
    cleaner: clean::Cleaner,
    /// The contents of an unmapped unit.
    zeros: Vec<u8>,
    stats: PageMapStats,
}

/// The state of a die.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct DieState {
    free: Vec<BlockId>,
    /// Erases since wear was last checked.
    erases: u32,
    /// The block being emptied, and the host units written since its last step.
    cleaning: Option<clean::Relocation>,
    owed: u32,
    /// Units the host was allowed to write while blocks were moved to level wear, beyond the space gained: the next
    /// cleanings recover them, or the reserve of erased blocks would shrink with every move.
    debt: u32,
    /// Superblocks without live units, to be erased when every lane has reached its ticket.
    emptied: VecDeque<(BlockId, Vec<Ticket>)>,
}

impl<S: Store> PageMap<S> {
    /// A controller over a factory-new array, or why this configuration cannot work.
    pub fn new(config: PageMapConfig, nand: Nand<S>) -> Result<PageMap<S>, String> {
        let mut map = PageMap::empty(config, nand)?;
        for block in 0..map.geometry.blocks() {
            let block = BlockId(block);
            if map.array.capacity(block) == 0 {
                map.table.set_state(block, BlockState::Bad);
            } else {
                map.dies[map.geometry.die_of(block).index()].free.push(block);
            }
        }
        let dynamic = map.config.wear.dynamic;
        map.dies.iter_mut().for_each(|die| crate::wear::order_new(&mut die.free, dynamic));
        if map.array.members_per_block() > 1 {
            map.fill_pool();
        }
        map.fill_log(Time::ZERO).map_err(|error| error.to_string())?;
        Ok(map)
    }

    /// A controller whose block table is not yet filled.
    fn empty(config: PageMapConfig, nand: Nand<S>) -> Result<PageMap<S>, String> {
        let geometry = config.allocation.geometry(nand.geometry());
        config.check(nand.config())?;
        let array = Array::new(nand, config.allocation);
        let (dies, blocks) = (geometry.dies(), geometry.blocks_per_die);
        let units_per_block = geometry.units_per_block();
        let mut table = BlockTable::new(dies, blocks, units_per_block, geometry.units_per_page);
        for block in (0..geometry.blocks()).map(BlockId) {
            let capacity = array.capacity(block);
            if capacity > 0 && capacity < units_per_block {
                table.set_capacity(block, capacity);
            }
        }
        Ok(PageMap {
            policy: Policy::new(config.cleaning, &table, dies, config.seed),
            layout: Layout::new(&geometry),
            map: Map::new(config.logical_units, geometry.units()),
            dies: vec![DieState::default(); dies as usize],
            writers: Writers::new::<S>(&config, &geometry),
            buffer: Buffer::new(config.buffer, array.lanes()),
            cache: None,
            demand: Demand::new(&config, &geometry),
            retired: false,
            acknowledged: write::Acknowledged::default(),
            numbers: Numbers::new(),
            checkpoint: checkpoint::State::new(&config, &geometry),
            journal: trim::Journal::new(),
            cleaner: clean::Cleaner::new(array.members_per_block(), geometry.units_per_block()),
            zeros: vec![0; geometry.unit_bytes as usize * S::SHOWS as usize],
            stats: PageMapStats::default(),
            table,
            geometry,
            array,
            config,
        })
    }

    /// What the controller has done so far.
    pub fn stats(&self) -> &PageMapStats {
        &self.stats
    }
    /// Resets the statistics, also those of the medium; wear stays.
    pub fn reset_stats(&mut self) {
        self.stats = PageMapStats::default();
        self.array.nand_mut().reset_stats();
        self.note_cached_units();
    }
    /// The medium.
    pub fn nand(&self) -> &Nand<S> {
        self.array.nand()
    }
    /// The medium, for [`PowerCut`].
    pub fn nand_mut(&mut self) -> &mut Nand<S> {
        self.array.nand_mut()
    }
    /// Its configuration.
    pub fn config(&self) -> &PageMapConfig {
        &self.config
    }
    /// The blocks.
    pub fn table(&self) -> &BlockTable {
        &self.table
    }
    /// Units in the write buffer, and how many it has room for; `None` without a buffer.
    pub fn buffered(&mut self, at: Time) -> Option<(u32, u32)> {
        let array = &mut self.array;
        self.buffer
            .config()
            .map(|buffer| (self.buffer.fill(|queued| array.is_done(queued, at)), buffer.units))
    }
    /// The blocks of the medium as shown on the live page. The live units of a superblock are counted for the whole
    /// of it and divided among its good members.
    pub fn regions(&self) -> Vec<Region> {
        let mut regions =
            vec![Region { live: 0, used: Use::Retired }; self.nand().geometry().blocks() as usize];
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let of_block = self.table.region(block);
            let mut holding: Vec<BlockId> = self.array.good(block).collect();
            if holding.is_empty() && of_block.live > 0 {
                holding = self.array.members(block).collect();
            }
            let (mut left, mut members) = (of_block.live, holding.len() as u32);
            for member in holding {
                let live = left.div_ceil(members);
                regions[member.0 as usize] = Region { live, ..of_block };
                (left, members) = (left - live, members - 1);
            }
        }
        regions
    }
    /// The sequence number of the host's next write or trim. Every unit written takes one, a trim takes one.
    pub fn sequence(&self) -> u64 {
        self.numbers.sequence
    }
    /// Bytes of memory the controller's tables take in this program.
    pub fn memory_bytes(&self) -> u64 {
        let demand = self.demand.as_ref().map_or(0, |demand| demand.memory_bytes());
        let trimmed = self.journal.trimmed.dead.memory_bytes() + self.nand().superseded_bytes();
        self.map.memory_bytes() + self.table.memory_bytes() + demand + trimmed
    }

    /// The erased space of a die, in whole blocks.
    #[inline]
    fn erased_blocks(&self, die: Die) -> u32 {
        let free = &self.dies[die.index()].free;
        if self.table.is_uniform() {
            return free.len() as u32;
        }
        let units: u64 = free.iter().map(|&block| self.table.capacity(block) as u64).sum();
        (units / self.geometry.units_per_block() as u64) as u32
    }

    /// Erased blocks of a die that the host must leave to the cleaner. With superblocks there is no other die to use
    /// while one is cleaned, and waiting for a whole one would take long: two of the reserve are lent to the host while
    /// the cleaner keeps pace.
    fn left_to_cleaner(&self) -> u32 {
        let reserve = self.config.free_blocks_min;
        if self.array.members_per_block() > 1 { reserve.saturating_sub(2).max(1) } else { reserve }
    }

    #[inline]
    fn block_of(&self, unit: Ppa) -> BlockId {
        self.layout.block_of(unit)
    }

    /// A physical unit, which the map does not point to any more, is dead.
    #[inline(always)]
    fn lose(&mut self, unit: Ppa) {
        let block = self.block_of(unit);
        if self.table.lose(block) {
            self.policy.lost(&self.table, block);
        }
    }

    /// A full block may be cleaned from now on.
    fn offer(&mut self, block: BlockId) {
        self.table.set_state(block, BlockState::Closed);
        self.policy.closed(&self.table, block);
    }

    /// Checks every invariant; for tests.
    pub fn check(&self) {
        let mut live = vec![0u32; self.geometry.blocks() as usize];
        self.map.check().for_each(|unit| live[self.block_of(unit).0 as usize] += 1);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let state = self.table.state(block);
            if state != BlockState::Map {
                assert_eq!(self.table.live(block), live[block.0 as usize], "{block:?} {state:?}");
            }
            let die = self.geometry.die_of(block).index();
            let free = self.dies[die].free.contains(&block);
            assert_eq!(free, state == BlockState::Free, "{block:?} is {state:?}");
            let open = self.writers.all().iter().any(|frontier| frontier.block == block.0);
            assert_eq!(open, state == BlockState::Open, "{block:?} is {state:?}");
            let in_log = self.demand.as_ref().is_some_and(|demand| demand.log.pool.contains(&block));
            let erased = state == BlockState::Free || self.checkpoint.keeps(block) || in_log;
            assert!(!erased || self.array.is_erased(block), "{block:?} is not erased");
        }
        assert!(
            self.writers
                .all()
                .iter()
                .all(|f| f.block == NO_BLOCK || f.next < self.geometry.units_per_block())
        );
        self.check_log();
    }
}

impl<S: Store> Controller for PageMap<S> {
    const KEEPS: bool = S::KEEPS;

    #[inline]
    fn prefetch(&self, lpa: Lpa) {
        self.map.prefetch(lpa);
    }

    #[inline]
    fn prefetch_writes(&self, lpas: impl Iterator<Item = Lpa>) {
        let mut sum = 0;
        for lpa in lpas {
            let old = self.map.get(lpa).unwrap_or(Ppa::NONE);
            if old != Ppa::NONE {
                sum += self.map.is_live(old) as u32 + self.table.kept(self.block_of(old));
            }
        }
        std::hint::black_box(sum);
    }

    fn capacity_units(&self) -> u32 {
        self.config.logical_units
    }
    fn unit_bytes(&self) -> u32 {
        self.geometry.unit_bytes
    }

    #[inline(always)]
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        let start = at + self.config.overhead;
        self.fold_when_idle(start);
        let end = if self.demand.is_some() {
            self.read_on_demand(start, extent, into)?
        } else if extent.count == 1 && !S::KEEPS {
            self.read_one(start, extent)?
        } else {
            self.read_extent(start, extent, into)?
        };
        self.stats.host_read_units += extent.count as u64;
        Ok(Served { start, end })
    }

    fn view(&self, extent: Extent) -> Option<&[u8]> {
        if !S::SHOWS || ControllerError::check_extent(extent, self.config.logical_units).is_err() {
            return None;
        }
        let unit = self.map.find(extent.start);
        if unit == Ppa::NONE {
            return Some(&self.zeros);
        }
        let run = self.run_from(extent.start, unit, extent.count);
        match self.array.nand().view(self.array.place(unit), run) {
            Err(MediumError::Erased(_)) => self.staged(unit).ok(),
            found => found.ok(),
        }
    }

    #[inline(always)]
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let start = at + self.config.overhead;
        self.fold_when_idle(start);
        let end = self.write_extent(start, extent, data)?;
        self.stats.host_write_units += extent.count as u64;
        Ok(Served { start, end })
    }

    fn is_mapped(&self, lpa: Lpa) -> bool {
        self.map.find(lpa) != Ppa::NONE
    }

    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let start = at + self.config.overhead;
        if self.config.trim {
            self.trim_extent(start, extent)?;
        }
        Ok(Served { start, end: start })
    }

    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = at + self.config.overhead;
        self.stats.flushes += 1;
        let end = if self.buffer.is_protected() { start } else { self.drain(start)? };
        Ok(Served { start, end })
    }
}

impl<S: Store> PageMap<S> {
    /// Programs the contents of the write buffer, protected or not, and promises the end of all programs.
    pub fn drain(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.pad_all(at)?;
        self.record_all_trims(at)?;
        Ok(self.array.finish_programs(at))
    }
}

impl<S: Store> Background for PageMap<S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        Ok(self.array.idle_at(at))
    }
    fn settle(&mut self, upto: Time) {
        self.buffer.settle(upto);
        if S::KEEPS && !self.journal.trimmed.dead.is_empty() && self.buffer.is_protected() {
            self.trims_recorded(u64::MAX, array::Queued::default());
        }
        self.array.nand_mut().settle(upto);
        if S::KEEPS {
            self.forget_needless(upto);
        }
    }
}

impl<S: Store> Powered for PageMap<S> {
    fn power_cycle(self, at: Time) -> Result<(PageMap<S>, RecoveryReport), String> {
        let (config, cache) = (self.config.clone(), self.cache());
        PageMap::recover(config, cache, self.power_cut(at), at)
    }
    /// Programs the contents of the write buffer, protected or not.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let end = self.drain(at)?;
        self.idle_at(end)
    }
    /// With a journal of trims, which checkpoints need.
    fn trims_last(&self) -> bool {
        self.config.trim && self.checkpoint.is_on()
    }
}
