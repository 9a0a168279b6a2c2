//! The sectors in PRAM: which they are, where, and how they are changed so that a power cut leaves each of them
//! old or new.
//!
//! Format, little-endian, every part aligned to 8 bytes:
//! - header (64 B): magic, sectors of the device u32, slots u32, journal records u32, crc32c of these;
//! - table, 4 B per slot: sector + 1, or 0 if the slot is free;
//! - journal records: sequence, low half u32, crc32c u32; slot u32, sequence, high half u32; changed: u64, a bit
//!   per 8 B of the sector; then those 8 bytes each. 64 bits of sequence do not wrap: a record takes at least 10 us;
//! - slots of 512 B.
//!
//! Invariants
//! 1. The table in PRAM is authoritative. An entry names a sector only after the slot holds it, and is cleared only
//!    after the device behind holds the sector durably (or it was trimmed).
//! 2. Only the newest valid record can be applied in part; applying it again changes nothing. So nothing else may
//!    change the slot it names: as long as it does, changes to that slot go through the journal, and before the
//!    slot is freed a record that names none is written.
//! 3. The PRAM writes an aligned 8 bytes atomically.

use super::SECTOR;
use crate::ControllerError;
use crate::pram::header;
use nvlab_medium::{InPlace, MediumError};
use nvlab_units::checksum::crc32c;
use nvlab_units::{Lpa, Served, Time};

const MAGIC: [u8; 8] = *b"nvlfsms1";
const HEADER_BYTES: u64 = 64;
const HEADER_USED: usize = 24;
const PIECE: usize = 8;
const PIECES: usize = SECTOR / PIECE;
const RECORD_HEAD: usize = 24;
const RECORD_BYTES: u64 = (RECORD_HEAD + SECTOR) as u64;
const NONE: u32 = u32::MAX;

/// How a sector in PRAM is overwritten. Only the words that differ are programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Through a journal: after a power cut the sector is old or new, as on any disk. Changes are programmed
    /// twice, unless they fit in a single aligned 8 bytes.
    Journalled,
    /// In place, as in system 003: a power cut may leave the sector old in some aligned 8 bytes and new in
    /// others.
    InPlace,
}

/// The offsets of the parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotLayout {
    /// The offset of the separator's part of the PRAM.
    offset: u64,
    pub slots: u32,
    records: u32,
}

impl SlotLayout {
    pub fn new((offset, bytes): (u64, u64), records: u32) -> SlotLayout {
        let left = bytes.saturating_sub(HEADER_BYTES + records as u64 * RECORD_BYTES + 8);
        SlotLayout { offset, slots: (left / (SECTOR as u64 + 4)).min(NONE as u64 - 1) as u32, records }
    }
    fn table(&self, slot: u32) -> u64 {
        self.offset + HEADER_BYTES + slot as u64 * 4
    }
    fn journal(&self) -> u64 {
        self.table(self.slots).next_multiple_of(8)
    }
    /// The offset of the record of a sequence number.
    fn record(&self, sequence: u64) -> u64 {
        self.journal() + sequence % self.records as u64 * RECORD_BYTES
    }
    fn slot(&self, slot: u32) -> u64 {
        self.journal() + self.records as u64 * RECORD_BYTES + slot as u64 * SECTOR as u64
    }
    fn header(&self, sectors: u32) -> [u8; HEADER_USED] {
        header(MAGIC, &[sectors, self.slots, self.records])
    }
}

/// The result of overwriting a sector.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    /// When it is durable.
    pub end: Time,
    /// Words of 2 B that changed.
    pub words: u64,
}

