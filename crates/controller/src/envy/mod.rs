//! eNVy: NOR flash and battery-backed SRAM as one linear, word-addressable, non-volatile memory (Wu and
//! Zwaenepoel, ASPLOS 1994; sections in brackets).
//!
//! A store to a page in flash copies the page to SRAM and changes it there (copy on write); SRAM is a FIFO
//! buffer from which pages are flushed to flash; segments are cleaned by copying their live pages, in order,
//! to an erased spare. It is not a model of a host bus or of a processor cache (that is the `access` layer).
//!
//! # Time
//!
//! With c = [`EnvyConfig::control`] (60 ns), r and w the cycle of the medium (100 ns), p = page / path cycles:
//!
//! | step | time |
//! |---|---|
//! | load of a word | c + r per word; a mapping cache miss adds one SRAM read |
//! | store to a page in SRAM | c + w per word |
//! | store to a page in flash | first c + p r for the copy (160 ns); the table is written in parallel with the word |
//! | store of a whole page by [`Controller`] | c + p w: the page crosses the path in one transfer, nothing is copied |
//! | flush, or copy by the cleaner | c + p r + program: 4.16 us |
//! | erase | the datasheet's (50 ms) |
//! | begin, commit | one SRAM cycle: c + w |
//! | abort | one SRAM cycle, plus one per page rolled back |
//!
//! Flushes, copies and erases are background work on the lane of their bank. With one die (the base design)
//! every host access, even an SRAM hit, uses the single path and so suspends them; the part determines how long
//! before they resume. With several dies (section 6) they run in parallel, an access suspends only the die it
//! uses, and the shared path limits flushes. Copies of the cleaner yield the path to others.
//!
//! Pages above `flush_at` are queued for flash at once and from then on count as pages in flash: a store to one
//! copies it again. Their slots are free when the program is done. When the spare of a die is not ready, its
//! flushes stay in the buffer; a store waits only if the buffer is full.
//!
//! # Invariants
//!
//! 1. A flash page is live iff its owner in the reverse table (a page or a shadow) is located at it.
//! 2. `segment.live` and `pool.occupied` count live pages; the latter also pages the buffer will return to the pool.
//! 3. With payload, the table in SRAM changes in one word, and only to what is durable: to a slot after its bytes
//!    are written, to a flash page after its program is done. The table in memory is ahead of it by what is queued.
//! 4. A segment is erased only when every copy out of it is done and recorded; until then losing the copies loses
//!    no data. So the state is valid at every cut, and also if this process exits between two calls.
//! 5. Writes to SRAM are recorded in the order they are made; see `durable`.
//!
//! | file | what |
//! |---|---|
//! | [`config`], [`stats`] | its configuration and statistics |
//! | `table` | the layout of the SRAM |
//! | `segments`, `buffer`, `start` | segments and pools; the ring of slots; initial placement |
//! | `host`, `flush`, `clean` | host accesses; flushes; cleaning, erasing, wear |
//! | `waiting` | what must be done before a slot or a segment may be reused |
//! | `transaction` | shadows (section 6) |
//! | `header` | the design the SRAM belongs to |
//! | `durable`, [`recover`], `unfinished` | state written through to SRAM, and recovery from it |

mod buffer;
mod clean;
pub mod config;
mod durable;
mod flush;
mod header;
mod host;
pub mod recover;
mod segments;
mod start;
pub mod stats;
mod table;
mod transaction;
mod unfinished;
mod waiting;

pub use crate::cleaning::SegmentCleaning;
pub use crate::cleaning::gathering::{Gathering, Locality};
pub use config::EnvyConfig;
pub use recover::EnvyMedia;
pub use stats::EnvyStats;

use crate::{Background, Controller, ControllerError, Powered, RecoveryReport, Region, Use};
use buffer::Buffer;
use clean::DieState;
use nvlab_medium::flash::Nor;
use nvlab_medium::ram::Ram;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{BlockId, Bus, Die, Extent, Lane, Layout, Lpa, Ppa, Served, Span, Ticket, Time};
use prefetch_index::prefetch_index;
use segments::{Moving, NO_SEGMENT, Pool, Role, Segment};
use std::collections::VecDeque;
use transaction::Transaction;
use waiting::Crossing;

