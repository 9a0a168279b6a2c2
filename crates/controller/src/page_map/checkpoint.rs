//! Checkpoints of the map: with them, recovery scans only what was written since.
//!
//! The map is written in pieces ([`super::pieces`]), one after the other, evenly over the host's writes: no request
//! waits for one, and the map never takes a large share of the program bandwidth at once. A *turn* writes every piece
//! once, in blocks of its own. Each piece is a snapshot of its part of the map, taken when its turn comes.
//!
//! There is no directory of the pieces: a piece says which it is and of which turn, and recovery reads the blocks of the
//! last complete turn and of the one in progress, at most twice the map. (A directory would be programmed once more for
//! every piece.)
//!
//! Rejected: a page of the map for each page of the host's until the map is written. For that long, half of the writes are the map's: `ssd-tlc`,
//! sequential writes of 128 KiB, 32 at a time, p99.9 18.2 ms instead of 11.1. The map takes 1.39 % of the programs either way.
//!
//! Invariants
//! 1. A piece is programmed only after everything it points to.
//! 2. The blocks of the previous turn, and the journal of trims before the present one, are erased only after the last piece
//!    of the turn is programmed. So every piece can be read at any time, at most two turns old.
//! 3. A turn has blocks of its own from its beginning: no piece waits for the cleaner.

use super::PageMap;
use super::config::PageMapConfig;
use super::frontier::{Frontier, NO_BLOCK};
use super::pieces::{Moment, Pieces};
use super::spare::Kind;
use crate::ControllerError;
use crate::table::BlockState;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Geometry, Lpa, Ticket, Time};
use serde::{Deserialize, Serialize};

/// The state of the controller's checkpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Turns are written, with a journal of trims beside them.
    on: bool,
    /// Host units between two pieces; `None`: no checkpoints.
    every: Option<u64>,
    since: u64,
    /// The number of the present or last turn.
    pub number: u64,
    pub pieces: Pieces,
    /// The blocks of the last complete turn.
    pub blocks: Vec<BlockId>,
    /// Erased blocks kept for the next turn and journal, so that beginning one does not have to clean.
    pool: Vec<BlockId>,
    phase: Phase,
    /// The rest of the turn is written as fast as the host's pages: the journal of trims is full.
    hurries: bool,
    /// There is something to do at the host's next page.
    active: bool,
}

/// The progress of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Phase {
    Idle,
    Writing(Turn),
    /// All pieces are queued; they are programmed when every die has reached its ticket.
    Committing(Turn, Vec<Ticket>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Turn {
    blocks: Vec<BlockId>,
    /// Journal blocks this turn makes obsolete.
    journal: Vec<BlockId>,
    /// The next piece, and where its next page goes: index into `blocks`, and page.
    next: u32,
    place: (usize, u32),
    piece: Option<Piece>,
}

/// A piece being written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Piece {
    /// The snapshot; empty without payload.
    bytes: Vec<u8>,
    /// Its pages programmed so far.
    page: u32,
    wait: Wait,
}

/// What a piece waits for before it is programmed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Wait {
    /// That these pages, partly filled at the snapshot, are programmed: frontier, block and page.
    Staged(Vec<(u32, u32, u32)>),
    /// That every die has reached its ticket.
    Programs(Vec<Ticket>),
    Nothing,
}

impl State {
    /// True if the block is kept erased for the next turn or journal.
    pub fn keeps(&self, block: BlockId) -> bool {
        self.pool.contains(&block)
    }
    /// There is something to do at every page of the host's, until [`State::deactivate`].
    pub fn activate(&mut self) {
        self.active = true;
        self.since = 0;
    }
    pub fn deactivate(&mut self) {
        self.active = false;
    }
    /// True if a step of the turn can be done at the host's next page.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }

    pub fn new(config: &PageMapConfig, geometry: &Geometry) -> State {
        let pieces = config.pieces(geometry);
        State {
            on: config.checkpoint_units.is_some() || config.demand.is_some(),
            every: config.checkpoint_units.map(|units| (units / pieces.count as u64).max(1)),
            since: 0,
            number: 0,
            pieces,
            blocks: Vec::new(),
            pool: Vec::new(),
            phase: Phase::Idle,
            hurries: false,
            active: false,
        }
    }

    /// True if checkpoints are enabled.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Adds `written` units; returns true if enough were written since the last piece was begun.
    #[inline]
    pub fn is_due(&mut self, written: u32) -> bool {
        let Some(every) = self.every else { return false };
        self.since += written as u64;
        self.since >= every
    }

