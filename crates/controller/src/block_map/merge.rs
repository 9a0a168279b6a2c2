//! Merging: copies the newest version of every page of a logical block into one block, which becomes its data block.
//!
//! One mechanism for all: into a log block that already holds pages at their own offsets (all of them: a switch
//! merge; some: a partial merge), or into an erased block (a full merge).

use super::{BlockMap, Cause, DATA, IN_PLACE, NOTHING};
use crate::ControllerError;
use crate::spare::Kind;
use nvlab_medium::flash::cells::SLC_LEVEL;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Lpa, Time};

/// A program failed: its block is now bad and must no longer be used.
#[derive(Debug)]
pub(super) struct Failed;

/// How many pages a merge must copy from the data block and from elsewhere.
#[derive(Clone, Copy, Debug)]
struct Sources {
    in_place: u32,
    in_log: u32,
}

impl<S: Store> BlockMap<S> {
    /// Gathers the newest pages of a logical block in `target` (on its home die; by default a newly taken
    /// block) and makes it the data block.
    pub(super) fn merge_into(
        &mut self,
        at: Time,
        lbn: u32,
        target: Option<u32>,
        cause: Cause,
    ) -> Result<(), ControllerError> {
        let home = self.home(lbn);
        let mut target = target;
        loop {
            let block = match target {
                Some(block) => block,
                None => self.areas[DATA].take(home)?,
            };
            if let Ok(()) = self.copy_newest(at, lbn, block, cause) {
                self.copied[home.index()] = self.areas[DATA].nand.last(home);
                self.make_data_block(at, lbn, block, cause);
                return Ok(());
            }
            target = None;
        }
    }

    /// Full merge, into a newly taken block.
    pub(super) fn full_merge(&mut self, at: Time, lbn: u32) -> Result<(), ControllerError> {
        self.merge_into(at, lbn, None, Cause::Full)?;
        self.stats.full_merges += 1;
        Ok(())
    }

    /// Merge into a log block whose pages are at their own offsets: a switch merge if nothing must be copied.
    pub(super) fn merge_in_order(&mut self, at: Time, lbn: u32, log: u32) -> Result<(), ControllerError> {
        let left = self.sources(lbn, log);
        if left.in_place + left.in_log == 0 {
            self.stats.switch_merges += 1;
            return self.merge_into(at, lbn, Some(log), Cause::Switch);
        }
        self.stats.partial_merges += 1;
        self.merge_into(at, lbn, Some(log), Cause::Partial)
    }

    /// Counts the pages to copy into `target`. Plain loops over the map, which the compiler vectorises.
    fn sources(&self, lbn: u32, target: u32) -> Sources {
        let base = self.areas[DATA].first_page(target);
        let (mut in_place, mut elsewhere) = (0, 0);
        for &place in &self.place[self.pages_of(lbn)] {
            in_place += (place == IN_PLACE) as u32;
            elsewhere += (place < IN_PLACE && place.wrapping_sub(base) >= self.pages) as u32;
        }
        Sources { in_place, in_log: elsewhere }
    }

    /// Queues the reads of a merge; returns when those on other dies are done, which the programs wait for, and the
    /// number of copies.
    fn read_sources(&mut self, at: Time, lbn: u32, target: u32, cause: Cause) -> (Time, u32) {
        let home = self.home(lbn);
        let Sources { in_place, in_log } = self.sources(lbn, target);
        self.reads[home.index()] = in_place;
        if in_log > 0 {
            self.count_log_reads(lbn, target, in_log);
        }
        let mut ready = at;
        let data_dies = self.areas[DATA].geometry.dies() as usize;
        for lane in 0..self.reads.len() {
            let reads = std::mem::take(&mut self.reads[lane]);
            if reads == 0 {
                continue;
            }
            let of_log = lane >= data_dies;
            let (area, die) = if of_log { (self.log_area(), lane - data_dies) } else { (DATA, lane) };
            let die = Die(die as u32);
            self.read_for_copies(at, area, die, reads, of_log, cause);
            let area = &mut self.areas[area];
            if (of_log && self.log_base > 0) || die != home {
                ready = ready.max(area.finish(die, at));
            }
        }
        (ready, in_place + in_log)
    }

    /// Queues the reads of pages on one die that will be copied.
    pub(super) fn read_for_copies(
        &mut self,
        at: Time,
        area: usize,
        die: Die,
        reads: u32,
        of_log: bool,
        cause: Cause,
    ) {
        self.counts(area).at(cause).reads += reads as u64;
        let mut levels = [0; SLC_LEVEL as usize + 1];
        levels[if of_log && self.config.slc_log { SLC_LEVEL as usize } else { 0 }] = reads;
        self.areas[area].nand.relocation_reads(at, die, &levels, reads);
    }