/// The slots. Their memory is passed to every call: it belongs to the controller behind.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    layout: SlotLayout,
    update: Update,
    sectors: u32,
    /// The sector in each slot.
    held: Vec<Lpa>,
    free: Vec<u32>,
    /// Where to look for a sector: the first slot of those whose sectors have the same last bits, and the next one after each
    /// slot. There are as many places as slots or more, so that most lists have a slot at most: metadata lies together, in
    /// FATs and in clusters. Rejected: *a slot for each sector of the device, in pages of 64 allocated on demand*, which took
    /// four times the memory for directories scattered over a volume.
    first: Vec<u32>,
    next: Vec<u32>,
    /// Sequence number of the next journal record, and the slot named by the last one.
    sequence: u64,
    journalled: u32,
    record: Vec<u8>,
    /// When everything written so far is durable.
    pub end: Time,
    /// When the entries of all released slots are durably cleared: only then may a released slot hold another sector.
    released: Time,
}

impl Slots {
    /// Empty slots in a part of the memory, as (offset, bytes).
    pub fn empty(part: (u64, u64), records: u32, update: Update, sectors: u32) -> Slots {
        let layout = SlotLayout::new(part, records);
        Slots {
            held: vec![Lpa::NONE; layout.slots as usize],
            free: (0..layout.slots).rev().collect(),
            first: vec![NONE; layout.slots.next_power_of_two() as usize],
            next: vec![NONE; layout.slots as usize],
            sequence: 1,
            journalled: NONE,
            record: Vec::with_capacity(RECORD_BYTES as usize),
            end: Time::ZERO,
            released: Time::ZERO,
            layout,
            update,
            sectors,
        }
    }

