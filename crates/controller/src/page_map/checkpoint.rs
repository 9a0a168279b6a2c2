//! Checkpoints of the map: with them, recovery scans only what was written after the last one.
//!
//! Format, little-endian, in the data of units of kind `Checkpoint` with the checkpoint's number as sequence
//! and the position as lpa: magic u32, logical units u32, stamp u64, sequence u64, open blocks u32, then that
//! many block numbers u32, then the map, one u32 per logical unit (0xffffffff: nothing).
//!
//! A checkpoint is a snapshot, written a page at a time between the host's pages, so that no request waits for it.
//! Its first part, with the header, is programmed last: without it the checkpoint does not exist.
//!
//! Invariants
//! 1. The header is programmed only after everything the map points to.
//! 2. The blocks of the previous checkpoint, and the journal of trims since then, are erased only after the header
//!    is programmed.

use super::PageMap;
use super::config::{CHECKPOINT_HEADER_BYTES as HEADER_BYTES, PageMapConfig};
use super::frontier::NO_BLOCK;
use super::spare::{Kind, Spare};
use crate::ControllerError;
use crate::table::BlockState;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Geometry, Ticket, Time};
use serde::{Deserialize, Serialize};

const MAGIC: u32 = 0x4350_564e; // "NVPC"

/// The state of the controller's checkpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    every: Option<u64>,
    since: u64,
    pub number: u64,
    /// Units of one checkpoint.
    units: u64,
    pub blocks: Vec<BlockId>,
    /// Erased blocks kept for the next checkpoint and journal, so that beginning one does not have to clean.
    pool: Vec<BlockId>,
    phase: Phase,
}

/// The progress of the next checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Phase {
    Idle,
    Writing(Attempt),
    /// The header is queued; it is programmed when every die has reached its ticket.
    Committing(Attempt, Vec<Ticket>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Attempt {
    blocks: Vec<BlockId>,
    /// Journal blocks this checkpoint makes obsolete.
    journal: Vec<BlockId>,
    /// The snapshot; empty without payload.
    bytes: Vec<u8>,
    /// Pages programmed, and where the next goes: index into `blocks`, and page.
    page: u64,
    place: (usize, u32),
    /// What must be programmed before the header, on each die.
    before: Vec<Ticket>,
}

impl State {
    /// True if the block is kept erased for the next checkpoint or journal.
    pub fn keeps(&self, block: BlockId) -> bool {
        self.pool.contains(&block)
    }
    /// True if a checkpoint is being written.
    #[inline]
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    pub fn new(config: &PageMapConfig, geometry: &Geometry) -> State {
        let units = config.units_of_checkpoint(geometry);
        State {
            every: config.checkpoint_units,
            since: 0,
            number: 0,
            units,
            blocks: Vec::new(),
            pool: Vec::new(),
            phase: Phase::Idle,
        }
    }

    /// True if checkpoints are enabled.
    pub fn is_on(&self) -> bool {
        self.every.is_some()
    }

    /// Adds `written` units; returns true if enough were written since the last checkpoint.
    #[inline]
    pub fn is_due(&mut self, written: u32) -> bool {
        let Some(every) = self.every else { return false };
        self.since += written as u64;
        self.since >= every
    }
}

/// The contents of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub stamp: u64,
    pub sequence: u64,
    pub open: Vec<BlockId>,
    pub map: Vec<u32>,
}

impl Checkpoint {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize + 4 * (self.open.len() + self.map.len()));
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend((self.map.len() as u32).to_le_bytes());
        bytes.extend(self.stamp.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend((self.open.len() as u32).to_le_bytes());
        bytes.extend(self.open.iter().flat_map(|block| block.0.to_le_bytes()));
        bytes.extend(self.map.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes
    }

    /// `None` if this is not a checkpoint of a map of `logical_units`.
    pub fn decode(bytes: &[u8], logical_units: u32) -> Option<Checkpoint> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES as usize)?;
        let u32_at = |i: usize| u32::from_le_bytes(header[i..i + 4].try_into().expect("4 bytes"));
        let u64_at = |i: usize| u64::from_le_bytes(header[i..i + 8].try_into().expect("8 bytes"));
        if u32_at(0) != MAGIC || u32_at(4) != logical_units {
            return None;
        }
        let mut words = rest.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("4 bytes")));
        let open: Vec<BlockId> = words.by_ref().take(u32_at(24) as usize).map(BlockId).collect();
        let map: Vec<u32> = words.take(logical_units as usize).collect();
        let complete = map.len() == logical_units as usize;
        complete.then_some(Checkpoint { stamp: u64_at(8), sequence: u64_at(16), open, map })
    }
}

