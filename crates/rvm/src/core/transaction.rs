//! A transaction in progress: its ranges, coalesced, and the old bytes.

use super::changed::changed;
use super::memory::Memory;
use super::ranges::{Covered, Ranges};
use crate::record::{Headers, RECORD_BYTES_MAX, extend};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Whether a transaction keeps what it needs to be undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restore {
    /// The old bytes of every range are kept in memory until the end.
    #[default]
    Yes,
    /// They are not: the transaction cannot be aborted.
    No,
}

/// A transaction on the raw memory of regions. The safe face of it is [`crate::Transaction`].
///
/// Most transactions name their ranges in order: then what was captured is the list of ranges. From the first range on that
/// is not behind all before it, the coalesced list is kept apart.
#[derive(Debug)]
pub struct RawTransaction {
    restore: Restore,
    /// The first `entered` of them have ranges; the others are of an earlier transaction and save counting who holds them.
    memories: Vec<Arc<Memory>>,
    entered: usize,
    /// What was captured, in this order: disjoint, together the ranges. Their old bytes lie in `old_bytes` one behind the other.
    captured: Vec<Covered>,
    old_bytes: Vec<u8>,
    /// The ranges, if `captured` is not in order.
    merged: Ranges,
    is_merged: bool,
    /// Kept between calls for its memory.
    met: Vec<Covered>,
    /// The end of the last range, and the address of the memory it is in (0: there is none).
    last_end: usize,
    last_memory: usize,
    /// Bytes in the ranges.
    pub(super) bytes: usize,
    /// Bytes in the ranges at the last write-ahead.
    pub(super) ahead_at: usize,
    headers: Headers,
    record_bytes_max: u64,
    /// Bytes that fit in any case, in at most [`FEW_RANGES`] ranges.
    surely_fit: usize,
}

/// See [`RawTransaction::surely_fit`].
const FEW_RANGES: usize = 64;
/// A range of this many bytes may need more than one header.
const LONG_RANGE_BYTES: usize = 1 << 23;

impl RawTransaction {
    pub(super) fn new(restore: Restore, headers: Headers, most: u64) -> RawTransaction {
        let mut transaction = RawTransaction {
            restore,
            memories: Vec::new(),
            entered: 0,
            captured: Vec::new(),
            old_bytes: Vec::new(),
            merged: Ranges::default(),
            is_merged: false,
            met: Vec::new(),
            last_end: 0,
            last_memory: 0,
            bytes: 0,
            ahead_at: 0,
            headers,
            record_bytes_max: most.min(RECORD_BYTES_MAX as u64),
            surely_fit: 0,
        };
        // Each range may be the first in its memory.
        let headers = record_bytes(headers, 0, FEW_RANGES, FEW_RANGES + 1);
        let most = transaction.record_bytes_max.saturating_sub(headers) as usize;
        transaction.surely_fit = most.min(LONG_RANGE_BYTES - 1);
        transaction
    }

