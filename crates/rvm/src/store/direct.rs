//! A file or device past the page cache (O_DIRECT): a force finds nothing to write back, which on a fast drive is a fifth of
//! its time. A force is still an fdatasync: the drive has a cache too.
//!
//! Only whole sectors can be transferred. So that a log can append any number of bytes, an *image* in memory holds what
//! the file contains around the last write; where short writes follow each other, it is read once for each 256 KiB. A sector is
//! rewritten with what it holds besides the new bytes, as the page cache does with a whole page; a long write reads its first and
//! last sector only.

use super::{FileStore, Store};
use crate::{Error, Result};
use nvlab_os::Mapping;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Offset, length and address of every transfer are multiples of this: that satisfies drives of 512 B and 4 KiB sectors.
pub const SECTOR_BYTES: u64 = 4096;
/// Bytes of the image, and of a read.
const BUFFER_BYTES: u64 = 256 << 10;
const READ_BYTES: u64 = 1 << 20;
/// Short writes that follow no other share what is read of so many bytes: both copies of a log's status.
const BLOCK_BYTES: u64 = 2 * SECTOR_BYTES;

/// A file opened with O_DIRECT: reads and writes bypass the page cache.
#[derive(Debug)]
pub struct DirectStore {
    file: FileStore,
    images: Mutex<Images>,
    /// Whatever is read passes through it: transfers need aligned memory.
    reads: Mutex<Mapping>,
}

/// What the file contains around the last writes. No sector is in both.
#[derive(Debug)]
struct Images {
    /// The part of sequential and long writes.
    run: Image,
    /// Of short ones elsewhere: both copies of a log's status, which else would take the place of its tail.
    single: Image,
}

/// A part of the file in memory, as the last write left it.
#[derive(Debug)]
struct Image {
    buffer: Mapping,
    /// The part: whole sectors, at the beginning of the buffer.
    start: u64,
    bytes: u64,
    /// Where the last write ended; at first, nowhere.
    written_to: u64,
}

impl DirectStore {
    /// Opens what is there. What follows the last whole sector is not used.
    pub fn open(path: &Path) -> Result<DirectStore> {
        let buffer = |bytes| Mapping::anonymous(bytes).map_err(Error::io("get memory for", &path.display()));
        let image = |bytes| Ok(Image { buffer: buffer(bytes)?, start: 0, bytes: 0, written_to: u64::MAX });
        let images = Mutex::new(Images { run: image(BUFFER_BYTES)?, single: image(2 * BLOCK_BYTES)? });
        let file = FileStore::open(path, nvlab_os::file::DIRECT)?;
        Ok(DirectStore { file, images, reads: Mutex::new(buffer(READ_BYTES)?) })
    }

    /// Creates a file of `bytes` zero bytes.
    pub fn create(path: &Path, bytes: u64) -> Result<DirectStore> {
        drop(FileStore::create(path, bytes.next_multiple_of(SECTOR_BYTES), |_| Ok(()))?);
        DirectStore::open(path)
    }
}

impl Images {
    /// Writes `data`, which is not longer than the buffer of the run with the sectors that contain it.
    fn write(&mut self, store: &DirectStore, data: &[u8], offset: u64) -> io::Result<()> {
        let Images { run, single } = self;
        let (start, end) = sectors(offset, data.len());
        let follows = [run.written_to, single.written_to].contains(&offset);
        let is_long = end - start > BLOCK_BYTES;
        if !run.has(start, end) {
            if is_long && (!follows || offset == start) {
                run.load_edges(store, data, offset)?;
            } else if follows {
                run.load(store, start, end, BUFFER_BYTES)?;
            } else {
                run.forget(start, end);
                let block = start / BLOCK_BYTES * BLOCK_BYTES;
                if !single.has(start, end) {
                    single.load(store, block, end, end.next_multiple_of(BLOCK_BYTES) - block)?;
                }
                return single.write(store, data, offset);
            }
        }
        single.forget(run.start, run.start + run.bytes);
        run.write(store, data, offset)
    }

    fn forget(&mut self) {
        (self.run.bytes, self.single.bytes) = (0, 0);
    }
}

impl Image {
    /// Whether it holds all sectors from `start` to `end`.
    fn has(&self, start: u64, end: u64) -> bool {
        self.start <= start && end <= self.start + self.bytes
    }

    /// Forgets sectors that are changed by other means.
    fn forget(&mut self, start: u64, end: u64) {
        if start < self.start + self.bytes && self.start < end {
            self.bytes = 0;
        }
    }

