//! A memory as a program sees it: words at offsets, loaded and stored by the processor.

use nvlab_controller::envy::Envy;
use nvlab_controller::{Cached, Controller, ControllerError};
use nvlab_medium::Store;
use nvlab_units::{Extent, Lpa, Served, Time};

/// A non-volatile memory.
///
/// 1. One access moves at most a word over the bus ([`MemoryWindow::word_bytes`]); a longer range takes several
///    accesses, each
///    started when the previous one has completed. Completion is the end of the last.
/// 2. A store is durable when it completes, except for cache lines that the stored energy does not cover
///    ([`Cached`]). After a
///    power cut every word is old or new.
/// 3. `into` and `data` carry payload if the memory stores any; otherwise they may be empty.
pub trait MemoryWindow {
    /// Bytes that loads and stores may address; constant.
    fn capacity_bytes(&self) -> u64;
    /// Bytes per access, the width of the bus.
    fn word_bytes(&self) -> u32;
    /// Bytes that are copied and programmed together: ranges should be aligned to it. At least a word.
    fn page_bytes(&self) -> u32;
    /// Loads `bytes` at `offset`, word by word.
    fn load(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8])
    -> Result<Served, ControllerError>;
    /// Stores `bytes` at `offset`, word by word.
    fn store(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError>;
    /// The stores from here to [`MemoryWindow::commit`] take effect together or not at all. One transaction at a time.
    fn begin(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// Commits the transaction: its stores are durable when this ends.
    fn commit(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// Aborts the transaction: its stores are undone when this ends.
    fn abort(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// Declares that the contents of the whole pages inside a range are no longer needed.
    fn discard(&mut self, at: Time, offset: u64, bytes: u64) -> Result<Served, ControllerError>;
    /// Prefetches the metadata of data that will be accessed soon, ideally about 30 requests from now.
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
        discard_pages(self, at, offset, bytes)
    }
    #[inline]
    fn prefetch(&self, offset: u64) {
        Controller::prefetch(self, Lpa((offset / self.unit_bytes() as u64) as u32));
    }
}

/// Flash behind a line cache. It has no transactions.
impl<F: Controller, S: Store> MemoryWindow for Cached<F, S> {
    fn capacity_bytes(&self) -> u64 {
        Cached::capacity_bytes(self)
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
        Cached::load(self, at, offset, bytes, into)
    }
    #[inline]
    fn store(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        Cached::store(self, at, offset, bytes, data)
    }
    fn begin(&mut self, _: Time) -> Result<Served, ControllerError> {
        Err(ControllerError::TransactionFull { pages: 0 })
    }
    fn commit(&mut self, _: Time) -> Result<Served, ControllerError> {
        Err(ControllerError::NoTransaction)
    }
    fn abort(&mut self, _: Time) -> Result<Served, ControllerError> {
        Err(ControllerError::NoTransaction)
    }
    fn discard(&mut self, at: Time, offset: u64, bytes: u64) -> Result<Served, ControllerError> {
        discard_pages(self, at, offset, bytes)
    }
    #[inline]
    fn prefetch(&self, offset: u64) {
        Controller::prefetch(self, Lpa((offset / self.unit_bytes() as u64) as u32));
    }
}

/// Trims the whole pages inside a range.
fn discard_pages(
    memory: &mut impl Controller,
    at: Time,
    offset: u64,
    bytes: u64,
) -> Result<Served, ControllerError> {
    let page = memory.unit_bytes() as u64;
    let (first, end) = (offset.div_ceil(page), (offset + bytes) / page);
    if first >= end {
        return Ok(Served { start: at, end: at });
    }
    memory.trim(at, Extent { start: Lpa(first as u32), count: (end - first) as u32 })
}