    /// Another one begins, which has the buffers of the last, and will most likely change `memory`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, restore: Restore, memory: &Arc<Memory>) {
        if self.entered > 0 {
            self.clear();
        }
        self.restore = restore;
        self.enter(memory);
        (self.last_end, self.last_memory) = (0, Arc::as_ptr(memory).addr());
    }

    /// As it was begun.
    #[inline]
    pub fn restore(&self) -> Restore {
        self.restore
    }

    /// The ranges so far, coalesced, and the bytes in them.
    pub fn size(&self) -> (usize, usize) {
        (self.count(), self.bytes)
    }

    /// How many ranges there are.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        if self.is_merged { self.merged.len() } else { self.captured.len() }
    }

    /// The ranges so far, in order of memory and start; neither overlapping nor adjacent. [`RawTransaction::settle`] comes before.
    #[inline(always)]
    pub(super) fn ranges(&self) -> &[Covered] {
        if self.is_merged { self.merged.as_slice() } else { &self.captured }
    }

    /// Gets the ranges ready to be gone through.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.is_merged {
            self.merged.settle();
        }
    }

    /// The memories that have ranges.
    #[inline]
    pub(super) fn memories(&self) -> &[Arc<Memory>] {
        &self.memories[..self.entered]
    }

    /// What was captured, each with its place in the old bytes, and those.
    pub(super) fn old(&self) -> (impl Iterator<Item = (Covered, usize)>, &[u8]) {
        let mut next = 0;
        let places = self.captured.iter().map(move |&covered| {
            let at = next;
            next += covered.end - covered.start;
            (covered, at)
        });
        (places, &self.old_bytes)
    }

    /// Forgets the ranges; keeps the buffers, and the memories for the next transaction.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.memories().iter().for_each(|memory| memory.leave());
        self.entered = 0;
        self.captured.clear();
        self.old_bytes.clear();
        if std::mem::take(&mut self.is_merged) {
            self.merged.clear();
        }
        self.last_memory = 0;
        self.bytes = 0;
        self.ahead_at = 0;
    }

    /// Lets go of the memories that earlier transactions used, but for `memory`.
    #[inline]
    pub(crate) fn release(&mut self, memory: Option<&Arc<Memory>>) {
        let is_only =
            matches!((&self.memories[..], memory), ([known], Some(memory)) if Arc::ptr_eq(known, memory));
        if !is_only {
            self.memories.truncate(self.entered);
        }
    }

    /// Announces that the transaction changes `range` of `memory`. Call it before the change. An error leaves the transaction
    /// as it was.
    ///
    /// # Safety
    /// Until the transaction ends nobody but its caller reads or changes these bytes, and `commit` and `abort` have
    /// the same contract.
    #[inline(always)]
    pub unsafe fn set_range(&mut self, memory: &Arc<Memory>, range: Range<usize>) -> Result<()> {
        memory.check(&range)?;
        // Most ranges lie behind the last one in the same memory.
        let is_next = self.last_memory == Arc::as_ptr(memory).addr() && self.last_end < range.start;
        if !is_next || range.is_empty() {
            // SAFETY: as the caller promises.
            return unsafe { self.set_other_range(memory, range) };
        }
        // SAFETY: as the caller promises.
        unsafe { self.push(memory, self.entered as u32 - 1, range) }
    }

    /// A range that is in another memory than the last one, not behind it, or empty.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    #[inline(never)]
    unsafe fn set_other_range(&mut self, memory: &Arc<Memory>, range: Range<usize>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let known = self.memories().iter().position(|known| Arc::ptr_eq(known, memory));
        if let Some(index) = known {
            // SAFETY: as the caller promises.
            return unsafe { self.merge(memory, index as u32, range) };
        }
        self.enter(memory);
        // SAFETY: as the caller promises.
        let pushed = unsafe { self.push(memory, self.entered as u32 - 1, range) };
        if pushed.is_err() {
            memory.leave();
            self.entered -= 1;
        }
        pushed
    }

    /// Adds ranges for what changed in a part of `memory` from `start` on, which held the bytes `before`.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(crate) unsafe fn set_changed(
        &mut self,
        memory: &Arc<Memory>,
        start: usize,
        before: &[u8],
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        let now = unsafe { memory.slice(start..start + before.len()) };
        for (from, to) in changed(before, now, self.headers.range_bytes()) {
            let mut at = self.old_bytes.len();
            let known = self.captured.len();
            // SAFETY: as the caller promises.
            unsafe { self.set_range(memory, start + from..start + to)? };
            // The old bytes are not those that are there now.
            if self.restore == Restore::Yes {
                for &Covered { start: from, end: to, .. } in &self.captured[known..] {
                    let kept = &mut self.old_bytes[at..at + to - from];
                    kept.copy_from_slice(&before[from - start..to - start]);
                    at += to - from;
                }
            }
        }
        Ok(())
    }

    /// Adds a range behind all others.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    #[inline(always)]
    unsafe fn push(&mut self, memory: &Arc<Memory>, index: u32, range: Range<usize>) -> Result<()> {
        let bytes = self.bytes + (range.end - range.start);
        self.check_fits(bytes, self.count() + 1)?;
        (self.bytes, self.last_end, self.last_memory) = (bytes, range.end, Arc::as_ptr(memory).addr());
        if self.is_merged {
            self.merged.push(Covered { memory: index, start: range.start, end: range.end });
        }
        // SAFETY: as the caller promises.
        unsafe { self.capture(memory, index, range) };
        Ok(())
    }

    /// The transaction has its first range in a memory.
    #[inline]
    fn enter(&mut self, memory: &Arc<Memory>) {
        memory.enter();
        let is_there = self.memories.get(self.entered).is_some_and(|known| Arc::ptr_eq(known, memory));
        if !is_there {
            self.memories.truncate(self.entered);
            self.memories.push(memory.clone());
        }
        self.entered += 1;
    }

    /// Adds a range anywhere.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    unsafe fn merge(&mut self, memory: &Arc<Memory>, index: u32, range: Range<usize>) -> Result<()> {
        if !self.is_merged {
            self.merged.clone_from(&self.captured);
            self.is_merged = true;
        }
        let mut met = std::mem::take(&mut self.met);
        let first = self.merged.touching(index, &range, &mut met);
        let start = met.first().map_or(range.start, |covered| covered.start.min(range.start));
        let end = met.last().map_or(range.end, |covered| covered.end.max(range.end));
        let before: usize = met.iter().map(|covered| covered.end - covered.start).sum();
        let bytes = self.bytes - before + (end - start);
        self.check_fits(bytes, self.merged.len() - met.len() + 1)?;
        let mut from = range.start;
        for &Covered { start, end, .. } in &met {
            // SAFETY: the caller promises that nobody changes the range.
            unsafe { self.capture(memory, index, from..start) };
            from = from.max(end);
        }
        // SAFETY: as above.
        unsafe { self.capture(memory, index, from..range.end) };
        self.bytes = bytes;
        if self.merged.replace(first, &met, Covered { memory: index, start, end }) {
            (self.last_end, self.last_memory) = (end, Arc::as_ptr(memory).addr());
        }
        self.met = met;
        Ok(())
    }

    /// Takes note of bytes that are about to be changed, and copies them if the transaction can be undone.
    ///
    /// # Safety
    /// Nobody changes them meanwhile.
    #[inline(always)]
    unsafe fn capture(&mut self, memory: &Memory, index: u32, range: Range<usize>) {
        if range.start >= range.end {
            return;
        }
        self.captured.push(Covered { memory: index, start: range.start, end: range.end });
        if self.restore == Restore::Yes {
            // SAFETY: as the caller promises; the range is about to be changed.
            unsafe {
                memory.make_own(range.clone());
                extend(&mut self.old_bytes, memory.slice(range));
            }
        }
    }

    /// Fails if the log cannot take a record of `ranges` ranges with `bytes` bytes.
    #[inline(always)]
    fn check_fits(&self, bytes: usize, ranges: usize) -> Result<()> {
        if bytes <= self.surely_fit && ranges <= FEW_RANGES {
            Ok(())
        } else {
            self.check_many_fit(bytes, ranges)
        }
    }

    #[inline(never)]
    fn check_many_fit(&self, bytes: usize, ranges: usize) -> Result<()> {
        let (needed, most) = (self.record_bytes(bytes, ranges), self.record_bytes_max);
        if needed > most { Err(Error::TooLarge { needed, most }) } else { Ok(()) }
    }

    /// The most bytes that a record of these ranges takes.
    #[inline]
    fn record_bytes(&self, bytes: usize, ranges: usize) -> u64 {
        record_bytes(self.headers, bytes, ranges, self.entered)
    }

    /// The most bytes its record takes.
    pub(super) fn needed(&self) -> u64 {
        self.record_bytes(self.bytes, self.count())
    }

    /// Puts the old bytes back.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(super) unsafe fn undo(&mut self) {
        if self.restore == Restore::No {
            return;
        }
        let (places, old_bytes) = self.old();
        for (Covered { memory, start, end }, at) in places {
            // SAFETY: as the caller promises.
            let bytes = unsafe { self.memories[memory as usize].slice_mut(start..end) };
            bytes.copy_from_slice(&old_bytes[at..at + end - start]);
        }
    }
}

/// The most bytes a record of so many ranges in so many memories takes: each memory may need a header that selects its segment,
/// and a long range several of its own.
#[inline]
fn record_bytes(headers: Headers, bytes: usize, ranges: usize, memories: usize) -> u64 {
    let pieces = ranges + bytes / LONG_RANGE_BYTES + memories + 1;
    (headers.transaction_bytes() + pieces * headers.range_bytes() + bytes + 8) as u64
}

impl Drop for RawTransaction {
    fn drop(&mut self) {
        self.clear();
    }
}