    /// Counts, per die, the log pages of a logical block to read.
    fn count_log_reads(&mut self, lbn: u32, target: u32, in_log: u32) {
        let data_dies = self.areas[DATA].geometry.dies() as usize;
        let base = self.areas[DATA].first_page(target);
        if self.areas.len() == 1 && data_dies == 1 && !self.config.slc_log {
            self.reads[0] += in_log;
            return;
        }
        for index in self.pages_of(lbn) {
            let place = self.place[index];
            if place < IN_PLACE && place.wrapping_sub(base) >= self.pages {
                let (area, page) = self.locate(place);
                let die = self.areas[area].die_of(self.areas[area].block_of(page)).index();
                let block = BlockId(self.areas[area].block_of(page));
                let of_log = area != DATA || self.areas[area].nand.is_slc(block);
                self.reads[if of_log { data_dies + die } else { die }] += 1;
            }
        }
    }

    /// Copies the newest pages into `target`, without changing the map. If a program fails, the target is bad.
    fn copy_newest(&mut self, at: Time, lbn: u32, target: u32, cause: Cause) -> Result<(), Failed> {
        let (start, copies) = self.read_sources(at, lbn, target, cause);
        let pages = self.pages_of(lbn);
        if copies == 0 {
            return Ok(());
        }
        if S::KEEPS || self.areas[DATA].nand.cells().programs_may_fail() {
            return self.copy_pages(start, lbn, target, copies, cause);
        }
        self.stats.data.at(cause).programs += copies as u64;
        let base = self.areas[DATA].first_page(target);
        let nand = &mut self.areas[DATA].nand;
        let mut program = |page: usize, count: usize| {
            let queued =
                nand.program(start, BlockId(target), page as u32, count as u32, Payload::default(), false);
            queued.unwrap_or_else(|error| panic!("merge of {lbn} broke a rule of the medium: {error}"));
        };
        if copies as usize == pages.len() {
            program(0, pages.len());
            return Ok(());
        }
        let mut from = None;
        for (offset, &place) in self.place[pages.clone()].iter().enumerate() {
            let copied = place != NOTHING && place.wrapping_sub(base) >= self.pages;
            match (copied, from) {
                (true, None) => from = Some(offset),
                (false, Some(first)) => {
                    program(first, offset - first);
                    from = None;
                }
                _ => {}
            }
        }
        if let Some(first) = from {
            program(first, pages.len() - first);
        }
        Ok(())
    }

    /// [`BlockMap::copy_newest`] page by page, with payload.
    fn copy_pages(
        &mut self,
        at: Time,
        lbn: u32,
        target: u32,
        copies: u32,
        cause: Cause,
    ) -> Result<(), Failed> {
        let mut left = copies;
        let base = self.areas[DATA].first_page(target);
        for lpa in self.pages_of(lbn).map(|lpa| Lpa(lpa as u32)) {
            let place = self.place[lpa.index()];
            if place == NOTHING || place.wrapping_sub(base) < self.pages {
                continue;
            }
            left -= 1;
            let kind = if left == 0 { Kind::Merged } else { Kind::Data };
            let copied = self.fetch(lpa, kind, DATA);
            self.stats.data.at(cause).programs += 1;
            let offset = lpa.0 - lbn * self.pages;
            let payload = copied.payload(&self.page);
            let queued = self.areas[DATA].nand.program(at, BlockId(target), offset, 1, payload, false);
            match queued {
                Ok(_) => self.note_copied(DATA, base + offset, &copied),
                Err(MediumError::ProgramFailed(_)) => {
                    self.mark_bad(DATA, target);
                    return Err(Failed);
                }
                Err(other) => panic!("merge of {lbn} broke a rule of the medium: {other}"),
            }
        }
        Ok(())
    }

    /// Makes `block`, which now holds all pages of a logical block, its data block.
    fn make_data_block(&mut self, at: Time, lbn: u32, block: u32, cause: Cause) {
        let (pages, home) = (self.pages_of(lbn), self.home(lbn));
        for place in &mut self.place[pages] {
            *place = if *place == NOTHING { NOTHING } else { IN_PLACE };
        }
        match std::mem::replace(&mut self.data[lbn as usize], block) {
            NOTHING => self.unmapped[home.index()] -= 1,
            old => self.release(at, DATA, old, cause),
        }
    }
}
