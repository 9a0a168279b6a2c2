//! Changes of a segment that wait to be written: collected in the order of the log, written in the order of the segment.
//!
//! A page is read and written once a batch, however many records change it; pages near each other are read together, adjacent ones
//! written together. Where a page cache is in front of the segment ([`Store::prepare_parts`]), of adjacent pages with few changed parts
//! only these are written, and nothing is read.
//!
//! To keep the pages themselves until there were too many took a read and a write of a page for nearly every record where a log changes
//! more pages than were kept.

use super::memory::PAGE_BYTES;
use crate::{Error, Result, Store};
use std::ops::Range;

/// Read or written at once, at most.
const STRETCH_PAGES: u64 = 256;
/// Reading this many unchanged pages between two takes no longer than a second read, even on a fast drive.
const GAP_PAGES: u64 = 8;
/// Adjacent pages with more parts are written as a whole: each part takes a call.
const PARTS_MAX: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    bytes: u32,
    /// Where they lie in the data: of two pieces, the later one has the greater.
    at: u32,
}

impl Piece {
    fn page(&self) -> u64 {
        self.offset / PAGE_BYTES
    }

    fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pieces: Vec<Piece>,
    data: Vec<u8>,
}

impl Batch {
    pub fn bytes(&self) -> usize {
        self.data.len() + self.pieces.len() * size_of::<Piece>()
    }

    /// Puts `data` over what is at `offset`. It takes less than 4 GiB altogether.
    pub fn push(&mut self, offset: u64, data: &[u8]) {
        let (mut at, end) = (offset, offset + data.len() as u64);
        let mut from =
            u32::try_from(self.data.len() + data.len()).expect("less than 4 GiB") - data.len() as u32;
        self.data.extend_from_slice(data);
        while at < end {
            let bytes = (end - at).min(PAGE_BYTES - at % PAGE_BYTES) as u32;
            match self.pieces.last_mut() {
                Some(last) if last.end() == at && !at.is_multiple_of(PAGE_BYTES) => last.bytes += bytes,
                _ => self.pieces.push(Piece { offset: at, bytes, at: from }),
            }
            (at, from) = (at + u64::from(bytes), from + bytes);
        }
    }

    fn data_of(&self, piece: &Piece) -> &[u8] {
        &self.data[piece.at as usize..][..piece.bytes as usize]
    }

    /// What was put, in this order.
    pub fn each(&self, mut each: impl FnMut(u64, &[u8])) {
        self.pieces.iter().for_each(|piece| each(piece.offset, self.data_of(piece)));
    }

    /// Writes it to a segment of `store_bytes`, none of whose pages lies behind the end, and is empty afterwards.
    pub fn write(&mut self, store: &dyn Store, name: &str, store_bytes: u64) -> Result<()> {
        let mut batch = std::mem::take(self);
        batch.pieces.sort_unstable_by_key(|piece| (piece.page(), piece.at));
        let pages: Vec<&[Piece]> = batch.pieces.chunk_by(|a, b| a.page() == b.page()).collect();
        let mut rest = &pages[..];
        let mut buffer = Vec::new();
        while let Some(first) = rest.first().map(|pieces| pieces[0].page()) {
            let is_near = |pair: &&[&[Piece]]| {
                let [before, next] = [0, 1].map(|index: usize| pair[index][0].page());
                next - before <= GAP_PAGES && next - first < STRETCH_PAGES
            };
            let (stretch_pages, others) = rest.split_at(1 + rest.windows(2).take_while(is_near).count());
            let start = first * PAGE_BYTES;
            let last = stretch_pages[stretch_pages.len() - 1][0].page();
            let end = ((last + 1) * PAGE_BYTES).min(store_bytes);
            buffer.resize((end - start) as usize, 0);
            let most = if store.prepare_parts(start, buffer.len()) { PARTS_MAX } else { 0 };
            let mut stretch = Stretch { store, name, start, buffer: &mut buffer, parts: Vec::new() };
            let read = stretch.collect(stretch_pages, end, most);
            stretch.read(&read)?;
            stretch.change(stretch_pages, &batch);
            stretch.write()?;
            rest = others;
        }
        Ok(())
    }
}

/// Pages near each other that are read and written together.
struct Stretch<'a> {
    store: &'a dyn Store,
    name: &'a str,
    /// Offset of the first page, and what all up to the last one hold.
    start: u64,
    buffer: &'a mut [u8],
    /// The ranges to be written, in order, without overlaps.
    parts: Vec<Range<u64>>,
}

impl Stretch<'_> {
    /// Finds what is to be written of pages whose pieces these are: of adjacent ones the changed parts, or all of them if the parts are
    /// more than `most`. Returns the pages that must be read for that.
    fn collect(&mut self, pages: &[&[Piece]], end: u64, most: usize) -> Vec<u64> {
        let (mut read, mut parts, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
        for run in pages.chunk_by(|before, next| before[0].page() + 1 == next[0].page()) {
            pieces.clear();
            pieces.extend(run.iter().copied().flatten().map(|piece| piece.offset..piece.end()));
            pieces.sort_unstable_by_key(|piece| piece.start);
            parts.clear();
            pieces.iter().for_each(|piece| append(&mut parts, piece.clone()));
            if parts.len() <= most {
                self.parts.append(&mut parts);
                continue;
            }
            let bytes = |page: u64| page * PAGE_BYTES..((page + 1) * PAGE_BYTES).min(end);
            let (first, last) = (run[0][0].page(), run[run.len() - 1][0].page());
            let is_whole = |page: &u64| {
                let Range { start, end } = bytes(*page);
                let before = parts.partition_point(|part| part.start <= start);
                before > 0 && parts[before - 1].end >= end
            };
            read.extend((first..=last).filter(|page| !is_whole(page)));
            self.parts.push(bytes(first).start..bytes(last).end);
        }
        read
    }

    /// Where some bytes lie in the buffer.
    fn range(&self, bytes: &Range<u64>) -> Range<usize> {
        let at = |offset: u64| ((offset - self.start) as usize).min(self.buffer.len());
        at(bytes.start)..at(bytes.end)
    }

    /// Reads these pages, and whatever is between them, as far as that can be read.
    fn read(&mut self, pages: &[u64]) -> Result<()> {
        for near in pages.chunk_by(|before, next| next - before <= GAP_PAGES) {
            let (first, last) = (near[0], near[near.len() - 1]);
            let has_others = last - first >= near.len() as u64;
            match self.read_pages(first, last) {
                // It may be a page that nobody needs.
                Err(_) if has_others => near.iter().try_for_each(|&page| self.read_pages(page, page))?,
                read => read?,
            }
        }
        Ok(())
    }

    fn read_pages(&mut self, first: u64, last: u64) -> Result<()> {
        let range = self.range(&(first * PAGE_BYTES..(last + 1) * PAGE_BYTES));
        let read = self.store.read(&mut self.buffer[range], first * PAGE_BYTES);
        read.map_err(Error::io("read", &self.name))
    }

    fn change(&mut self, pages: &[&[Piece]], batch: &Batch) {
        for piece in pages.iter().copied().flatten() {
            let range = self.range(&(piece.offset..piece.end()));
            self.buffer[range].copy_from_slice(batch.data_of(piece));
        }
    }

    fn write(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| {
            let written = self.store.write(&self.buffer[self.range(part)], part.start);
            written.map_err(Error::io("write", &self.name))
        })
    }
}

/// Puts a part behind the others, the last of which begins before it.
fn append(parts: &mut Vec<Range<u64>>, part: Range<u64>) {
    match parts.last_mut() {
        Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
        _ => parts.push(part),
    }
}
