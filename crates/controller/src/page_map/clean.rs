//! Relocation: the live units of a block are copied elsewhere on its die (from a superblock: to any die), then it is
//! erased.
//!
//! Cleaning is paced by the rounds of `spread`, in steps between the host's pages: a die without room is cleaned in rounds in which it does not
//! take part. Relocated units are programmed before their block is erased, so the last page of a relocation may be padded; padding is
//! counted.

use super::PageMap;
use super::array::Queued;
use super::frontier::{NO_BLOCK, NO_SLOT, Placed, Unit};
use super::map::Moving;
use super::spare::{self, Kind};
use crate::cleaning::CleaningPolicy;
use crate::table::BlockState;
use crate::{Controller, ControllerError};
use nvlab_medium::Store;
use nvlab_medium::flash::cells::{LEVELS_MAX, SLC_LEVEL};
use nvlab_units::{BlockId, Die, Time};
use serde::{Deserialize, Serialize};

/// Why a block is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MoveCause {
    Clean,
    Fold,
    Wear,
    Retire,
}

/// A block being emptied, a part at a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Relocation {
    victim: BlockId,
    cause: MoveCause,
    /// Units of the victim examined so far.
    next: u32,
    /// Its live units when it was chosen, which must be moved, and the units gained by that.
    live: u32,
    gain: u32,
    /// The part of the gain the host has used up.
    paid: u32,
}

/// Reads of a relocation on one lane: per page of a word line, and the units they fetch.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Reads {
    levels: [u32; LEVELS_MAX + 1],
    units: u32,
}

impl Reads {
    #[inline]
    fn add(&mut self, level: usize, senses: u32, units: u32) {
        self.levels[level] += senses;
        self.units += units;
    }
}

/// What the cleaner keeps between its steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cleaner {
    /// Scratch: live units of the block being cleaned.
    #[serde(skip)]
    moving: Vec<Moving>,
    /// Scratch: reads of a relocation on each lane of a block; all zero between calls.
    reads: Vec<Reads>,
    /// Host units between two steps.
    step_units: u32,
}

impl Cleaner {
    pub fn new(members_per_block: u32, units_per_block: u32) -> Cleaner {
        Cleaner {
            moving: Vec::new(),
            reads: vec![Reads::default(); members_per_block as usize],
            step_units: STEP_UNITS_MIN.min(units_per_block / 2),
        }
    }
}

/// Host units between two steps of a cleaning: enough to make a step worthwhile.
const STEP_UNITS_MIN: u32 = 64;
/// Owners loaded beyond those expected to be needed in a step: live units are not spread quite evenly.
const AHEAD_MIN: u64 = 64;
/// Moving a block to level wear gains little or nothing: it is paced as if at least one in this many of its units
/// were gained.
const WEAR_PACE: u32 = 4;

impl<S: Store> PageMap<S> {
    /// Paces the cleaner when the host has written `units` more to a die, or would have if the die had room. If erased
    /// blocks are scarce, moves live units in proportion to host writes, so that the victim is empty just as the freed
    /// space runs out. A host write thus never waits for whole blocks, unless it outruns the flash.
    #[inline(always)]
    pub(super) fn pace(&mut self, at: Time, die: Die, units: u32) -> Result<(), ControllerError> {
        if !self.dies[die.index()].emptied.is_empty() {
            self.erase_emptied(at, die, false);
        }
        if !self.is_cleaning(die) && !self.needs_cleaning(die) {
            return Ok(());
        }
        let state = &mut self.dies[die.index()];
        state.owed += units;
        if state.owed < self.cleaner.step_units {
            return Ok(());
        }
        self.step(at, die)
    }

    /// Performs the cleaning owed on a die; what exceeds one victim carries over to the next.
    #[inline(never)]
    fn step(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        let mut owed = std::mem::take(&mut self.dies[die.index()].owed);
        while owed > 0 && (self.needs_cleaning(die) && self.begin_cleaning(die) || self.is_cleaning(die)) {
            let tight = self.is_tight(die);
            if tight && self.erase_emptied(at, die, true) {
                continue;
            }
            let Some(cleaning) = &mut self.dies[die.index()].cleaning else { break };
            let left = cleaning.gain.saturating_sub(cleaning.paid);
            if owed < left && !tight {
                cleaning.paid += owed;
                let share = (owed as u64 * cleaning.live as u64).div_ceil(cleaning.gain as u64);
                return self.clean_part(at, die, share as u32);
            }
            owed = owed.saturating_sub(left);
            self.clean_part(at, die, u32::MAX)?;
        }
        Ok(())
    }

