//! The metadata of the hybrid controller in PRAM, updated in place, an aligned 8 bytes at a time.
//!
//! Format, little-endian, every part aligned to 8 bytes:
//! - header (64 B): magic, logical pages u32, blocks u32, pages of a block u32, bytes of a page u32, crc32c of these;
//! - block table, 8 B per block: erases u32, write pointer u16, state u8, 0;
//! - live bits, one per page, each block's starting at an aligned 8 bytes: a clear bit means that the page is dead, a
//!   set one that it may be live;
//! - map, 4 B per logical page: physical page + 1, or 0. A memory full of zeros is an empty map.
//!
//! The decoded copy in this structure represents the same bytes: the simulator keeps it to avoid decoding them again. A
//! device reads them in place; `HftlConfig::lookup` is the time that takes.

use crate::ControllerError;
use crate::pram::header;
use nvlab_medium::{InPlace, MediumError};
use nvlab_units::bits::words_of;
use nvlab_units::{BlockId, Extent, Geometry, Lpa, Ppa, Served, Time};

const MAGIC: [u8; 8] = *b"nvlhftl1";
const HEADER_BYTES: u64 = 64;
const HEADER_USED: usize = 28;
/// No block is ever erased more often.
const ERASES_MAX: u32 = 1 << 31;

/// What a block is used for, according to its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Free = 0,
    Open = 1,
    Closed = 2,
    /// Its erase is queued.
    Erasing = 3,
    Bad = 4,
}

/// The entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub erases: u32,
    /// Pages programmed.
    pub written: u16,
    pub used: Use,
}

impl Entry {
    pub const FRESH: Entry = Entry { erases: 0, written: 0, used: Use::Free };

    #[inline]
    fn encode(self) -> [u8; 8] {
        let word = self.erases as u64 | (self.written as u64) << 32 | (self.used as u64) << 48;
        word.to_le_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Entry> {
        let word = u64::from_le_bytes(bytes.try_into().ok()?);
        let uses = [Use::Free, Use::Open, Use::Closed, Use::Erasing, Use::Bad];
        let used = *uses.get((word >> 48) as usize)?;
        Some(Entry { erases: word as u32, written: (word >> 32) as u16, used })
    }
}

/// The offsets of the parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetadataLayout {
    logical_units: u32,
    blocks: u32,
    pages: u32,
    unit_bytes: u32,
}

impl MetadataLayout {
    pub fn new(logical_units: u32, geometry: &Geometry) -> MetadataLayout {
        let (blocks, pages) = (geometry.blocks(), geometry.pages_per_block);
        MetadataLayout { logical_units, blocks, pages, unit_bytes: geometry.unit_bytes }
    }
    #[inline]
    fn entry(&self, block: BlockId) -> u64 {
        HEADER_BYTES + block.0 as u64 * 8
    }
    /// Words of 64 live bits of one block.
    #[inline]
    pub fn words(&self) -> u32 {
        self.pages.div_ceil(64)
    }
    #[inline]
    fn word(&self, word: usize) -> u64 {
        self.entry(BlockId(self.blocks)) + word as u64 * 8
    }
    #[inline]
    fn map(&self, lpa: Lpa) -> u64 {
        self.word((self.blocks * self.words()) as usize) + lpa.0 as u64 * 4
    }
    /// Bytes of PRAM in total.
    pub fn bytes(&self) -> u64 {
        self.map(Lpa(self.logical_units))
    }

    fn header(&self) -> [u8; HEADER_USED] {
        header(MAGIC, &[self.logical_units, self.blocks, self.pages, self.unit_bytes])
    }
}

/// How often each part was updated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Updates {
    pub entries: u64,
    pub live: u64,
    pub map: u64,
}

/// The metadata, and the memory that holds it.
#[derive(Clone, Debug)]
pub(super) struct Metadata<P> {
    pub pram: P,
    layout: MetadataLayout,
    entries: Vec<Entry>,
    live: Vec<u64>,
    /// Physical page + 1.
    map: Vec<u32>,
    /// When everything written so far is durable.
    end: Time,
    pub updates: Updates,
}

impl<P: InPlace> Metadata<P> {
    pub fn empty(layout: MetadataLayout, pram: P) -> Metadata<P> {
        Metadata {
            pram,
            entries: vec![Entry::FRESH; layout.blocks as usize],
            live: vec![0; (layout.blocks * layout.words()) as usize],
            map: vec![0; layout.logical_units as usize],
            end: Time::ZERO,
            updates: Updates::default(),
            layout,
        }
    }

    pub fn layout(&self) -> &MetadataLayout {
        &self.layout
    }
    #[inline]
    pub fn entry(&self, block: BlockId) -> Entry {
        self.entries[block.0 as usize]
    }
    /// The page that holds `lpa`; `None` if it is unmapped.
    #[inline]
    pub fn lookup(&self, lpa: Lpa) -> Option<Ppa> {
        self.map[lpa.index()].checked_sub(1).map(Ppa)
    }
    /// The raw map, to prefetch its cache lines.
    pub fn map(&self) -> &[u32] {
        &self.map
    }
    pub fn live_words(&self, block: BlockId) -> &[u64] {
        let words = self.layout.words() as usize;
        &self.live[block.0 as usize * words..][..words]
    }
    /// When everything written so far is durable.
    #[inline]
    pub fn end(&self) -> Time {
        self.end
    }

    /// Formats an empty memory for this controller: the header is written last, so it shows that the rest is complete.
    pub fn format(&mut self) -> Result<(), ControllerError> {
        let served = self.pram.update(self.end, 0, &[0; HEADER_USED], &self.layout.header());
        self.ended(served).map(|_| ())
    }

