//! Changes of a segment that wait to be written: collected in the order of the log, written in the order of the segment.
//!
//! A page is read and written once a batch, however many records change it, and pages near each other are read together, adjacent ones
//! written together. To keep the pages themselves until there were too many took a read and a write of a page for nearly every record
//! where a log changes more pages than were kept.

use super::memory::PAGE_BYTES;
use crate::{Error, Result, Store};

/// Read or written at once, at most.
const STRETCH_PAGES: u64 = 256;
/// To read so many unchanged pages between two takes no longer than a second read, even of a fast drive.
const GAP_PAGES: u64 = 8;

/// New bytes within one page.
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
    /// Bytes of memory it takes.
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
            let (stretch, others) = rest.split_at(1 + rest.windows(2).take_while(is_near).count());
            let start = first * PAGE_BYTES;
            let last = stretch[stretch.len() - 1][0].page();
            buffer.resize((((last + 1) * PAGE_BYTES).min(store_bytes) - start) as usize, 0);
            let mut stretch = Stretch { store, name, start, buffer: &mut buffer, pages: stretch };
            stretch.read()?;
            stretch.change(&batch);
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
    /// The pieces of each that is changed.
    pages: &'a [&'a [Piece]],
}

impl Stretch<'_> {
    /// Where the bytes of some pages lie in the buffer.
    fn range(&self, first: u64, last: u64) -> std::ops::Range<usize> {
        let at = |page: u64| ((page * PAGE_BYTES - self.start) as usize).min(self.buffer.len());
        at(first)..at(last + 1)
    }

    /// Reads those that are not written as a whole, and whatever is between them, as far as that can be read.
    fn read(&mut self) -> Result<()> {
        let is_whole = |pieces: &[Piece]| pieces.iter().any(|piece| u64::from(piece.bytes) == PAGE_BYTES);
        let partial = self.pages.iter().filter(|pieces| !is_whole(pieces)).map(|pieces| pieces[0].page());
        let partial: Vec<u64> = partial.collect();
        for near in partial.chunk_by(|before, next| next - before <= GAP_PAGES) {
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
        let range = self.range(first, last);
        let read = self.store.read(&mut self.buffer[range], first * PAGE_BYTES);
        read.map_err(Error::io("read", &self.name))
    }

    fn change(&mut self, batch: &Batch) {
        for piece in self.pages.iter().copied().flatten() {
            let at = (piece.offset - self.start) as usize;
            self.buffer[at..at + piece.bytes as usize].copy_from_slice(batch.data_of(piece));
        }
    }

    fn write(&self) -> Result<()> {
        for run in self.pages.chunk_by(|before, next| before[0].page() + 1 == next[0].page()) {
            let (first, last) = (run[0][0].page(), run[run.len() - 1][0].page());
            let written = self.store.write(&self.buffer[self.range(first, last)], first * PAGE_BYTES);
            written.map_err(Error::io("write", &self.name))?;
        }
        Ok(())
    }
}
