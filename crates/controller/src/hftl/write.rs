//! Host writes: program a page, then point the map to it. Also the open blocks.
//!
//! A trim clears map entries, each atomically, and is acknowledged when they are durable.

use super::metadata::{Entry, Use};
use super::{COLD, Frontier, HOST, Hftl, MOVED, NO_BLOCK, NO_FRONTIER};
use crate::ControllerError;
use crate::cleaning::CleaningPolicy;
use crate::spare::{Kind, Spare};
use crate::table::BlockState;
use crate::wear::{self, Take};
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{InPlace, MediumError, PowerCut, Store};
use nvlab_units::{BlockId, Die, Lpa, Ppa, Ticket, Time};

/// A page whose program is queued.
pub(super) struct Placed {
    pub page: Ppa,
    pub ticket: Ticket,
    /// When its live bit is durable.
    pub marked: Time,
}

impl<S: Store, P: InPlace + PowerCut> Hftl<S, P> {
    /// Writes one page; returns when it is durable.
    #[inline]
    pub(super) fn write_unit(&mut self, at: Time, lpa: Lpa, data: &[u8]) -> Result<Time, ControllerError> {
        let die = self.open_for_host(at)?;
        let sequence = self.sequence;
        self.sequence += 1;
        let spare = Spare { kind: Kind::Data, damaged: false, lpa, sequence, stamp: sequence };
        let Placed { page, ticket, marked } = self.program(at, (die, HOST), spare, data, true)?;
        self.gained(page, sequence);
        self.next_die = self.geometry.after(die);
        let programmed = self.nand.finish(die, ticket, at).max(marked);
        // Only now: making room may have moved the old version.
        let old = self.metadata.lookup(lpa);
        let end = self.metadata.set_map(programmed, lpa, page)?;
        if let Some(old) = old {
            self.invalidate(old);
            self.clear_live_bit(end, old)?;
            self.nand.supersede_at(self.nand.dead(old), end);
        }
        Ok(end)
    }