    /// A program failed: what was staged at a snapshot may not be programmed where the snapshot says.
    pub fn forget_staged(&mut self) {
        if let Phase::Writing(turn) = &mut self.phase
            && matches!(turn.piece, Some(Piece { wait: Wait::Staged(_), .. }))
        {
            turn.piece = None;
            self.since = self.every.unwrap_or(0);
            self.active = self.hurries;
        }
    }
}

impl<S: Store> PageMap<S> {
    /// Begins the next piece, and the next turn if all of the last one are written. If the piece before is still waiting
    /// for pages to fill, they are padded.
    pub(super) fn begin_piece(&mut self, at: Time) -> Result<(), ControllerError> {
        if self.demand.is_some() {
            return self.begin_turn_of_directory(at);
        }
        match &self.checkpoint.phase {
            Phase::Idle => self.begin_turn(at)?,
            Phase::Writing(Turn { piece: Some(Piece { wait: Wait::Staged(pages), .. }), .. }) => {
                let pages = pages.clone();
                return self.pad_staged(at, &pages);
            }
            Phase::Writing(Turn { piece: Some(_), .. }) | Phase::Committing(..) => return Ok(()),
            Phase::Writing(_) => {}
        }
        self.take_snapshot();
        Ok(())
    }

    /// Begins a turn and hurries it: the journal of trims is full.
    pub(super) fn hurry_turn(&mut self, at: Time) -> Result<(), ControllerError> {
        self.checkpoint.hurries = true;
        self.begin_piece(at)
    }

    fn begin_turn(&mut self, at: Time) -> Result<(), ControllerError> {
        self.checkpoint.number += 1;
        // Blocks first: taking them may clean, which may write trims.
        let blocks = self.take_map_blocks(at)?;
        self.record_trims(at);
        let journal = self.close_journal();
        let place = (0, self.array.next_page(blocks[0], 0));
        self.checkpoint.phase = Phase::Writing(Turn { blocks, journal, next: 0, place, piece: None });
        Ok(())
    }

    /// Takes the snapshot of the next piece of the turn.
    fn take_snapshot(&mut self) {
        let wait = self.wait_for_staged();
        let Phase::Writing(turn) = &self.checkpoint.phase else { return };
        let pieces = &self.checkpoint.pieces;
        let mut bytes = Vec::new();
        if S::KEEPS {
            let moment = self.moment();
            let map = self.map.entries(pieces.units(turn.next)).iter().copied();
            let length = pieces.pages_of(turn.next) as u64 * self.geometry.page_bytes();
            bytes = pieces.encode(&moment, map, length as usize);
        }
        let Phase::Writing(turn) = &mut self.checkpoint.phase else { return };
        turn.piece = Some(Piece { bytes, page: 0, wait });
        self.checkpoint.since = 0;
        self.checkpoint.active = true;
    }

    /// This moment, for a snapshot.
    pub(super) fn moment(&self) -> Moment {
        let open = self.writers.all().iter().filter(|frontier| frontier.block != NO_BLOCK);
        let open = open.map(|frontier| BlockId(frontier.block)).collect();
        Moment { stamp: self.numbers.stamp, sequence: self.numbers.sequence, open }
    }

    /// What a snapshot taken now waits for.
    pub(super) fn wait_for_staged(&self) -> Wait {
        let per_page = self.geometry.units_per_page;
        let partly = |&(_, frontier): &(u32, &Frontier)| {
            frontier.block != NO_BLOCK && !frontier.next.is_multiple_of(per_page)
        };
        let staged = (0..).zip(self.writers.all()).filter(partly);
        Wait::Staged(staged.map(|(index, open)| (index, open.block, open.next / per_page)).collect())
    }

    /// True if what a snapshot waits for is programmed.
    pub(super) fn waited(&mut self, at: Time, wait: &mut Wait) -> bool {
        if let Wait::Staged(pages) = wait {
            pages.retain(|page| self.is_staged(page));
            if pages.is_empty() {
                *wait = Wait::Programs(self.array.last_programs());
            }
        }
        if let Wait::Programs(tickets) = wait
            && self.array.passed(tickets, at)
        {
            *wait = Wait::Nothing;
        }
        matches!(wait, Wait::Nothing)
    }

    /// Pads the pages that a snapshot waits for.
    pub(super) fn pad_staged(&mut self, at: Time, pages: &[(u32, u32, u32)]) -> Result<(), ControllerError> {
        for page in pages {
            if self.is_staged(page) {
                self.pad(at, page.0, true)?;
            }
        }
        Ok(())
    }

    /// True if a page that was partly filled at a snapshot is not yet programmed.
    fn is_staged(&self, &(index, block, page): &(u32, u32, u32)) -> bool {
        let frontier = &self.writers[index];
        frontier.block == block && frontier.programmed <= page
    }

