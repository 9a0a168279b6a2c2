//! A memory as a disk, so that a file system can use it (eNVy section 1: "a simple RAM disk program").
//!
//! 1. There is no controller that moves data by itself: a processor copies every block, word after word over the memory
//!    bus. So requests are served one at a time, in order of call.
//! 2. A disk is so many blocks of [`BLOCK_BYTES`]; what is left of the memory is not used. A request for part of a block
//!    moves the words it touches and no others: nothing has to be read first, since words are stored by bytes.
//! 3. A write is durable when it completes, as the memory's stores are; a flush has nothing to do. A power cut may
//!    leave a block with some words old and some new.

use crate::{BlockDevice, MemoryWindow};
use nvlab_controller::ControllerError;
use nvlab_units::{Served, Span, Time};

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 512;

/// A memory behind a driver that copies blocks.
#[derive(Clone, Debug)]
pub struct RamDisk<W> {
    window: W,
    /// The driver's own time for a request.
    overhead: Span,
    /// When the processor that copies is free.
    free_at: Time,
}

impl<W: MemoryWindow> RamDisk<W> {
    /// A disk in a memory; the driver takes `overhead` for every request.
    pub fn new(window: W, overhead: Span) -> RamDisk<W> {
        RamDisk { window, overhead, free_at: Time::ZERO }
    }

    /// The memory.
    pub fn window(&self) -> &W {
        &self.window
    }
    /// The memory, to reset its statistics or pull its plug.
    pub fn window_mut(&mut self) -> &mut W {
        &mut self.window
    }

    /// The driver's own time for a request.
    pub fn overhead(&self) -> Span {
        self.overhead
    }
    /// Takes the memory from behind its driver.
    pub fn into_window(self) -> W {
        self.window
    }

    /// Lets the driver begin when the processor is free, and keeps it until `copy` is done.
    #[inline]
    fn serve(
        &mut self,
        at: Time,
        copy: impl FnOnce(&mut W, Time) -> Result<Time, ControllerError>,
    ) -> Result<Served, ControllerError> {
        let start = at.max(self.free_at);
        let end = copy(&mut self.window, start + self.overhead)?;
        self.free_at = end;
        Ok(Served { start, end })
    }
}

impl<W: MemoryWindow> BlockDevice for RamDisk<W> {
    fn capacity_bytes(&self) -> u64 {
        self.window.capacity_bytes() / BLOCK_BYTES * BLOCK_BYTES
    }

    fn read(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        self.serve(at, |window, at| Ok(window.load(at, offset, bytes, into)?.end))
    }

    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        self.serve(at, |window, at| Ok(window.store(at, offset, bytes, data)?.end))
    }

    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        self.serve(at, |window, at| Ok(window.discard(at, offset, bytes as u64)?.end))
    }

    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.serve(at, |_, at| Ok(at))
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.window.prefetch(offset);
    }
}
