//! A coarse twin of a controller, with `k` units as one, and the state of the controller from its twin's.
//!
//! What cleaning costs depends on how full the blocks are and on which data dies together, hardly on how many units a
//! block has. A twin with the same dies and blocks and `k` times fewer units reaches the same steady state with `k` times
//! fewer writes. [`PageMap::split`] then turns each of its units into `k` units in the same block, so that the share of
//! live data of every block, the order in which blocks were filled and their wear are those of the twin. Which units stand
//! for one of the twin is the caller's choice: they must be written equally often.
//!
//! What the twin cannot tell is found by continuing at full size: which of the `k` units of a block are dead (in the
//! twin they die together), and the blocks of checkpoints (in the twin, data that is never written again).

use super::PageMap;
use super::config::{Allocation, PageMapConfig, WriteBuffer};
use crate::cleaning::CleaningPolicy;
use crate::table::BlockState;
use nvlab_medium::Store;
use nvlab_medium::flash::{Faults, FlashConfig, FlashTiming, Nand, PlaneReads, SlcMode};
use nvlab_units::{BlockId, Geometry, Lpa, Ppa};

/// Minimum units of a block of the twin. With fewer, blocks differ more by chance than those of the device, and the
/// cost of cleaning differs by a percent and more.
const UNITS_PER_BLOCK_MIN: u32 = 256;
/// Maximum number of units that are one in the twin.
const FACTOR_MAX: u32 = 256;
/// The smallest factor that is worth using.
const FACTOR_MIN: u32 = 4;

/// How many units are one in the twin: as many as possible, a multiple of each of `requests`, so that blocks and pages are
/// still divided evenly, also those in SLC mode.
fn factor(geometry: &Geometry, slc: Option<&SlcMode>, requests: &[u32]) -> Option<u32> {
    let (block, page) = (geometry.units_per_block(), geometry.units_per_page);
    (FACTOR_MIN..=FACTOR_MAX).rev().find(|&k| {
        let pages = match slc {
            None => page.is_multiple_of(k) || k.is_multiple_of(page),
            Some(slc) => page.is_multiple_of(k) && slc.units_per_page.is_multiple_of(k),
        };
        let blocks = block.is_multiple_of(k) && block / k >= UNITS_PER_BLOCK_MIN;
        pages && blocks && requests.iter().all(|&units| k.is_multiple_of(units))
    })
}

/// The array of the twin.
fn flash(fine: &FlashConfig, k: u32) -> FlashConfig {
    let geometry = &fine.geometry;
    let units_per_page = (geometry.units_per_page / k).max(1);
    let pages_per_block = geometry.units_per_block() / k / units_per_page;
    // Reads do not matter: the twin only writes, and what it moves is read in the background.
    let reads = *fine.timing.read.iter().max().expect("a part has a read time");
    FlashConfig {
        geometry: Geometry {
            units_per_page,
            pages_per_block,
            unit_bytes: geometry.unit_bytes * k,
            ..*geometry
        },
        timing: FlashTiming {
            read: vec![reads],
            units_per_read: 1,
            reads: PlaneReads::ONE,
            program: fine.program_time() * (geometry.pages_per_block / pages_per_block).max(1) as u64,
            ..fine.timing.clone()
        },
        faults: Faults { bit_errors: None, ..fine.faults },
        ..fine.clone()
    }
}

impl PageMapConfig {
    /// Why a controller with these parameters has no twin; `flushes`: some of the writes are forced to the medium.
    pub fn twin_obstacle(&self, faults: &Faults, flushes: bool) -> Option<&'static str> {
        if self.demand.is_some() {
            // A twin does not show which pages of its map are in memory, and where the others are.
            return Some("the map is not entirely in memory");
        }
        if self.allocation == Allocation::Superblock {
            return Some("superblocks are cleaned as a whole");
        }
        if faults.program_failure > 0.0 {
            return Some("programs may fail");
        }
        let is_protected = self.buffer.is_some_and(|buffer| buffer.protected);
        (flushes && !is_protected).then_some("flushes pad pages, because the buffer is not protected")
    }
}

