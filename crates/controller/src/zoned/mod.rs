//! Zones: each is written from its start on, at its write pointer only, and erased as a whole (NVMe Zoned Namespace Command
//! Set Specification 1.1). There is nothing to clean: what the host may do, not the controller, makes room.
//!
//! A zone lies on the dies of its group, page by page in turn (`layout`), so that the place of a unit is arithmetic. When it is
//! first written it takes the least worn erased blocks of these dies; when it is reset they are erased and go back. A program
//! that fails takes another block of the die, to which the pages before it are copied; without one the zone becomes read
//! only. When a die has too few good blocks, empty zones of its group lose capacity, a superblock at a time, the last zone
//! first; without any they are offline.
//!
//! What a power cut leaves is a beginning of what was written to a zone since its reset: everything flushed, and, if the write
//! buffer is protected, everything acknowledged. The write pointer says how much. Open zones are closed then.
//!
//! When a reset or a finish ends is promised, so that a read of a die waits for what it has queued there. Drives put reads first.
//!
//! A trim of a whole zone resets it; any other is ignored, as the command set has it for Deallocate: it never moves a write
//! pointer. Units at and after the write pointer read as zero.
//!
//! Invariants
//! 1. Pages of a zone are programmed in their order on each die, and a page is programmed when it is full.
//! 2. A generation is a zone between two resets; its number is in the spare area of every unit. Nothing of a new generation
//!    is programmed before the first block of the old one is erased (`Zone::ready`), and of the others nothing is erased
//!    before that: after a cut a zone whose first page is not there is empty, however much of the rest there is.
//! 3. The last page of that first block is never programmed: if something is there, its erase was cut.
//! 4. Blocks of one position in a zone are on one die: a block is erased after the copies that replace it.
//!
//! | file | what |
//! |---|---|
//! | [`config`], [`stats`] | its configuration and statistics |
//! | [`state`] | states, actions and limits |
//! | `layout`, `pool` | where units are; erased blocks |
//! | `buffer`, `log` | the write buffer; the log that keeps partly filled pages |
//! | `write`, `read` | host writes and appends; reads |
//! | `manage`, `retire` | open, close, finish, reset; blocks that fail |
//! | [`recover`], `check` | recovery after a power cut; checks of all invariants |

mod buffer;
mod check;
pub mod config;
mod layout;
mod log;
mod manage;
mod pool;
mod read;
pub mod recover;
mod retire;
pub mod state;
pub mod stats;
mod write;

pub use config::{ZoneBuffer, ZoneConfig};
pub use recover::ZoneMedia;
pub use state::{ZoneAction, ZoneError, ZoneState};
pub use stats::ZoneStats;

use crate::region::Tally;
use crate::{Background, Controller, ControllerError, Powered, RecoveryReport, Region, Use};
use buffer::Buffer;
use layout::Layout;
use log::Log;
use nvlab_medium::flash::Nand;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{BlockId, Extent, Geometry, Lpa, Served, Ticket, Time};
use pool::Pool;
use prefetch_index::prefetch_index;
use state::States;

/// A controller whose logical units are divided into zones. [`Controller::write`] writes at the write pointer of a zone, and
/// nowhere else.
pub trait Zoned: Controller {
    /// How many zones there are; all have the same size.
    fn zone_count(&self) -> u32;
    /// A zone as it is now.
    fn report(&self, zone: u32) -> ZoneReport;
    /// Writes `count` units at the write pointer of a zone; returns also where.
    fn append(
        &mut self,
        at: Time,
        zone: u32,
        count: u32,
        data: &[u8],
    ) -> Result<(Served, Lpa), ControllerError>;
    /// Opens, closes, finishes or resets a zone; what it does is durable when it ends.
    fn manage(&mut self, at: Time, zone: u32, action: ZoneAction) -> Result<Served, ControllerError>;
}

/// A zone as its host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Its state.
    pub state: ZoneState,
    /// Its first unit, and the units to that of the next zone.
    pub extent: Extent,
    /// How many of them can be written.
    pub capacity: u32,
    /// How many the host wrote; the next goes behind them.
    pub written: u32,
}

/// The block of a member that has none.
const NO_BLOCK: u32 = u32::MAX;

/// A zone's place in time and on its blocks.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Units the host wrote.
    written: u32,
    /// Pages whose program is queued.
    programmed: u32,
    capacity: u32,
    /// Of the blocks it has, or will take.
    superblocks: u32,
    /// Number of the generation, its superblocks in the lowest byte.
    generation: u64,
    /// No program begins before.
    ready: Time,
    /// Without a buffer: all programs are done.
    promised: Time,
    /// Of `written`, what is durable in the log; whether the log has anything of this generation.
    logged: u32,
    in_log: bool,
}

/// Payload of a page being filled.
#[derive(Clone, Debug, Default)]
struct Staged {
    data: Vec<u8>,
    spare: Vec<u8>,
}