/// No location, no owner.
const NOTHING: u32 = u32::MAX;
/// Set in a location that is a slot of the buffer, not a flash page.
const SLOT: u32 = 1 << 31;
/// Set in an owner that is a shadow of the transaction, not a logical page.
const SHADOW: u32 = 1 << 31;

/// An eNVy controller.
#[derive(Clone, Debug)]
pub struct Envy<S: Store = ()> {
    config: EnvyConfig,
    layout: Layout,
    map: table::SramLayout,
    nor: Nor<S>,
    sram: Ram<S>,
    /// Where each logical page is: a flash page, a slot, or nothing.
    l2p: Vec<u32>,
    /// The owner of each flash page: a logical page, a shadow, or none.
    p2l: Vec<u32>,
    segments: Vec<Segment>,
    pools: Vec<Pool>,
    /// The first page of each pool, for pages written for the first time.
    first_pages: Vec<u32>,
    /// How many of them have been written so far, if they are placed in order of arrival.
    arrived: Option<u32>,
    dies: Vec<DieState>,
    buffer: Buffer,
    transaction: Transaction,
    /// The cache of mappings: the page in each entry.
    mappings: Vec<u32>,
    /// The controller, if there are several dies: one host access at a time.
    port: Lane,
    /// The path between SRAM and flash, if several dies share it.
    path: Bus,
    /// When SRAM was last written or brought up to date: the next write begins no earlier.
    written: Time,
    /// The pool for the next page without origin.
    next_pool: u32,
    /// Segments begun and pages flushed in total.
    begun: u64,
    flushes: u64,
    /// Dies with a segment whose copies are not known to be done.
    leaving: u32,
    /// Copies between dies that may not be done, in the order they were queued.
    crossings: VecDeque<Crossing>,
    /// Scratch: tickets that must be reached (see `waiting`), pages to copy, a page.
    required: Vec<Ticket>,
    moving: Vec<Moving>,
    page: Vec<u8>,
    stats: EnvyStats,
}

impl<S: Store> Envy<S> {
    /// A controller over factory-new media, or why this configuration cannot work.
    pub fn new(config: EnvyConfig, nor: Nor<S>, sram: Ram<S>) -> Result<Envy<S>, String> {
        let mut envy = Envy::empty(config, nor, sram)?;
        let geometry = *envy.nor.geometry();
        for die in geometry.all_dies() {
            envy.assign_erased(die, geometry.blocks_of(die).map(|block| block.0).collect());
        }
        envy.format();
        Ok(envy)
    }

    /// A controller whose tables are not yet filled.
    fn empty(config: EnvyConfig, nor: Nor<S>, sram: Ram<S>) -> Result<Envy<S>, String> {
        config.check(&nor.config(), sram.config())?;
        let geometry = *nor.geometry();
        let erases = nor.cells().erase_counts();
        let pools = segments::pools(&config, &geometry);
        Ok(Envy {
            first_pages: start::first_pages(
                config.cleaning,
                config.logical_pages,
                &pools,
                geometry.pages_per_block,
            ),
            arrived: None,
            layout: Layout::new(&geometry),
            map: config.sram_layout(&geometry, sram.config().word_bytes),
            l2p: vec![NOTHING; config.logical_pages as usize],
            p2l: vec![NOTHING; geometry.units() as usize],
            segments: erases.iter().map(|&erases| Segment::new(erases)).collect(),
            pools,
            dies: vec![DieState::default(); geometry.dies() as usize],
            buffer: Buffer::new(config.buffer_pages, config.flush_at),
            transaction: Transaction::new(&config),
            mappings: vec![NOTHING; config.mapping_cache_entries as usize],
            port: Lane::new(),
            path: Bus::new(),
            written: Time::ZERO,
            next_pool: 0,
            begun: 0,
            flushes: 0,
            leaving: 0,
            crossings: VecDeque::new(),
            required: vec![Ticket::default(); geometry.dies() as usize],
            moving: Vec::with_capacity(geometry.pages_per_block as usize),
            page: vec![0; if S::KEEPS { geometry.unit_bytes as usize } else { 0 }],
            stats: EnvyStats::default(),
            config,
            nor,
            sram,
        })
    }

