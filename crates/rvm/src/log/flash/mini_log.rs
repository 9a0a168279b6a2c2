//! A value that is replaced again and again, stored on flash as a log of values: the mini-log.
//!
//! Flash has no update in place. So one data block holds a log of values, of which the last committed one holds; when the
//! block is full, another data block is erased and takes the next value, and a pointer block names it (Price and Nettles,
//! "Transactions in a Flash", 1996, slide 21).
//!
//! 1. A value is committed when a bit of its mark is cleared, which is after all of the value has been programmed. A
//!    power failure before leaves the old value; a mark that it tore is completed when the mini-log is opened.
//! 2. A place that has been programmed in part is not reused until its block is erased.
//! 3. Of the data blocks that hold a committed value, the one with the highest sequence is valid. It is not erased,
//!    and the one before it only for the next switch, so there is always one.
//! 4. The pointer names the valid block after a switch, and never one that is not whole. So it tells damage from
//!    power failures: a block that was pointed at and cannot be found is an error, not an older value. The pointer
//!    block is itself filled before it is erased; while it is torn, invariant 3 finds the valid block without it.
//! 5. A data block that is worn out is passed over for the next one. If no other is left, or the pointer block is
//!    worn out, the value is not replaced and its call fails.
//!
//! # Format, version 1
//!
//! Data blocks first, then the pointer block. Integers are little-endian, checksums CRC-32C.
//!
//! A data block begins with a header of 64 B:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `nvlabrvm` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | kind of the mini-log, four letters |
//! | 16 | 8 | bytes of an erase block |
//! | 24 | 4 | data blocks |
//! | 28 | 4 | bytes of a value |
//! | 32 | 8 | identity of the log |
//! | 40 | 8 | sequence: counts switches |
//! | 48 | 12 | 0 |
//! | 60 | 4 | checksum of the bytes before |
//!
//! Entries follow it without gaps: the value, 4 B of checksum (of identity, sequence, the entry's number as 8 B, and the
//! value), and 4 B of mark: 1 bits before the commit, 0 after it.
//!
//! The pointer block holds entries of 16 B from its beginning: sequence (8 B), number of the data block (4 B), and 4 B of
//! checksum (of identity and the 12 B before).

use crate::checksum::crc32c;
use crate::flash::{Erased, Flash};
use crate::log::status::{MAGIC, VERSION};
use crate::{Error, Result};
use std::io;

/// Bytes of the header of a data block.
pub(super) const HEADER: usize = 64;
const CHECKED: usize = 60;
/// What an entry has besides its value.
const ENTRY_EXTRA: usize = 8;
const POINTER: usize = 16;

/// Where a mini-log lies: data blocks, then the pointer block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of its first erase block.
    pub first: u32,
    /// Blocks that take turns in holding the value, at least 2.
    pub data_blocks: u32,
}

impl Place {
    /// Erase blocks it takes, the pointer block included.
    pub fn blocks(self) -> u32 {
        self.data_blocks + 1
    }
}

/// The header of a data block, without what is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: [u8; 4],
    block_bytes: u64,
    data_blocks: u32,
    value_bytes: u32,
    identity: u64,
    sequence: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.kind);
        bytes[16..24].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.data_blocks.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.identity.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.sequence.to_le_bytes());
        let crc = crc32c(&[&bytes[..CHECKED]]);
        bytes[CHECKED..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header, or where it is wrong and why.
    fn decode(bytes: &[u8; HEADER]) -> std::result::Result<Header, (u64, String)> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes[..8] != MAGIC {
            return Err((0, "this is not a log: it does not begin with \"nvlabrvm\"".into()));
        }
        if word(CHECKED) != crc32c(&[&bytes[..CHECKED]]) {
            return Err((CHECKED as u64, "the header does not match its checksum".into()));
        }
        if word(8) != VERSION {
            return Err((8, format!("version {}; this program knows version {VERSION}", word(8))));
        }
        Ok(Header {
            kind: bytes[12..16].try_into().expect("4 bytes"),
            block_bytes: long(16),
            data_blocks: word(24),
            value_bytes: word(28),
            identity: long(32),
            sequence: long(40),
        })
    }
}

