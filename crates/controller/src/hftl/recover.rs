//! Recovery after a power cut, without a scan: the metadata is read from PRAM, nothing is scanned.
//!
//! The array is read only to find the last page of each open block: at most three blocks per die, each by bisection,
//! whatever the size of the array. Live bits are recomputed from the map. A block whose erase was in progress is
//! erased again. Recovery changes nothing that a second one would need, so it may itself be cut at any operation.
//!
//! What each power cut leaves: V2 goes to page P, V1 lies in block B.
//!
//! ```text
//!  host write: program of P queued; beside it, in PRAM,       the block table says "open" before
//!   | a      P's live bit and the block's write pointer       the first program of a block
//!  program begins
//!   | b
//!  P programmed, its live bit durable
//!   | c      PRAM: the map entry becomes P
//!  entry durable: the commit                                  acknowledged
//!   | d      PRAM: the live bit of V1's page is cleared
//!  B is chosen: reads and programs of its live pages queued;  nothing waits for them
//!   | e      PRAM: the copies' live bits and write pointer
//!  copies programmed                                          noticed at the next request
//!   | f      PRAM: map entries become the copies, one by one  not where V2 or a trim came meanwhile
//!  all entries durable
//!   | g      PRAM: B's live bits are cleared, its entry says "erasing"
//!  "erasing" durable: erase of B queued
//!   | h
//!  B erased                                                   "free" from the next request on, or
//!   | i                                                       "open" if B was taken before
//! ```
//!
//! | cut | on the media | what the mount makes of it |
//! |---|---|---|
//! | a | P erased; live bit and write pointer perhaps ahead | V1; the end of the open block is found by bisection |
//! | b | P torn | V1; P counts as written and is dead |
//! | c | P whole; the entry old or new | V1, or V2, not acknowledged yet: both are programmed |
//! | d | entry new; V1's live bit perhaps set | V2; the bit is cleared |
//! | e | B whole; copies absent, torn or whole | B as it is; the copies are dead |
//! | f | some entries name copies, some B; all are programmed | each where its entry says; B is a closed block again |
//! | g | no entry names B; B whole, "closed" or "erasing" | "closed": to be cleaned; "erasing": erased |
//! | h | B's pages as before or unreadable; "erasing" or "open" | "erasing": erased again; "open": its pages count as written and are dead |
//! | i | B erased; "erasing", "free" or "open" | erased once more; used; filled from its first erased page |

use super::metadata::{Entry, Use};
use super::{Frontier, Hftl, HftlConfig, NO_BLOCK, STREAMS};
use crate::cleaning::CleaningPolicy;
use crate::table::BlockState;
use crate::{ControllerError, RecoveryReport};
use nvlab_medium::flash::Nand;
use nvlab_medium::{InPlace, MediumError, PowerCut, Store};
use nvlab_units::{BlockId, Lpa, Ppa, Time};

/// What a power cut leaves.
#[derive(Clone, Debug)]
pub struct HftlMedia<S: Store, P> {
    /// The array.
    pub nand: Nand<S>,
    /// The memory of the map.
    pub pram: P,
}

impl<S: Store, P: InPlace + PowerCut> Hftl<S, P> {
    /// Cuts the power at `at`, or at the latest time passed to the media. What is left can be recovered.
    pub fn power_cut(mut self, at: Time) -> HftlMedia<S, P> {
        let at = at.max(self.latest);
        self.nand.cut(at);
        self.metadata.pram.cut(at);
        HftlMedia { nand: self.nand, pram: self.metadata.pram }
    }

    /// Rebuilds the controller from its media, beginning at `at`; or returns why that cannot work.
    pub fn recover(
        config: HftlConfig,
        media: HftlMedia<S, P>,
        at: Time,
    ) -> Result<(Hftl<S, P>, RecoveryReport), String> {
        assert!(S::KEEPS, "recovery reads payload");
        let mut hftl = Hftl::empty(config, media.nand, media.pram)?;
        let before = hftl.nand.stats().reads;
        let loaded = hftl.metadata.load(at)?;
        for lpa in (0..hftl.config.logical_units).map(Lpa) {
            if let Some(page) = hftl.metadata.lookup(lpa) {
                hftl.owner[page.index()] = lpa;
                hftl.table.gain(hftl.layout.block_of(page));
            }
        }
        hftl.check_found()?;
        hftl.forget_dead();
        let end = hftl.rebuild_blocks(loaded).map_err(|error| error.to_string())?;
        hftl.latest = end;
        let nand_reads = hftl.nand.stats().reads - before;
        Ok((hftl, RecoveryReport { time: end.since(at), nand_reads }))
    }