    /// Distributes the erased segments of a die to the pools that need them; the last one is the spare.
    fn assign_erased(&mut self, die: Die, mut erased: Vec<u32>) {
        self.dies[die.index()].spare = erased.pop().expect("an erased segment in every die");
        for pool in self.pools.iter_mut().filter(|pool| pool.die == die) {
            let used = pool.closed.len() as u32 + (pool.active != NO_SEGMENT) as u32;
            let missing = erased.len().min((pool.size - used) as usize);
            pool.fresh = erased.drain(..missing).rev().collect();
        }
        assert!(erased.is_empty(), "segments {erased:?} of die {die} belong to no pool");
    }

    /// Brings the background work up to date: records what is done by `at` and continues what can continue.
    #[inline]
    pub fn advance(&mut self, at: Time) {
        self.written = self.written.max(at);
        if S::KEEPS {
            self.complete(at);
        }
        if !self.crossings.is_empty() {
            self.drop_finished_crossings(at);
        }
        if self.leaving > 0 {
            self.erase_left(at);
        }
        if self.buffer.wants_flush() {
            self.drain(at);
        }
    }

    /// From now on, pages written for the first time go to the partitions of locality gathering in order of arrival,
    /// not of address: a fill in random order then scatters any range of addresses over all partitions. A restart
    /// resets this.
    pub fn place_in_order_of_arrival(&mut self) {
        self.arrived = Some(0);
    }

    /// What the controller has done so far.
    pub fn stats(&self) -> &EnvyStats {
        &self.stats
    }
    /// Resets the statistics, also those of the medium; wear stays.
    pub fn reset_stats(&mut self) {
        self.stats = EnvyStats::default();
        self.nor.reset_stats();
    }
    /// The flash array.
    pub fn nor(&self) -> &Nor<S> {
        &self.nor
    }
    /// The battery-backed memory.
    pub fn sram(&self) -> &Ram<S> {
        &self.sram
    }
    /// Its configuration.
    pub fn config(&self) -> &EnvyConfig {
        &self.config
    }
    /// Bytes the host may address.
    pub fn capacity_bytes(&self) -> u64 {
        self.config.logical_pages as u64 * self.nor.geometry().page_bytes()
    }
    /// Bytes of the page table as the paper counts them (see [`EnvyConfig::table_bytes`]).
    pub fn table_bytes(&self) -> u64 {
        EnvyConfig::table_bytes(self.nor.geometry())
    }
    /// Bytes of memory this process needs for the controller's tables.
    pub fn memory_bytes(&self) -> u64 {
        let slots = self.buffer.slots.len() * size_of::<buffer::Slot>();
        let segments = self.segments.len() * size_of::<Segment>();
        (4 * (self.l2p.len() + self.p2l.len() + self.mappings.len()) + slots + segments) as u64
    }
    /// The segments as shown on the live page.
    pub fn regions(&self) -> Vec<Region> {
        let region = |segment: &Segment| {
            let used = match segment.role {
                Role::InService if segment.next > 0 => Use::Data,
                Role::Erased | Role::InService => Use::Erased,
                Role::Leaving => Use::Emptying,
            };
            Region { live: segment.live, used }
        };
        self.segments.iter().map(region).collect()
    }
    /// Pages in the buffer whose flush is not queued.
    pub fn buffered_pages(&self) -> u64 {
        self.buffer.waiting()
    }

    #[inline]
    fn segment_of(&self, page: u32) -> u32 {
        self.layout.block_of(Ppa(page)).0
    }

    /// The location of an owner's bytes.
    #[inline]
    fn location(&self, owner: u32) -> u32 {
        match owner {
            NOTHING => NOTHING,
            owner if owner & SHADOW != 0 => self.transaction.location(owner & !SHADOW),
            owner => self.l2p[owner as usize],
        }
    }

    #[inline]
    fn set_location(&mut self, owner: u32, location: u32) {
        if owner & SHADOW != 0 {
            self.transaction.set_location(owner & !SHADOW, location);
        } else {
            self.l2p[owner as usize] = location;
        }
    }

    /// The transfer time of one page between SRAM and flash.
    #[inline]
    fn transfer(&self) -> Span {
        self.config.control + self.nor.cells().config.timing.read[0] * self.path_cycles()
    }

