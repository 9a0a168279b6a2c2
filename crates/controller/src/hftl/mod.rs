//! hFTL (system 003): a full page map over NAND whose map and tables are in PRAM, updated in place, so that
//! recovery scans nothing.
//!
//! It is not [`crate::page_map`] with another place for its checkpoints. There is no write buffer, no journal and
//! no checkpoint: a write is done when its page and its map entry are programmed. A unit is a page.
//!
//! Invariants
//! 1. The map in PRAM is authoritative. An entry points to a page only after that page is programmed.
//! 2. A page whose live bit is clear is dead: a bit is set before an entry points to its page and cleared after none
//!    does. A cut may leave extra bits set; recovery corrects them from the map.
//! 3. A block is erased only after no durable entry points to a page of it, and its own entry records the erase.
//! 4. Write pointers are updated in parallel with the program, so a cut may leave them ahead or behind by the programs
//!    in progress; recovery finds the true one of each open block by bisection.
//! 5. The PRAM writes an aligned 8 bytes atomically (`atomic_bytes`, the part's guarantee): no entry crosses such a
//!    boundary, so after a cut every entry is old or new. No two changes in PRAM need to be atomic together.
//!
//! | file | what |
//! |---|---|
//! | [`config`], [`stats`] | its configuration and statistics |
//! | `metadata` | the contents of the PRAM |
//! | `write` | host writes, open blocks, retirement |
//! | `clean` | relocation, its commit, wear levelling |
//! | [`recover`] | recovery after a power cut |

mod clean;
pub mod config;
mod metadata;
pub mod recover;
pub mod stats;
mod write;

pub use config::HftlConfig;
pub use recover::HftlMedia;
pub use stats::HftlStats;

use crate::cleaning::{CleaningPolicy, Policy};
use crate::region::Region;
use crate::spare;
use crate::table::{BlockState, BlockTable};
use crate::{Background, BesidePram, Controller, ControllerError, Powered, RecoveryReport};
use metadata::{Entry, Metadata, Use};
use nvlab_medium::flash::Nand;
use nvlab_medium::flash::nand::DeadUnits;
use nvlab_medium::{InPlace, PowerCut, Store};
use nvlab_units::{BlockId, Die, Extent, Geometry, Layout, Lpa, Ppa, Served, Ticket, Time};
use prefetch_index::prefetch_index;

const NO_BLOCK: u32 = u32::MAX;

/// A block being filled.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    block: u32,
    next: u32,
    /// When the block table durably records that the block is open.
    ready: Time,
}

const NO_FRONTIER: Frontier = Frontier { block: NO_BLOCK, next: 0, ready: Time::ZERO };
/// The open blocks of a die: for host data, for what the cleaner relocates, and for cold data moved to level wear.
const HOST: usize = 0;
const MOVED: usize = 1;
const COLD: usize = 2;
const STREAMS: usize = 3;

/// The state of a die.
#[derive(Clone, Debug)]
struct DieState {
    free: Vec<BlockId>,
    open: [Frontier; STREAMS],
    /// The relocation whose copies are not yet in the map.
    job: Option<clean::Job>,
    /// Queued erases whose end is not yet recorded in the block table.
    erasing: Vec<(BlockId, Ticket)>,
    /// Erases since wear was last checked.
    erases: u32,
}

/// A page map in PRAM over a NAND array.
#[derive(Clone, Debug)]
pub struct Hftl<S: Store, P> {
    config: HftlConfig,
    geometry: Geometry,
    layout: Layout,
    nand: Nand<S>,
    metadata: Metadata<P>,
    /// The logical page whose data a page holds: models the spare areas, which a device reads along with the page.
    owner: Vec<Lpa>,
    table: BlockTable,
    policy: Policy,
    dies: Vec<DieState>,
    next_die: Die,
    /// Relocations and erases that [`Hftl::advance`] must complete.
    pending: u32,
    /// Lists of finished relocations, for reuse.
    moved: Vec<Vec<clean::Moved>>,
    /// Blocks that failed and still hold data.
    failed: Vec<BlockId>,
    sequence: u64,
    /// The latest time passed to a medium.
    latest: Time,
    stats: HftlStats,
}

