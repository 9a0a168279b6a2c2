//! The journal of trims: with checkpoints, a trim that was flushed stays trimmed after a power cut.
//!
//! A trim only changes the map in memory. Before the versions it invalidates may be erased, and at a flush, a record
//! of it is programmed in a journal block; the next complete turn of checkpoints makes the records and their blocks
//! obsolete.
//! Without checkpoints there is no journal and a trim is advisory.
//!
//! Format: the data of a unit of kind `Trim` holds records of 16 bytes, little-endian: first unit u32, units
//! u32 (0 ends the list), sequence u64.
//!
//! Invariants
//! 1. No more trims are pending than a page of the journal holds. Code that keeps them elsewhere through a power cut
//!    relies on it.
//! 2. A trim is pending until the program of a page with its record is queued; a failed program only advances
//!    the journal's next page.
//! 3. Before a trim is accepted the journal has two pages left, so recording it rarely needs a new block.

use super::PageMap;
use super::array::Queued;
use super::bit_set::BitSet;
use super::frontier::NO_BLOCK;
use super::spare::Kind;
use crate::ControllerError;
use nvlab_medium::Store;
use nvlab_medium::flash::nand::{DeadUnits, Payload};
use nvlab_units::{BlockId, Die, Extent, Geometry, Lpa, Ppa, Time};
use serde::{Deserialize, Serialize};

const RECORD_BYTES: usize = 16;

/// A trim, and its position in the order of the host's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub extent: Extent,
    pub sequence: u64,
}

/// The state of the controller's journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub pending: Vec<Record>,
    /// Records whose program is queued; a protected buffer still holds them.
    in_flight: Vec<(Record, Queued)>,
    pub blocks: Vec<BlockId>,
    open: u32,
    page: u32,
    /// Only with payload.
    #[serde(skip)]
    pub trimmed: Trimmed,
}

/// The versions that trims left, until the records of all these trims are programmed.
#[derive(Clone, Debug, Default)]
pub(super) struct Trimmed {
    /// The number of the last of the trims.
    pub last: u64,
    pub dead: DeadUnits,
}

impl Journal {
    pub fn new() -> Journal {
        Journal {
            pending: Vec::new(),
            in_flight: Vec::new(),
            blocks: Vec::new(),
            open: NO_BLOCK,
            page: 0,
            trimmed: Trimmed::default(),
        }
    }

    /// The records a protected buffer holds after a power cut.
    pub fn survive(self) -> Vec<Record> {
        self.in_flight.into_iter().map(|(record, _)| record).chain(self.pending).collect()
    }
}

/// The records of one unit.
pub(super) fn decode(data: &[u8]) -> impl Iterator<Item = Record> {
    let records = data.chunks_exact(RECORD_BYTES).map(|bytes| Record {
        extent: Extent {
            start: Lpa(u32::from_le_bytes(bytes[0..4].try_into().expect("4 bytes"))),
            count: u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")),
        },
        sequence: u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes")),
    });
    records.take_while(|record| record.extent.count > 0)
}

/// The most trims that can be pending: the records of a page.
pub fn trims_pending_max(geometry: &Geometry) -> usize {
    geometry.units_per_page as usize * (geometry.unit_bytes as usize / RECORD_BYTES)
}

impl<S: Store> PageMap<S> {
    fn records_per_page(&self) -> usize {
        trims_pending_max(&self.geometry)
    }

    /// Unmaps units.
    pub(super) fn trim_extent(&mut self, start: Time, extent: Extent) -> Result<(), ControllerError> {
        // First, because it may clean: units that die below must not be erased before the trim is recorded.
        self.prepare_journal(start)?;
        // Without records it may come back as long as its block is not erased.
        let is_recorded = S::KEEPS && self.checkpoint.is_on();
        for lpa in extent.units() {
            let unit = self.map.unmap(lpa);
            if unit != Ppa::NONE {
                self.note_change(lpa);
                self.lose(unit);
                if is_recorded {
                    self.note_trimmed(self.numbers.sequence, unit);
                }
            }
        }
        self.stats.host_trim_units += extent.count as u64;
        self.note_trim(start, extent);
        if self.demand.is_some() {
            self.rewrite_waiting(start)?;
        }
        Ok(())
    }

    /// Adds a trim to the journal, which was prepared for it.
    pub(super) fn note_trim(&mut self, at: Time, extent: Extent) {
        let sequence = self.numbers.sequence;
        self.numbers.sequence += 1;
        if !self.checkpoint.is_on() || extent.count == 0 {
            return;
        }
        match self.journal.pending.last_mut() {
            // It directly follows the last one, with no write in between.
            Some(last) if last.extent.end() == extent.start.0 as u64 && last.sequence + 1 == sequence => {
                last.extent.count += extent.count;
                last.sequence = sequence;
            }
            _ => self.journal.pending.push(Record { extent, sequence }),
        }
        if self.journal.pending.len() == self.records_per_page() {
            self.record_trims(at);
        }
    }

