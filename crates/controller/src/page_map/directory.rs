//! The directory of the translation pages, and the turns that make it durable.
//!
//! A turn leaves on flash all that a recovery needs besides the host's data written since it began: every translation page
//! as it was then or later, and a directory that says where each is. It
//!
//! 1. begins: notes the moment, and closes the journal of trims;
//! 2. sweeps: programs every page that was changed by then, and those left in the emptiest blocks of the log;
//! 3. takes a snapshot of the directory, and waits until everything it refers to, directly or through the pages, is
//!    programmed;
//! 4. programs the snapshot, in blocks of its own;
//! 5. erases what no complete directory refers to: blocks of the log whose pages were all dead at the snapshot, the directory
//!    and the journal before.
//!
//! It proceeds by a page of the array at each page of the host's and at each page of the map that leaves memory; the host
//! waits for it only if the log would run out of erased blocks. A turn begins when the host has written
//! `checkpoint_units`, or when the log needs its blocks.
//!
//! Translation pages may be programmed at any time, before what they point to: recovery uses them only through a directory.
//! It restores the map of the directory, scans the blocks open at the moment or begun since, and what it finds there is
//! newer. Pages written after the snapshot are not needed.
//!
//! Format: a directory is a piece ([`super::pieces`]) with one entry for each translation page, in units of kind
//! `Checkpoint`.

use super::PageMap;
use super::checkpoint::Wait;
use super::pieces::Moment;
use crate::ControllerError;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Ppa, Ticket, Time};
use serde::{Deserialize, Serialize};

/// Where a turn is.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Phase {
    Idle,
    /// The entries of the queue, the slots of memory and the pages of the log still to look at.
    Sweep {
        queue: usize,
        slot: u32,
        victims: Vec<(u32, Ppa)>,
    },
    Wait(Wait),
    /// Pages of the directory programmed so far.
    Write(u32),
    Commit(Vec<Ticket>),
}

/// The state of the turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Turn {
    phase: Phase,
    moment: Moment,
    /// Blocks of the old journal.
    journal: Vec<BlockId>,
    /// The snapshot; empty without payload.
    bytes: Vec<u8>,
    /// Blocks of the log without live pages at the snapshot, with the page whose program failed.
    emptied: Vec<(BlockId, Option<u32>)>,
    /// Blocks with directories, oldest first: those the last complete one does not need, and the next page of the last.
    blocks: Vec<(BlockId, Option<u32>)>,
    old: usize,
    page: u32,
}