    /// Sets erased blocks aside for the first two checkpoints: with superblocks, taking them later could require
    /// cleaning a whole superblock.
    pub(super) fn fill_pool(&mut self) {
        if !self.checkpoint.is_on() || self.demand.is_some() {
            return;
        }
        for _ in 0..2 * self.config.blocks_of_checkpoint(&self.geometry) {
            let Some(block) = self.dies[0].free.pop() else { return };
            self.table.set_state(block, BlockState::Map);
            self.checkpoint.pool.push(block);
        }
    }

    /// Performs one step of the turn: programs a page of a piece, or looks whether it may.
    pub(super) fn step_checkpoint(&mut self, at: Time) -> Result<(), ControllerError> {
        if self.demand.is_some() {
            return self.step_turn(at);
        }
        match std::mem::replace(&mut self.checkpoint.phase, Phase::Idle) {
            Phase::Idle => self.checkpoint.active = false,
            Phase::Writing(mut turn) => match turn.piece.take() {
                Some(piece) => self.step_piece(at, turn, piece),
                None => {
                    self.checkpoint.phase = Phase::Writing(turn);
                    self.take_snapshot();
                }
            },
            Phase::Committing(turn, tickets) if self.array.passed(&tickets, at) => self.adopt_turn(at, turn),
            committing => self.checkpoint.phase = committing,
        }
        Ok(())
    }

    fn step_piece(&mut self, at: Time, mut turn: Turn, mut piece: Piece) {
        if !self.waited(at, &mut piece.wait) {
            turn.piece = Some(piece);
            self.checkpoint.phase = Phase::Writing(turn);
            return;
        }
        self.program_next(at, turn, piece);
    }

    /// Writes the rest of the turn in progress, or a whole one, and promises its end.
    pub(super) fn finish_turn(&mut self, at: Time) -> Result<(), ControllerError> {
        if self.demand.is_some() {
            return self.finish_directory(at);
        }
        self.hurry_turn(at)?;
        let mut now = at;
        while !matches!(self.checkpoint.phase, Phase::Idle) {
            // Pads what a snapshot waits for.
            self.begin_piece(now)?;
            now = self.array.finish_all(now);
            self.step_checkpoint(now)?;
        }
        Ok(())
    }

    /// The last piece of a turn is programmed: the previous turn and its journal are obsolete.
    fn adopt_turn(&mut self, at: Time, turn: Turn) {
        (self.checkpoint.active, self.checkpoint.hurries) = (false, false);
        let old = std::mem::replace(&mut self.checkpoint.blocks, turn.blocks);
        let pool_max = self.config.blocks_of_checkpoint(&self.geometry) as usize + 1;
        for block in old.into_iter().chain(turn.journal) {
            if self.checkpoint.pool.len() == pool_max {
                self.erase(at, block);
            } else if self.erase_at(at, block) {
                self.checkpoint.pool.push(block);
            }
        }
    }

    /// Programs the next page of a piece.
    fn program_next(&mut self, at: Time, mut turn: Turn, mut piece: Piece) {
        let Geometry { units_per_page, pages_per_block, .. } = self.geometry;
        let pieces = self.checkpoint.pieces;
        let content = turn.next as u64 * pieces.pages as u64 + piece.page as u64;
        let (which, page) = turn.place;
        let block = turn.blocks[which];
        let (mut data, mut spare) = (Vec::new(), Vec::new());
        if S::KEEPS {
            let page_bytes = self.geometry.page_bytes() as usize;
            data.extend_from_slice(&piece.bytes[piece.page as usize * page_bytes..][..page_bytes]);
            spare = self.beside_piece(&data, content as u32);
        }
        self.stats.map_units += units_per_page as u64;
        let payload = Payload::new(&data, &spare);
        match self.array.program(at, block, page, 1, payload, true) {
            Ok(_) => {
                piece.page += 1;
                let written = piece.page == pieces.pages_of(turn.next);
                turn.next += written as u32;
                turn.piece = (!written).then_some(piece);
                if turn.next == pieces.count {
                    self.checkpoint.phase = Phase::Committing(turn, self.array.last_programs());
                    return;
                }
                turn.place = match self.array.next_page(block, page + 1) {
                    next if next < pages_per_block => (which, next),
                    _ => (which + 1, self.array.next_page(turn.blocks[which + 1], 0)),
                };
                self.checkpoint.active = turn.piece.is_some() || self.checkpoint.hurries;
                self.checkpoint.phase = Phase::Writing(turn);
            }
            Err(MediumError::ProgramFailed(_)) => self.abandon(at, turn, block, page),
            Err(other) => panic!("a checkpoint broke a rule of the medium: {other}"),
        }
    }