    /// Bytes of volatile memory: the index.
    pub fn memory_bytes(&self) -> u64 {
        4 * (self.first.len() + self.next.len() + self.held.len()) as u64
    }
    pub fn count(&self) -> u32 {
        self.layout.slots - self.free.len() as u32
    }
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }
    /// The sector in a slot.
    pub fn held(&self, slot: u32) -> Option<Lpa> {
        Some(self.held[slot as usize]).filter(|&sector| sector != Lpa::NONE)
    }
    pub fn len(&self) -> u32 {
        self.layout.slots
    }
    /// Offset and bytes of the part.
    pub fn part(&self) -> (u64, u64) {
        (self.layout.offset, self.layout.slot(self.layout.slots) - self.layout.offset)
    }

    /// The slot of a sector.
    #[inline]
    pub fn of(&self, sector: Lpa) -> Option<u32> {
        let mut slot = self.first[self.place(sector)];
        while slot != NONE && self.held[slot as usize] != sector {
            slot = self.next[slot as usize];
        }
        Some(slot).filter(|&slot| slot != NONE)
    }

    #[inline]
    fn place(&self, sector: Lpa) -> usize {
        sector.index() & (self.first.len() - 1)
    }

    /// Notes that a slot holds a sector.
    fn enter(&mut self, sector: Lpa, slot: u32) {
        let place = self.place(sector);
        self.held[slot as usize] = sector;
        self.next[slot as usize] = std::mem::replace(&mut self.first[place], slot);
    }

    /// Notes that a slot holds nothing any more; returns the sector it held.
    fn remove(&mut self, slot: u32) -> Lpa {
        let sector = std::mem::replace(&mut self.held[slot as usize], Lpa::NONE);
        let place = self.place(sector);
        let after = self.next[slot as usize];
        match self.first[place] {
            first if first == slot => self.first[place] = after,
            first => {
                let mut before = first;
                while self.next[before as usize] != slot {
                    before = self.next[before as usize];
                }
                self.next[before as usize] = after;
            }
        }
        sector
    }

    fn ended(&mut self, served: Result<Served, MediumError>) -> Result<Time, ControllerError> {
        let served = served.map_err(|source| ControllerError::Metadata { source })?;
        self.end = self.end.max(served.end);
        Ok(served.end)
    }

    fn put<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        offset: u64,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let served = pram.write(at, offset, data.len() as u64, if P::KEEPS { data } else { &[] });
        self.ended(served)
    }

    /// Formats an empty memory for this driver.
    pub fn format<P: InPlace>(&mut self, pram: &mut P) -> Result<(), ControllerError> {
        let served =
            pram.update(self.end, self.layout.offset, &[0; HEADER_USED], &self.layout.header(self.sectors));
        self.ended(served).map(|_| ())
    }

    pub fn read<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        slot: u32,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        let served = pram.read(at, self.layout.slot(slot), SECTOR as u64, into);
        served.map(|served| served.end).map_err(|source| ControllerError::Metadata { source })
    }

    /// Puts a sector that is on the device behind into a slot; one must be free.
    pub fn claim<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        sector: Lpa,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let slot = self.free.pop().expect("a free slot");
        let served = pram.write(at.max(self.released), self.layout.slot(slot), SECTOR as u64, data);
        let end = self.ended(served)?;
        self.enter(sector, slot);
        let served = pram.update(end, self.layout.table(slot), &[0; 4], &(sector.0 + 1).to_le_bytes());
        self.ended(served)
    }

    /// Frees the slot of a sector that the device behind holds durably by `at`.
    pub fn release<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        slot: u32,
    ) -> Result<Time, ControllerError> {
        let mut now = at;
        if self.journalled == slot {
            now = self.write_record(pram, now, NONE, 0, &[])?;
        }
        let sector = self.remove(slot);
        self.free.push(slot);
        let served = pram.update(now, self.layout.table(slot), &(sector.0 + 1).to_le_bytes(), &[0; 4]);
        let end = self.ended(served)?;
        self.released = self.released.max(end);
        Ok(end)
    }

    /// Overwrites the sector in a slot.
    pub fn overwrite<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        slot: u32,
        data: &[u8],
    ) -> Result<Change, ControllerError> {
        let offset = self.layout.slot(slot);
        if !P::KEEPS {
            return self.overwrite_unseen(pram, at, offset);
        }
        let mut old = [0; SECTOR];
        let now = self.read(pram, at, slot, &mut old)?;
        let words = old.chunks(2).zip(data.chunks(2)).filter(|(old, new)| old != new).count() as u64;
        if self.update == Update::InPlace {
            return Ok(Change { end: self.put(pram, at, offset, data)?, words });
        }
        let mut changed = 0u64;
        for (i, (old, new)) in old.chunks(PIECE).zip(data.chunks(PIECE)).enumerate() {
            changed |= ((old != new) as u64) << i;
        }
        let alone = changed.count_ones() <= 1 && self.journalled != slot;
        let now = if alone { now } else { self.write_record(pram, now, slot, changed, data)? };
        Ok(Change {
            end: self.apply(pram, now, offset, changed, |i| &data[i * PIECE..(i + 1) * PIECE])?,
            words,
        })
    }

    /// [`Slots::overwrite`] without payload: the medium assumes that a share of the words differs, in the journal as
    /// in place.
    fn overwrite_unseen<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        offset: u64,
    ) -> Result<Change, ControllerError> {
        let mut now = at;
        if self.update == Update::Journalled {
            let record = self.layout.record(self.sequence);
            self.sequence += 1;
            let served = pram.write(now, record, RECORD_BYTES, &[]);
            now = self.ended(served)?;
        }
        let served = pram.write(now, offset, SECTOR as u64, &[]);
        Ok(Change { end: self.ended(served)?, words: 0 })
    }

    fn write_record<P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        slot: u32,
        changed: u64,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.extend((self.sequence as u32).to_le_bytes());
        record.extend([0; 4]);
        record.extend(slot.to_le_bytes());
        record.extend(((self.sequence >> 32) as u32).to_le_bytes());
        record.extend(changed.to_le_bytes());
        for (_, piece) in data.chunks(PIECE).enumerate().filter(|(i, _)| changed >> i & 1 == 1) {
            record.extend_from_slice(piece);
        }
        let crc = record_crc(&record);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
        let offset = self.layout.record(self.sequence);
        self.sequence += 1;
        // The head makes the record valid, so it is written last.
        let body = self.put(pram, at, offset + PIECE as u64, &record[PIECE..])?;
        let end = self.put(pram, body, offset, &record[..PIECE])?;
        self.record = record;
        self.journalled = slot;
        Ok(end)
    }

    /// Programs changed pieces of a slot.
    fn apply<'a, P: InPlace>(
        &mut self,
        pram: &mut P,
        at: Time,
        offset: u64,
        changed: u64,
        piece: impl Fn(usize) -> &'a [u8],
    ) -> Result<Time, ControllerError> {
        let mut end = at;
        for i in (0..PIECES).filter(|i| changed >> i & 1 == 1) {
            end = end.max(self.put(pram, at, offset + (i * PIECE) as u64, piece(i))?);
        }
        Ok(end)
    }

    /// Reads back the contents of PRAM and finishes an overwrite in progress; returns when that is done, or why the
    /// memory does not belong to this driver.
    pub fn load<P: InPlace>(&mut self, pram: &mut P, at: Time) -> Result<Time, String> {
        let offset = self.layout.offset;
        let mut bytes = vec![0; (self.layout.slot(0) - offset) as usize];
        let served =
            pram.read(at, offset, bytes.len() as u64, &mut bytes).map_err(|error| error.to_string())?;
        if bytes[..HEADER_USED] != self.layout.header(self.sectors) {
            return Err("the PRAM holds no sectors of this device: it was never formatted for it".into());
        }
        for (slot, bytes) in (0..self.layout.slots).zip(bytes[HEADER_BYTES as usize..].chunks(4)) {
            let sector = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
            if let Some(sector) = sector.checked_sub(1).map(Lpa) {
                if sector.0 >= self.sectors || self.of(sector).is_some() {
                    return Err(format!("slot {slot} holds sector {sector}, which is impossible"));
                }
                self.enter(sector, slot);
            }
        }
        self.free.retain(|&slot| self.held[slot as usize] == Lpa::NONE);
        let first = (self.layout.journal() - offset) as usize;
        let records = bytes[first..].chunks(RECORD_BYTES as usize);
        let newest = records.filter_map(valid_record).max_by_key(|record| sequence_of(record));
        let Some(record) = newest else { return Ok(served.end) };
        self.sequence = sequence_of(record) + 1;
        let slot = u32::from_le_bytes(record[8..12].try_into().expect("4 bytes"));
        let changed = u64::from_le_bytes(record[16..24].try_into().expect("8 bytes"));
        if slot == NONE {
            return Ok(served.end);
        }
        if self.held.get(slot as usize).is_none_or(|&sector| sector == Lpa::NONE) {
            return Err(format!("the journal refers to slot {slot}, which is empty"));
        }
        self.journalled = slot;
        let piece = |i: usize| {
            let before = (changed & ((1 << i) - 1)).count_ones() as usize;
            &record[RECORD_HEAD + before * PIECE..][..PIECE]
        };
        let applied = self.apply(pram, served.end, self.layout.slot(slot), changed, piece);
        applied.map_err(|error| error.to_string())
    }

    /// Checks the index against the table; for tests.
    pub fn check(&self) {
        let used = (0..self.layout.slots).filter(|&slot| self.held(slot).is_some());
        let used: Vec<u32> = used.collect();
        used.iter().for_each(|&slot| assert_eq!(self.of(self.held[slot as usize]), Some(slot)));
        assert_eq!(used.len() + self.free.len(), self.layout.slots as usize);
        let after = |slot: u32| Some(slot).filter(|&slot| slot != NONE);
        let list = |first: u32| std::iter::successors(after(first), |&slot| after(self.next[slot as usize]));
        let indexed = self.first.iter().flat_map(|&first| list(first)).count();
        assert_eq!(indexed, used.len());
    }
}

fn sequence_of(record: &[u8]) -> u64 {
    let half = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes")) as u64;
    half(12) << 32 | half(0)
}

/// The checksum of a record, over everything but itself.
fn record_crc(record: &[u8]) -> u32 {
    crc32c(&[&record[..4], &record[8..]])
}

/// The record at the beginning of these bytes, if it is valid.
fn valid_record(bytes: &[u8]) -> Option<&[u8]> {
    let changed = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
    let record = &bytes[..RECORD_HEAD + changed.count_ones() as usize * PIECE];
    let crc = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes"));
    (sequence_of(record) != 0 && record_crc(record) == crc).then_some(record)
}
