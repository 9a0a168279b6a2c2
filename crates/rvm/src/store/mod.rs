//! Storage of logs and segments: bytes that are overwritten in place and durable after a sync.

mod direct;
pub mod disk;
mod file;

pub use direct::{DirectStore, SECTOR_BYTES as DIRECT_SECTOR_BYTES};
pub(crate) use file::take_room;
pub use file::{FileStore, SegmentFolder};

use crate::Result;
use std::fmt::Debug;
use std::fs::File;
use std::io;

/// Bytes at offsets from 0. A write is durable after the next successful [`Store::sync`]; until then a power failure may
/// keep any part of it, sector by sector. After a failed sync nobody knows.
#[allow(clippy::len_without_is_empty)] // It may fail, and nobody asks whether it is 0.
pub trait Store: Debug + Send + Sync {
    /// Length in bytes: what can be read and written.
    fn len(&self) -> io::Result<u64>;
    /// Reads exactly as many bytes as `into` has.
    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `data` within the length.
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Changes the length; new bytes are zero and have space reserved for them.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Makes every earlier write and change of length durable.
    fn sync(&self) -> io::Result<()>;
    /// Begins to write what is not durable yet and does not wait for it: a hint. Returns whether everything before is durable
    /// already, so that a sync would return at once.
    fn start_sync(&self) -> io::Result<bool> {
        Ok(false)
    }
    /// Announces writes of parts of these pages. Returns whether a part can be written without first reading the rest: a page cache
    /// keeps the rest, and reads now what it lacks.
    fn prepare_parts(&self, _offset: u64, _bytes: usize) -> bool {
        false
    }
    /// The file that can be mapped; without one, a region is read whole.
    fn file(&self) -> Option<&File> {
        None
    }
}

/// Opens the segments that a log names.
pub trait Segments: Debug + Send + Sync {
    /// Opens a segment; an error if it does not exist.
    fn open(&self, name: &str) -> Result<Box<dyn Store>>;
    /// Opens a segment that the log names, to be recovered. Refused where the name may be of something else by now.
    fn open_named(&self, name: &str) -> Result<Box<dyn Store>> {
        self.open(name)
    }
}