impl<S: Store> PageMap<S> {
    /// Units of the pages of one checkpoint.
    pub(super) fn checkpoint_units(&self) -> u64 {
        self.checkpoint_pages() * self.geometry.units_per_page as u64
    }

    /// Takes the snapshot of a new checkpoint, unless one is being written.
    pub(super) fn begin_checkpoint(&mut self, at: Time) -> Result<(), ControllerError> {
        if self.checkpoint.is_active() {
            return Ok(());
        }
        self.checkpoint.since = 0;
        self.checkpoint.number += 1;
        // Blocks first: taking them may clean, which changes the map.
        let blocks = self.take_map_blocks(at)?;
        self.pad_all(at)?;
        self.record_trims(at);
        let mut bytes = Vec::new();
        if S::KEEPS {
            let open = self.frontiers.iter().filter(|frontier| frontier.block != NO_BLOCK);
            let open = open.map(|frontier| BlockId(frontier.block)).collect();
            let (stamp, sequence, map) = (self.stamp, self.sequence, self.l2p.clone());
            bytes = Checkpoint { stamp, sequence, open, map }.encode();
            let pages = self.checkpoint_pages();
            bytes.resize((pages * self.geometry.page_bytes()) as usize, 0);
        }
        let (journal, before) = (self.close_journal(), self.array.last());
        let place = (0, self.array.next_page(blocks[0], 0));
        self.checkpoint.phase = Phase::Writing(Attempt { blocks, journal, bytes, page: 0, place, before });
        Ok(())
    }

    /// Sets erased blocks aside for the first two checkpoints: with superblocks, taking them later could require
    /// cleaning a whole superblock.
    pub(super) fn fill_pool(&mut self) {
        if !self.checkpoint.is_on() {
            return;
        }
        for _ in 0..2 * self.config.blocks_of_checkpoint(&self.geometry) {
            let Some(block) = self.dies[0].free.pop() else { return };
            self.table.set_state(block, BlockState::Map);
            self.checkpoint.pool.push(block);
        }
    }

    /// Performs one step of the checkpoint being written.
    pub(super) fn step_checkpoint(&mut self, at: Time) {
        match std::mem::replace(&mut self.checkpoint.phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::Writing(attempt) => {
                let header = attempt.page + 1 == self.checkpoint_pages();
                if header && !self.array.passed(&attempt.before, at) {
                    self.checkpoint.phase = Phase::Writing(attempt);
                } else {
                    self.program_next(at, attempt);
                }
            }
            Phase::Committing(attempt, tickets) if self.array.passed(&tickets, at) => {
                self.adopt_attempt(at, attempt)
            }
            committing => self.checkpoint.phase = committing,
        }
    }

    /// Writes a whole checkpoint, or the rest of the one being written, and promises its end.
    pub(super) fn finish_checkpoint(&mut self, at: Time) -> Result<(), ControllerError> {
        self.begin_checkpoint(at)?;
        let mut now = at;
        while self.checkpoint.is_active() {
            let header = match &self.checkpoint.phase {
                Phase::Writing(attempt) => attempt.page + 1 == self.checkpoint_pages(),
                _ => true,
            };
            if header {
                now = self.array.finish_all(now);
            }
            self.step_checkpoint(now);
        }
        Ok(())
    }

    fn checkpoint_pages(&self) -> u64 {
        self.checkpoint.units.div_ceil(self.geometry.units_per_page as u64)
    }

    /// The header is programmed: the previous checkpoint and its journal are obsolete.
    fn adopt_attempt(&mut self, at: Time, attempt: Attempt) {
        let old = std::mem::replace(&mut self.checkpoint.blocks, attempt.blocks);
        let pool_max = self.config.blocks_of_checkpoint(&self.geometry) as usize + 1;
        for block in old.into_iter().chain(attempt.journal) {
            if self.checkpoint.pool.len() == pool_max {
                self.erase(at, block);
            } else if self.erase_at(at, block) {
                self.checkpoint.pool.push(block);
            }
        }
    }