impl<S: Store, P: InPlace + PowerCut> Hftl<S, P> {
    /// A controller over a factory-new array and PRAM (all zero), or why this cannot work.
    pub fn new(config: HftlConfig, nand: Nand<S>, pram: P) -> Result<Hftl<S, P>, String> {
        let mut hftl = Hftl::empty(config, nand, pram)?;
        for block in (0..hftl.geometry.blocks()).map(BlockId) {
            if hftl.nand.cells().is_bad(block) {
                let bad = Entry { used: Use::Bad, ..Entry::FRESH };
                hftl.metadata.set_entry(Time::ZERO, block, bad).map_err(|error| error.to_string())?;
                hftl.table.set_state(block, BlockState::Bad);
            } else {
                hftl.dies[hftl.geometry.die_of(block).index()].free.push(block);
            }
        }
        hftl.metadata.format().map_err(|error| error.to_string())?;
        // Blocks are taken from the end: the lowest first.
        let dynamic = hftl.config.wear.dynamic;
        hftl.dies.iter_mut().for_each(|die| crate::wear::order_new(&mut die.free, dynamic));
        Ok(hftl)
    }

    /// A controller whose tables are not yet filled.
    fn empty(config: HftlConfig, nand: Nand<S>, pram: P) -> Result<Hftl<S, P>, String> {
        let geometry = *nand.geometry();
        assert_eq!(S::KEEPS, P::KEEPS, "both media keep bytes or none does");
        config.check(nand.config(), pram.capacity())?;
        crate::pram::check_atomic(&pram, "hftl changes entries of its tables in place")?;
        let (dies, blocks) = (geometry.dies(), geometry.blocks_per_die);
        let table = BlockTable::new(dies, blocks, geometry.units_per_block(), 1);
        let die = DieState {
            free: Vec::new(),
            open: [NO_FRONTIER; STREAMS],
            job: None,
            erasing: Vec::new(),
            erases: 0,
        };
        Ok(Hftl {
            policy: Policy::new(config.cleaning, &table, dies, config.seed),
            layout: Layout::new(&geometry),
            metadata: Metadata::empty(metadata::MetadataLayout::new(config.logical_units, &geometry), pram),
            owner: vec![Lpa::NONE; geometry.units() as usize],
            dies: vec![die; dies as usize],
            next_die: Die(0),
            pending: 0,
            moved: Vec::new(),
            failed: Vec::new(),
            sequence: 1,
            latest: Time::ZERO,
            stats: HftlStats::default(),
            table,
            geometry,
            nand,
            config,
        })
    }