    /// Checks that the pages in the map are programmed and not in blocks that should be erased. This holds after every
    /// power cut; it fails if the memory or the array is damaged.
    fn check_found(&self) -> Result<(), String> {
        for lpa in (0..self.config.logical_units).map(Lpa) {
            let Some(page) = self.metadata.lookup(lpa) else { continue };
            let block = self.layout.block_of(page);
            let erased = matches!(self.metadata.entry(block).used, Use::Free | Use::Erasing);
            if erased || !self.nand.is_programmed(block, page - self.geometry.first_unit(block)) {
                let entry = self.metadata.entry(block);
                return Err(format!(
                    "the map maps {lpa} to page {page}, which is erased: {block:?} {entry:?}"
                ));
            }
        }
        Ok(())
    }

    /// Forgets the payload of every page that the map does not name.
    fn forget_dead(&mut self) {
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let first = self.geometry.first_unit(block);
            for page in (0..self.nand.pages_written(block)).map(|nth| first + nth) {
                if self.owner[page.index()] == Lpa::NONE && self.nand.holds(page) {
                    self.nand.discard(page);
                }
            }
        }
    }

    fn rebuild_blocks(&mut self, at: Time) -> Result<Time, ControllerError> {
        let mut end = self.metadata.correct_live(at)?;
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let die = self.geometry.die_of(block).index();
            let entry = self.metadata.entry(block);
            if entry.used == Use::Bad || self.nand.cells().is_bad(block) && self.table.live(block) == 0 {
                self.table.set_state(block, BlockState::Bad);
                end = end.max(self.metadata.set_entry(end, block, Entry { used: Use::Bad, ..entry })?);
                continue;
            }
            match entry.used {
                Use::Free if self.nand.pages_written(block) == 0 => self.dies[die].free.push(block),
                Use::Free | Use::Erasing => self.erase(end, block)?,
                Use::Open => end = self.adopt_open(end, block)?,
                Use::Closed | Use::Bad => self.adopt_full(block),
            }
        }
        let dynamic = self.config.wear.dynamic;
        self.dies.iter_mut().for_each(|die| crate::wear::order_new(&mut die.free, dynamic));
        Ok(end.max(self.metadata.end()))
    }

    fn adopt_full(&mut self, block: BlockId) {
        self.table.set_state(block, BlockState::Closed);
        self.policy.closed(&self.table, block);
    }

    /// Continues to fill an open block if possible; otherwise closes it.
    fn adopt_open(&mut self, at: Time, block: BlockId) -> Result<Time, ControllerError> {
        let (written, read) = self.find_end(at, block);
        let die = self.geometry.die_of(block).index();
        let stream = (0..STREAMS).find(|&stream| self.dies[die].open[stream].block == NO_BLOCK);
        let entry = Entry { written: written as u16, ..self.metadata.entry(block) };
        let full = written == self.geometry.pages_per_block || self.nand.cells().is_bad(block);
        match stream.filter(|_| !full) {
            Some(stream) => {
                self.dies[die].open[stream] = Frontier { block: block.0, next: written, ready: read };
                self.table.set_state(block, BlockState::Open);
                self.metadata.set_entry(read, block, entry)
            }
            None => {
                self.adopt_full(block);
                self.metadata.set_entry(read, block, Entry { used: Use::Closed, ..entry })
            }
        }
    }

    /// The first erased page of a block, and when it is known.
    fn find_end(&mut self, at: Time, block: BlockId) -> (u32, Time) {
        let first = self.geometry.first_unit(block).0;
        let (mut low, mut high, mut now) = (0, self.geometry.pages_per_block, at);
        while low < high {
            let middle = low + (high - low) / 2;
            let (end, spare) = self.nand.read_spare(now, Ppa(first + middle));
            now = end;
            match spare {
                Err(MediumError::Erased(_)) => high = middle,
                _ => low = middle + 1,
            }
        }
        // Pages programmed in any order may leave a hole before the last of them.
        (low.max(self.nand.pages_written(block)), now)
    }
}
