//! Block-mapped controllers: a page is at its own offset in the data block of its logical block; the log decides
//! where an overwritten page goes: nowhere (pure block mapping), BAST or FAST, in the data array or in a separate,
//! faster array (Nam, Na and Lee, APWeb 2010).
//!
//! It is not a page map (any page anywhere); that is [`crate::page_map`]. There is no write buffer: a write is
//! acknowledged when its page is programmed, so acknowledged writes are durable.
//!
//! Invariants
//! 1. `place[page]` says where the newest copy of a logical page is: nowhere, in place, or a page address in a
//!    log block. It is the only record of that; a log page is live iff `place[owner[page]]` is that page.
//! 2. A logical block belongs to one die of the data array, its home. Its data block, merges and sequential or
//!    BAST log block are there too, so that work on it is done in the order it was queued.
//! 3. A data block is erased only after the copies that replace its live pages, on the same die. A shared log
//!    block is erased only when these copies and all host writes acknowledged before are done.
//! 4. A merge changes the map only when all its pages are programmed: if it fails part-way, nothing has changed.
//! 5. Sequence numbers increase with every host write; a copied page keeps its own. The newest readable copy of a
//!    page is the one with the highest number.
//!
//! | file | what |
//! |---|---|
//! | [`config`], [`stats`] | its configuration and statistics |
//! | `area` | an array and its erased blocks |
//! | `write` | host writes: in place, or to the log |
//! | `bast`, `fast` | the two logs |
//! | `merge`, `copied` | switch, partial and full merge: the newest pages into one block; how a page is copied |
//! | `wear`, [`recover`], `check` | static wear levelling; recovery after a power cut; checks of all invariants |

mod area;
mod bast;
mod check;
pub mod config;
mod copied;
mod fast;
mod merge;
pub mod recover;
pub mod stats;
mod wear;
mod write;

pub use config::{BlockMapConfig, BlockWear, Log};
pub use recover::BlockMapMedia;
pub use stats::{BlockMapStats, ByCause, Cause, Operations};

use crate::region::Tally;
use crate::spare::{self, Changes};
use crate::{Background, Controller, ControllerError, Powered, RecoveryReport, Region, Use};
use area::Area;
use bast::Bast;
use fast::Fast;
use nvlab_medium::flash::Nand;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::geometry::Divider;
use nvlab_units::{Die, Extent, Lpa, Ppa, Served, Ticket, Time};
use prefetch_index::prefetch_index;

/// The logical page is unmapped; the logical block has no block.
const NOTHING: u32 = u32::MAX;
/// The newest copy of the logical page is in its data block.
const IN_PLACE: u32 = u32::MAX - 1;
/// The data array, and the only one unless the log has its own.
const DATA: usize = 0;

/// A block-mapped controller over one or two NAND arrays.
#[derive(Clone, Debug)]
pub struct BlockMap<S: Store = ()> {
    config: BlockMapConfig,
    /// The data array, and the log's if it has its own.
    areas: Vec<Area<S>>,
    /// Page addresses of the log's array begin here.
    log_base: u32,
    /// Pages of a data block.
    pages: u32,
    by_block: Divider,
    by_home: Divider,
    place: Vec<u32>,
    /// The data block of each logical block.
    data: Vec<u32>,
    /// The logical page in each page of a shared log block, by address relative to `log_base`.
    owner: Vec<Lpa>,
    /// Pages of a log block.
    log_pages: u32,
    /// Logical pages whose previous version was also in the log; empty without a second chance.
    overwritten: Vec<bool>,
    /// Logical blocks of each die that have no data block yet: erased blocks are reserved for them.
    unmapped: Vec<u32>,
    bast: Bast,
    fast: Fast,
    /// Number of the next host page written, and of the next page programmed.
    sequence: u64,
    stamp: u64,
    /// The latest promised end of a host write.
    promised: Time,
    /// The ticket of the last copy queued on each die of the data array.
    copied: Vec<Ticket>,
    /// Erases since wear was last checked.
    erased: u32,
    /// Scratch: pages to read for a merge from each die of the data array, and from each die of the log's; the payload
    /// of a page.
    reads: Vec<u32>,
    page: Vec<u8>,
    changes: Changes,
    stats: BlockMapStats,
    /// Live pages of the log when the statistics were reset.
    logged_before: u64,
}