    /// What the controller has done so far.
    pub fn stats(&self) -> HftlStats {
        let updates = self.metadata.updates;
        let (map_updates, block_updates, live_updates) = (updates.map, updates.entries, updates.live);
        HftlStats { map_updates, block_updates, live_updates, ..self.stats }
    }
    /// Resets the statistics, also those of the array; wear stays.
    pub fn reset_stats(&mut self) {
        self.stats = HftlStats::default();
        self.metadata.updates = metadata::Updates::default();
        self.nand.reset_stats();
    }
    /// The array.
    pub fn nand(&self) -> &Nand<S> {
        &self.nand
    }
    /// Its configuration.
    pub fn config(&self) -> &HftlConfig {
        &self.config
    }
    /// The blocks.
    pub fn table(&self) -> &BlockTable {
        &self.table
    }
    /// The blocks of the array as shown on the live page.
    pub fn regions(&self) -> Vec<Region> {
        (0..self.geometry.blocks()).map(|block| self.table.region(BlockId(block))).collect()
    }
    /// Bytes of PRAM the metadata takes.
    pub fn pram_bytes(&self) -> u64 {
        self.metadata.layout().bytes()
    }
    /// Bytes of volatile memory the controller needs: live counts and the cleaner's order. The map and the tables
    /// are read in place.
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes() + 8 * self.geometry.blocks() as u64
    }

    #[inline]
    fn begin(&mut self, at: Time, extent: Extent) -> Result<Time, ControllerError> {
        ControllerError::check_extent(extent, self.config.logical_units)?;
        let start = at + self.config.overhead;
        self.latest = self.latest.max(start);
        if self.pending > 0 {
            self.advance(start)?;
        }
        Ok(start)
    }

    #[inline]
    fn block_of(&self, page: Ppa) -> BlockId {
        self.layout.block_of(page)
    }

    /// Marks the data of a page dead; its live bit stays.
    #[inline]
    fn invalidate(&mut self, page: Ppa) {
        let block = self.block_of(page);
        if self.table.lose(block) {
            self.policy.lost(&self.table, block);
        }
    }

    /// Clears the live bit of a page that no entry points to any more.
    #[inline]
    fn clear_live_bit(&mut self, at: Time, page: Ppa) -> Result<(), ControllerError> {
        let block = self.block_of(page);
        let page = page - self.geometry.first_unit(block);
        self.metadata.set_live(at, block, (page, 1), false)?;
        Ok(())
    }

    /// Checks every invariant; for tests.
    pub fn check(&self) {
        let mut live = vec![0u32; self.geometry.blocks() as usize];
        for lpa in (0..self.config.logical_units).map(Lpa) {
            let Some(page) = self.metadata.lookup(lpa) else { continue };
            let block = self.block_of(page);
            assert_eq!(self.owner[page.index()], lpa, "page {page} of {lpa} belongs to another");
            let inside = page - self.geometry.first_unit(block);
            let bit = self.metadata.live_words(block)[inside as usize / 64] >> (inside % 64) & 1;
            assert_eq!(bit, 1, "page {page} of {lpa} has no live bit");
            live[block.0 as usize] += 1;
        }
        let jobs = self.dies.iter().filter_map(|die| die.job.as_ref());
        jobs.flat_map(|job| &job.moved).for_each(|moved| live[self.block_of(moved.to).0 as usize] += 1);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let (state, entry) = (self.table.state(block), self.metadata.entry(block));
            assert_eq!(self.table.live(block), live[block.0 as usize], "{block:?} {state:?}");
            let bits: u32 = self.metadata.live_words(block).iter().map(|word| word.count_ones()).sum();
            assert_eq!(bits, live[block.0 as usize], "live bits of {block:?}");
            let die = &self.dies[self.geometry.die_of(block).index()];
            assert_eq!(die.free.contains(&block), state == BlockState::Free, "{block:?} is {state:?}");
            let open = die.open.iter().find(|frontier| frontier.block == block.0);
            assert_eq!(open.is_some(), state == BlockState::Open, "{block:?} is {state:?}");
            assert!(open.is_none_or(|frontier| frontier.next == entry.written as u32), "{block:?} {open:?}");
            let known = match entry.used {
                Use::Free | Use::Erasing => state == BlockState::Free,
                Use::Open => state == BlockState::Open,
                Use::Closed => matches!(state, BlockState::Closed | BlockState::Cleaning),
                Use::Bad => state == BlockState::Bad,
            };
            assert!(known, "{block:?} is {state:?}, its entry says {entry:?}");
            let written = self.nand.pages_written(block);
            // A cut may drop the last programs of a block whose entry records it as full.
            let right = match state {
                BlockState::Open | BlockState::Free => written == entry.written as u32,
                _ => written <= entry.written as u32,
            };
            assert!(right || state == BlockState::Bad, "{block:?} {entry:?}: {written} pages are programmed");
        }
    }
}

impl<S: Store, P: InPlace + PowerCut> BesidePram for Hftl<S, P> {
    type Pram = P;
    fn pram(&self) -> &P {
        &self.metadata.pram
    }
    fn pram_mut(&mut self) -> &mut P {
        &mut self.metadata.pram
    }
    fn pram_taken(&self) -> u64 {
        self.pram_bytes()
    }
}