/// Bytes of an erase block of the device that begins so, if it begins with a mini-log, as that of a log does.
pub(super) fn block_bytes_of(first: &[u8; HEADER]) -> Option<u64> {
    Header::decode(first).ok().map(|header| header.block_bytes)
}

/// What a power failure has left undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Undone {
    /// Where the mark of the last entry is, if it is not complete.
    mark: Option<u64>,
    /// The pointer does not name the valid block.
    is_pointer_behind: bool,
}

/// A value of fixed length on flash that survives power failures while it is replaced.
#[derive(Debug)]
pub struct MiniLog {
    name: String,
    place: Place,
    /// Header of the valid block.
    header: Header,
    /// The valid block, counted within the mini-log.
    valid: u32,
    /// The next entry of the valid block.
    next: u64,
    /// The next entry of the pointer block.
    next_pointer: u64,
    value: Vec<u8>,
}

impl MiniLog {
    /// Erases the blocks and commits a first value; durable when it returns. A power failure during it leaves no mini-log,
    /// or one with this value.
    pub fn create<F: Flash>(
        flash: &mut F,
        place: Place,
        kind: [u8; 4],
        identity: u64,
        value: &[u8],
    ) -> Result<MiniLog> {
        let block_bytes = flash.shape().block_bytes;
        if place.data_blocks < 2 {
            return Err(Error::Invalid(format!(
                "a mini-log of {} data blocks: it needs 2",
                place.data_blocks
            )));
        }
        let least = (HEADER + value.len() + ENTRY_EXTRA) as u64;
        if block_bytes < least {
            let why = format!("an erase block of {block_bytes} B: the mini-log needs at least {least} B");
            return Err(Error::Invalid(why));
        }
        let header = Header {
            kind,
            block_bytes,
            data_blocks: place.data_blocks,
            value_bytes: value.len() as u32,
            identity,
            sequence: 0,
        };
        let name = flash.name();
        // Block 0 is the first to be switched to. What was there before must not be found: the pointer goes first.
        let (valid, next) = (place.data_blocks - 1, u64::MAX);
        let mut log = MiniLog { name, place, header, valid, next, next_pointer: 0, value: Vec::new() };
        for block in (0..place.blocks()).rev() {
            if log.erase(flash, block)? == Erased::WornOut {
                return Err(log.worn_out(block));
            }
        }
        log.next = log.entries();
        log.commit(flash, value)?;
        Ok(log)
    }

    /// Finds the value of a mini-log. What a power failure left undone is completed first: the value cannot change any more
    /// but by a commit.
    pub fn open<F: Flash>(flash: &mut F, place: Place, kind: [u8; 4]) -> Result<MiniLog> {
        let (mut log, mut undone) = Self::find(flash, place, kind)?;
        if undone == Undone::default() {
            return Ok(log);
        }
        // To change anything writes a file as a whole, and may find there that the value is an earlier one.
        if flash.rewrite().map_err(Error::io("write", &log.name))? {
            (log, undone) = Self::find(flash, place, kind)?;
        }
        if let Some(mark) = undone.mark {
            log.program(flash, mark, &[0; 4])?;
        }
        if undone.is_pointer_behind {
            log.point(flash)?;
        }
        Ok(log)
    }

    /// Finds the value of a mini-log and what a power failure left undone, and changes nothing.
    fn find<F: Flash>(flash: &mut F, place: Place, kind: [u8; 4]) -> Result<(MiniLog, Undone)> {
        let (mut blocks, mut first_error) = (Vec::new(), None);
        for block in 0..place.data_blocks {
            match Self::read_header(flash, place, kind, block) {
                Ok(header) => blocks.push((header, block)),
                Err(error @ Error::Format { .. }) => drop(first_error.get_or_insert(error)),
                Err(error) => return Err(error),
            }
        }
        // A block before the valid one may hold what a torn erase left of it: it is not looked at.
        blocks.sort_by_key(|(header, _)| std::cmp::Reverse(header.sequence));
        let mut found = None;
        for (header, valid) in blocks {
            let (name, value) = (flash.name(), Vec::new());
            let mut log = MiniLog { name, place, header, valid, next: 0, next_pointer: 0, value };
            if let Some(mark) = log.scan(flash)? {
                found = Some((log, mark));
                break;
            }
        }
        let Some((mut log, mark)) = found else {
            let offset = u64::from(place.first) * flash.shape().block_bytes;
            let why = "this is not a log: no value has been committed".into();
            return Err(first_error.unwrap_or(Error::Format { what: flash.name(), offset, why }));
        };
        let pointed = log.scan_pointers(flash)?;
        if pointed.is_some_and(|(sequence, _)| sequence > log.header.sequence) {
            let (sequence, block) = pointed.expect("just seen");
            let why = format!("the pointer names block {sequence}, which is incomplete");
            return Err(log.damaged(log.offset(block), why));
        }
        let is_pointer_behind = pointed.is_none_or(|(sequence, _)| sequence < log.header.sequence);
        Ok((log, Undone { mark, is_pointer_behind }))
    }

