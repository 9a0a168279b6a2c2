//! BAST: a log block for each data block that is overwritten (Kim et al., 2002).
//!
//! Pages are appended in order of arrival. If they arrived in order from offset 0, each once, the log block can
//! become the data block: by a switch merge if it is full, otherwise by a partial merge. When all log blocks of a
//! die are assigned, the one assigned first is merged.

use super::write::HostPage;
use super::{BlockMap, Cause, DATA, Log, NOTHING};
use crate::ControllerError;
use nvlab_medium::Store;
use nvlab_units::{BlockId, Die, Geometry, Time};
use std::collections::VecDeque;

/// The log blocks and the logical blocks they are assigned to.
#[derive(Clone, Debug)]
pub(super) struct Bast {
    /// The log block of each logical block.
    pub log_of: Vec<u32>,
    /// Logical blocks of each die that have a log block, in the order of assignment.
    pub rounds: Vec<VecDeque<u32>>,
    /// Log blocks each die may assign.
    pub quotas: Vec<u32>,
    /// Log blocks whose pages are all at their own offsets.
    in_order: Vec<bool>,
}

impl Bast {
    /// No log block is assigned; `logical_blocks` is 0 if there are no log blocks.
    pub fn new(log: Log, logical_blocks: u32, geometry: &Geometry) -> Bast {
        let Log::PerBlock { blocks } = log else {
            return Bast { log_of: Vec::new(), rounds: Vec::new(), quotas: Vec::new(), in_order: Vec::new() };
        };
        let dies = geometry.dies();
        Bast {
            log_of: vec![NOTHING; logical_blocks as usize],
            rounds: vec![VecDeque::new(); dies as usize],
            quotas: (0..dies).map(|die| (blocks + dies - 1 - die) / dies).collect(),
            in_order: vec![false; geometry.blocks() as usize],
        }
    }

    /// Whether every die has assigned as many log blocks as it may.
    pub fn is_full(&self) -> bool {
        self.rounds.iter().zip(&self.quotas).all(|(round, &quota)| round.len() == quota as usize)
    }

    /// The log block of a logical block.
    pub fn of(&self, lbn: u32) -> Option<u32> {
        self.log_of.get(lbn as usize).copied().filter(|&block| block != NOTHING)
    }

    /// Assigns a log block to a logical block whose home is `die`.
    pub fn assign(&mut self, lbn: u32, die: Die, block: u32, in_order: bool) {
        self.log_of[lbn as usize] = block;
        self.rounds[die.index()].push_back(lbn);
        self.in_order[block as usize] = in_order;
    }

    /// Removes the log block of a logical block and returns it.
    pub fn take(&mut self, lbn: u32, die: Die) -> Option<u32> {
        let block = self.of(lbn)?;
        self.log_of[lbn as usize] = NOTHING;
        self.rounds[die.index()].retain(|&other| other != lbn);
        Some(block)
    }
}

impl<S: Store> BlockMap<S> {
    /// Appends a page to the log block of its logical block. `None`: a block was merged or failed, retry.
    pub(super) fn write_per_block(
        &mut self,
        at: Time,
        page: HostPage<'_>,
    ) -> Result<Option<Time>, ControllerError> {
        let Some(block) = self.bast.of(page.lbn) else {
            return self.assign_log_block(at, page.lbn).map(|()| None);
        };
        let next = self.areas[DATA].nand.pages_written(BlockId(block));
        if next == self.pages || self.areas[DATA].is_bad(block) {
            self.merge_log_of(at, page.lbn)?;
            return Ok(None);
        }
        let Ok(end) = self.program_host(at, DATA, block, next, page) else {
            self.evacuate(at, page.lbn)?;
            return Ok(None);
        };
        self.bast.in_order[block as usize] &= page.offset == next;
        self.place[page.lpa.index()] = self.areas[DATA].first_page(block) + next;
        self.stats.log_units += 1;
        Ok(Some(end))
    }

    fn assign_log_block(&mut self, at: Time, lbn: u32) -> Result<(), ControllerError> {
        let home = self.home(lbn);
        loop {
            let given = self.bast.rounds[home.index()].len() as u32;
            // One erased block is reserved for merges, and one for each unmapped logical block.
            let spare = self.areas[DATA].free_blocks(home) > self.unmapped[home.index()] + 1;
            if given < self.bast.quotas[home.index()] && spare {
                let block = self.areas[DATA].take(home)?;
                self.bast.assign(lbn, home, block, true);
                return Ok(());
            }
            let Some(&oldest) = self.bast.rounds[home.index()].front() else {
                return Err(self.areas[DATA].end_of_life(home));
            };
            self.stats.victims += 1;
            self.merge_log_of(at, oldest)?;
            self.stats.merge_wait += self.areas[DATA].finish(home, at) - at;
        }
    }

    /// Merges a logical block with its log block.
    pub(super) fn merge_log_of(&mut self, at: Time, lbn: u32) -> Result<(), ControllerError> {
        let Some(block) = self.bast.of(lbn) else { panic!("logical block {lbn} has no log block") };
        if self.bast.in_order[block as usize] && !self.areas[DATA].is_bad(block) {
            self.merge_in_order(at, lbn, block)?;
        } else {
            self.full_merge(at, lbn)?;
        }
        self.bast.take(lbn, self.home(lbn));
        if self.data[lbn as usize] != block {
            self.release(at, DATA, block, Cause::Full);
        }
        Ok(())
    }
}