impl<S: Store, P: InPlace + PowerCut> Background for Hftl<S, P> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        for die in self.geometry.all_dies() {
            self.finish_job(at, die)?;
        }
        let ends = self.geometry.all_dies().map(|die| self.nand.idle_at(die, at));
        Ok(ends.max().unwrap_or(at).max(self.metadata.end()))
    }
    fn settle(&mut self, upto: Time) {
        self.nand.settle(upto);
        self.metadata.pram.settle(upto);
        while let Some(page) = self.nand.take_needless(upto) {
            self.nand.discard(page);
        }
    }
}

impl<S: Store, P: InPlace + PowerCut> Powered for Hftl<S, P> {
    fn power_cycle(self, at: Time) -> Result<(Hftl<S, P>, RecoveryReport), String> {
        let config = self.config.clone();
        Hftl::recover(config, self.power_cut(at), at)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.idle_at(at)
    }
    fn trims_last(&self) -> bool {
        self.config.trim
    }
}

impl<S: Store, P: InPlace + PowerCut> Controller for Hftl<S, P> {
    const KEEPS: bool = S::KEEPS;

    #[inline]
    fn prefetch(&self, lpa: Lpa) {
        prefetch_index(self.metadata.map(), lpa.index());
    }
    fn prefetch_writes(&self, _: impl Iterator<Item = Lpa>) {}
    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    fn is_mapped(&self, lpa: Lpa) -> bool {
        self.metadata.lookup(lpa).is_some()
    }

    fn capacity_units(&self) -> u32 {
        self.config.logical_units
    }
    fn unit_bytes(&self) -> u32 {
        self.geometry.unit_bytes
    }

    #[inline]
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        let start = self.begin(at, extent)?;
        let (bytes, mut end) = (self.geometry.unit_bytes as usize, start);
        let mut looked_up = start;
        for (i, lpa) in extent.units().enumerate() {
            looked_up += self.config.lookup;
            let into = if S::KEEPS { &mut into[i * bytes..(i + 1) * bytes] } else { &mut [][..] };
            match self.metadata.lookup(lpa) {
                None => {
                    self.stats.unwritten_read_units += 1;
                    into.fill(0);
                    end = end.max(looked_up);
                }
                Some(page) => {
                    let unreadable = |source| ControllerError::Unreadable { lpa, source };
                    let served = self.nand.read(looked_up, page, 1, into).map_err(unreadable)?;
                    if spare::is_to_verify(&self.nand, self.config.verify_reads, page, 1) {
                        spare::verify(&mut self.nand, page, lpa, into).map_err(unreadable)?;
                    }
                    end = end.max(served.end);
                }
            }
        }
        self.latest = self.latest.max(looked_up);
        self.stats.host_read_units += extent.count as u64;
        Ok(Served { start, end })
    }

    #[inline]
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        let start = self.begin(at, extent)?;
        let bytes = self.geometry.unit_bytes as usize * S::KEEPS as usize;
        if S::KEEPS {
            assert_eq!(data.len(), extent.count as usize * bytes, "the payload of {extent:?}");
        }
        let mut end = start;
        for (i, lpa) in extent.units().enumerate() {
            end = end.max(self.write_unit(start, lpa, &data[i * bytes..(i + 1) * bytes])?);
        }
        if !self.failed.is_empty() {
            self.retire(start)?;
        }
        self.stats.host_write_units += extent.count as u64;
        Ok(Served { start, end })
    }

    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        let start = self.begin(at, extent)?;
        if !self.config.trim {
            return Ok(Served { start, end: start });
        }
        let dead: Vec<Ppa> = extent.units().filter_map(|lpa| self.metadata.lookup(lpa)).collect();
        let end = self.metadata.unmap(start, extent)?;
        let mut versions = DeadUnits::default();
        for page in dead {
            self.invalidate(page);
            self.clear_live_bit(end, page)?;
            if S::KEEPS {
                self.nand.add_dead(&mut versions, page);
            }
        }
        self.nand.supersede_all_at(versions, end);
        self.stats.host_trim_units += extent.count as u64;
        Ok(Served { start, end })
    }

    /// Writes and trims are durable when they are done: this waits for those in progress.
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = self.begin(at, Extent { start: Lpa(0), count: 0 })?;
        self.stats.flushes += 1;
        Ok(Served { start, end: start.max(self.metadata.end()) })
    }
}
