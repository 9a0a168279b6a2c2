//! An open log and its segments.

use crate::core::{Core, Flush, Memory, Options, RawTransaction, Recovery, Restore, Statistics, Truncation};
use crate::region::Region;
use crate::{Log, Result, Segments};
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Recoverable virtual memory: a log, and segments whose regions are changed by transactions.
#[derive(Debug)]
pub struct Rvm {
    core: Arc<Core>,
    recovery: Recovery,
    truncator: Option<JoinHandle<()>>,
}

impl Rvm {
    /// Opens a log and recovers: everything committed is applied to the segments, and the log is empty.
    pub fn open(log: impl Log + 'static, segments: impl Segments + 'static, options: Options) -> Result<Rvm> {
        let (core, recovery) = Core::open(Box::new(log), Box::new(segments), options)?;
        let core = Arc::new(core);
        let truncator = match options.truncation {
            Truncation::WhenFull => None,
            Truncation::Background { at_percent } => {
                let core = core.clone();
                Some(std::thread::spawn(move || core.truncate_in_background(at_percent)))
            }
        };
        Ok(Rvm { core, recovery, truncator })
    }

    /// What recovery found when the log was opened.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Maps `range` of a segment, in bytes; it begins at a multiple of 4096. Takes time only as its pages are used,
    /// unless another region had a part of it and committed changes that are only in the log so far: then the log is
    /// truncated first.
    pub fn map(&self, segment: &str, range: Range<u64>) -> Result<Region> {
        Ok(Region::new(self.core.clone(), self.core.map(segment, range)?))
    }

    /// Length of a segment, whether mapped or not.
    pub fn segment_bytes(&self, segment: &str) -> Result<u64> {
        self.core.segment_bytes(segment)
    }

    /// Makes all commits so far durable, those without flush included.
    pub fn flush(&self) -> Result<()> {
        self.core.flush()
    }

    /// Applies every commit so far to the segments, durably, and empties the log.
    pub fn truncate(&self) -> Result<()> {
        self.core.truncate_now()
    }

    /// The first of two steps of a truncation, for a program without threads: applies every commit so far to the
    /// segments, durably. The records stay in the log until [`Rvm::discard_applied`]; other transactions may be
    /// committed in between. Returns whether there are any.
    pub fn apply(&self) -> Result<bool> {
        self.core.apply_now()
    }

    /// The second step: discards the applied records. A commit that finds no room, and a truncation, do it too.
    pub fn discard_applied(&self) -> Result<()> {
        self.core.discard_applied()
    }

    /// What was done since the log was opened.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    /// Maps memory for transactions by address; see [`Rvm::begin_raw`].
    pub fn map_raw(&self, segment: &str, range: Range<u64>) -> Result<Arc<Memory>> {
        self.core.map(segment, range).map(Arc::new)
    }

    /// Like [`Rvm::map_raw`], at a given page-aligned address, replacing any mapping there.
    ///
    /// # Safety
    /// The replaced mapping is not needed.
    pub unsafe fn map_raw_at(
        &self,
        segment: &str,
        range: Range<u64>,
        address: *mut u8,
    ) -> Result<Arc<Memory>> {
        let mut memory = self.core.map(segment, range)?;
        // SAFETY: nobody has a pointer to the new memory yet, and the caller answers for its place.
        if let Err(error) = unsafe { memory.move_to(address) } {
            self.core.unmap(&memory);
            return Err(error);
        }
        Ok(Arc::new(memory))
    }

    /// Unmaps memory mapped by [`Rvm::map_raw`]; another region may use its part of the segment. Its bytes stay in
    /// place as long as a reference to it exists, but a transaction with ranges in it can no longer be committed.
    pub fn unmap_raw(&self, memory: &Memory) {
        self.core.unmap(memory);
    }

    /// Begins a transaction on raw memory. Several may be in progress, also in the same memory; isolating them is
    /// left to the program.
    pub fn begin_raw(&self, restore: Restore) -> RawTransaction {
        self.core.begin(restore)
    }

    /// Commits a transaction on raw memory. An error that says so leaves it under way.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub unsafe fn commit_raw(&self, transaction: &mut RawTransaction, flush: Flush) -> Result<()> {
        // SAFETY: as the caller promises.
        let committed = unsafe { self.core.commit(transaction, flush) };
        transaction.release(None);
        committed
    }

    /// Undoes a transaction on raw memory.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub unsafe fn abort_raw(&self, transaction: &mut RawTransaction) -> Result<()> {
        // SAFETY: as the caller promises.
        let aborted = unsafe { self.core.abort(transaction) };
        transaction.release(None);
        aborted
    }
}

impl Drop for Rvm {
    /// Makes every commit durable if possible, and applies them to the segments unless that happens only when the log
    /// is full ([`Truncation`]); a program that needs the outcome calls [`Rvm::flush`] or [`Rvm::truncate`] before.
    fn drop(&mut self) {
        let _ = if self.truncator.is_some() { self.core.truncate_now() } else { self.core.flush() };
        self.core.close();
        if let Some(truncator) = self.truncator.take() {
            // It ends by itself; a panic in it was printed when it happened.
            let _ = truncator.join();
        }
    }
}