    fn read_header<F: Flash>(flash: &mut F, place: Place, kind: [u8; 4], block: u32) -> Result<Header> {
        let (name, block_bytes) = (flash.name(), flash.shape().block_bytes);
        let start = u64::from(place.first + block) * block_bytes;
        let mut bytes = [0; HEADER];
        flash.read(start, &mut bytes).map_err(Error::io("read", &name))?;
        Header::decode(&bytes)
            .and_then(|header| check(header, (kind, block_bytes, place.data_blocks)))
            .map_err(|(at, why)| Error::Format { what: name, offset: start + at, why })
    }

    /// The value of the last complete commit.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// What its creator passed, the same in all its blocks.
    pub fn identity(&self) -> u64 {
        self.header.identity
    }

    /// Replaces the value by one of the same length; durable when it returns. A power failure during it leaves the old or
    /// the new one. After an error it is unknown which one holds.
    pub fn commit<F: Flash>(&mut self, flash: &mut F, value: &[u8]) -> Result<()> {
        assert_eq!(value.len(), self.header.value_bytes as usize, "the length of a value does not change");
        let switches = self.next >= self.entries();
        if switches {
            self.switch(flash)?;
        }
        let at = self.entry_offset(self.next);
        let mut entry = value.to_vec();
        entry.extend_from_slice(&self.entry_crc(self.next, value).to_le_bytes());
        self.program(flash, at, &entry)?;
        self.program(flash, at + entry.len() as u64, &[0; 4])?;
        self.next += 1;
        self.value = value.to_vec();
        if switches {
            self.point(flash)?;
        }
        Ok(())
    }

    /// Erases the next data block that can be erased and makes it the one to write to.
    fn switch<F: Flash>(&mut self, flash: &mut F) -> Result<()> {
        for step in 1..self.place.data_blocks {
            let block = (self.valid + step) % self.place.data_blocks;
            if self.erase(flash, block)? == Erased::WornOut {
                continue;
            }
            (self.valid, self.next) = (block, 0);
            self.header.sequence += 1;
            return self.program(flash, self.offset(block), &self.header.encode());
        }
        Err(self.worn_out((self.valid + 1) % self.place.data_blocks))
    }

    /// Lets the pointer name the valid block.
    fn point<F: Flash>(&mut self, flash: &mut F) -> Result<()> {
        let block = self.place.data_blocks;
        if self.next_pointer >= self.header.block_bytes / POINTER as u64 {
            if self.erase(flash, block)? == Erased::WornOut {
                return Err(self.worn_out(block));
            }
            self.next_pointer = 0;
        }
        let mut entry = [0; POINTER];
        entry[..8].copy_from_slice(&self.header.sequence.to_le_bytes());
        entry[8..12].copy_from_slice(&self.valid.to_le_bytes());
        let crc = self.pointer_crc(&entry);
        entry[12..].copy_from_slice(&crc.to_le_bytes());
        self.program(flash, self.offset(block) + self.next_pointer * POINTER as u64, &entry)?;
        self.next_pointer += 1;
        Ok(())
    }

