//! Relocation: the live pages of a block are copied elsewhere on its die in the background; when the copies are
//! programmed, the map is updated (the commit); then the block is erased.
//!
//! The commit is background work, so it is done when the controller is next called ([`Hftl::advance`]). A host
//! write that needs the space waits for it ([`Hftl::finish_job`]).

use super::metadata::{Entry, Use};
use super::write::Placed;
use super::{COLD, Frontier, Hftl, MOVED, NO_BLOCK};
use crate::cleaning::CleaningPolicy;
use crate::spare::{self, Kind, Spare};
use crate::table::BlockState;
use crate::wear;
use crate::{Controller, ControllerError};
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{InPlace, PowerCut, Store};
use nvlab_units::{BlockId, Die, Lpa, Ppa, Ticket, Time};

/// A page being moved out of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub lpa: Lpa,
    pub from: Ppa,
    pub to: Ppa,
}

/// Why a block is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Clean,
    Wear,
    Retire,
}

impl Cause {
    /// The open block that the data goes to. Cold data moved to level wear has its own: among relocated data, part of which is
    /// hot, every block would in time hold both kinds, and the cleaner would move the cold data again with each block.
    fn stream(self) -> usize {
        match self {
            Cause::Clean | Cause::Retire => MOVED,
            Cause::Wear => COLD,
        }
    }
}

/// A relocation whose copies are queued.
#[derive(Clone, Debug)]
pub(super) struct Job {
    victim: BlockId,
    cause: Cause,
    /// The ticket of the last copy.
    ticket: Ticket,
    pub moved: Vec<Moved>,
    /// The die ran out of blocks: not everything was copied, so the victim is kept.
    partial: bool,
}

impl<S: Store, P: InPlace + PowerCut> Hftl<S, P> {
    /// Completes what is done by `at`: commits relocations, records finished erases.
    pub(super) fn advance(&mut self, at: Time) -> Result<(), ControllerError> {
        for die in self.geometry.all_dies() {
            let index = die.index();
            while let Some(&(block, ticket)) = self.dies[index].erasing.first() {
                if !self.nand.is_done(die, ticket, at) {
                    break;
                }
                self.dies[index].erasing.remove(0);
                self.pending -= 1;
                let entry = self.metadata.entry(block);
                self.metadata.set_entry(at, block, Entry { used: Use::Free, ..entry })?;
            }
            let ticket = self.dies[index].job.as_ref().map(|job| job.ticket);
            if ticket.is_some_and(|ticket| self.nand.is_done(die, ticket, at)) {
                self.commit(at, die)?;
            }
        }
        Ok(())
    }

    /// Waits for the relocation in progress on a die, if there is one.
    pub(super) fn finish_job(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        let Some(job) = &self.dies[die.index()].job else { return Ok(()) };
        let done = self.nand.finish(die, job.ticket, at);
        self.commit(done, die)
    }

    /// Ensures that the host can open a block of a die.
    pub(super) fn make_room(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        // Bounded: if every block was cleaned and there is still no room, there never will be.
        for _ in 0..=2 * self.geometry.blocks_per_die {
            let free = self.dies[die.index()].free.len() as u32;
            if free > self.config.free_blocks_min {
                return Ok(());
            }
            if self.dies[die.index()].job.is_none() {
                match self.policy.choose(&self.table, die, self.sequence) {
                    Some(victim) => self.clean(at, die, victim)?,
                    None if free > 1 => return Ok(()),
                    None => return Err(self.end_of_life(die)),
                }
            }
            // The rest is reserved for relocated data, and to replace blocks that fail.
            if self.dies[die.index()].free.len() as u32 >= self.config.free_blocks_min {
                return Ok(());
            }
            self.stats.clean_waits += 1;
            self.finish_job(at, die)?;
        }
        Err(self.end_of_life(die))
    }

    fn clean(&mut self, at: Time, die: Die, victim: BlockId) -> Result<(), ControllerError> {
        self.policy.taken(&self.table, victim);
        self.stats.cleans += 1;
        self.stats.clean_live_units += self.table.live(victim) as u64;
        self.begin_job(at, die, victim, Cause::Clean)
    }

    /// Queues the copies of a block's live pages. No relocation may be in progress on the die.
    fn begin_job(
        &mut self,
        at: Time,
        die: Die,
        victim: BlockId,
        cause: Cause,
    ) -> Result<(), ControllerError> {
        self.table.set_state(victim, BlockState::Cleaning);
        let mut moved = self.moved.pop().unwrap_or_default();
        self.gather_live(victim, &mut moved);
        let pages = moved.len() as u32;
        self.nand.relocation_reads(at, die, &[pages], pages);
        match cause {
            Cause::Clean => self.stats.clean_units += pages as u64,
            Cause::Wear => self.stats.wear_units += pages as u64,
            Cause::Retire => self.stats.retire_units += pages as u64,
        }
        let copied = if self.nand.cells().programs_may_fail() {
            self.copy_one_by_one(at, (die, cause.stream()), victim, &mut moved)
        } else {
            self.copy_in_runs(at, (die, cause.stream()), victim, &mut moved)
        };
        let partial = match copied {
            Ok(()) => false,
            Err(ControllerError::EndOfLife { .. }) => true,
            Err(error) => return Err(error),
        };
        let ticket = self.nand.last(die);
        self.dies[die.index()].job = Some(Job { victim, cause, ticket, moved, partial });
        self.pending += 1;
        Ok(())
    }