impl<S: Store> PageMap<S> {
    /// A factory-new twin of this controller, which must be new too, and the number of units that are one in it: a multiple
    /// of each of `requests`, the units of requests. `None` if the state of a twin would not be that of this controller
    /// ([`PageMapConfig::twin_obstacle`]), with payload, or with too few units in a block.
    ///
    /// Of its units, the first [`PageMapConfig::logical_units`] of this controller divided by the factor, rounded down,
    /// stand for units of this controller; what it has beyond them stands for the blocks of checkpoints.
    pub fn twin(&self, requests: &[u32], flushes: bool) -> Option<(PageMap, u32)> {
        let nand = self.array.nand().config();
        if S::KEEPS || self.config.twin_obstacle(&nand.faults, flushes).is_some() {
            return None;
        }
        let slc = self.cache().and_then(|_| self.array.nand().cells().slc_mode());
        let k = factor(&self.geometry, slc, requests)?;
        let array = flash(nand, k);
        let pages = self.config.streams.count() * array.geometry.dies() * array.geometry.units_per_page;
        let map_blocks = match self.config.checkpoint_units {
            // The last one, and the one being written or what is kept for it.
            Some(_) => 2 * self.config.blocks_of_checkpoint(&self.geometry),
            None => 0,
        };
        let map_units = map_blocks * array.geometry.units_per_block() as u64;
        let config = PageMapConfig {
            logical_units: self.config.logical_units / k + u32::try_from(map_units).ok()?,
            buffer: self
                .config
                .buffer
                .map(|buffer| WriteBuffer { units: (buffer.units / k).max(pages), ..buffer }),
            checkpoint_units: None,
            ..self.config.clone()
        };
        let mut array = Nand::new(array, ());
        if let Some(mode) = slc {
            let (units_per_page, program) = (mode.units_per_page / k, nand.slc_program_time(mode));
            array = array.with_slc_mode(SlcMode { units_per_page, program, ..*mode });
        }
        let mut twin = PageMap::new(config, array).ok()?;
        if let Some(cache) = self.cache() {
            twin = twin.with_cache(cache).ok()?;
        }
        Some((twin, k))
    }

    /// Takes over the state of a drained twin made by [`PageMap::twin`]; this controller must still be new.
    /// `member(unit, nth)` is the `nth` of the `k` units that `unit` of the twin stands for; `None`: none, the space is
    /// dead. No unit may be named twice. Returns false, having changed nothing, if the twin has retired blocks.
    pub fn split(&mut self, twin: &PageMap, k: u32, mut member: impl FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        let mut blocks: Vec<BlockId> = (0..self.geometry.blocks()).map(BlockId).collect();
        let is_bad = |map: &BlockState| *map == BlockState::Bad;
        if blocks.iter().any(|&b| is_bad(&twin.table.state(b)) != is_bad(&self.table.state(b))) {
            return false;
        }
        // Policies are told of the blocks in the order in which they were filled.
        blocks.sort_by_key(|&block| twin.table.birth(block));
        for block in blocks {
            self.split_block(twin, k, block, &mut member);
        }
        for (die, like) in self.dies.iter_mut().zip(&twin.dies) {
            die.free.clone_from(&like.free);
        }
        for (frontier, like) in self.writers.all_mut().iter_mut().zip(twin.writers.all()) {
            frontier.block = like.block;
            frontier.next = like.next * k;
            frontier.programmed = frontier.next / self.geometry.units_per_page;
            // A page of fewer than `k` units is one unit of the twin's.
            frontier.slots = (like.slots * k).min(self.geometry.units_per_page);
            frontier.end = like.end * k;
        }
        if let (Some(cache), Some(like)) = (&mut self.cache, &twin.cache) {
            cache.take_blocks(like);
        }
        self.numbers.sequence = twin.numbers.sequence * k as u64;
        true
    }

    fn split_block(
        &mut self,
        twin: &PageMap,
        k: u32,
        block: BlockId,
        member: &mut impl FnMut(Lpa, u32) -> Option<Lpa>,
    ) {
        let state = match twin.table.state(block) {
            // What was left to move is moved when it is cleaned again.
            BlockState::Cleaning => BlockState::Closed,
            state => state,
        };
        let units = self.geometry.units_per_block();
        let slc = self.cache.as_ref().filter(|_| twin.array.is_slc(block));
        let filled = match state {
            BlockState::Closed => slc.map_or(units, |cache| cache.end),
            BlockState::Open => {
                let open = twin.writers.all().iter().find(|frontier| frontier.block == block.0);
                open.map_or(0, |frontier| frontier.next * k)
            }
            _ => 0,
        };
        if slc.is_some() {
            self.array.set_slc(block, true);
        }
        let pages = filled / self.geometry.units_per_page;
        self.array.nand_mut().assume(block, pages, twin.array.nand().cells());
        let first = block.0 * (units / k);
        let mut live = 0;
        for unit in (first..first + filled / k).map(Ppa).filter(|&unit| twin.map.is_live(unit)) {
            for nth in 0..k {
                let Some(lpa) = member(twin.map.owner(unit), nth) else { continue };
                let to = Ppa(unit.0 * k + nth);
                self.map.place(to, lpa);
                self.map.point(lpa, Ppa::NONE, to);
                live += 1;
            }
        }
        self.table.gain_many(block, live);
        self.table.set_birth(block, twin.table.birth(block) * k as u64);
        self.table.set_state(block, state);
        if state == BlockState::Closed {
            self.policy.closed(&self.table, block);
        }
    }
}