    /// Finds the last committed value of the valid block and its first unused entry; `None` if none is committed. Returns where its
    /// mark is, if that is not complete.
    fn scan<F: Flash>(&mut self, flash: &mut F) -> Result<Option<Option<u64>>> {
        let value_bytes = self.header.value_bytes as usize;
        let mut entry = vec![0; value_bytes + ENTRY_EXTRA];
        let (mut found, mut used) = (None, 0);
        for number in 0..self.entries() {
            let at = self.entry_offset(number);
            flash.read(at, &mut entry).map_err(Error::io("read", &self.name))?;
            if entry.iter().all(|&byte| byte == 0xff) {
                continue;
            }
            used = number + 1;
            let (value, rest) = entry.split_at(value_bytes);
            if rest[4..] == [0xff; 4] {
                continue;
            }
            if rest[..4] != self.entry_crc(number, value).to_le_bytes() {
                let why = format!("entry {number} is committed and does not match its checksum");
                return Err(self.damaged(at, why));
            }
            found = Some((value.to_vec(), at + value_bytes as u64 + 4, rest[4..] == [0; 4]));
        }
        self.next = used;
        let Some((value, mark, is_complete)) = found else { return Ok(None) };
        self.value = value;
        Ok(Some((!is_complete).then_some(mark)))
    }

    /// Finds the first unused entry of the pointer block; returns what the last whole one says: a sequence and a block.
    fn scan_pointers<F: Flash>(&mut self, flash: &mut F) -> Result<Option<(u64, u32)>> {
        let mut bytes = vec![0; self.header.block_bytes as usize];
        flash.read(self.offset(self.place.data_blocks), &mut bytes).map_err(Error::io("read", &self.name))?;
        let mut pointed = None;
        for (number, entry) in (1..).zip(bytes.as_chunks::<POINTER>().0) {
            if entry.iter().any(|&byte| byte != 0xff) {
                self.next_pointer = number;
            }
            if entry[12..] == self.pointer_crc(entry).to_le_bytes() {
                let sequence = u64::from_le_bytes(entry[..8].try_into().expect("8 bytes"));
                let block = u32::from_le_bytes(entry[8..12].try_into().expect("4 bytes"));
                pointed = pointed.max(Some((sequence, block)));
            }
        }
        Ok(pointed)
    }

    /// Entries that fit in a data block.
    fn entries(&self) -> u64 {
        (self.header.block_bytes - HEADER as u64) / (u64::from(self.header.value_bytes) + ENTRY_EXTRA as u64)
    }

    fn entry_offset(&self, number: u64) -> u64 {
        let entry_bytes = u64::from(self.header.value_bytes) + ENTRY_EXTRA as u64;
        self.offset(self.valid) + HEADER as u64 + number * entry_bytes
    }

    fn entry_crc(&self, number: u64, value: &[u8]) -> u32 {
        let Header { identity, sequence, .. } = self.header;
        crc32c(&[&identity.to_le_bytes(), &sequence.to_le_bytes(), &number.to_le_bytes(), value])
    }

    fn pointer_crc(&self, entry: &[u8; POINTER]) -> u32 {
        crc32c(&[&self.header.identity.to_le_bytes(), &entry[..12]])
    }

    /// Where a block of the mini-log begins on the device.
    fn offset(&self, block: u32) -> u64 {
        u64::from(self.place.first + block) * self.header.block_bytes
    }

    fn program<F: Flash>(&self, flash: &mut F, offset: u64, data: &[u8]) -> Result<()> {
        flash.program(offset, data).map_err(Error::io("program the status of", &self.name))
    }

    fn erase<F: Flash>(&self, flash: &mut F, block: u32) -> Result<Erased> {
        flash.erase(self.place.first + block).map_err(Error::io("erase a status block of", &self.name))
    }

    fn worn_out(&self, block: u32) -> Error {
        let source = io::Error::other("it is worn out, and no spare takes its place").into();
        Error::Io { what: format!("erase block {} of {}", self.place.first + block, self.name), source }
    }

    fn damaged(&self, offset: u64, why: String) -> Error {
        Error::Damaged { what: self.name.clone(), offset, why }
    }
}