/// A zoned controller over a NAND array.
#[derive(Clone, Debug)]
pub struct ZoneMap<S: Store = ()> {
    config: ZoneConfig,
    geometry: Geometry,
    layout: Layout,
    nand: Nand<S>,
    pool: Pool,
    states: States,
    zones: Vec<Zone>,
    /// The block of each member: `width` for each zone.
    blocks: Vec<u32>,
    width: u32,
    buffer: Buffer,
    /// By zone; empty without payload.
    staged: Vec<Staged>,
    log: Log,
    /// The last host program of each die.
    last: Vec<Ticket>,
    /// Number of the last generation, and of the next unit programmed.
    generation: u64,
    stamp: u64,
    zeros: Vec<u8>,
    stats: ZoneStats,
}

impl<S: Store> ZoneMap<S> {
    /// A controller over a factory-new array, or why this configuration cannot work.
    pub fn new(config: ZoneConfig, nand: Nand<S>) -> Result<ZoneMap<S>, String> {
        let mut map = ZoneMap::empty(config, nand)?;
        map.pool.fill(&map.nand);
        (0..map.layout.groups()).for_each(|group| map.shrink_empty(group));
        Ok(map)
    }

    /// A controller of empty zones that knows no erased block yet.
    fn empty(config: ZoneConfig, nand: Nand<S>) -> Result<ZoneMap<S>, String> {
        config.check(nand.config())?;
        let geometry = *nand.geometry();
        let layout = Layout::new(&config, &geometry);
        let (zones, superblocks) = (config.zones, config.superblocks(&geometry));
        let width = superblocks * config.dies;
        let mut pool = Pool::new(geometry.dies(), layout.groups(), config.wear_dynamic);
        (0..zones).for_each(|zone| pool.claimed[layout.group(zone) as usize] += superblocks);
        let zone = Zone {
            written: 0,
            programmed: 0,
            capacity: config.capacity_units,
            superblocks,
            generation: 0,
            ready: Time::ZERO,
            promised: Time::ZERO,
            logged: 0,
            in_log: false,
        };
        Ok(ZoneMap {
            layout,
            pool,
            states: States::new(zones, config.open_max, config.active_max),
            zones: vec![zone; zones as usize],
            blocks: vec![NO_BLOCK; zones as usize * width as usize],
            width,
            buffer: Buffer::new(config.buffer, zones, S::KEEPS),
            staged: vec![Staged::default(); if S::KEEPS { zones as usize } else { 0 }],
            log: Log::default(),
            last: vec![Ticket::default(); geometry.dies() as usize],
            generation: 0,
            stamp: 1,
            zeros: vec![0; if S::KEEPS { geometry.unit_bytes as usize } else { 0 }],
            stats: ZoneStats::default(),
            nand,
            geometry,
            config,
        })
    }

    /// Counts since creation or the last reset of the counts.
    pub fn stats(&self) -> ZoneStats {
        ZoneStats { retired_blocks: self.pool.retired, ..self.stats }
    }
    /// Resets the statistics, also those of the medium; wear stays.
    pub fn reset_stats(&mut self) {
        (self.stats, self.pool.retired) = (ZoneStats::default(), 0);
        self.nand.reset_stats();
    }
    /// The medium.
    pub fn nand(&self) -> &Nand<S> {
        &self.nand
    }
    /// Its configuration.
    pub fn config(&self) -> &ZoneConfig {
        &self.config
    }
    /// Pages in the write buffer, and how many it has room for; `None` without a buffer.
    pub fn buffered(&mut self, at: Time) -> Option<(u32, u32)> {
        self.buffer.fill(&mut self.nand, at)
    }
    /// Bytes of memory the controller's tables take: no map of units.
    pub fn memory_bytes(&self) -> u64 {
        let zone = size_of::<Zone>() as u64 + 1 + 4 * self.width as u64;
        self.zones.len() as u64 * zone + 4 * self.geometry.blocks() as u64
    }
    /// The blocks as shown on the live page.
    pub fn regions(&self) -> Vec<Region> {
        let units = self.geometry.units_per_block();
        let mut tally = Tally::new(self.geometry.blocks(), units);
        for (zone, state) in (0..).zip(&self.zones) {
            self.members(zone).for_each(|block| tally.used(block, Use::Data));
            for unit in 0..state.written {
                let (page, slot) = self.layout.page_of(unit);
                let place = self.layout.place(page);
                let block = self.blocks[self.index(zone, place.member)];
                tally.live(block * units + place.page * self.geometry.units_per_page + slot);
            }
        }
        self.log.blocks().for_each(|block| tally.used(block, Use::Log));
        let is_gone = |&block: &u32| self.nand.cells().is_bad(BlockId(block)) || self.pool.is_retiring(block);
        (0..self.geometry.blocks()).filter(is_gone).for_each(|block| tally.used(block, Use::Retired));
        tally.done()
    }

    #[inline(always)]
    fn index(&self, zone: u32, member: u32) -> usize {
        zone as usize * self.width as usize + member as usize
    }