    /// Reads the sectors from `start` to `end`, and as many behind them as make `most` bytes, if there are so many.
    fn load(&mut self, store: &DirectStore, start: u64, end: u64, most: u64) -> io::Result<()> {
        // Nothing is known if the read fails.
        self.bytes = 0;
        let bytes = most.min(store.len()?.saturating_sub(start));
        if bytes < end - start {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        store.file.read(&mut self.buffer.as_mut_slice()[..bytes as usize], start)?;
        (self.start, self.bytes) = (start, bytes);
        Ok(())
    }

    /// Reads those of the sectors around `data` that it does not fill.
    fn load_edges(&mut self, store: &DirectStore, data: &[u8], offset: u64) -> io::Result<()> {
        self.bytes = 0;
        let (start, end) = sectors(offset, data.len());
        if store.len()? < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let is_filled = [offset == start, offset + data.len() as u64 == end];
        for (edge, is_filled) in [start, end - SECTOR_BYTES].into_iter().zip(is_filled) {
            if !is_filled {
                let at = (edge - start) as usize;
                store.file.read(&mut self.buffer.as_mut_slice()[at..at + SECTOR_BYTES as usize], edge)?;
            }
        }
        (self.start, self.bytes) = (start, end - start);
        Ok(())
    }

    /// Writes `data` with the rest of its sectors, which it holds.
    fn write(&mut self, store: &DirectStore, data: &[u8], offset: u64) -> io::Result<()> {
        let (start, end) = sectors(offset, data.len());
        self.written_to = offset + data.len() as u64;
        let at = (offset - self.start) as usize;
        self.buffer.as_mut_slice()[at..at + data.len()].copy_from_slice(data);
        let range = (start - self.start) as usize..(end - self.start) as usize;
        store.file.write(&self.buffer.as_slice()[range], start)
    }
}

/// Where the sectors begin and end that `bytes` at `offset` are in.
fn sectors(offset: u64, bytes: usize) -> (u64, u64) {
    (offset / SECTOR_BYTES * SECTOR_BYTES, (offset + bytes as u64).next_multiple_of(SECTOR_BYTES))
}

impl Store for DirectStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.len()? / SECTOR_BYTES * SECTOR_BYTES)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut buffer = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let (from, end) = sectors(at, into.len() - done);
            let (within, bytes) = ((at - from) as usize, (end - from).min(READ_BYTES) as usize);
            self.file.read(&mut buffer.as_mut_slice()[..bytes], from)?;
            let got = (bytes - within).min(into.len() - done);
            into[done..done + got].copy_from_slice(&buffer.as_slice()[within..within + got]);
            done += got;
        }
        Ok(())
    }

    fn write(&self, mut data: &[u8], mut offset: u64) -> io::Result<()> {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        while !data.is_empty() {
            let most = BUFFER_BYTES - offset % SECTOR_BYTES;
            let (piece, rest) = data.split_at(data.len().min(most as usize));
            images.write(self, piece, offset)?;
            (data, offset) = (rest, offset + piece.len() as u64);
        }
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner).forget();
        self.file.set_len(bytes.next_multiple_of(SECTOR_BYTES))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn start_sync(&self) -> io::Result<bool> {
        self.file.start_sync()
    }

    /// There is no page cache that would keep the rest of a page.
    fn prepare_parts(&self, _offset: u64, _bytes: usize) -> bool {
        false
    }

    fn file(&self) -> Option<&File> {
        self.file.file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const BYTES: usize = 2 * BUFFER_BYTES as usize + 3 * SECTOR_BYTES as usize;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

        #[test]
        fn writes_of_any_length_change_nothing_else(
            writes in prop::collection::vec((0..BYTES, 1usize..9000, any::<bool>()), 1..30), far in 0..BYTES,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store");
            let Ok(store) = DirectStore::create(&path, BYTES as u64) else { return Ok(()) };
            let mut model: Vec<u8> = (0..BYTES).map(|at| (at / 7) as u8).collect();
            store.write(&model, 0).unwrap();
            let mut tail = 0;
            for (number, (offset, bytes, is_append)) in writes.into_iter().enumerate() {
                let start = if is_append { tail } else { offset };
                let end = (start + if number == 5 { far } else { bytes }).min(BYTES);
                let data = vec![number as u8; end - start];
                store.write(&data, start as u64).unwrap();
                model[start..end].copy_from_slice(&data);
                tail = end % BYTES;
            }
            let mut found = vec![0; BYTES - 1];
            store.read(&mut found, 1).unwrap();
            prop_assert!(found == model[1..]);
            prop_assert!(fs::read(&path).unwrap() == model);
            prop_assert!(store.write(&[1, 2], BYTES as u64 - 1).is_err());
        }
    }
}
