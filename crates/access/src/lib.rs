//! A device as a program sees it: bytes at offsets, behind a link and a driver; or the words of a memory.
//!
//! [`BlockDevice`] is the interface for a program or a workload; [`Attached`] puts a controller behind a host
//! path: the time of the host's software and the link's protocol, the link as one lane per direction, and
//! partial-unit writes, for which the device must read, merge and write whole units.
//!
//! [`MemoryWindow`] is the other interface: words that a processor loads and stores. [`RamDisk`] turns it into a
//! block device. [`stack`] models the software above a device in detail, if a single time per request is not enough.
//!
//! | module | what |
//! |---|---|
//! | [`attached`] | a controller behind a link |
//! | [`memory_window`] | words of a memory |
//! | [`ram_disk`] | a memory as a disk |
//! | [`sector_cache`] | a sector cache between a file system and the device |
//! | [`stack`] | the software above a device as stages: threads, cores and locks |

pub mod attached;
pub mod memory_window;
pub mod ram_disk;
pub mod sector_cache;
pub mod stack;

pub use attached::{Attached, HostPath};
pub use memory_window::MemoryWindow;
pub use ram_disk::RamDisk;
pub use sector_cache::{CachedDisk, SectorCache};

use nvlab_controller::ControllerError;
use nvlab_units::{Served, Time};

/// A device of bytes.
///
/// The return value is the completion; nothing here waits. The order of writes between two flushes is undefined.
/// `into` and `data` carry payload if the device stores any; otherwise they may be empty.
pub trait BlockDevice {
    /// Bytes that a request may address; constant.
    fn capacity_bytes(&self) -> u64;
    /// Reads `bytes` at `offset` into `into`.
    fn read(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8])
    -> Result<Served, ControllerError>;
    /// Borrows the bytes from `offset` on in this process's memory, without taking simulated time: as many of `bytes`
    /// as are contiguous. A read of them may then pass an empty `into`. `None`: they must be read into a buffer,
    /// start or end within a unit, or cannot be read.
    fn view(&self, _offset: u64, _bytes: u32) -> Option<&[u8]> {
        None
    }
    /// Writes `bytes` at `offset`; durable once a later flush has ended.
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError>;
    /// Discards the whole units inside a range; the rest is unchanged.
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError>;
    /// Everything written before is durable when the flush ends.
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// True if the device uses written bytes; the writer should then pass them.
    #[inline]
    fn wants_payload(&self) -> bool {
        false
    }
    /// Prefetches the metadata of data that will be accessed soon, ideally about 30 requests from now.
    #[inline]
    fn prefetch(&self, _offset: u64) {}
    /// Prefetches the state of the old versions of data that will be written next. Call [`BlockDevice::prefetch`] for
    /// each offset first.
    fn prefetch_writes(&self, _offsets: impl Iterator<Item = u64>)
    where
        Self: Sized,
    {
    }
}