    /// The die for the next host page, with an open block.
    #[inline]
    fn open_for_host(&mut self, at: Time) -> Result<Die, ControllerError> {
        let mut refused = None;
        for die in self.geometry.dies_from(self.next_die) {
            if self.dies[die.index()].open[HOST].block != NO_BLOCK {
                return Ok(die);
            }
            match self.make_room(at, die) {
                Ok(()) => {
                    self.open(at, die, HOST)?;
                    return Ok(die);
                }
                Err(error @ ControllerError::EndOfLife { .. }) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(refused.expect("a die was asked"))
    }

    pub(super) fn end_of_life(&self, die: Die) -> ControllerError {
        let bad = self.table.count(die, BlockState::Bad);
        ControllerError::EndOfLife { die, bad, blocks: self.geometry.blocks_per_die }
    }

    /// Opens an erased block of a die.
    pub(super) fn open(&mut self, at: Time, die: Die, stream: usize) -> Result<(), ControllerError> {
        let take = match stream {
            MOVED => self.config.wear.take_moved(),
            COLD => Take::MostWorn,
            _ => Take::LeastWorn,
        };
        let (free, cells) = (&mut self.dies[die.index()].free, self.nand.cells());
        let taken = wear::take_free(free, self.config.wear.dynamic, take, |block| cells.erase_count(block));
        let block = taken.ok_or_else(|| self.end_of_life(die))?;
        let erasing = &mut self.dies[die.index()].erasing;
        let before = erasing.len();
        erasing.retain(|&(erased, _)| erased != block);
        self.pending -= (before - erasing.len()) as u32;
        self.table.set_state(block, BlockState::Open);
        self.table.set_birth(block, 0);
        let entry = self.metadata.entry(block);
        let ready = self.metadata.set_entry(at, block, Entry { written: 0, used: Use::Open, ..entry })?;
        self.dies[die.index()].open[stream] = Frontier { block: block.0, next: 0, ready };
        Ok(())
    }

    /// Programs one page at a frontier; returns its address and ticket. If a program fails, the block is left to
    /// [`Hftl::retire`] and another is opened.
    #[inline]
    pub(super) fn program(
        &mut self,
        at: Time,
        (die, stream): (Die, usize),
        beside: Spare,
        data: &[u8],
        host: bool,
    ) -> Result<Placed, ControllerError> {
        loop {
            if self.dies[die.index()].open[stream].block == NO_BLOCK {
                self.open(at, die, stream)?;
            }
            let Frontier { block, next, ready } = self.dies[die.index()].open[stream];
            let (block, at) = (BlockId(block), at.max(ready));
            self.latest = self.latest.max(at);
            let mut spare = [0; SPARE_BYTES];
            if S::KEEPS {
                spare = beside.encode(data);
            }
            let queued = self.nand.program(at, block, next, 1, Payload::new(data, &spare), host);
            if !matches!(queued, Ok(_) | Err(MediumError::ProgramFailed(_))) {
                panic!("the frontier of die {die} broke a rule of the medium: {queued:?}");
            }
            // In parallel with the program; the map entry waits for both.
            let marked = self.metadata.set_live(at, block, (next, 1), queued.is_ok())?;
            self.fill(at, (die, stream), 1)?;
            match queued {
                Ok(ticket) => {
                    let page = self.geometry.first_unit(block) + next;
                    self.owner[page.index()] = beside.lpa;
                    return Ok(Placed { page, ticket, marked });
                }
                Err(_) => self.set_failed_aside(at, (die, stream), block)?,
            }
        }
    }

    /// Records that `count` more pages of an open block are written.
    #[inline]
    pub(super) fn fill(
        &mut self,
        at: Time,
        (die, stream): (Die, usize),
        count: u32,
    ) -> Result<(), ControllerError> {
        let frontier = &mut self.dies[die.index()].open[stream];
        let block = BlockId(frontier.block);
        frontier.next += count;
        let entry = Entry { written: frontier.next as u16, ..self.metadata.entry(block) };
        if frontier.next < self.geometry.pages_per_block {
            self.metadata.set_entry(at, block, entry)?;
            return Ok(());
        }
        *frontier = NO_FRONTIER;
        self.metadata.set_entry(at, block, Entry { used: Use::Closed, ..entry })?;
        self.table.set_state(block, BlockState::Closed);
        Ok(())
    }

    /// Sets a block whose program failed aside to be retired: nothing more is written to it.
    #[cold]
    fn set_failed_aside(
        &mut self,
        at: Time,
        (die, stream): (Die, usize),
        block: BlockId,
    ) -> Result<(), ControllerError> {
        if self.dies[die.index()].open[stream].block == block.0 {
            self.dies[die.index()].open[stream] = NO_FRONTIER;
            let entry = self.metadata.entry(block);
            self.metadata.set_entry(at, block, Entry { used: Use::Closed, ..entry })?;
        }
        self.table.set_state(block, BlockState::Cleaning);
        self.failed.push(block);
        Ok(())
    }

    pub(super) fn mark_bad(&mut self, at: Time, block: BlockId) -> Result<(), ControllerError> {
        self.nand.mark_bad(block);
        self.table.set_state(block, BlockState::Bad);
        self.stats.retired_blocks += 1;
        let entry = self.metadata.entry(block);
        self.metadata.set_entry(at, block, Entry { used: Use::Bad, ..entry })?;
        Ok(())
    }

    /// Marks a page just programmed live. After the last page of a block, the policy may choose the block.
    #[inline]
    pub(super) fn gained(&mut self, page: Ppa, birth: u64) {
        let block = self.block_of(page);
        self.table.gain(block);
        if birth > self.table.birth(block) {
            self.table.set_birth(block, birth);
        }
        if self.table.state(block) == BlockState::Closed {
            self.policy.closed(&self.table, block);
        }
    }
}
