//! What a program sees of a memory: words at offsets, loaded and stored by the processor.

use nvlab_controller::envy::Envy;
use nvlab_controller::{Controller, ControllerError};
use nvlab_medium::Store;
use nvlab_units::{Extent, Served, Time};

/// A memory that keeps what it holds.
///
/// 1. One access moves at most a word over the bus ([`MemoryWindow::word_bytes`]); a longer range is so many accesses,
///    one after the other, each begun when the one before has ended. Completion is the end of the last.
/// 2. A store is durable when it completes. After a power cut every word is old or new.
/// 3. `into` and `data` carry payload if the memory keeps any; otherwise they may be empty.
pub trait MemoryWindow {
    /// Bytes.
    fn capacity_bytes(&self) -> u64;
    /// Bytes one access moves.
    fn word_bytes(&self) -> u32;
    /// Bytes that are copied and programmed together: ranges are best aligned to it. At least a word.
    fn page_bytes(&self) -> u32;
    /// Loads `bytes` at `offset`.
    fn load(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8])
    -> Result<Served, ControllerError>;
    /// Stores `bytes` at `offset`.
    fn store(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError>;
    /// The stores from here to [`MemoryWindow::commit`] take effect together or not at all. One transaction at a time.
    fn begin(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// The transaction's stores are durable at the end of this.
    fn commit(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// The transaction's stores are undone at the end of this.
    fn abort(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// Says that the whole pages inside a range hold nothing of value.
    fn discard(&mut self, at: Time, offset: u64, bytes: u64) -> Result<Served, ControllerError>;
    /// What lies there will be asked for soon, best some 30 requests from now: what is known about it comes near meanwhile.
    #[inline]
    fn prefetch(&self, _offset: u64) {}
}

impl<S: Store> MemoryWindow for Envy<S> {
    fn capacity_bytes(&self) -> u64 {
        Envy::capacity_bytes(self)
    }
    fn word_bytes(&self) -> u32 {
        self.config().word_bytes
    }
    fn page_bytes(&self) -> u32 {
        self.unit_bytes()
    }
    #[inline]
    fn load(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        Envy::load(self, at, offset, bytes, into)
    }
    #[inline]
    fn store(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        Envy::store(self, at, offset, bytes, data)
    }
    fn begin(&mut self, at: Time) -> Result<Served, ControllerError> {
        Envy::begin(self, at)
    }
    fn commit(&mut self, at: Time) -> Result<Served, ControllerError> {
        Envy::commit(self, at)
    }
    fn abort(&mut self, at: Time) -> Result<Served, ControllerError> {
        Envy::abort(self, at)
    }
    fn discard(&mut self, at: Time, offset: u64, bytes: u64) -> Result<Served, ControllerError> {
        let page = self.unit_bytes() as u64;
        let (first, end) = (offset.div_ceil(page), (offset + bytes) / page);
        if first >= end {
            return Ok(Served { start: at, end: at });
        }
        self.trim(at, Extent { start: first as u32, count: (end - first) as u32 })
    }
    #[inline]
    fn prefetch(&self, offset: u64) {
        Envy::prefetch(self, (offset / self.unit_bytes() as u64) as u32);
    }
}