    #[inline]
    fn ended(&mut self, served: Result<Served, MediumError>) -> Result<Time, ControllerError> {
        let served = served.map_err(|source| ControllerError::Metadata { source })?;
        self.end = self.end.max(served.end);
        Ok(served.end)
    }

    /// Changes the entry of a block; returns when that is durable.
    #[inline]
    pub fn set_entry(&mut self, at: Time, block: BlockId, entry: Entry) -> Result<Time, ControllerError> {
        let old = std::mem::replace(&mut self.entries[block.0 as usize], entry);
        let offset = self.layout.entry(block);
        self.updates.entries += 1;
        let served = self.pram.update(at, offset, &old.encode(), &entry.encode());
        self.ended(served)
    }

    /// Changes the live bits of `count` pages of a block from `page` on; returns when that is durable.
    #[inline]
    pub fn set_live(
        &mut self,
        at: Time,
        block: BlockId,
        (page, count): (u32, u32),
        live: bool,
    ) -> Result<Time, ControllerError> {
        let first = (block.0 * self.layout.words()) as usize;
        let mut end = at;
        for (word, mask) in words_of(page as u64, count as u64) {
            let index = first + word;
            let old = self.live[index];
            let new = if live { old | mask } else { old & !mask };
            if new != old {
                end = end.max(self.set_word(at, index, new)?);
            }
        }
        Ok(end)
    }

    #[inline]
    fn set_word(&mut self, at: Time, index: usize, new: u64) -> Result<Time, ControllerError> {
        let old = std::mem::replace(&mut self.live[index], new);
        self.updates.live += 1;
        let offset = self.layout.word(index);
        let served = self.pram.update(at, offset, &old.to_le_bytes(), &new.to_le_bytes());
        self.ended(served)
    }

    /// Maps a logical page; returns when that is durable.
    #[inline]
    pub fn set_map(&mut self, at: Time, lpa: Lpa, page: Ppa) -> Result<Time, ControllerError> {
        let old = std::mem::replace(&mut self.map[lpa.index()], page.0 + 1);
        self.updates.map += 1;
        let offset = self.layout.map(lpa);
        let served = self.pram.update(at, offset, &old.to_le_bytes(), &(page.0 + 1).to_le_bytes());
        self.ended(served)
    }

    /// Unmaps logical pages; each entry becomes durable independently.
    pub fn unmap(&mut self, at: Time, extent: Extent) -> Result<Time, ControllerError> {
        const TOGETHER: usize = 64;
        let (mut end, last) = (at, extent.end() as usize);
        for lpa in extent.units().step_by(TOGETHER) {
            let entries = &mut self.map[lpa.index()..last.min(lpa.index() + TOGETHER)];
            let mut old = [0; TOGETHER * 4];
            for (bytes, entry) in old.chunks_mut(4).zip(entries.iter_mut()) {
                bytes.copy_from_slice(&std::mem::take(entry).to_le_bytes());
            }
            let bytes = entries.len() * 4;
            self.updates.map += entries.len() as u64;
            let offset = self.layout.map(lpa);
            let served = self.pram.update(at, offset, &old[..bytes], &[0; TOGETHER * 4][..bytes]);
            end = end.max(self.ended(served)?);
        }
        Ok(end)
    }

    /// Reads everything back; returns when that is done, or why the memory does not belong to this controller.
    pub fn load(&mut self, at: Time) -> Result<Time, String> {
        let mut bytes = vec![0; self.layout.bytes() as usize];
        let served =
            self.pram.read(at, 0, bytes.len() as u64, &mut bytes).map_err(|error| error.to_string())?;
        if bytes[..HEADER_USED] != self.layout.header() {
            return Err("the PRAM holds no map of this array: it was never formatted for it".into());
        }
        let (table, live) = (self.layout.entry(BlockId(0)) as usize, self.layout.word(0) as usize);
        let map = self.layout.map(Lpa(0)) as usize;
        for (i, (entry, bytes)) in self.entries.iter_mut().zip(bytes[table..live].chunks(8)).enumerate() {
            let found = Entry::decode(bytes).filter(|found| found.erases <= ERASES_MAX);
            let found = found.filter(|found| found.written as u32 <= self.layout.pages);
            *entry = found.ok_or_else(|| {
                format!("the entry of block {i}, at byte {} of the PRAM, is damaged", table + i * 8)
            })?;
        }
        for (word, bytes) in self.live.iter_mut().zip(bytes[live..map].chunks(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        let mut named = vec![false; self.layout.blocks as usize * self.layout.pages as usize];
        for (lpa, (page, bytes)) in self.map.iter_mut().zip(bytes[map..].chunks(4)).enumerate() {
            *page = u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
            let Some(physical) = page.checked_sub(1) else { continue };
            let first = named.get_mut(physical as usize).is_some_and(|named| !std::mem::replace(named, true));
            if !first {
                return Err(format!(
                    "the map is damaged at byte {} of the PRAM: it maps {lpa} to page {physical}, which does not exist or \
                     is already mapped",
                    map + lpa * 4
                ));
            }
        }
        self.end = served.end;
        Ok(served.end)
    }

    /// Recomputes the live bits from the map; returns when that is durable.
    pub fn correct_live(&mut self, at: Time) -> Result<Time, ControllerError> {
        let mut live = vec![0u64; self.live.len()];
        for page in self.map.iter().filter_map(|page| page.checked_sub(1)) {
            let (block, page) = (page / self.layout.pages, page % self.layout.pages);
            live[(block * self.layout.words() + page / 64) as usize] |= 1 << (page % 64);
        }
        let mut end = at;
        for (index, word) in live.into_iter().enumerate() {
            if self.live[index] != word {
                end = end.max(self.set_word(at, index, word)?);
            }
        }
        Ok(end)
    }
}