    /// Memory cycles of a page transfer over the path.
    #[inline]
    fn path_cycles(&self) -> u64 {
        self.nor.geometry().unit_bytes.div_ceil(self.config.path_bytes) as u64
    }

    /// Checks every invariant; for tests.
    pub fn check(&self) {
        let mut live = vec![0u32; self.segments.len()];
        let mut occupied = vec![0u32; self.pools.len()];
        let shadows = (0..self.transaction.count()).map(|shadow| shadow | SHADOW);
        for owner in (0..self.config.logical_pages).chain(shadows) {
            let location = self.location(owner);
            if location == NOTHING {
                continue;
            }
            if location & SLOT != 0 {
                let slot = self.buffer.slots[(location & !SLOT) as usize];
                assert_eq!(slot.owner, owner, "slot {} of {owner:#x}", location & !SLOT);
                occupied[slot.origin as usize] += 1;
                continue;
            }
            assert_eq!(self.p2l[location as usize], owner, "page {location} of {owner:#x}");
            let segment = self.segment_of(location);
            assert!(location - self.layout_first(segment) < self.segments[segment as usize].next);
            live[segment as usize] += 1;
            occupied[self.segments[segment as usize].pool as usize] += 1;
        }
        for (number, segment) in self.segments.iter().enumerate() {
            assert_eq!(segment.live, live[number], "segment {number}: {segment:?}");
            if segment.role != Role::InService {
                assert_eq!(segment.live, 0, "segment {number}: {segment:?}");
            }
        }
        for (number, pool) in self.pools.iter().enumerate() {
            assert_eq!(pool.occupied, occupied[number], "pool {number}: {pool:?}");
            assert!(pool.occupied <= pool.limit, "pool {number}: {pool:?}");
            let used = pool.closed.len() + pool.fresh.len() + (pool.active != NO_SEGMENT) as usize;
            assert_eq!(used, pool.size as usize, "pool {number}: {pool:?}");
        }
        if S::KEEPS {
            self.check_durable();
        }
    }

    /// The first page of a segment.
    #[inline]
    fn layout_first(&self, segment: u32) -> u32 {
        self.nor.geometry().first_unit(BlockId(segment)).0
    }
}

impl<S: Store> Background for Envy<S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.advance(at);
        let mut end = at;
        loop {
            for die in self.nor.geometry().all_dies() {
                end = end.max(self.nor.idle_at(die, at));
            }
            // Work that was waiting for this may now continue and queue more.
            let (leaving, waiting) = (self.leaving, self.buffer.waiting());
            self.advance(end);
            if (leaving, waiting) == (self.leaving, self.buffer.waiting()) {
                return Ok(end);
            }
        }
    }
    fn settle(&mut self, upto: Time) {
        self.nor.settle(upto);
        self.sram.settle(upto);
    }
}

impl<S: Store> Powered for Envy<S> {
    fn power_cycle(self, at: Time) -> Result<(Envy<S>, RecoveryReport), String> {
        let config = self.config.clone();
        Envy::recover(config, self.power_cut(at), at)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.idle_at(at)
    }
    fn trims_last(&self) -> bool {
        true
    }
}

/// The interface for a RAM disk or a page workload: whole pages, each in one transfer over the path. Everything is
/// durable when it is acknowledged, so a flush takes no time.
impl<S: Store> Controller for Envy<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.config.logical_pages
    }
    fn unit_bytes(&self) -> u32 {
        self.nor.geometry().unit_bytes
    }
    #[inline]
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_pages)?;
        Ok(self.read_pages(at, extent, into))
    }
    #[inline]
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_pages)?;
        self.write_pages(at, extent, data)
    }
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_pages)?;
        self.trim_pages(at, extent)
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        Ok(Served { start: at, end: at })
    }
    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    fn is_mapped(&self, lpa: Lpa) -> bool {
        self.l2p[lpa.index()] != NOTHING
    }
    #[inline]
    fn prefetch(&self, page: Lpa) {
        prefetch_index(&self.l2p, page.index());
    }
    fn prefetch_writes(&self, _: impl Iterator<Item = Lpa>) {}
}
