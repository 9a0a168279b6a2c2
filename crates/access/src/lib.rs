//! What a program sees of a device: bytes at offsets, behind a link and a driver; or the words of a memory.
//!
//! [`BlockDevice`] is the face a program or a workload uses; [`Attached`] puts a controller behind a host
//! path: the time the host's software and the link's protocol take, the link as one lane per direction, and
//! writes that cover only part of a unit, which the device must read, merge and write whole.
//!
//! [`MemoryWindow`] is the other face: words that a processor loads and stores. [`RamDisk`] makes a block device of
//! it.
//!
//! | module | what |
//! |---|---|
//! | [`attached`] | a controller behind a link |
//! | [`memory_window`] | words of a memory |
//! | [`ram_disk`] | a memory as a disk |
//! | [`sector_cache`] | what a file system keeps between itself and the device |

pub mod attached;
pub mod memory_window;
pub mod ram_disk;
pub mod sector_cache;

pub use attached::{Attached, HostPath};
pub use memory_window::MemoryWindow;
pub use ram_disk::RamDisk;
pub use sector_cache::{CachedDisk, SectorCache};

use nvlab_controller::ControllerError;
use nvlab_units::{Served, Time};

/// A device of bytes.
///
/// Completion is the result; nothing here waits. No order is promised between two flushes. `into` and `data`
/// carry payload if the device keeps any; otherwise they may be empty.
pub trait BlockDevice {
    /// Bytes.
    fn capacity_bytes(&self) -> u64;
    /// Reads `bytes` at `offset`.
    fn read(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8])
    -> Result<Served, ControllerError>;
    /// What lies there, where it lies in this program's memory, without spending time: from `offset` on as much of `bytes`
    /// as lies in a row. After that a read of them may have an empty `into`. `None`: they must be read into a buffer, begin
    /// or end within a unit, or cannot be read.
    fn view(&self, _offset: u64, _bytes: u32) -> Option<&[u8]> {
        None
    }
    /// Writes `bytes` at `offset`.
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError>;
    /// Gives up the whole units inside a range; the rest stays.
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError>;
    /// Everything written before is durable at the end.
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// True if it makes something of the bytes that are written, where the writer has any.
    #[inline]
    fn wants_payload(&self) -> bool {
        false
    }
    /// What lies there will be asked for soon, best some 30 requests from now: what is known about it comes near meanwhile.
    #[inline]
    fn prefetch(&self, _offset: u64) {}
    /// These will be written next, after [`BlockDevice::prefetch`] of each: what their old versions lie in comes near
    /// too.
    fn prefetch_writes(&self, _offsets: impl Iterator<Item = u64>)
    where
        Self: Sized,
    {
    }
}