/// Refuses the header of something else.
fn check(
    header: Header,
    (kind, block_bytes, data_blocks): ([u8; 4], u64, u32),
) -> std::result::Result<Header, (u64, String)> {
    if header.kind != kind {
        let [found, wanted] = [header.kind, kind].map(|kind| kind.escape_ascii().to_string());
        return Err((12, format!("kind \"{found}\" where \"{wanted}\" was expected")));
    }
    if header.block_bytes != block_bytes {
        let found = header.block_bytes;
        return Err((16, format!("made for erase blocks of {found} B; the device has {block_bytes} B")));
    }
    if header.data_blocks != data_blocks {
        return Err((24, format!("{} data blocks where {data_blocks} were expected", header.data_blocks)));
    }
    let room = block_bytes.saturating_sub((HEADER + ENTRY_EXTRA) as u64);
    if u64::from(header.value_bytes) > room {
        return Err((28, format!("values of {} B, and a block has room for {room} B", header.value_bytes)));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::{MemoryFlash, Shape};

    const KIND: [u8; 4] = *b"test";
    const VALUE: usize = 24;
    /// Five entries to a data block, fourteen pointers to the pointer block.
    const SHAPE: Shape = Shape { block_bytes: 224, blocks: 5 };

    fn place(data_blocks: u32) -> Place {
        Place { first: 1, data_blocks }
    }

    fn value(number: u8) -> [u8; VALUE] {
        std::array::from_fn(|i| number.wrapping_mul(37).wrapping_add(i as u8))
    }

    /// Commits values until an error or the last; returns how many were acknowledged.
    fn commit(log: &mut MiniLog, flash: &mut MemoryFlash, from: u8, to: u8) -> u8 {
        (from..to).find(|&number| log.commit(flash, &value(number)).is_err()).unwrap_or(to)
    }

    /// The number of the value that is there, and the mini-log.
    fn opened(flash: &mut MemoryFlash, data_blocks: u32, from: u8, to: u8) -> (u8, MiniLog) {
        let log = MiniLog::open(flash, place(data_blocks), KIND).unwrap();
        let found = (from..=to).find(|&number| log.value() == value(number));
        (found.unwrap_or_else(|| panic!("none of the values {from} to {to}")), log)
    }

    /// A history long enough to fill the pointer block twice.
    const LAST: u8 = 180;

    #[test]
    fn a_cut_at_every_operation_and_in_recovery_leaves_the_old_value_or_the_new() {
        for data_blocks in [2, 3] {
            let mut whole = MemoryFlash::new(SHAPE, 0);
            let mut log = MiniLog::create(&mut whole, place(data_blocks), KIND, 9, &value(0)).unwrap();
            let created = whole.operations();
            assert_eq!(commit(&mut log, &mut whole, 1, LAST), LAST);
            assert!(whole.wear()[1 + data_blocks as usize].erases > 2, "the pointer block was not filled");
            for cut in created + 1..=whole.operations() {
                for seed in 0..8 {
                    let mut flash = MemoryFlash::new(SHAPE, seed);
                    let mut log =
                        MiniLog::create(&mut flash, place(data_blocks), KIND, 9, &value(0)).unwrap();
                    flash.cut_at(cut);
                    let next = commit(&mut log, &mut flash, 1, LAST);
                    assert!(next < LAST, "cut {cut} did not happen");
                    flash.power_on();
                    // Again during the opening, if it does anything.
                    flash.cut_at(flash.operations() + 1);
                    let again = MiniLog::open(&mut flash, place(data_blocks), KIND);
                    let first = again.ok().map(|log| log.value().to_vec());
                    flash.power_on();
                    let (found, mut log) = opened(&mut flash, data_blocks, next - 1, next);
                    assert!(first.is_none_or(|first| first == value(found)), "cut {cut} seed {seed}");
                    let (same, _) = opened(&mut flash, data_blocks, next - 1, next);
                    assert_eq!(same, found, "cut {cut} seed {seed}");
                    let next = found + 1;
                    assert_eq!(
                        commit(&mut log, &mut flash, next, next + 9),
                        next + 9,
                        "cut {cut} seed {seed}"
                    );
                    opened(&mut flash, data_blocks, next + 8, next + 8);
                }
            }
        }
    }

    #[test]
    fn a_cut_while_it_is_created_leaves_none_or_the_first_value_even_over_an_old_one() {
        for seed in 0..20 {
            for cut in 1.. {
                let mut flash = MemoryFlash::new(SHAPE, seed);
                let mut log = MiniLog::create(&mut flash, place(2), KIND, 8, &value(0)).unwrap();
                commit(&mut log, &mut flash, 1, 30);
                flash.cut_at(flash.operations() + cut);
                let created = MiniLog::create(&mut flash, place(2), KIND, 9, &value(99));
                if created.is_ok() {
                    assert!(cut > 7, "{cut} operations");
                    break;
                }
                flash.power_on();
                match MiniLog::open(&mut flash, place(2), KIND) {
                    Ok(log) if log.identity() == 9 => assert_eq!(log.value(), value(99)),
                    // Until the data blocks are erased the old one is still there, as if nothing had begun.
                    Ok(log) => assert!(cut <= 3, "cut {cut} seed {seed}: {log:?}"),
                    Err(Error::Format { offset, .. } | Error::Damaged { offset, .. }) => {
                        assert!(offset >= 224)
                    }
                    Err(error) => panic!("cut {cut} seed {seed}: {error}"),
                }
                MiniLog::create(&mut flash, place(2), KIND, 9, &value(99)).unwrap();
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_refused_or_leaves_the_last_value() {
        let mut flash = MemoryFlash::new(SHAPE, 3);
        let mut log = MiniLog::create(&mut flash, place(2), KIND, 9, &value(0)).unwrap();
        commit(&mut log, &mut flash, 1, 7);
        let mut refused = 0;
        for bit in 0..3 * 224 * 8 {
            let offset = 224 + bit / 8;
            // Opening may complete what it takes for torn, so every bit has a device of its own.
            let mut flash = MemoryFlash::new(SHAPE, 3);
            let mut log = MiniLog::create(&mut flash, place(2), KIND, 9, &value(0)).unwrap();
            commit(&mut log, &mut flash, 1, 7);
            flash.damage(offset, 1 << (bit % 8));
            match MiniLog::open(&mut flash, place(2), KIND) {
                Ok(log) => assert_eq!(log.value(), value(6), "bit {} of byte {offset}", bit % 8),
                Err(Error::Damaged { .. }) => refused += 1,
                Err(error) => panic!("bit {} of byte {offset}: {error}", bit % 8),
            }
        }
        assert!(refused > 64 * 8, "{refused} bits were refused");
    }

    #[test]
    fn a_worn_out_data_block_is_passed_over_while_another_is_left() {
        let mut flash = MemoryFlash::new(SHAPE, 4);
        let mut log = MiniLog::create(&mut flash, place(3), KIND, 9, &value(0)).unwrap();
        flash.wear_out(2);
        assert_eq!(commit(&mut log, &mut flash, 1, 100), 100);
        let (_, mut log) = opened(&mut flash, 3, 99, 99);
        flash.wear_out(1);
        flash.wear_out(3);
        let next = commit(&mut log, &mut flash, 100, 110);
        assert!(next < 110);
        let error = log.commit(&mut flash, &value(next)).unwrap_err().to_string();
        assert!(error.contains("worn out, and no spare takes its place"), "{error}");
        opened(&mut flash, 3, next - 1, next - 1);
    }

    #[test]
    fn what_is_no_mini_log_is_refused_with_the_offset() {
        let mut flash = MemoryFlash::new(SHAPE, 5);
        let message = |flash: &mut MemoryFlash, kind| {
            MiniLog::open(flash, place(2), kind).expect_err("no mini-log").to_string()
        };
        let empty = "flash in memory at byte 224: this is not a log: it does not begin with \"nvlabrvm\"";
        assert_eq!(message(&mut flash, KIND), empty);
        MiniLog::create(&mut flash, place(2), KIND, 9, &value(0)).unwrap();
        let other = "flash in memory at byte 236: kind \"test\" where \"stat\" was expected";
        assert_eq!(message(&mut flash, *b"stat"), other);
        let error = MiniLog::create(&mut flash, place(2), KIND, 9, &[0; 200]).unwrap_err().to_string();
        assert_eq!(error, "an erase block of 224 B: the mini-log needs at least 272 B");
    }
}
