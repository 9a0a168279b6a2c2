//! FAST: log blocks shared by all data blocks (Lee et al., ACM TECS 6-3, 2007).
//!
//! With one array: an overwrite of offset 0 begins a *sequential* log block, whose pages are at their own
//! offsets; the pages after it go there too. Any other overwrite of the same logical block ends it (switch or
//! partial merge) and begins another at that offset. All other overwrites are appended to the *random* log blocks.
//!
//! With two arrays (Nam, Na and Lee 2010, section III): a log block cannot become a data block, so overwrites are
//! appended to the log whatever their order, unless they are of a sequential run that is longer than a quarter of a data
//! block. How long a request is, is known when it comes: one that makes its run longer than that goes to a new block of the data
//! array from its first page on. Of several requests that only become one, the first ones have gone to the log. Missing pages
//! are copied when the run ends.
//!
//! When no random log block has an erased page, they are emptied round-robin: a full merge of every logical block
//! with a live page in the victim, then its erase. Each die of the log's array has its own round.

use super::write::HostPage;
use super::{BlockMap, Cause, DATA, IN_PLACE, Log, NOTHING};
use crate::ControllerError;
use crate::spare::Kind;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Lpa, Time};
use std::collections::VecDeque;

/// A block for the overwrites of one logical block at their own offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequential {
    pub lbn: u32,
    pub block: u32,
    /// The offset that continues the sequence.
    pub next: u32,
}

/// The random log blocks of a die.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// The block being filled, or `NOTHING`; its next page.
    pub open: u32,
    next: u32,
    /// Full blocks, oldest first.
    pub full: VecDeque<u32>,
    /// Blocks in use, and the most there may be.
    pub used: u32,
    pub quota: u32,
}

/// The shared log blocks.
#[derive(Clone, Debug)]
pub(super) struct Fast {
    pub sequential: Option<Sequential>,
    pub rounds: Vec<Round>,
    next_die: Die,
    /// The host's sequential run: the page that continues it, and its length so far.
    run_next: Lpa,
    run_length: u32,
}

impl Fast {
    pub fn new(log: Log, dies: u32) -> Fast {
        let blocks = match log {
            Log::Shared { random_blocks, .. } => random_blocks,
            Log::None | Log::PerBlock { .. } => 0,
        };
        let quota = |die| (blocks + dies - 1 - die) / dies;
        let round = |die| Round { open: NOTHING, next: 0, full: VecDeque::new(), used: 0, quota: quota(die) };
        Fast {
            sequential: None,
            rounds: (0..dies).map(round).collect(),
            next_die: Die(0),
            run_next: Lpa::NONE,
            run_length: 0,
        }
    }

    /// Whether every die uses as many random log blocks as it may.
    pub fn is_full(&self) -> bool {
        self.rounds.iter().all(|round| round.used == round.quota)
    }

    /// Updates the host's sequential run with a page it writes.
    #[inline]
    pub fn follow(&mut self, lpa: Lpa) {
        self.run_length = if lpa == self.run_next { self.run_length + 1 } else { 1 };
        self.run_next = lpa + 1;
    }

    /// Takes the sequential block if it belongs to this logical block.
    pub fn take_sequential_of(&mut self, lbn: u32) -> Option<u32> {
        self.sequential.take_if(|sequential| sequential.lbn == lbn).map(|sequential| sequential.block)
    }
}

impl<S: Store> BlockMap<S> {
    /// Writes a page to a shared log block. `None`: a block failed, retry.
    #[inline]
    pub(super) fn write_shared(
        &mut self,
        at: Time,
        page: HostPage<'_>,
    ) -> Result<Option<Time>, ControllerError> {
        let Log::Shared { sequential: true, .. } = self.config.log else { return self.append(at, page) };
        let own_array = self.areas.len() > 1;
        let mut begins = match own_array {
            true => self.fast.run_length + page.rest > self.pages / 4,
            false => page.offset == 0,
        };
        if let Some(open) = self.fast.sequential {
            if open.lbn == page.lbn && open.next == page.offset {
                return self.write_sequential(at, page, open.block);
            }
            begins |= !own_array && open.lbn == page.lbn;
            if begins || open.lbn == page.lbn {
                self.end_sequential(at)?;
            }
            // Its place in the new data block may be erased, if the old page was trimmed.
            if self.is_erased(page) {
                return Ok(None);
            }
        }
        let home = self.home(page.lbn);
        // One erased block is reserved for merges, and one for each unmapped logical block.
        if !begins || self.areas[DATA].free_blocks(home) < self.unmapped[home.index()] + 2 {
            return self.append(at, page);
        }
        let block = self.areas[DATA].take(home)?;
        self.fast.sequential = Some(Sequential { lbn: page.lbn, block, next: page.offset });
        self.write_sequential(at, page, block)
    }