impl Turn {
    pub fn new() -> Turn {
        Turn {
            phase: Phase::Idle,
            moment: Moment { stamp: 0, sequence: 0, open: Vec::new() },
            journal: Vec::new(),
            bytes: Vec::new(),
            emptied: Vec::new(),
            blocks: Vec::new(),
            old: 0,
            page: u32::MAX,
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Adopts the blocks of a directory that a recovery found.
    pub fn adopt(&mut self, blocks: impl Iterator<Item = BlockId>) {
        self.blocks = blocks.map(|block| (block, None)).collect();
    }

    /// The next directory begins in a block of its own: those there are cannot be read.
    pub fn begin_block(&mut self) {
        self.page = u32::MAX;
    }

    /// Blocks of directories and blocks about to be erased.
    pub fn blocks(&self) -> usize {
        self.blocks.len() + self.emptied.len()
    }

    /// A program failed: what the snapshot waits for may not be programmed where it says.
    pub fn forget_staged(&mut self) {
        if matches!(self.phase, Phase::Wait(Wait::Staged(_))) {
            self.phase = Phase::Sweep { queue: 0, slot: u32::MAX, victims: Vec::new() };
        }
    }
}

impl<S: Store> PageMap<S> {
    /// Begins a turn; if one is in progress and waits for pages to fill, pads them.
    pub(super) fn begin_turn_of_directory(&mut self, at: Time) -> Result<(), ControllerError> {
        let turn = &self.demand_mut().turn;
        if let Phase::Wait(Wait::Staged(pages)) = &turn.phase {
            let pages = pages.clone();
            return self.pad_staged(at, &pages);
        }
        if !turn.is_idle() {
            return Ok(());
        }
        // First, because it may clean.
        self.fill_log(at)?;
        self.record_trims(at);
        let journal = self.close_journal();
        self.checkpoint.number += 1;
        let moment = self.moment();
        let victims = self.choose_victims();
        let demand = self.demand_mut();
        let (queue, turn) = (demand.queue.len(), &mut demand.turn);
        (turn.moment, turn.journal) = (moment, journal);
        turn.phase = Phase::Sweep { queue, slot: 0, victims };
        self.checkpoint.activate();
        Ok(())
    }

    /// Keeps the log at its size if blocks have gone bad. At the end of a device's life it may stay smaller.
    pub(super) fn fill_log(&mut self, at: Time) -> Result<(), ControllerError> {
        let Some(map) = self.config.demand.clone() else { return Ok(()) };
        let blocks = map.log_blocks(self.config.logical_units, &self.geometry);
        loop {
            let demand = self.demand_mut();
            let has = demand.log.blocks() + demand.turn.blocks();
            if has as u64 >= blocks {
                return Ok(());
            }
            match self.take_map_block(at, has as u64) {
                Ok(block) => self.add_to_log(block),
                // It can go on with what it has.
                Err(_) if self.demand_mut().log.left > self.geometry.pages_per_block => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// The translation pages in the emptiest blocks of the log, with their places: as many blocks as a turn should
    /// free, but only if their pages fit elsewhere.
    fn choose_victims(&mut self) -> Vec<(u32, Ppa)> {
        let Some(map) = self.config.demand.clone() else { return Vec::new() };
        let per_block = self.geometry.units_per_block() as u64;
        let goal = map.freed_by_turn(self.config.logical_units, per_block);
        let units_per_page = self.geometry.units_per_page;
        let log = &mut self.demand_mut().log;
        let live = &log.live;
        // What was used with a failed program should be retired soon.
        log.closed.sort_by_key(|&(block, failed)| (failed.is_none(), live[block.0 as usize]));
        let mut room = log.left as u64 * units_per_page as u64 / 4;
        let mut chosen = vec![false; live.len()];
        for &(block, _) in log.closed.iter().take(goal as usize) {
            let pages = live[block.0 as usize] as u64;
            if pages > room {
                break;
            }
            room -= pages;
            chosen[block.0 as usize] = pages > 0;
        }
        let layout = self.layout;
        let lies_there = |place: Ppa| place != Ppa::NONE && chosen[layout.block_of(place).0 as usize];
        let places = self.demand_mut().log.places.iter().copied();
        (0..).zip(places).filter(|&(_, place)| lies_there(place)).collect()
    }

    /// Makes room in the log for a page: begins a turn early enough, and finishes it if necessary.
    pub(super) fn make_room_in_log(&mut self, at: Time) -> Result<(), ControllerError> {
        let Some(map) = self.config.demand.clone() else { return Ok(()) };
        let start = map.left_at_turn(self.config.logical_units, &self.geometry);
        let left = self.demand_mut().log.left as u64;
        if left > start {
            return Ok(());
        }
        self.begin_turn_of_directory(at)?;
        if left <= self.pages_of_turn() { self.finish_directory(at) } else { Ok(()) }
    }

    /// Maximum number of pages of the array that the rest of the turn will program.
    fn pages_of_turn(&mut self) -> u64 {
        let per_page = self.geometry.units_per_page as u64;
        let directory = self.checkpoint.pieces.pages_of_all();
        let demand = self.demand_mut();
        let swept = match &demand.turn.phase {
            Phase::Sweep { victims, .. } => {
                demand.residency.dirty_count() as u64 + (demand.queue.len() + victims.len()) as u64
            }
            _ => 0,
        };
        let open = demand.log.open_blocks().count() as u64;
        swept.div_ceil(per_page) + 2 * directory + self.geometry.pages_per_block as u64 + open + 2
    }

    /// Finishes the turn in progress, or a whole one, and promises its end.
    pub(super) fn finish_directory(&mut self, at: Time) -> Result<(), ControllerError> {
        self.begin_turn_of_directory(at)?;
        let mut now = at;
        while !self.demand_mut().turn.is_idle() {
            if matches!(self.demand_mut().turn.phase, Phase::Wait(_) | Phase::Commit(_)) {
                self.begin_turn_of_directory(now)?;
                now = self.array.finish_all(now);
            }
            self.step_turn(now)?;
        }
        Ok(())
    }

    /// Performs one step of the turn: programs a page of the array, or looks whether it may go on.
    pub(super) fn step_turn(&mut self, at: Time) -> Result<(), ControllerError> {
        match std::mem::replace(&mut self.demand_mut().turn.phase, Phase::Idle) {
            Phase::Idle => self.checkpoint.deactivate(),
            Phase::Sweep { queue, slot, victims } => return self.sweep(at, queue, slot, victims),
            Phase::Wait(mut wait) => {
                let over = self.waited(at, &mut wait);
                self.demand_mut().turn.phase = if over { Phase::Write(0) } else { Phase::Wait(wait) };
            }
            Phase::Write(done) => return self.write_directory(at, done),
            Phase::Commit(tickets) if self.array.passed(&tickets, at) => self.commit(at),
            committing => self.demand_mut().turn.phase = committing,
        }
        Ok(())
    }

    /// Programs the next page of the array with pages of the map that the turn needs: those of the queue first, since what
    /// leaves the queue may be in any slot of memory.
    fn sweep(
        &mut self,
        at: Time,
        mut queue: usize,
        mut slot: u32,
        mut victims: Vec<(u32, Ppa)>,
    ) -> Result<(), ControllerError> {
        let per_page = self.geometry.units_per_page as usize;
        if self.rewrite_batch(at, &mut queue)? {
            self.demand_mut().turn.phase = Phase::Sweep { queue, slot, victims };
            return Ok(());
        }
        let demand = self.demand_mut();
        let mut batch = std::mem::take(&mut demand.batch);
        batch.clear();
        while slot < demand.residency.slots() && batch.len() < per_page {
            batch.extend(demand.residency.dirty_in(slot));
            slot += 1;
        }
        let dirty = batch.len();
        while batch.len() < per_page
            && let Some((page, place)) = victims.pop()
        {
            // What was written again meanwhile has moved already.
            let is_there = demand.log.places[page as usize] == place && !batch.contains(&page);
            batch.extend(is_there.then_some(page));
        }
        let moved = batch.len() - dirty;
        demand.turn.phase = Phase::Sweep { queue, slot, victims };
        if batch.is_empty() {
            demand.batch = batch;
            self.snapshot();
            return Ok(());
        }
        self.read_for_rewrite(at, &batch[dirty..]);
        let appended = self.append(at, &batch);
        self.demand_mut().batch = batch;
        self.stats.map.write_backs += dirty as u64;
        self.stats.map.moved += moved as u64;
        appended
    }

    /// Takes the snapshot of the directory.
    fn snapshot(&mut self) {
        let wait = self.wait_for_staged();
        let pieces = self.checkpoint.pieces;
        let length = pieces.pages_of_all() * self.geometry.page_bytes();
        let demand = self.demand_mut();
        let (log, turn) = (&mut demand.log, &mut demand.turn);
        if S::KEEPS {
            let places = log.places.iter().map(|place| place.0);
            turn.bytes = pieces.encode(&turn.moment, places, length as usize);
        }
        let live = &log.live;
        let (dead, closed) = log.closed.drain(..).partition(|(block, _)| live[block.0 as usize] == 0);
        log.closed = closed;
        // A snapshot that is taken again finds more of them.
        turn.emptied.extend::<Vec<_>>(dead);
        turn.phase = Phase::Wait(wait);
    }

    /// Programs the next page of the snapshot.
    fn write_directory(&mut self, at: Time, done: u32) -> Result<(), ControllerError> {
        let pages_per_block = self.geometry.pages_per_block;
        if done == 0 {
            let turn = &mut self.demand_mut().turn;
            // The block that the last directory ends in is needed until this one is complete, and holds a part of this one.
            let shared = turn.page < pages_per_block;
            turn.old = turn.blocks.len() - shared as usize;
        }
        if self.demand_mut().turn.page >= pages_per_block {
            let block = self.take_from_log(Die(0))?;
            let pages = self.array.pages_left(block, 0);
            let page = self.array.next_page(block, 0);
            let demand = self.demand_mut();
            demand.log.left = demand.log.left.saturating_sub(pages);
            demand.turn.blocks.push((block, None));
            demand.turn.page = page;
        }
        let turn = &mut self.demand_mut().turn;
        let page = turn.page;
        let (block, _) = *turn.blocks.last().expect("a block for the directory");
        let (data, spare) = if S::KEEPS { self.encode_directory(done) } else { Default::default() };
        let units_per_page = self.geometry.units_per_page as u64;
        self.stats.map_units += units_per_page;
        self.stats.map.directory_units += units_per_page;
        let written = self.array.program(at, block, page, 1, Payload::new(&data, &spare), true);
        let next = self.array.next_page(block, page + 1);
        let last = done as u64 + 1 == self.checkpoint.pieces.pages_of_all();
        let tickets = if last { self.array.last_programs() } else { Vec::new() };
        let turn = &mut self.demand_mut().turn;
        turn.page = next;
        turn.phase = match written {
            Ok(_) if last => Phase::Commit(tickets),
            Ok(_) => Phase::Write(done + 1),
            Err(MediumError::ProgramFailed(_)) => {
                // The rest goes to another block; this one is needed for what it holds.
                turn.blocks.last_mut().expect("a block for the directory").1 = Some(page);
                turn.page = u32::MAX;
                Phase::Write(done)
            }
            Err(other) => panic!("a directory broke a rule of the medium: {other}"),
        };
        Ok(())
    }

    fn encode_directory(&mut self, page: u32) -> (Vec<u8>, Vec<u8>) {
        let page_bytes = self.geometry.page_bytes() as usize;
        let data = self.demand_mut().turn.bytes[page as usize * page_bytes..][..page_bytes].to_vec();
        let spare = self.beside_piece(&data, page);
        (data, spare)
    }

    /// The directory is programmed: what only the one before needed is erased.
    fn commit(&mut self, at: Time) {
        self.checkpoint.deactivate();
        let turn = &mut self.demand_mut().turn;
        let (emptied, journal) = (std::mem::take(&mut turn.emptied), std::mem::take(&mut turn.journal));
        let old: Vec<_> = turn.blocks.drain(..turn.old).collect();
        (turn.old, turn.bytes) = (0, Vec::new());
        for (block, failed) in emptied.into_iter().chain(old) {
            self.recycle(at, block, failed);
        }
        for block in journal {
            self.erase_from(at, block);
        }
    }
}