    /// The blocks of a zone.
    fn members(&self, zone: u32) -> impl Iterator<Item = u32> {
        let blocks = &self.blocks[self.index(zone, 0)..self.index(zone, self.width)];
        blocks.iter().copied().filter(|&block| block != NO_BLOCK)
    }

    /// Units of a zone's page that is being filled.
    #[inline(always)]
    fn filled(&self, zone: u32) -> u32 {
        let Zone { written, programmed, .. } = self.zones[zone as usize];
        // A finished zone has pages that the host did not write.
        written.saturating_sub(programmed * self.geometry.units_per_page)
    }

    /// Fails if there is no such zone.
    fn check_zone(&self, zone: u32) -> Result<(), ControllerError> {
        let start = Lpa(zone.saturating_mul(self.config.size_units));
        ControllerError::check_extent(Extent::one(start), self.capacity_units())
    }

    /// When every program of the host is done; a promise.
    fn finish_programs(&mut self, at: Time) -> Time {
        let dies = self.geometry.all_dies();
        dies.fold(at, |end, die| end.max(self.nand.finish(die, self.last[die.index()], at)))
    }
}

impl<S: Store> Zoned for ZoneMap<S> {
    fn zone_count(&self) -> u32 {
        self.config.zones
    }
    fn report(&self, zone: u32) -> ZoneReport {
        let Zone { written, capacity, .. } = self.zones[zone as usize];
        let extent = Extent { start: self.layout.start(zone), count: self.config.size_units };
        ZoneReport { state: self.states.of(zone), extent, capacity, written }
    }
    fn append(
        &mut self,
        at: Time,
        zone: u32,
        count: u32,
        data: &[u8],
    ) -> Result<(Served, Lpa), ControllerError> {
        self.check_zone(zone)?;
        let start = at + self.config.overhead;
        let unit = self.zones[zone as usize].written;
        let end = self.write_zone(start, zone, unit, count, data)?;
        Ok((Served { start, end }, self.layout.start(zone) + unit))
    }
    fn manage(&mut self, at: Time, zone: u32, action: ZoneAction) -> Result<Served, ControllerError> {
        self.check_zone(zone)?;
        let start = at + self.config.overhead;
        Ok(Served { start, end: self.act(start, zone, action)? })
    }
}

impl<S: Store> Controller for ZoneMap<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.config.zones * self.config.size_units
    }
    fn unit_bytes(&self) -> u32 {
        self.geometry.unit_bytes
    }
    #[inline(always)]
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.capacity_units())?;
        let start = at + self.config.overhead;
        let end = self.read_extent(start, extent, into)?;
        self.stats.host_read_units += extent.count as u64;
        Ok(Served { start, end })
    }
    #[inline(always)]
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.capacity_units())?;
        let start = at + self.config.overhead;
        let (zone, unit) = self.layout.split(extent.start);
        let end = self.write_zone(start, zone, unit, extent.count, data)?;
        Ok(Served { start, end })
    }
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.capacity_units())?;
        let start = at + self.config.overhead;
        let size = self.config.size_units;
        let (first, end) = (extent.start.0.div_ceil(size), (extent.end() / size as u64) as u32);
        let mut done = start;
        for zone in first..end {
            if self.config.trim && ZoneAction::Reset.after(self.states.of(zone)).is_some() {
                done = done.max(self.act(start, zone, ZoneAction::Reset)?);
            }
        }
        Ok(Served { start, end: done })
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = at + self.config.overhead;
        self.stats.flushes += 1;
        if self.buffer.is_protected() {
            return Ok(Served { start, end: start });
        }
        let logged = self.log_staged(start)?;
        Ok(Served { start, end: self.finish_programs(start).max(logged) })
    }
    fn view(&self, extent: Extent) -> Option<&[u8]> {
        self.view_extent(extent)
    }
    fn is_mapped(&self, lpa: Lpa) -> bool {
        let (zone, unit) = self.layout.split(lpa);
        unit < self.zones[zone as usize].written
    }
    #[inline]
    fn prefetch(&self, lpa: Lpa) {
        prefetch_index(&self.zones, self.layout.split(lpa).0 as usize);
    }
    fn prefetch_writes(&self, _: impl Iterator<Item = Lpa>) {}
}

impl<S: Store> Background for ZoneMap<S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        Ok(self.geometry.all_dies().fold(at, |end, die| end.max(self.nand.idle_at(die, at))))
    }
    fn settle(&mut self, upto: Time) {
        self.pool.mark_bad(&mut self.nand, upto);
        self.buffer.settle(&mut self.nand, upto);
        self.nand.settle(upto);
    }
}

impl<S: Store> Powered for ZoneMap<S> {
    fn power_cycle(self, at: Time) -> Result<(ZoneMap<S>, RecoveryReport), String> {
        let config = self.config.clone();
        ZoneMap::recover(config, self.power_cut(at), at)
    }
    /// What is in the write buffer, protected or not, is durable then.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let logged = self.log_staged(at)?;
        let end = self.finish_programs(at).max(logged);
        self.idle_at(end)
    }
    /// Only those of whole zones are more than advice.
    fn trims_last(&self) -> bool {
        false
    }
}