impl<S: Store> BlockMap<S> {
    /// A controller over factory-new arrays, or why this configuration cannot work. `log`: the array of the log
    /// blocks, if they are not in the data array.
    pub fn new(config: BlockMapConfig, data: Nand<S>, log: Option<Nand<S>>) -> Result<BlockMap<S>, String> {
        let mut map = BlockMap::empty(config, [Some(data), log].into_iter().flatten().collect())?;
        map.areas.iter_mut().for_each(Area::fresh);
        Ok(map)
    }

    /// A controller whose tables are not yet filled.
    fn empty(config: BlockMapConfig, nands: Vec<Nand<S>>) -> Result<BlockMap<S>, String> {
        let slc_mode = nands[DATA].cells().slc_mode().copied();
        config.check(nands[DATA].config(), nands.get(1).map(Nand::config), slc_mode.is_some())?;
        let dynamic = config.wear.dynamic;
        let areas: Vec<Area<S>> = nands.into_iter().map(|nand| Area::empty(nand, dynamic)).collect();
        let geometry = areas[DATA].geometry;
        let (pages, dies) = (geometry.pages_per_block, geometry.dies());
        let blocks = config.logical_units.div_ceil(pages);
        let log = &areas[areas.len() - 1].geometry;
        let shared = matches!(config.log, Log::Shared { .. });
        let per_block = matches!(config.log, Log::PerBlock { .. });
        Ok(BlockMap {
            log_base: if areas.len() > 1 { geometry.units() as u32 } else { 0 },
            pages,
            by_block: Divider::new(pages),
            by_home: Divider::new(dies),
            place: vec![NOTHING; config.logical_units as usize],
            data: vec![NOTHING; blocks as usize],
            log_pages: slc_mode.filter(|_| config.slc_log).map_or(log.pages_per_block, |m| m.pages_per_block),
            overwritten: vec![false; if config.second_chance { config.logical_units as usize } else { 0 }],
            owner: vec![Lpa::NONE; if shared { log.units() as usize } else { 0 }],
            unmapped: (0..dies).map(|die| (blocks + dies - 1 - die) / dies).collect(),
            bast: Bast::new(config.log, if per_block { blocks } else { 0 }, &geometry),
            fast: Fast::new(config.log, log.dies()),
            sequence: 1,
            stamp: 1,
            promised: Time::ZERO,
            copied: vec![Ticket::default(); dies as usize],
            erased: 0,
            // Dies of the data array, then those of the log: the same dies again, or those of its own array.
            reads: vec![0; (dies + log.dies()) as usize],
            page: vec![0; if S::KEEPS { geometry.unit_bytes as usize } else { 0 }],
            changes: if S::KEEPS { Changes::new(geometry.unit_bytes as usize) } else { Changes::default() },
            stats: BlockMapStats::default(),
            logged_before: 0,
            areas,
            config,
        })
    }

