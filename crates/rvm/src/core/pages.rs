//! Applies committed changes to segments: pages are read when they are first changed and written in order, adjacent ones
//! together. Into a file that lies in memory, and has memory for all its bytes, the changes are stored directly.

use super::memory::PAGE_BYTES;
use crate::record::copy;
use crate::{Error, Result, Store};
use nvlab_os::Mapping;
use nvlab_os::file::{is_in_memory, is_whole};
use nvlab_os::stores::prefetch_lines_for_store;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::Arc;

/// Pages kept before they are written.
const PAGES_MAX: usize = 16 << 10;
/// Adjacent pages are written together up to this many bytes.
const WRITE_BYTES_MAX: usize = 1 << 20;
/// The processor itself gets the rest of a longer change.
pub(super) const PREFETCH_BYTES_MAX: usize = 256;

type Page = Box<[u8; PAGE_BYTES as usize]>;

/// Page numbers are spread by one multiplication: nobody chooses them to collide, and each range looks one up.
#[derive(Debug, Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Changes of one segment on their way to its store.
#[derive(Debug)]
pub struct Pages {
    name: String,
    store: Arc<dyn Store>,
    store_bytes: u64,
    /// The segment, if it lies in memory.
    memory: Option<Mapping>,
    pages: HashMap<u64, Page, BuildHasherDefault<PageHasher>>,
    /// Bytes of changes so far.
    applied_bytes: u64,
}

impl Pages {
    /// Nothing changed yet.
    pub fn new(name: String, store: Arc<dyn Store>) -> Result<Pages> {
        let mut pages =
            Pages { name, store, store_bytes: 0, memory: None, pages: HashMap::default(), applied_bytes: 0 };
        pages.measure()?;
        Ok(pages)
    }

    /// Takes note of how long the segment is now.
    pub fn measure(&mut self) -> Result<()> {
        let failed = |what: &'static str| Error::io(what, &self.name);
        let bytes = self.store.len().map_err(failed("measure"))?;
        if bytes != self.store_bytes {
            let file = self.store.file();
            let is_ready = |file: &File| io::Result::Ok(is_in_memory(file)? && is_whole(file)?);
            let in_memory = file.filter(|file| is_ready(file).is_ok_and(|is| is));
            let mapped = in_memory.map(|file| Mapping::shared(file, bytes));
            self.memory = mapped.transpose().map_err(failed("map"))?;
            self.store_bytes = bytes;
        }
        Ok(())
    }

    /// Puts `data` over what is at `offset`.
    #[inline(always)]
    pub fn insert(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset + data.len() as u64;
        if end > self.store_bytes {
            return Err(too_short(&self.name, self.store_bytes, end));
        }
        self.applied_bytes += data.len() as u64;
        match &mut self.memory {
            Some(memory) => {
                copy(&mut memory.as_mut_slice()[offset as usize..end as usize], data);
                Ok(())
            }
            None => self.insert_in_pages(offset, data),
        }
    }

    #[inline(never)]
    fn insert_in_pages(&mut self, mut at: u64, mut rest: &[u8]) -> Result<()> {
        while !rest.is_empty() {
            let (number, within) = (at / PAGE_BYTES, (at % PAGE_BYTES) as usize);
            let (piece, after) = rest.split_at(rest.len().min(PAGE_BYTES as usize - within));
            let page = match self.pages.get_mut(&number) {
                Some(page) => page,
                None => self.load(number)?,
            };
            page[within..within + piece.len()].copy_from_slice(piece);
            (at, rest) = (at + piece.len() as u64, after);
        }
        Ok(())
    }

    /// Gets the lines at `offset` for [`Pages::insert`] to store to, if that stores directly.
    #[inline]
    pub fn prefetch(&self, offset: u64, bytes: usize) {
        let Some(memory) = &self.memory else { return };
        prefetch_lines_for_store(memory.start().wrapping_add(offset as usize), bytes.min(PREFETCH_BYTES_MAX));
    }

    fn load(&mut self, number: u64) -> Result<&mut Page> {
        if self.pages.len() >= PAGES_MAX {
            self.write()?;
        }
        let mut page: Page = Box::new([0; PAGE_BYTES as usize]);
        let bytes = self.bytes_of(number);
        let read = self.store.read(&mut page[..bytes], number * PAGE_BYTES);
        read.map_err(Error::io("read", &self.name))?;
        Ok(self.pages.entry(number).or_insert(page))
    }

    /// Bytes of a page: the last one of a segment may be short.
    fn bytes_of(&self, number: u64) -> usize {
        PAGE_BYTES.min(self.store_bytes - number * PAGE_BYTES) as usize
    }

    fn write(&mut self) -> Result<()> {
        let mut pages: Vec<(u64, Page)> = self.pages.drain().collect();
        pages.sort_unstable_by_key(|(number, _)| *number);
        let mut buffer = Vec::new();
        let is_adjacent = |a: &(u64, Page), b: &(u64, Page)| a.0 + 1 == b.0;
        for run in pages.chunk_by(is_adjacent) {
            for run in run.chunks(WRITE_BYTES_MAX / PAGE_BYTES as usize) {
                buffer.clear();
                for (number, page) in run {
                    buffer.extend_from_slice(&page[..self.bytes_of(*number)]);
                }
                let written = self.store.write(&buffer, run[0].0 * PAGE_BYTES);
                written.map_err(Error::io("write", &self.name))?;
            }
        }
        Ok(())
    }

    /// Writes what is left and makes all of it durable. Returns the bytes of changes.
    pub fn finish(&mut self) -> Result<u64> {
        if self.applied_bytes > 0 {
            self.write()?;
            self.store.sync().map_err(Error::io("sync", &self.name))?;
        }
        Ok(std::mem::take(&mut self.applied_bytes))
    }
}

/// The error of a segment that ends before what the log changes.
#[cold]
pub(super) fn too_short(name: &str, has: u64, end: u64) -> Error {
    let why = format!("the log changes it up to byte {end}, but it has {has}");
    Error::Format { what: name.into(), offset: has, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segments;
    use crate::store::disk::Disk;
    use proptest::prelude::*;

    const BYTES: usize = 3 * PAGE_BYTES as usize - 700;

    proptest! {
        #[test]
        fn the_newest_bytes_win(inserts in prop::collection::vec((0..BYTES - 5000, 0usize..5000), 1..30)) {
            let disk = Disk::default();
            disk.create("data", BYTES);
            let mut pages = Pages::new("data".into(), Arc::from(disk.open("data").unwrap())).unwrap();
            let mut model = vec![0; BYTES];
            for (number, (offset, bytes)) in inserts.into_iter().enumerate() {
                pages.insert(offset as u64, &vec![number as u8 + 1; bytes]).unwrap();
                model[offset..offset + bytes].fill(number as u8 + 1);
            }
            pages.finish().unwrap();
            let mut found = vec![0; BYTES];
            disk.restart().open("data").unwrap().read(&mut found, 0).unwrap();
            prop_assert!(found == model);
            prop_assert!(pages.insert(BYTES as u64 - 1, &[1, 2]).is_err());
        }
    }
}
