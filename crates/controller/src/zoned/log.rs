//! The log of partly filled pages: what zones hold of pages being filled, where it must be durable before they are full.
//!
//! A flush of a buffer that a power cut empties, and an orderly power-off, program these units to a block of the log, packed
//! and padded to pages; in its zone a page is programmed only whole. When a block of the log is full another is begun with all
//! that is being filled then, and the one before is erased: what else it holds is in the zones. The reset of a zone that has
//! something in the log is recorded there too, or a recovery would find it again. The last page of a block is never programmed:
//! if something is there, its erase was cut, and it may have lost such a record but not what that is about.

use super::ZoneMap;
use crate::ControllerError;
use crate::spare::{Kind, Spare};
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Lpa, Time};

/// The block being filled.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    block: Option<u32>,
    pages: u32,
    /// No block is erased before: a reset that it records is done by then, and the block before it is erased.
    keep_until: Time,
}

impl Log {
    pub(super) fn keep_until(&mut self, until: Time) {
        self.keep_until = self.keep_until.max(until);
    }
    /// Its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = u32> {
        self.block.into_iter()
    }
}

/// A unit of the log.
struct Entry {
    kind: Kind,
    lpa: Lpa,
    generation: u64,
    /// Empty without payload.
    data: Vec<u8>,
}

impl<S: Store> ZoneMap<S> {
    /// What a zone holds of the page being filled.
    fn entries_of(&self, zone: u32) -> impl Iterator<Item = Entry> {
        let (filled, bytes) = (self.filled(zone), self.geometry.unit_bytes as usize);
        let first = self.zones[zone as usize].written - filled;
        let data = move |slot: u32| match self.staged.get(zone as usize) {
            Some(staged) => staged.data[slot as usize * bytes..][..bytes].to_vec(),
            None => Vec::new(),
        };
        (0..filled).map(move |slot| Entry {
            kind: Kind::Logged,
            lpa: self.layout.start(zone) + first + slot,
            generation: self.zones[zone as usize].generation,
            data: data(slot),
        })
    }

    /// Programs what zones hold of pages being filled, unless the log has it; returns when it is durable.
    pub(super) fn log_staged(&mut self, at: Time) -> Result<Time, ControllerError> {
        let waits = |zone: &u32| {
            self.filled(*zone) > 0 && self.zones[*zone as usize].logged < self.zones[*zone as usize].written
        };
        let zones: Vec<u32> = (0..self.config.zones).filter(waits).collect();
        if zones.is_empty() {
            return Ok(at);
        }
        let entries: Vec<Entry> = zones.iter().flat_map(|&zone| self.entries_of(zone)).collect();
        let end = self.append_log(at, entries)?;
        zones.iter().for_each(|&zone| self.note_logged(zone));
        Ok(end)
    }

    /// Records that a zone is reset; returns when that is durable.
    pub(super) fn log_reset(&mut self, at: Time, zone: u32) -> Result<Time, ControllerError> {
        let generation = self.zones[zone as usize].generation;
        let data = self.zeros.clone();
        self.append_log(at, vec![Entry { kind: Kind::Trim, lpa: self.layout.start(zone), generation, data }])
    }

    fn note_logged(&mut self, zone: u32) {
        let state = &mut self.zones[zone as usize];
        (state.logged, state.in_log) = (state.written, true);
    }

    fn append_log(&mut self, at: Time, entries: Vec<Entry>) -> Result<Time, ControllerError> {
        let pages = (entries.len() as u32).div_ceil(self.geometry.units_per_page);
        let has_room = self.log.block.is_some() && self.log.pages + pages < self.geometry.pages_per_block;
        let programmed = if has_room { self.program_log(at, &entries) } else { None };
        match programmed {
            Some(end) => Ok(end),
            None => self.next_log_block(at, entries, has_room),
        }
    }

    /// Begins another block of the log with all that it must hold, because a program in the last one failed or it is full;
    /// returns when that is durable.
    fn next_log_block(
        &mut self,
        at: Time,
        mut entries: Vec<Entry>,
        has_failed: bool,
    ) -> Result<Time, ControllerError> {
        let zones: Vec<u32> = (0..self.config.zones).filter(|&zone| self.filled(zone) > 0).collect();
        let resets = entries.extract_if(.., |entry| entry.kind == Kind::Trim);
        let staged = zones.iter().flat_map(|&zone| self.entries_of(zone));
        let all: Vec<Entry> = resets.chain(staged).collect();
        let before = self.log.block.take();
        let end = loop {
            let die = self.pool.roomiest();
            (self.log.block, self.log.pages) = (Some(self.pool.take(&self.nand, die)?), 0);
            self.shrink_empty(self.layout.group_of(die));
            match self.program_log(at, &all) {
                Some(end) => break end,
                None => {
                    let failed = self.log.block.take();
                    failed.into_iter().for_each(|block| _ = self.pool.retire(&mut self.nand, at, block));
                }
            }
        };
        self.zones.iter_mut().for_each(|zone| zone.in_log = false);
        zones.iter().for_each(|&zone| self.note_logged(zone));
        // What the block before holds of pages that were filled since is in their zones once these are programmed. The first
        // zones are one of each group.
        let programmed = (0..self.layout.groups()).map(|zone| self.finish_programs_of(at, zone));
        let needless = programmed.fold(end, Time::max).max(self.log.keep_until);
        let erased = before.map(|before| match has_failed {
            true => self.pool.retire(&mut self.nand, needless, before),
            false => self.pool.release(&mut self.nand, needless, before),
        });
        self.log.keep_until(erased.unwrap_or(needless));
        Ok(end)
    }

    /// Programs entries to the block of the log; returns when they are durable, or `None` if a program failed.
    fn program_log(&mut self, at: Time, entries: &[Entry]) -> Option<Time> {
        let per_page = self.geometry.units_per_page as usize;
        let block = BlockId(self.log.block?);
        let die = self.nand.die_of(block);
        let mut end = at;
        for entries in entries.chunks(per_page) {
            let (mut data, mut spare) = (Vec::new(), Vec::new());
            for nth in (0..per_page).filter(|_| S::KEEPS) {
                let padding =
                    Spare { kind: Kind::Padding, damaged: false, lpa: Lpa::NONE, sequence: 0, stamp: 0 };
                let (beside, bytes) = entries.get(nth).map_or((padding, &self.zeros), |entry| {
                    let Entry { kind, lpa, generation: sequence, ref data } = *entry;
                    (Spare { kind, lpa, sequence, ..padding }, data)
                });
                let beside = Spare { stamp: self.stamp, ..beside };
                self.stamp += 1;
                data.extend_from_slice(bytes);
                spare.extend_from_slice(&beside.encode(bytes));
            }
            let payload = if S::KEEPS { Payload::new(&data, &spare) } else { Payload::default() };
            match self.nand.program(at, block, self.log.pages, 1, payload, true) {
                Ok(ticket) => end = end.max(self.nand.finish(die, ticket, at)),
                Err(MediumError::ProgramFailed(_)) => return None,
                Err(other) => panic!("the log broke a rule of the medium: {other}"),
            }
            self.log.pages += 1;
            self.stats.log_units += per_page as u64;
        }
        Some(end)
    }
}