    #[inline]
    fn is_cleaning(&self, die: Die) -> bool {
        self.dies[die.index()].cleaning.is_some()
    }

    /// True if a die is short of erased blocks and is not being cleaned.
    #[inline(always)]
    fn needs_cleaning(&self, die: Die) -> bool {
        !self.is_cleaning(die) && self.erased_blocks(die) <= self.config.free_blocks_min
    }

    /// True if the rest of the cleaning in progress on a die needs all the erased space there: it must finish before
    /// anything else uses that space.
    fn is_tight(&self, die: Die) -> bool {
        let Some(cleaning) = self.dies[die.index()].cleaning else { return false };
        self.is_short_for(die, self.table.live(cleaning.victim), cleaning.cause)
    }

    /// The frontier that units moved on a die go to.
    pub(super) fn moved_to(&self, die: Die, cause: MoveCause) -> u32 {
        let stream = match cause {
            MoveCause::Wear => self.writers.cold_stream(),
            MoveCause::Clean | MoveCause::Fold | MoveCause::Retire => self.config.streams.relocated(),
        };
        self.writers.of(die, stream)
    }

    /// True if the erased space of a die is hardly enough to move `live` units in steps.
    pub(super) fn is_short_for(&self, die: Die, live: u32, cause: MoveCause) -> bool {
        let state = &self.dies[die.index()];
        let erased: u32 = state.free.iter().map(|&block| self.table.capacity(block)).sum();
        if erased > self.geometry.units_per_block() {
            return false;
        }
        // Only one erased block is left; a failed program would use it up.
        if self.array.nand().cells().programs_may_fail() {
            return true;
        }
        let frontier = &self.writers[self.moved_to(die, cause)];
        let begun = match frontier.block {
            NO_BLOCK => 0,
            block => {
                let per_page = self.geometry.units_per_page;
                let pages = self.array.pages_left(BlockId(block), frontier.next / per_page);
                pages * per_page - frontier.next % per_page
            }
        };
        let between = self.cleaner.step_units + 2 * self.geometry.units_per_page;
        begun + erased < live + between
    }

    /// Cleans one block of a die, or the rest of the one in progress.
    pub(super) fn clean(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        if self.erase_emptied(at, die, true) {
            return Ok(());
        }
        if !self.is_cleaning(die) && !self.begin_cleaning(die) {
            return Err(self.end_of_life(die));
        }
        self.clean_part(at, die, u32::MAX)
    }

    /// Chooses a block to clean; returns false if none gains space.
    fn begin_cleaning(&mut self, die: Die) -> bool {
        let Some(victim) = self.policy.choose(&self.table, die, self.numbers.sequence) else { return false };
        self.stats.cleans += self.array.members_per_block() as u64;
        self.stats.clean_live_units += self.table.live(victim) as u64;
        self.begin(victim, MoveCause::Clean);
        true
    }

    /// Begins to empty a closed block, a part at a time; no other block of its die is being emptied.
    pub(super) fn begin(&mut self, victim: BlockId, cause: MoveCause) {
        self.take(victim);
        let (live, units) = (self.table.live(victim), self.geometry.units_per_block());
        let die = self.geometry.die_of(victim);
        let debt = &mut self.dies[die.index()].debt;
        let mut gain = units.saturating_sub(self.table.kept(victim));
        if cause == MoveCause::Wear {
            let paced = gain.max(units / WEAR_PACE);
            *debt += paced - gain;
            gain = paced;
        } else {
            // The host gets only half of the gain until the debt is paid.
            let repaid = (*debt).min(gain / 2);
            *debt -= repaid;
            gain -= repaid;
        }
        let gain = gain.max(1);
        self.dies[die.index()].cleaning = Some(Relocation { victim, cause, next: 0, live, gain, paid: 0 });
    }

    /// Moves about `units` live units of the block being emptied, and erases it when none is left.
    fn clean_part(&mut self, at: Time, die: Die, units: u32) -> Result<(), ControllerError> {
        let Some(mut cleaning) = self.dies[die.index()].cleaning else { return Ok(()) };
        let moved = self.move_live(at, cleaning.victim, &mut cleaning.next, units, cleaning.cause);
        // If it failed part-way, the rest is cleaned later.
        let finished = moved.inspect_err(|_| self.dies[die.index()].cleaning = None)?;
        self.dies[die.index()].cleaning = Some(cleaning);
        if finished {
            self.dies[die.index()].cleaning = None;
            if self.array.members_per_block() > 1 && self.buffer.is_protected() {
                self.erase_later(cleaning.victim);
            } else {
                self.erase(at, cleaning.victim);
            }
            self.level_wear(die);
        }
        Ok(())
    }