    fn write_sequential(
        &mut self,
        at: Time,
        page: HostPage<'_>,
        block: u32,
    ) -> Result<Option<Time>, ControllerError> {
        if !self.areas[DATA].is_bad(block)
            && let Ok(end) = self.program_host(at, DATA, block, page.offset, page)
        {
            self.place[page.lpa.index()] = self.areas[DATA].first_page(block) + page.offset;
            self.fast.sequential = Some(Sequential { lbn: page.lbn, block, next: page.offset + 1 });
            self.stats.sequential_units += 1;
            return Ok(Some(end));
        }
        self.evacuate(at, page.lbn)?;
        Ok(None)
    }

    /// Merges the sequential block, if there is one.
    fn end_sequential(&mut self, at: Time) -> Result<(), ControllerError> {
        let Some(Sequential { lbn, block, .. }) = self.fast.sequential else { return Ok(()) };
        if self.areas[DATA].is_bad(block) {
            return self.evacuate(at, lbn);
        }
        if self.areas.len() > 1 {
            self.merge_into(at, lbn, Some(block), Cause::Sequential)?;
            self.stats.sequential_merges += 1;
        } else {
            self.merge_in_order(at, lbn, block)?;
        }
        self.fast.sequential = None;
        Ok(())
    }

    /// Appends a page to a random log block.
    #[inline]
    fn append(&mut self, at: Time, page: HostPage<'_>) -> Result<Option<Time>, ControllerError> {
        let area = self.log_area();
        let die = self.fast.next_die;
        let round = &self.fast.rounds[die.index()];
        if round.open == NOTHING {
            self.open_log_block(at, die)?;
        }
        let Round { open, next, .. } = self.fast.rounds[die.index()];
        let programmed = self.program_host(at, area, open, next, page);
        let round = &mut self.fast.rounds[die.index()];
        round.next += 1;
        if programmed.is_err() || round.next == self.log_pages {
            round.full.push_back(open);
            round.open = NOTHING;
        }
        self.fast.next_die = self.areas[area].geometry.after(die);
        let Ok(end) = programmed else { return Ok(None) };
        let index = self.areas[area].first_page(open) + next;
        self.owner[index as usize] = page.lpa;
        if self.config.second_chance {
            self.overwritten[page.lpa.index()] = self.place[page.lpa.index()] < IN_PLACE;
        }
        self.place[page.lpa.index()] = self.log_base + index;
        self.stats.log_units += 1;
        Ok(Some(end))
    }

    /// Opens an erased log block on a die; empties the oldest full one if none is available.
    fn open_log_block(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        let area = self.log_area();
        loop {
            let mut kept = 0;
            if area == DATA {
                // Reserved for merges, the sequential block and logical blocks without a data block.
                let sequential = matches!(self.config.log, Log::Shared { sequential: true, .. });
                let open = self.fast.sequential.is_some_and(|open| self.home(open.lbn) == die);
                kept = self.unmapped[die.index()] + 1 + (sequential && !open) as u32;
            }
            let round = &self.fast.rounds[die.index()];
            if round.used < round.quota && self.areas[area].free_blocks(die) > kept {
                return self.take_log_block(die);
            }
            if round.full.is_empty() {
                return Err(self.areas[area].end_of_life(die));
            }
            // With a second chance, the pages that stay in the log need a destination, which becomes the open block.
            if self.config.second_chance && self.areas[area].free_blocks(die) > kept {
                self.take_log_block(die)?;
            }
            self.empty_oldest(at, die)?;
            if self.fast.rounds[die.index()].open != NOTHING {
                return Ok(());
            }
        }
    }

    fn take_log_block(&mut self, die: Die) -> Result<(), ControllerError> {
        let area = self.log_area();
        let block = self.areas[area].take(die)?;
        if self.config.slc_log {
            self.areas[area].nand.set_slc(BlockId(block), true);
        }
        let round = &mut self.fast.rounds[die.index()];
        (round.open, round.next) = (block, 0);
        round.used += 1;
        Ok(())
    }

