//! A log in a file or on a raw device, through the page cache or past it (O_DIRECT): a force is one fdatasync.
//!
//! The file is written in full when it is created, so a force writes data only: into space that was merely reserved, it would
//! write the file's metadata too until the log has wrapped round. The status is in the first 8 KiB
//! ([`super::status`]), the records follow: the byte at position `p` lies at `8192 + p % capacity`.
//!
//! A write at any byte rewrites part of a sector that may hold acknowledged bytes. The part before the tail stays the same, so
//! a device that writes sectors whole (all do) leaves it as it was whether the write survives or not.

use super::status::{self, StatusPair};
use super::{Log, Status};
use crate::flash::{by_block, by_piece};
use crate::store::{DIRECT_SECTOR_BYTES, DirectStore, FileStore};
use crate::{Error, Result, Store};
use std::path::Path;
use std::sync::Arc;

pub(crate) const KIND: [u8; 4] = *b"file";
/// The smallest log.
const CAPACITY_MIN: u64 = 4096;

/// A log in a file or on a raw device.
#[derive(Debug)]
pub struct FileLog {
    store: Box<dyn Store>,
    name: String,
    status: StatusPair,
    /// Where the last append ended, and the last before the last force.
    appended: u64,
    forced: u64,
    failed: Option<Arc<Error>>,
}

impl FileLog {
    /// Creates a log of `capacity` bytes in a new file: all of it or, after a power failure, none.
    pub fn create(path: &Path, capacity: u64) -> Result<FileLog> {
        let name = path.display().to_string();
        // Whole sectors, so that it can be used past the page cache.
        let bytes = (status::BYTES + capacity.max(CAPACITY_MIN)).next_multiple_of(DIRECT_SECTOR_BYTES);
        let store = FileStore::create(path, bytes, |store| {
            store.write_zeros(0, bytes).map_err(Error::io("write", &name))?;
            begin(store, &name, bytes).map(|_| ())
        })?;
        FileLog::open_on(Box::new(store), name)
    }

    /// Opens a log. It is locked as long as it is open.
    pub fn open(path: &Path) -> Result<FileLog> {
        FileLog::open_on(Box::new(FileStore::open(path, 0)?), path.display().to_string())
    }

    /// Opens a log past the page cache. A file system that cannot refuses with an [`Error::Io`].
    pub fn open_direct(path: &Path) -> Result<FileLog> {
        FileLog::open_on(Box::new(DirectStore::open(path)?), path.display().to_string())
    }

    /// Creates a log that takes all of a store, a raw device for example; what was there is lost.
    pub fn create_on(store: Box<dyn Store>, name: String) -> Result<FileLog> {
        let bytes = store.len().map_err(Error::io("measure", &name))?;
        let status = begin(store.as_ref(), &name, bytes)?;
        Ok(FileLog::new(store, name, status))
    }

    fn new(store: Box<dyn Store>, name: String, status: StatusPair) -> FileLog {
        let head = status.status().head;
        FileLog { store, name, status, appended: head, forced: head, failed: None }
    }

    /// Opens the log on a store; `name` is for messages.
    pub fn open_on(store: Box<dyn Store>, name: String) -> Result<FileLog> {
        FileLog::open_as(store, name, KIND)
    }

    /// Opens a log of another kind that has the same layout.
    pub(crate) fn open_as(store: Box<dyn Store>, name: String, kind: [u8; 4]) -> Result<FileLog> {
        let status = StatusPair::open(store.as_ref(), &name, 0, kind)?;
        let bytes = store.len().map_err(Error::io("measure", &name))?;
        if status.capacity() < CAPACITY_MIN || bytes < status::BYTES + status.capacity() {
            let why = format!("it ends at {bytes} B, but its log has {} B", status.capacity());
            return Err(Error::Format { what: name, offset: bytes, why });
        }
        Ok(FileLog::new(store, name, status))
    }

    /// Does what changes the device; after an error nobody knows what is there, and nothing more is done.
    fn change<T>(&mut self, change: impl FnOnce(&mut FileLog) -> Result<T>) -> Result<T> {
        if let Some(error) = &self.failed {
            return Err(Error::Failed(error.clone()));
        }
        change(self).inspect_err(|error| self.failed = Some(Arc::new(error.clone())))
    }

    fn write(&self, position: u64, data: &[u8]) -> Result<()> {
        for (_, at, piece) in by_block(self.capacity(), position, data.len()) {
            let written = self.store.write(&data[piece], status::BYTES + at);
            written.map_err(Error::io("write", &self.name))?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.store.sync().map_err(Error::io("force", &self.name))?;
        self.forced = self.appended;
        Ok(())
    }

    fn write_status(&mut self, status: Status) -> Result<()> {
        self.change(|log| log.status.write(log.store.as_ref(), &log.name, status))
    }
}

/// Writes the status of a new log that takes all `bytes` of a store.
fn begin(store: &dyn Store, name: &str, bytes: u64) -> Result<StatusPair> {
    let capacity = bytes.saturating_sub(status::BYTES);
    if capacity < CAPACITY_MIN {
        let least = status::BYTES + CAPACITY_MIN;
        return Err(Error::Invalid(format!("{name} has {bytes} B; a log needs at least {least} B")));
    }
    let identity = nvlab_os::file::random_u64().map_err(Error::io("draw a random number for", &name))?;
    StatusPair::create(store, name, 0, KIND, 512, identity, capacity)
}

impl Log for FileLog {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn capacity(&self) -> u64 {
        self.status.capacity()
    }

    fn status(&self) -> Status {
        self.status.status()
    }

    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        for (_, at, piece) in by_block(self.capacity(), position, into.len()) {
            let read = self.store.read(&mut into[piece], status::BYTES + at);
            read.map_err(Error::io("read", &self.name))?;
        }
        Ok(())
    }

    fn append(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.change(|log| {
            let end = position + data.len() as u64;
            log.status.mark_before(log.store.as_ref(), &log.name, log.forced, end)?;
            log.appended = end;
            log.write(position, data)
        })
    }

    fn rewrite(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.change(|log| {
            log.appended = position + data.len() as u64;
            log.write(position, data)
        })
    }

    fn end_rewrite(&mut self) -> Result<()> {
        self.change(|log| {
            log.status.rewrite(log.store.as_ref(), &log.name)?;
            log.sync()
        })
    }

    fn force(&mut self) -> Result<()> {
        self.change(|log| log.sync())
    }

    fn truncate(&mut self, head: u64) -> Result<()> {
        self.write_status(Status { head, ..self.status() })
    }

    fn reset(&mut self, tail: u64) -> Result<u64> {
        self.write_status(self.status().next_generation(tail))?;
        (self.appended, self.forced) = (tail, tail);
        Ok(tail)
    }

    fn cut(&mut self, tail: u64) -> Result<()> {
        self.change(|log| {
            let end = log.status().head + log.capacity();
            by_piece(tail, end, |position, zeros| log.write(position, zeros))?;
            log.sync()?;
            log.status.cut(log.store.as_ref(), &log.name, tail)
        })
    }

    fn mark(&self) -> Option<u64> {
        self.status.mark()
    }

    fn offset(&self, position: u64) -> u64 {
        status::BYTES + position % self.capacity()
    }
}