    fn take(&mut self, victim: BlockId) {
        self.policy.taken(&self.table, victim);
        self.table.set_state(victim, BlockState::Cleaning);
    }

    /// Copies every live unit of a closed block elsewhere on its die. Leaves the block without live units, in
    /// state `Cleaning`.
    pub(super) fn relocate(
        &mut self,
        at: Time,
        victim: BlockId,
        cause: MoveCause,
    ) -> Result<(), ControllerError> {
        self.take(victim);
        self.move_live(at, victim, &mut 0, u32::MAX, cause).map(|_| ())
    }

    /// Copies about `units` live units of a block elsewhere on its die, from unit `next` of the block on, so that they
    /// fill whole pages at the destination. Returns true if none is left.
    pub(super) fn move_live(
        &mut self,
        at: Time,
        victim: BlockId,
        next: &mut u32,
        units: u32,
        cause: MoveCause,
    ) -> Result<bool, ControllerError> {
        let die = self.geometry.die_of(victim);
        let index = self.moved_to(die, cause);
        let per_page = self.geometry.units_per_page;
        let begun = self.writers[index].next % per_page;
        let limit = (begun as u64 + units as u64).next_multiple_of(per_page as u64) - begun as u64;
        let limit = limit.min(u32::MAX as u64) as u32;
        let mut gathered = std::mem::take(&mut self.cleaner.moving);
        let (count, finished) = self.gather_live(victim, next, limit, &mut gathered);
        let moving = &gathered[..count];
        self.queue_reads(at, victim, moving);
        let birth = self.table.birth(victim);
        let moved = if S::KEEPS || self.array.nand().cells().programs_may_fail() {
            self.move_one_by_one(at, index, victim, moving, birth)
        } else {
            self.move_in_runs(at, index, victim, moving, birth)
        };
        match cause {
            MoveCause::Clean => self.stats.clean_units += count as u64,
            MoveCause::Fold => self.stats.fold_units += count as u64,
            MoveCause::Wear => self.stats.wear_units += count as u64,
            MoveCause::Retire => self.stats.retire_units += count as u64,
        }
        self.cleaner.moving = gathered;
        moved?;
        if finished {
            // The only other copies are in the victim, so the copies must not wait for a page to fill.
            self.pad(at, index, false)?;
        }
        Ok(finished)
    }

    /// Collects at most `limit` live units of a block from unit `next` on, at the begin of `moving`. Returns how many, and
    /// true if the end was reached.
    fn gather_live(
        &self,
        block: BlockId,
        next: &mut u32,
        limit: u32,
        moving: &mut Vec<Moving>,
    ) -> (usize, bool) {
        // Not appended one by one, which takes twice the instructions.
        moving.resize(self.geometry.units_per_block() as usize, Moving::default());
        let first = self.geometry.first_unit(block);
        let written = self.array.units_written(block);
        // Loads the cache lines of the owners that will be read, so that their misses overlap: as many as should hold `limit`
        // live units, if those that are left are spread evenly.
        let owners = self.map.owners(first, written);
        let left = written - *next;
        let ahead = limit as u64 * left as u64 / self.table.live(block).max(1) as u64;
        let ahead = ahead.saturating_add(AHEAD_MIN).min(left as u64) as usize;
        let lines = owners[*next as usize..][..ahead].iter().step_by(16);
        std::hint::black_box(lines.fold(0, |sum: u32, &owner| sum.wrapping_add(owner.0)));
        let mut count = 0;
        let (from, end) = (first + *next, first + written);
        let unit = self.map.each_live(from..end, limit, |unit| {
            let lpa = owners[(unit - first) as usize];
            self.prefetch(lpa);
            moving[count] = Moving { from: unit, lpa };
            count += 1;
        });
        *next = unit - first;
        (count, unit == end)
    }

    /// Queues the cell reads that fetch the units, which are all in one block.
    fn queue_reads(&mut self, at: Time, block: BlockId, moving: &[Moving]) {
        let nand = self.array.nand();
        let (levels, per_read) = (nand.config().timing.read.len(), nand.units_per_read());
        let slc = self.array.is_slc(block);
        let one_die = self.array.members_per_block() == 1;
        let mut reads = std::mem::take(&mut self.cleaner.reads);
        if levels == 1 && per_read == 1 && !slc && one_die {
            reads[0].add(0, moving.len() as u32, moving.len() as u32);
        } else {
            // Units come in order: a register is looked up once, when the first unit beyond the last one does.
            let (mut beyond, mut member, mut level) = (0, 0, 0);
            for unit in moving {
                let senses = (unit.from.0 >= beyond) as u32;
                if unit.from.0 >= beyond {
                    // Blocks begin at a multiple of what a read fetches, so reads can be numbered globally.
                    beyond = (unit.from.0 / per_read + 1).saturating_mul(per_read);
                    let slot = unit.from.0 % self.geometry.units_per_page;
                    level = if slc { SLC_LEVEL } else { self.array.nand().level(slot) } as usize;
                    member = if one_die { 0 } else { self.array.lane_of(unit.from).index() };
                }
                reads[member].add(level, senses, 1);
            }
        }
        let first = if one_die { self.geometry.die_of(block) } else { Die(0) };
        for (lane, reads) in (first.0..).map(Die).zip(&mut reads) {
            let Reads { levels, units } = std::mem::take(reads);
            if units > 0 {
                self.array.nand_mut().relocation_reads(at, lane, &levels, units);
            }
        }
        self.cleaner.reads = reads;
    }