    /// Ensures that the journal has room for another trim, and two pages left.
    pub(super) fn prepare_journal(&mut self, at: Time) -> Result<(), ControllerError> {
        if !self.checkpoint.is_on() {
            return Ok(());
        }
        self.open_journal(at)?;
        // A full page is pending only if its programs failed, or if recovery passed it in.
        while self.journal.pending.len() >= self.records_per_page() {
            self.record_trims(at);
            self.open_journal(at)?;
        }
        Ok(())
    }

    /// Ensures that the journal has two pages left.
    fn open_journal(&mut self, at: Time) -> Result<(), ControllerError> {
        if self.journal.open != NO_BLOCK
            && self.array.pages_left(BlockId(self.journal.open), self.journal.page) >= 2
        {
            return Ok(());
        }
        // A full journal block hurries a turn of the checkpoint; with two, this waits until it is finished.
        match self.journal.blocks.len() {
            0 => {}
            1 => self.hurry_turn(at)?,
            _ => self.finish_turn(at)?,
        }
        let block = self.take_map_block(at, self.checkpoint.number)?;
        self.add_to_journal(block);
        Ok(())
    }

    fn add_to_journal(&mut self, block: BlockId) {
        self.journal.blocks.push(block);
        (self.journal.open, self.journal.page) = (block.0, self.array.next_page(block, 0));
    }

    pub(super) fn trims_pending(&self) -> bool {
        !self.journal.pending.is_empty()
    }

    /// Programs the pending trims, as far as there are journal pages left.
    pub(super) fn record_trims(&mut self, at: Time) {
        // A failed program uses up a page; the journal has more than one.
        while self.trims_pending() && self.journal.open != NO_BLOCK {
            self.record_on_page(at);
        }
    }

    /// Ensures that no trim is pending, even if programs fail.
    pub(super) fn record_all_trims(&mut self, at: Time) -> Result<(), ControllerError> {
        self.record_trims(at);
        while self.trims_pending() {
            self.open_journal(at)?;
            self.record_trims(at);
        }
        Ok(())
    }

    /// Programs the trims still pending in new journal blocks, without cleaning for them; a block of `die` is about to
    /// be erased. Returns false if some stay pending for lack of an erased block.
    pub(super) fn record_trims_at_once(&mut self, at: Time, die: Die) -> bool {
        while self.trims_pending() {
            let Some(block) = self.take_erased(Some(die)) else { return false };
            self.add_to_journal(block);
            self.record_trims(at);
        }
        true
    }

    /// Programs at most a page of pending trims on the next page of the journal. If that fails they stay pending.
    fn record_on_page(&mut self, at: Time) {
        let (block, page) = (BlockId(self.journal.open), self.journal.page);
        self.journal.page = self.array.next_page(block, page + 1);
        if self.journal.page == self.geometry.pages_per_block {
            self.journal.open = NO_BLOCK;
        }
        let count = self.journal.pending.len().min(self.records_per_page());
        let (data, spare) = if S::KEEPS { self.encode_trims(count) } else { Default::default() };
        self.stats.map_units += self.geometry.units_per_page as u64;
        let payload = Payload::new(&data, &spare);
        let Ok(queued) = self.array.program(at, block, page, 1, payload, true) else { return };
        if S::KEEPS {
            self.trims_recorded(self.journal.pending[count - 1].sequence, queued);
        }
        let records = self.journal.pending.drain(..count).map(|record| (record, queued));
        if S::KEEPS && self.buffer.is_protected() {
            let array = &mut self.array;
            self.journal.in_flight.retain(|&(_, queued)| !array.is_done(queued, at));
            self.journal.in_flight.extend(records);
        }
    }

    /// Encodes the first `count` pending trims as a page: data and spare areas.
    fn encode_trims(&mut self, count: usize) -> (Vec<u8>, Vec<u8>) {
        let (mut data, mut spare) = (Vec::new(), Vec::new());
        let bytes = self.geometry.unit_bytes as usize;
        let mut units = self.journal.pending[..count].chunks(bytes / RECORD_BYTES);
        for _ in 0..self.geometry.units_per_page {
            let start = data.len();
            for record in units.next().unwrap_or(&[]) {
                data.extend(record.extent.start.0.to_le_bytes());
                data.extend(record.extent.count.to_le_bytes());
                data.extend(record.sequence.to_le_bytes());
            }
            data.resize(start + bytes, 0);
            let beside = self.numbers.beside(Kind::Trim, Lpa::NONE, self.numbers.sequence);
            spare.extend_from_slice(&beside.encode(&data[start..]));
        }
        (data, spare)
    }

    /// Closes the journal before a turn: further trims go to a new journal. Returns the old one's blocks.
    pub(super) fn close_journal(&mut self) -> Vec<BlockId> {
        self.journal.open = NO_BLOCK;
        std::mem::take(&mut self.journal.blocks)
    }

    /// Unmaps the units of a record found at recovery, except those with a newer version, and those whose checkpoint is
    /// newer: it knows all up to sequence number `known`.
    pub(super) fn apply_trim(&mut self, record: Record, known: impl Fn(Lpa) -> u64, scanned: &BitSet) {
        for lpa in record.extent.units().take_while(|lpa| lpa.0 < self.config.logical_units) {
            if record.sequence >= known(lpa) && record.sequence > self.scanned_numbers(scanned, lpa).0 {
                self.map.forget(lpa);
            }
        }
    }
}