    fn gather_live(&self, block: BlockId, moved: &mut Vec<Moved>) {
        let first = self.geometry.first_unit(block);
        for (i, &word) in self.metadata.live_words(block).iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let from = first + (i as u32 * 64 + word.trailing_zeros());
                moved.push(Moved { lpa: self.owner[from.index()], from, to: Ppa::NONE });
                word &= word - 1;
            }
        }
    }

    /// Reads the payload of a page being moved, and returns the spare area of its copy. Data that does not match its
    /// checksum is moved as it is; its reads fail.
    fn fetch(&mut self, moved: Moved, data: &mut Vec<u8>) -> Spare {
        data.resize(self.geometry.unit_bytes as usize, 0);
        let Moved { lpa, from, .. } = moved;
        let unknown = Spare { kind: Kind::Data, damaged: true, lpa, sequence: 0, stamp: 0 };
        // After a machine's crash another page may lie where the map says.
        let is_it = |spare: &Spare| spare.kind == Kind::Data && spare.lpa == lpa;
        let spare = spare::peek(&self.nand, from, data).ok().filter(is_it).unwrap_or(unknown);
        self.stats.lost_units += spare.damaged as u64;
        spare
    }

    /// The copy of a page does not match its checksum: its reads fail, and its bytes are no longer needed.
    fn note_damaged(&mut self, page: Ppa) {
        self.nand.doubt(page);
        self.nand.discard(page);
    }

    /// Copies pages in runs, each as many as fit into the open block.
    fn copy_in_runs(
        &mut self,
        at: Time,
        (die, stream): (Die, usize),
        victim: BlockId,
        moved: &mut Vec<Moved>,
    ) -> Result<(), ControllerError> {
        let birth = self.table.birth(victim);
        let mut done = 0;
        while done < moved.len() {
            if self.dies[die.index()].open[stream].block == NO_BLOCK
                && let Err(error) = self.open(at, die, stream)
            {
                moved.truncate(done);
                return Err(error);
            }
            let Frontier { block, next, ready } = self.dies[die.index()].open[stream];
            let (block, at) = (BlockId(block), at.max(ready));
            self.latest = self.latest.max(at);
            let run = (moved.len() - done).min((self.geometry.pages_per_block - next) as usize) as u32;
            let first = self.geometry.first_unit(block) + next;
            for (moved, nth) in moved[done..].iter_mut().zip(0..run) {
                moved.to = first + nth;
                self.owner[moved.to.index()] = moved.lpa;
            }
            self.program_run(at, (block, next), &moved[done..done + run as usize]);
            self.metadata.set_live(at, block, (next, run), true)?;
            self.fill(at, (die, stream), run)?;
            self.table.gain_many(block, run - 1);
            self.gained(first, birth);
            done += run as usize;
        }
        Ok(())
    }

    /// Queues the programs of copies on consecutive pages; programs cannot fail here.
    fn program_run(&mut self, at: Time, (block, page): (BlockId, u32), run: &[Moved]) {
        let broken = |error| -> ! { panic!("{block:?} broke a rule of the medium: {error}") };
        if !S::KEEPS {
            let count = run.len() as u32;
            let queued = self.nand.program(at, block, page, count, Payload::default(), false);
            queued.unwrap_or_else(|error| broken(error));
            return;
        }
        let mut data = Vec::new();
        for (moved, page) in run.iter().zip(page..) {
            let beside = self.fetch(*moved, &mut data);
            let spare = beside.encode(&data);
            let queued = self.nand.program(at, block, page, 1, Payload::new(&data, &spare), false);
            queued.unwrap_or_else(|error| broken(error));
            if beside.damaged {
                self.note_damaged(moved.to);
            }
        }
    }

    /// Copies pages when programs may fail.
    fn copy_one_by_one(
        &mut self,
        at: Time,
        (die, stream): (Die, usize),
        victim: BlockId,
        moved: &mut Vec<Moved>,
    ) -> Result<(), ControllerError> {
        let birth = self.table.birth(victim);
        let mut data = Vec::new();
        for i in 0..moved.len() {
            let lpa = moved[i].lpa;
            let mut spare = Spare { kind: Kind::Data, damaged: false, lpa, sequence: 0, stamp: 0 };
            if S::KEEPS {
                spare = self.fetch(moved[i], &mut data);
            }
            match self.program(at, (die, stream), spare, &data, false) {
                Ok(Placed { page, .. }) => {
                    self.gained(page, birth);
                    moved[i].to = page;
                    if spare.damaged {
                        self.note_damaged(page);
                    }
                }
                Err(error) => {
                    moved.truncate(i);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Commits a die's relocation, whose copies are programmed: points the map to them and frees the block.
    fn commit(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        let Some(job) = self.dies[die.index()].job.take() else { return Ok(()) };
        self.pending -= 1;
        let Job { victim, cause, mut moved, partial, .. } = job;
        // After the live bits of the copies, which were set when these were queued, are durable.
        let at = at.max(self.metadata.end());
        moved.iter().for_each(|moved| self.prefetch(moved.lpa));
        for &Moved { lpa, from, to } in &moved {
            if self.metadata.lookup(lpa) == Some(from) {
                let end = self.metadata.set_map(at, lpa, to)?;
                self.table.lose_many(victim, 1);
                self.nand.supersede_at(self.nand.dead(from), end);
            } else {
                // No entry ever named the copy.
                self.invalidate(to);
                self.clear_live_bit(at, to)?;
                self.nand.supersede_at(self.nand.dead(to), Time::ZERO);
            }
        }
        moved.clear();
        self.moved.push(moved);
        let end = self.metadata.end().max(at);
        if partial {
            self.keep(end, victim)?;
        } else if cause == Cause::Retire {
            self.metadata.set_live(end, victim, (0, self.geometry.pages_per_block), false)?;
            self.mark_bad(end, victim)?;
        } else {
            self.erase(end, victim)?;
            self.level_wear(end, die)?;
        }
        Ok(())
    }

    /// Keeps a block that could not be emptied, without the pages that were moved.
    #[cold]
    fn keep(&mut self, at: Time, victim: BlockId) -> Result<(), ControllerError> {
        let first = self.geometry.first_unit(victim);
        for page in (0..self.geometry.pages_per_block).map(|nth| first + nth) {
            if self.metadata.lookup(self.owner_of(page)) != Some(page) {
                self.clear_live_bit(at, page)?;
            }
        }
        self.table.set_state(victim, BlockState::Closed);
        self.policy.closed(&self.table, victim);
        Ok(())
    }

    /// The logical page a page was written for, clamped to one that exists.
    fn owner_of(&self, page: Ppa) -> Lpa {
        self.owner[page.index()].min(Lpa(self.config.logical_units - 1))
    }

    /// Erases a block without live pages and adds it to the free ones, or retires it if that fails. All earlier
    /// PRAM updates are durable by `at`.
    pub(super) fn erase(&mut self, at: Time, block: BlockId) -> Result<(), ControllerError> {
        let die = self.geometry.die_of(block);
        self.metadata.set_live(at, block, (0, self.geometry.pages_per_block), false)?;
        let erases = self.metadata.entry(block).erases + 1;
        let noted = self.metadata.set_entry(at, block, Entry { erases, written: 0, used: Use::Erasing })?;
        self.dies[die.index()].erases += 1;
        match self.nand.erase(noted, block) {
            Ok(ticket) => {
                self.table.set_state(block, BlockState::Free);
                self.dies[die.index()].free.push(block);
                self.dies[die.index()].erasing.push((block, ticket));
                self.pending += 1;
                Ok(())
            }
            Err(_) => self.mark_bad(noted, block),
        }
    }

    /// Moves the cold data of the least worn block of a die if the most worn erased one, which it will take, was erased more than
    /// the threshold times more often.
    fn level_wear(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        let Some(threshold) = self.config.wear.static_threshold else { return Ok(()) };
        let state = &self.dies[die.index()];
        if state.erases < wear::LOOK_EVERY {
            return Ok(());
        }
        let erases = |block: BlockId| self.nand.cells().erase_count(block);
        let worn = state.free.iter().map(|&block| erases(block)).max().unwrap_or(0);
        let cold = wear::cold(&self.table, die, self.sequence, self.config.logical_units);
        let lagging = wear::lagging(cold, worn, threshold, erases);
        // Its data needs an erased block: leave the cleaner's reserve alone.
        let fits = state.free.len() as u32 >= self.config.free_blocks_min;
        self.dies[die.index()].erases = 0;
        let Some(block) = lagging.filter(|_| fits) else { return Ok(()) };
        self.stats.wear_moves += 1;
        self.policy.taken(&self.table, block);
        self.begin_job(at, die, block, Cause::Wear)
    }

    /// Empties the blocks whose programs failed and marks them bad.
    #[cold]
    pub(super) fn retire(&mut self, at: Time) -> Result<(), ControllerError> {
        while let Some(block) = self.failed.pop() {
            let die = self.geometry.die_of(block);
            self.finish_job(at, die)?;
            if self.table.state(block) != BlockState::Cleaning {
                continue;
            }
            self.stats.retire_units += 1;
            self.begin_job(at, die, block, Cause::Retire)?;
            self.finish_job(at, die)?;
        }
        Ok(())
    }
}