    /// Moves units without payload, as many as fit into a block at a time.
    fn move_in_runs(
        &mut self,
        at: Time,
        index: u32,
        victim: BlockId,
        mut moving: &[Moving],
        birth: u64,
    ) -> Result<(), ControllerError> {
        let die = self.writers.die_of(index);
        while !moving.is_empty() {
            let block = self.open_for_moving(at, die, index, birth)?;
            let frontier = &self.writers[index];
            // Host units are staged in the current page: it is filled and programmed on its own, so that they do
            // not wait for the end of the whole run.
            let page = self.geometry.units_per_page;
            let pages = if frontier.staged.is_empty() {
                self.array.pages_in_a_row(block, frontier.next / page)
            } else {
                1
            };
            let room = pages * page - frontier.next % page;
            let (run, rest) = moving.split_at(moving.len().min(room as usize));
            let first = self.geometry.first_unit(block) + frontier.next;
            self.map.relocate(run, first);
            if self.demand.is_some() {
                run.iter().for_each(|unit| self.note_change(unit.lpa));
            }
            self.writers[index].next += run.len() as u32;
            self.skip_bad_pages(index);
            self.table.gain_many(block, run.len() as u32);
            self.table.lose_many(victim, run.len() as u32);
            // Only the last page may be left partly filled; the caller pads it, which also programs the pages
            // before it.
            if self.page_is_full(index) {
                self.program_pages(at, index, &[], false)?;
            }
            moving = rest;
        }
        Ok(())
    }

    /// Moves units with their payload, or when programs may fail.
    fn move_one_by_one(
        &mut self,
        at: Time,
        index: u32,
        victim: BlockId,
        moving: &[Moving],
        birth: u64,
    ) -> Result<(), ControllerError> {
        let die = self.writers.die_of(index);
        let mut data = vec![0; if S::KEEPS { self.geometry.unit_bytes as usize } else { 0 }];
        for &Moving { from, lpa } in moving {
            let (mut sequence, mut damaged) = (0, false);
            if S::KEEPS {
                match spare::peek(self.array.nand(), self.array.place(from), &mut data) {
                    Ok(spare) if spare.kind == Kind::Data && spare.lpa == lpa => {
                        (sequence, damaged) = (spare.sequence, spare.damaged);
                    }
                    // Its sequence number is lost, or what a machine's crash left there is another unit. It is the newest of its
                    // unit, so the last number assigned will do.
                    Ok(_) | Err(_) => (sequence, damaged) = (self.numbers.sequence - 1, true),
                }
                // It is moved although damaged, or an older version would reappear; its reads fail.
                self.stats.lost_units += damaged as u64;
            }
            let block = self.open_for_moving(at, die, index, birth)?;
            let moved = Unit { kind: Kind::Data, lpa, damaged, sequence, slot: NO_SLOT, data: &data };
            let Placed { address, fills_page, .. } = self.place(index, moved, from);
            if damaged {
                // The host has overwritten it: its bytes are not needed.
                self.array.supersede(self.array.dead(address), Queued::default());
            }
            self.map.point(lpa, from, address);
            self.note_change(lpa);
            self.table.gain_many(block, 1);
            self.table.lose_many(victim, 1);
            if fills_page {
                self.program_pages(at, index, &data, false)?;
            }
        }
        Ok(())
    }

    /// The open block of the frontier for relocated data; notes that it receives data as young as `birth`.
    fn open_for_moving(
        &mut self,
        at: Time,
        die: Die,
        index: u32,
        birth: u64,
    ) -> Result<BlockId, ControllerError> {
        if self.writers[index].block == NO_BLOCK {
            self.open(at, die, index)?;
        }
        let block = BlockId(self.writers[index].block);
        if birth > self.table.birth(block) {
            self.table.set_birth(block, birth);
        }
        Ok(block)
    }
}
