//! The layout of the battery-backed SRAM, and the format of a page table entry.
//!
//! Every record is at most a word of the SRAM, a power of two long and aligned, so none straddles words and
//! each is written atomically. The regions, each beginning at a word:
//!
//! | region | bytes each | what |
//! |---|---|---|
//! | header | 64 | magic, shape |
//! | transaction | 64 | number of the transaction, whether it is open |
//! | segments | 64 | role, partition, position in the order, pages programmed, erases |
//! | pools | 64 | the cleaning history of each partition |
//! | slots | 16 | page and partition of each slot of the buffer, place in the FIFO |
//! | shadows | 16 | pages changed by the transaction and where their old versions are |
//! | table | 4 | logical page to flash page or slot, plus one so that a fresh memory maps nothing |
//! | buffer | page | the slots |
//!
//! The reverse table, from physical to logical pages, is not kept here: recovery rebuilds it from the table. It is
//! still counted (`EnvyConfig::table_bytes`), because the controller has it in SRAM while it runs.

/// Bytes of a segment, pool, header or transaction record.
pub(super) const RECORD: u64 = 64;
/// Bytes of a slot or shadow record.
pub(super) const SMALL: u64 = 16;

/// How many records of each kind the SRAM holds, at least one slot.
pub(super) struct SramCounts {
    pub segments: u64,
    pub pools: u64,
    pub slots: u64,
    pub shadows: u64,
    pub pages: u64,
}

/// Offsets of the regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SramLayout {
    segments: u64,
    pools: u64,
    slots: u64,
    shadows: u64,
    table: u64,
    buffer: u64,
    page: u64,
    bytes: u64,
}

impl SramLayout {
    /// The offset of the header, equal in every layout.
    pub const HEADER: u64 = 0;

    /// The layout for an array with pages of `page` bytes, in a memory with words of `word` bytes.
    pub fn new(counts: SramCounts, page: u64, word: u64) -> SramLayout {
        let up = |offset: u64| offset.next_multiple_of(word);
        let segments = up(2 * RECORD);
        let pools = up(segments + counts.segments * RECORD);
        let slots = up(pools + counts.pools * RECORD);
        let shadows = up(slots + counts.slots * SMALL);
        let table = up(shadows + counts.shadows * SMALL);
        let buffer = (table + counts.pages * 4).next_multiple_of(word.max(page));
        let bytes = buffer + counts.slots * page;
        SramLayout { segments, pools, slots, shadows, table, buffer, page, bytes }
    }

    pub fn transaction(&self) -> u64 {
        RECORD
    }

    pub fn segment(&self, segment: u32) -> u64 {
        self.segments + segment as u64 * RECORD
    }
    pub fn pool(&self, pool: u32) -> u64 {
        self.pools + pool as u64 * RECORD
    }
    pub fn slot(&self, slot: u32) -> u64 {
        self.slots + slot as u64 * SMALL
    }
    pub fn shadow(&self, shadow: u32) -> u64 {
        self.shadows + shadow as u64 * SMALL
    }
    pub fn entry(&self, page: u32) -> u64 {
        self.table + page as u64 * 4
    }
    pub fn data(&self, slot: u32) -> u64 {
        self.buffer + slot as u64 * self.page
    }
    /// Bytes in total.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A record being written or read: little-endian fields one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Record<N> {
    pub fn new() -> Record<N> {
        Record { bytes: [0; N], used: 0 }
    }
    /// A record to read back.
    pub fn from(bytes: [u8; N]) -> Record<N> {
        Record { bytes, used: 0 }
    }
    pub fn with_u32(mut self, value: u32) -> Record<N> {
        self.bytes[self.used..self.used + 4].copy_from_slice(&value.to_le_bytes());
        self.used += 4;
        self
    }
    pub fn with_u64(self, value: u64) -> Record<N> {
        self.with_u32(value as u32).with_u32((value >> 32) as u32)
    }
    pub fn u32(&mut self) -> u32 {
        let field = &self.bytes[self.used..self.used + 4];
        self.used += 4;
        u32::from_le_bytes(field.try_into().expect("4 bytes"))
    }
    pub fn u64(&mut self) -> u64 {
        let low = self.u32() as u64;
        low | (self.u32() as u64) << 32
    }
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