    /// Counts since creation or the last reset.
    pub fn stats(&self) -> &BlockMapStats {
        &self.stats
    }
    /// Resets the statistics, also those of the media; wear stays.
    pub fn reset_stats(&mut self) {
        self.stats = BlockMapStats::default();
        self.areas.iter_mut().for_each(|area| area.nand.reset_stats());
        self.logged_before = self.logged_pages();
    }
    /// Live pages of a log that cannot become data: one of its own array, or in SLC mode.
    fn logged_pages(&self) -> u64 {
        if self.areas.len() == 1 && !self.config.slc_log {
            return 0;
        }
        self.place.iter().filter(|&&place| place != NOTHING && place != IN_PLACE).count() as u64
    }
    /// Live pages of a log that cannot become data, beyond those that it held when the statistics were reset. Unless the host
    /// overwrites them first, they will be programmed once more, into data blocks.
    pub fn unmerged_pages(&self) -> u64 {
        self.logged_pages().saturating_sub(self.logged_before)
    }
    /// Whether all log blocks are in use: from then on the next one must be merged first. `None` without a log. FAST's sequential log
    /// block is not one of them.
    pub fn is_log_full(&self) -> Option<bool> {
        match self.config.log {
            Log::None => None,
            Log::PerBlock { .. } => Some(self.bast.is_full()),
            Log::Shared { .. } => Some(self.fast.is_full()),
        }
    }
    /// The data array.
    pub fn data(&self) -> &Nand<S> {
        &self.areas[DATA].nand
    }
    /// The array of the log, if it has its own.
    pub fn log(&self) -> Option<&Nand<S>> {
        self.areas.get(1).map(|area| &area.nand)
    }
    /// The blocks of the data array as shown on the live page, and those of the log's array if it has its own.
    pub fn regions(&self) -> (Vec<Region>, Option<Vec<Region>>) {
        let tally = |area: &Area<S>| Tally::new(area.geometry.blocks(), area.geometry.pages_per_block);
        let mut tallies: Vec<Tally> = self.areas.iter().map(tally).collect();
        for address in (0..self.config.logical_units).map(Lpa).filter_map(|lpa| self.newest(lpa)) {
            let (area, page) = self.locate(address);
            tallies[area].live(page);
        }
        for &block in self.data.iter().filter(|block| **block != NOTHING) {
            tallies[DATA].used(block, Use::Data);
        }
        let own = self.bast.log_of.iter().copied().filter(|block| *block != NOTHING);
        for block in own.chain(self.fast.sequential.map(|sequential| sequential.block)) {
            tallies[DATA].used(block, Use::Log);
        }
        for block in self.fast.rounds.iter().flat_map(|round| round.full.iter().copied().chain([round.open]))
        {
            if block != NOTHING {
                tallies[self.log_area()].used(block, Use::Log);
            }
        }
        for (area, tally) in self.areas.iter().zip(&mut tallies) {
            let bad = (0..area.geometry.blocks()).filter(|&block| area.is_bad(block));
            bad.for_each(|block| tally.used(block, Use::Retired));
        }
        let mut regions = tallies.into_iter().map(Tally::done);
        (regions.next().expect("a data array"), regions.next())
    }
    /// Its configuration.
    pub fn config(&self) -> &BlockMapConfig {
        &self.config
    }
    /// Map memory a real controller of this kind needs, in bytes, at 4 B per entry: the block of each logical block,
    /// the owner of each log block (BAST) and of each log page, and an erase count per block. (The simulation itself
    /// keeps flat maps over all pages, for speed.)
    pub fn memory_bytes(&self) -> u64 {
        let log = &self.areas[self.areas.len() - 1].geometry;
        let log_entries = match self.config.log {
            Log::None => 0,
            Log::PerBlock { blocks } => blocks as u64 * (1 + log.pages_per_block as u64),
            Log::Shared { sequential, random_blocks } => {
                2 * sequential as u64 + random_blocks as u64 * self.log_pages as u64
            }
        };
        let blocks: u64 = self.areas.iter().map(|area| area.geometry.blocks() as u64).sum();
        4 * (self.data.len() as u64 + log_entries + blocks)
    }

    /// Logical block and offset of a logical page.
    #[inline]
    fn split(&self, lpa: Lpa) -> (u32, u32) {
        let lbn = self.by_block.divide(lpa.0);
        (lbn, lpa.0 - lbn * self.pages)
    }

    /// The home die of a logical block.
    #[inline]
    fn home(&self, lbn: u32) -> Die {
        Die(lbn - self.by_home.divide(lbn) * self.areas[DATA].geometry.dies())
    }

    /// The logical pages of a logical block; the last block may have fewer.
    #[inline]
    fn pages_of(&self, lbn: u32) -> std::ops::Range<usize> {
        let first = lbn as usize * self.pages as usize;
        first..(first + self.pages as usize).min(self.place.len())
    }

    /// The area of the log blocks.
    #[inline]
    fn log_area(&self) -> usize {
        self.areas.len() - 1
    }

    /// Area and page of an address.
    #[inline]
    fn locate(&self, address: u32) -> (usize, u32) {
        if self.areas.len() > 1 && address >= self.log_base {
            (1, address - self.log_base)
        } else {
            (DATA, address)
        }
    }

    /// The address of the newest copy of a logical page.
    #[inline]
    fn newest(&self, lpa: Lpa) -> Option<u32> {
        match self.place[lpa.index()] {
            NOTHING => None,
            IN_PLACE => {
                let (lbn, offset) = self.split(lpa);
                Some(self.data[lbn as usize] * self.pages + offset)
            }
            address => Some(address),
        }
    }

