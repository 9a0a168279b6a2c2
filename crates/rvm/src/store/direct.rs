//! A file or device past the page cache (O_DIRECT): for a [`crate::log::flash_disk::FlashDiskLog`], whose appends are whole
//! sectors. A force is still an fdatasync: the drive has a cache too.

use super::{FileStore, Store};
use crate::{Error, Result};
use nvlab_os::Mapping;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Offset, length and address of every transfer are multiples of this: that satisfies drives of 512 B and 4 KiB sectors.
pub const SECTOR_BYTES: u64 = 4096;
/// Bytes of a transfer.
const BUFFER_BYTES: u64 = 256 << 10;

/// A file opened with O_DIRECT.
#[derive(Debug)]
pub struct DirectStore {
    file: FileStore,
    /// Aligned; whatever is transferred passes through it.
    buffer: Mutex<Mapping>,
}

impl DirectStore {
    /// Opens what is there.
    pub fn open(path: &Path) -> Result<DirectStore> {
        let buffer =
            Mapping::anonymous(BUFFER_BYTES).map_err(Error::io("get memory for", &path.display()))?;
        Ok(DirectStore { file: FileStore::open(path, nvlab_os::file::DIRECT)?, buffer: Mutex::new(buffer) })
    }

    /// Creates a file of `bytes` zero bytes.
    pub fn create(path: &Path, bytes: u64) -> Result<DirectStore> {
        drop(FileStore::create(path, bytes.next_multiple_of(SECTOR_BYTES), |_| Ok(()))?);
        DirectStore::open(path)
    }
}

impl Store for DirectStore {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let (from, within) = (at / SECTOR_BYTES * SECTOR_BYTES, (at % SECTOR_BYTES) as usize);
            let wanted = (within + into.len() - done).next_multiple_of(SECTOR_BYTES as usize);
            let bytes = wanted.min(buffer.len());
            self.file.read(&mut buffer.as_mut_slice()[..bytes], from)?;
            let got = (bytes - within).min(into.len() - done);
            into[done..done + got].copy_from_slice(&buffer.as_slice()[within..within + got]);
            done += got;
        }
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if !offset.is_multiple_of(SECTOR_BYTES) || !data.len().is_multiple_of(SECTOR_BYTES as usize) {
            let why = format!(
                "a write of {} B at {offset} is not of whole sectors of {SECTOR_BYTES} B",
                data.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, piece) in data.chunks(BUFFER_BYTES as usize).enumerate() {
            buffer.as_mut_slice()[..piece.len()].copy_from_slice(piece);
            self.file.write(&buffer.as_slice()[..piece.len()], offset + index as u64 * BUFFER_BYTES)?;
        }
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes.next_multiple_of(SECTOR_BYTES))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn file(&self) -> Option<&File> {
        self.file.file()
    }
}