    /// The spare areas of a page of the pieces of a turn, or of a directory: the `nth` from its beginning.
    pub(super) fn beside_piece(&mut self, data: &[u8], nth: u32) -> Vec<u8> {
        let units = data.chunks(self.geometry.unit_bytes as usize);
        let lpas = (nth * self.geometry.units_per_page..).map(Lpa);
        let number = self.checkpoint.number;
        let beside = |(unit, lpa)| self.numbers.beside(Kind::Checkpoint, lpa, number).encode(unit);
        units.zip(lpas).flat_map(beside).collect()
    }

    /// Abandons the turn after a failed program. The next one is due at once; until it is complete, the last one counts.
    fn abandon(&mut self, at: Time, turn: Turn, failed: BlockId, page: u32) {
        (self.checkpoint.active, self.checkpoint.hurries) = (false, false);
        self.checkpoint.since = self.checkpoint.every.unwrap_or(0);
        self.journal.blocks.extend(turn.journal);
        for block in turn.blocks {
            if block == failed { self.retire(at, block, page) } else { self.erase(at, block) }
        }
    }

    fn take_map_blocks(&mut self, at: Time) -> Result<Vec<BlockId>, ControllerError> {
        let mut left = self.checkpoint.pieces.pages_of_all();
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

    /// Takes an erased block for a turn or journal; `turn` spreads them over the dies.
    pub(super) fn take_map_block(&mut self, at: Time, turn: u64) -> Result<BlockId, ControllerError> {
        if let Some(block) = self.take_pooled() {
            return Ok(block);
        }
        let dies = self.geometry.dies_from(Die((turn % self.geometry.dies() as u64) as u32));
        let has_one = |&die: &Die| self.erased_blocks(die) > self.config.free_blocks_min;
        let at_once = dies.clone().find(has_one);
        let mut refused = None;
        for die in at_once.into_iter().chain(dies) {
            match self.spare_block(at, die) {
                Ok(block) => return Ok(block),
                Err(error) => refused = Some(error),
            }
        }
        // The only space to gain is in open blocks. The next turn frees this block again.
        self.take_erased(None).ok_or_else(|| refused.unwrap_or_else(|| self.end_of_life(Die(0))))
    }

    /// Takes a block of the pool, and in its place the least worn of the erased blocks of its die if that is less worn: the map is
    /// written more often than anything else, and would wear out the blocks that it keeps for itself.
    fn take_pooled(&mut self) -> Option<BlockId> {
        let block = self.checkpoint.pool.pop()?;
        let worn = |block: BlockId| self.array.worn(block);
        let free = &mut self.dies[self.geometry.die_of(block).index()].free;
        let least = free.iter_mut().min_by_key(|other| worn(**other));
        // A block of which a part is bad stays here: the cleaner needs whole ones.
        let is_better = |other: BlockId| {
            worn(other) < worn(block) && self.table.capacity(other) <= self.table.capacity(block)
        };
        let Some(other) = least.filter(|other| is_better(**other)) else { return Some(block) };
        let taken = std::mem::replace(other, block);
        self.table.set_state(taken, BlockState::Map);
        self.table.set_state(block, BlockState::Free);
        Some(taken)
    }

    /// Takes an erased block for a turn or journal, without cleaning. `gains` is a die that will very soon have
    /// one more. On other dies the last one stays for the cleaner.
    pub(super) fn take_erased(&mut self, gains: Option<Die>) -> Option<BlockId> {
        if let Some(block) = self.take_pooled() {
            return Some(block);
        }
        let left = |die: Die| self.dies[die.index()].free.len() + (Some(die) == gains) as usize;
        let die = self.geometry.all_dies().max_by_key(|&die| left(die)).filter(|&die| left(die) > 1)?;
        let block = self.take_free(die, self.config.wear.take_moved()).ok()?;
        self.table.set_state(block, BlockState::Map);
        Some(block)
    }

    /// Cleans a die until it can spare an erased block, and takes it.
    fn spare_block(&mut self, at: Time, die: Die) -> Result<BlockId, ControllerError> {
        let mut tries = 0;
        while self.erased_blocks(die) <= self.config.free_blocks_min {
            tries += 1;
            if tries > 2 * self.geometry.blocks_per_die {
                return Err(self.end_of_life(die));
            }
            self.clean(at, die)?;
        }
        let block = self.take_free(die, self.config.wear.take_moved())?;
        self.table.set_state(block, BlockState::Map);
        Ok(block)
    }
}