    #[inline]
    fn counts(&mut self, area: usize) -> &mut ByCause {
        if area == DATA { &mut self.stats.data } else { &mut self.stats.log }
    }

    /// Erases a block that is no longer needed.
    fn release(&mut self, at: Time, area: usize, block: u32, cause: Cause) {
        let counts = if area == DATA { &mut self.stats.data } else { &mut self.stats.log };
        self.erased += 1;
        self.stats.retired_blocks += self.areas[area].release(at, block, counts, cause) as u64;
    }

    fn mark_bad(&mut self, area: usize, block: u32) {
        self.areas[area].nand.mark_bad(nvlab_units::BlockId(block));
        self.stats.retired_blocks += 1;
    }

    fn read_one(&mut self, at: Time, lpa: Lpa, into: &mut [u8]) -> Result<Time, ControllerError> {
        let Some(address) = self.newest(lpa) else {
            self.stats.unwritten_read_units += 1;
            into.fill(0);
            return Ok(at);
        };
        let (area, page) = self.locate(address);
        self.counts(area).at(Cause::Host).reads += 1;
        let unreadable = |source| ControllerError::Unreadable { lpa, source };
        let nand = &mut self.areas[area].nand;
        let served = nand.read(at, Ppa(page), 1, into).map_err(unreadable)?;
        if spare::is_to_verify(nand, self.config.verify_reads, Ppa(page), 1) {
            spare::verify(nand, Ppa(page), lpa, into).map_err(unreadable)?;
        }
        Ok(served.end)
    }
}

impl<S: Store> Background for BlockMap<S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        let ends = self.areas.iter_mut().flat_map(|area| {
            area.geometry.all_dies().map(|die| area.nand.idle_at(die, at)).collect::<Vec<Time>>()
        });
        Ok(ends.max().unwrap_or(at))
    }
    fn settle(&mut self, upto: Time) {
        self.areas.iter_mut().for_each(|area| area.nand.settle(upto));
    }
}

impl<S: Store> Powered for BlockMap<S> {
    fn power_cycle(self, at: Time) -> Result<(BlockMap<S>, RecoveryReport), String> {
        let config = self.config.clone();
        BlockMap::recover(config, self.power_cut(at), at)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.idle_at(at)
    }
    /// Only trims merged since survive a power cut: the spare areas do not record trims. The block with the newest copy of a trimmed
    /// page may be erased before a log block that holds an older one.
    fn trims_last(&self) -> bool {
        false
    }
}

impl<S: Store> Controller for BlockMap<S> {
    const KEEPS: bool = S::KEEPS;

    #[inline]
    fn prefetch(&self, lpa: Lpa) {
        prefetch_index(&self.place, lpa.index());
    }
    fn prefetch_writes(&self, _: impl Iterator<Item = Lpa>) {}
    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    fn is_mapped(&self, lpa: Lpa) -> bool {
        self.place[lpa.index()] != NOTHING
    }

    fn capacity_units(&self) -> u32 {
        self.config.logical_units
    }
    fn unit_bytes(&self) -> u32 {
        self.areas[DATA].geometry.unit_bytes
    }

    #[inline]
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let start = at + self.config.overhead;
        let mut end = start;
        let bytes = if S::KEEPS { self.unit_bytes() as usize } else { 0 };
        for (i, lpa) in extent.units().enumerate() {
            end = end.max(self.read_one(start, lpa, &mut into[i * bytes..(i + 1) * bytes])?);
        }
        self.stats.host_read_units += extent.count as u64;
        Ok(Served { start, end })
    }

    #[inline]
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let start = at + self.config.overhead;
        let end = self.write_extent(start, extent, data)?;
        self.stats.host_write_units += extent.count as u64;
        self.level_wear(start);
        Ok(Served { start, end })
    }

    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let start = at + self.config.overhead;
        if self.config.trim && extent.count > 0 {
            self.place[extent.start.index()..extent.end() as usize].fill(NOTHING);
            let (first, last) = (self.split(extent.start).0, self.split(extent.start + (extent.count - 1)).0);
            (first..=last).for_each(|lbn| self.drop_if_empty(start, lbn));
            self.stats.host_trim_units += extent.count as u64;
        }
        Ok(Served { start, end: start })
    }

    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = at + self.config.overhead;
        self.stats.flushes += 1;
        Ok(Served { start, end: start.max(self.promised) })
    }
}