    /// Programs the next page: the second, the third ... and the first, with the header, last.
    fn program_next(&mut self, at: Time, mut attempt: Attempt) {
        let Geometry { units_per_page, pages_per_block, unit_bytes, .. } = self.geometry;
        let pages = self.checkpoint_pages();
        let content = (attempt.page + 1) % pages;
        let (which, page) = attempt.place;
        let block = attempt.blocks[which];
        let (mut data, mut spare) = (Vec::new(), Vec::new());
        if S::KEEPS {
            let page_bytes = self.geometry.page_bytes() as usize;
            data.extend_from_slice(&attempt.bytes[content as usize * page_bytes..][..page_bytes]);
            for (unit, number) in data.chunks(unit_bytes as usize).zip(content * units_per_page as u64..) {
                let (sequence, stamp) = (self.checkpoint.number, self.stamp);
                let beside =
                    Spare { kind: Kind::Checkpoint, damaged: false, lpa: number as u32, sequence, stamp };
                self.stamp += 1;
                spare.extend_from_slice(&beside.encode(unit));
            }
        }
        self.stats.map_units += units_per_page as u64;
        let payload = Payload { data: &data, spare: &spare };
        match self.array.program(at, block, page, 1, payload, true) {
            Ok(_) if attempt.page + 1 == pages => {
                let tickets = self.array.last();
                self.checkpoint.phase = Phase::Committing(attempt, tickets);
            }
            Ok(_) => {
                attempt.page += 1;
                attempt.place = match self.array.next_page(block, page + 1) {
                    next if next < pages_per_block => (which, next),
                    _ => (which + 1, self.array.next_page(attempt.blocks[which + 1], 0)),
                };
                self.checkpoint.phase = Phase::Writing(attempt);
            }
            Err(MediumError::ProgramFailed(_)) => self.abandon(at, attempt, block, page),
            Err(other) => panic!("a checkpoint broke a rule of the medium: {other}"),
        }
    }

    /// Abandons the checkpoint after a failed program. The next one is due at once.
    fn abandon(&mut self, at: Time, attempt: Attempt, failed: BlockId, page: u32) {
        self.checkpoint.since = self.checkpoint.every.unwrap_or(0);
        self.journal.blocks.extend(attempt.journal);
        for block in attempt.blocks {
            if block == failed { self.retire(at, block, page) } else { self.erase(at, block) }
        }
    }

    fn take_map_blocks(&mut self, at: Time) -> Result<Vec<BlockId>, ControllerError> {
        let mut left = self.checkpoint_pages();
        let mut blocks = Vec::new();
        while left > 0 {
            match self.take_map_block(at, self.checkpoint.number + blocks.len() as u64) {
                Ok(block) => {
                    left = left.saturating_sub(self.array.pages_left(block, 0) as u64);
                    blocks.push(block);
                }
                Err(error) => {
                    // Nothing was written to them: they are still erased.
                    self.checkpoint.pool.extend(blocks);
                    return Err(error);
                }
            }
        }
        Ok(blocks)
    }

    /// Takes an erased block for a checkpoint or journal; `turn` spreads them over the dies.
    pub(super) fn take_map_block(&mut self, at: Time, turn: u64) -> Result<BlockId, ControllerError> {
        if let Some(block) = self.checkpoint.pool.pop() {
            return Ok(block);
        }
        let dies = self.geometry.dies();
        let by_turn = |i: u32| ((turn + i as u64) % dies as u64) as u32;
        let has_one = |&die: &u32| self.erased_blocks(die) > self.config.free_blocks_min;
        let at_once = (0..dies).map(by_turn).find(has_one);
        let mut refused = None;
        for die in at_once.into_iter().chain((0..dies).map(by_turn)) {
            match self.spare_block(at, die) {
                Ok(block) => return Ok(block),
                Err(error) => refused = Some(error),
            }
        }
        // The only space to gain is in open blocks. The next checkpoint frees this block again.
        self.take_erased(dies).ok_or_else(|| refused.unwrap_or_else(|| self.end_of_life(0)))
    }

    /// Takes an erased block for a checkpoint or journal, without cleaning. `gains` is a die that will very soon have
    /// one more. On other dies the last one stays for the cleaner.
    pub(super) fn take_erased(&mut self, gains: u32) -> Option<BlockId> {
        if let Some(block) = self.checkpoint.pool.pop() {
            return Some(block);
        }
        let left = |die: u32| self.dies[die as usize].free.len() + (die == gains) as usize;
        let die = (0..self.geometry.dies()).max_by_key(|&die| left(die)).filter(|&die| left(die) > 1)?;
        let block = self.take_free(die, true).ok()?;
        self.table.set_state(block, BlockState::Map);
        Some(block)
    }

    /// Cleans a die until it can spare an erased block, and takes it.
    fn spare_block(&mut self, at: Time, die: u32) -> Result<BlockId, ControllerError> {
        let mut tries = 0;
        while self.erased_blocks(die) <= self.config.free_blocks_min {
            tries += 1;
            if tries > 2 * self.geometry.blocks_per_die {
                return Err(self.end_of_life(die));
            }
            self.clean(at, die)?;
        }
        let block = self.take_free(die, true)?;
        self.table.set_state(block, BlockState::Map);
        Ok(block)
    }
}