    /// Merges every logical block with a live page in the oldest full log block of a die, and erases that log block.
    fn empty_oldest(&mut self, at: Time, die: Die) -> Result<(), ControllerError> {
        let area = self.log_area();
        let victim = self.fast.rounds[die.index()].full[0];
        let first = self.areas[area].first_page(victim);
        let pages = self.log_pages;
        for page in first..first + pages {
            let lpa = self.owner[page as usize];
            // A page with a second chance is merged as well if another page of its logical block is.
            if self.is_live(page) && !(self.config.second_chance && self.overwritten[lpa.index()]) {
                self.merge_page(at, lpa)?;
            }
        }
        if self.config.second_chance {
            self.keep_overwritten(at, die, first..first + pages)?;
        }
        let mut ready = at;
        // All copies must be done, also those of earlier merges, which may have copied a page of the victim. On the
        // victim's own die the erase follows them anyway.
        for (home, &copied) in (0..).map(Die).zip(&self.copied) {
            if area != DATA || home != die {
                ready = ready.max(self.areas[DATA].nand.finish(home, copied, at));
            }
        }
        let round = &mut self.fast.rounds[die.index()];
        round.full.pop_front();
        round.used -= 1;
        self.owner[first as usize..(first + pages) as usize].fill(Lpa::NONE);
        // The newer version of a dead page may still be queued on another die.
        self.release(ready.max(self.promised), area, victim, Cause::Full);
        self.stats.victims += 1;
        self.stats.merge_wait += self.areas[area].finish(die, at) - at;
        Ok(())
    }

    /// True if a page of the log is the newest version of its logical page.
    #[inline]
    fn is_live(&self, page: u32) -> bool {
        let lpa = self.owner[page as usize];
        lpa != Lpa::NONE && self.place[lpa.index()] == self.log_base + page
    }

    /// Merges the logical block of a page in the log.
    #[inline]
    fn merge_page(&mut self, at: Time, lpa: Lpa) -> Result<(), ControllerError> {
        let lbn = self.split(lpa).0;
        match self.fast.sequential {
            Some(open) if open.lbn == lbn => self.end_sequential(at),
            _ => self.full_merge(at, lbn),
        }
    }

    /// Copies the live pages of a victim to the open log block. They were overwritten in the log and get one
    /// second chance: next time they are merged unless they were overwritten again.
    fn keep_overwritten(
        &mut self,
        at: Time,
        die: Die,
        victim: std::ops::Range<u32>,
    ) -> Result<(), ControllerError> {
        let area = self.log_area();
        let live = victim.clone().filter(|&page| self.is_live(page)).count() as u32;
        if live > 0 && self.fast.rounds[die.index()].open != NOTHING {
            self.read_for_copies(at, area, die, live, true, Cause::SecondChance);
        }
        for page in victim {
            if !self.is_live(page) {
                continue;
            }
            let lpa = self.owner[page as usize];
            self.overwritten[lpa.index()] = false;
            let Round { open, next, .. } = self.fast.rounds[die.index()];
            if open == NOTHING || !self.copy_in_log(at, area, open, next, lpa) {
                // There is no open block, or its program failed.
                self.merge_page(at, lpa)?;
            }
        }
        Ok(())
    }

    /// Copies a page to the open log block; returns false if the program failed and the block is bad.
    fn copy_in_log(&mut self, at: Time, area: usize, open: u32, next: u32, lpa: Lpa) -> bool {
        let copied = self.fetch(lpa, Kind::Data, area);
        let (die, payload) = (self.areas[area].die_of(open), copied.payload(&self.page));
        let programmed = self.areas[area].nand.program(at, BlockId(open), next, 1, payload, false);
        self.counts(area).at(Cause::SecondChance).programs += 1;
        let round = &mut self.fast.rounds[die.index()];
        round.next += 1;
        if programmed.is_err() || round.next == self.log_pages {
            round.full.push_back(open);
            round.open = NOTHING;
        }
        match programmed {
            Ok(_) => {
                let index = self.areas[area].first_page(open) + next;
                self.note_copied(area, index, &copied);
                self.owner[index as usize] = lpa;
                self.place[lpa.index()] = self.log_base + index;
                self.stats.second_chances += 1;
                true
            }
            Err(MediumError::ProgramFailed(_)) => {
                self.mark_bad(area, open);
                false
            }
            Err(other) => panic!("page {lpa} broke a rule of the medium: {other}"),
        }
    }

    /// Adopts a log block found after a power cut.
    pub(super) fn found_log_block(&mut self, die: Die, block: u32) {
        let round = &mut self.fast.rounds[die.index()];
        round.full.push_back(block);
        round.used += 1;
    }
}
