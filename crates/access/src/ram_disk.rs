//! A memory as a disk, so that a file system can use it (eNVy section 1: "a simple RAM disk program").
//!
//! 1. There is no DMA: a processor copies every block, word by word over the memory bus. So requests are served one
//!    at a time, in order of call.
//! 2. A disk consists of blocks of [`BLOCK_BYTES`]; the rest of the memory is unused. A request for part of a block
//!    moves only the words it overlaps: nothing has to be read first, since the memory can store single bytes.
//! 3. A write is durable when it completes, as the memory's stores are; a flush does nothing. A power cut may leave
//!    a block with some words old and some new.

use crate::{BlockDevice, MemoryWindow};
use nvlab_controller::{Background, ControllerError, Powered, RecoveryReport};
use nvlab_units::{Served, Span, Time};

/// Unit of requests and addresses.
pub const BLOCK_BYTES: u64 = 512;

/// A memory behind a driver that copies blocks.
#[derive(Clone, Debug)]
pub struct RamDisk<W> {
    window: W,
    /// Time of the driver per request.
    overhead: Span,
    /// When the copying processor is free.
    free_at: Time,
}

impl<W: MemoryWindow> RamDisk<W> {
    /// A disk in a memory; the driver takes `overhead` for every request.
    pub fn new(window: W, overhead: Span) -> RamDisk<W> {
        RamDisk { window, overhead, free_at: Time::ZERO }
    }

    /// The memory, to read its state and statistics.
    pub fn window(&self) -> &W {
        &self.window
    }
    /// The memory, to reset its statistics or cut its power.
    pub fn window_mut(&mut self) -> &mut W {
        &mut self.window
    }

    /// Starts the request when the processor is free, and occupies the processor until `copy` is done.
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

impl<W: Background> Background for RamDisk<W> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.window.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.window.settle(upto);
    }
}

impl<W: Powered> Powered for RamDisk<W> {
    fn power_cycle(self, at: Time) -> Result<(RamDisk<W>, RecoveryReport), String> {
        let (window, report) = self.window.power_cycle(at)?;
        Ok((RamDisk { window, free_at: Time::ZERO, ..self }, report))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.window.power_down(at)
    }
    fn trims_last(&self) -> bool {
        self.window.trims_last()
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
