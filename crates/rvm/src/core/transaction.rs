//! A transaction under way: its ranges, coalesced, and the old bytes.

use super::changed::changed;
use super::memory::Memory;
use crate::record::{Headers, RECORD_BYTES_MAX, extend};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Whether a transaction can be undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restore {
    /// The old bytes of every range are kept in memory until the end.
    #[default]
    Yes,
    /// They are not: the transaction cannot be aborted.
    No,
}

/// A range of one memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    /// Index in the list of memories.
    pub memory: u32,
    pub start: usize,
    pub end: usize,
}

/// Old bytes of a range.
#[derive(Clone, Debug)]
pub(super) struct Old {
    pub covered: Covered,
    /// Where in `old_bytes` they are.
    pub at: usize,
}

/// A transaction on the raw memory of regions. The safe face of it is [`crate::Transaction`].
#[derive(Debug)]
pub struct RawTransaction {
    restore: Restore,
    pub(super) memories: Vec<Arc<Memory>>,
    /// In order of memory and start; neither overlapping nor adjacent.
    pub(super) ranges: Vec<Covered>,
    /// As captured; disjoint, together the ranges.
    pub(super) old: Vec<Old>,
    pub(super) old_bytes: Vec<u8>,
    /// Bytes in the ranges.
    pub(super) bytes: usize,
    keeps_old: bool,
    headers: Headers,
    record_bytes_max: u64,
}

impl RawTransaction {
    pub(super) fn new(restore: Restore, keeps_old: bool, headers: Headers, most: u64) -> RawTransaction {
        RawTransaction {
            restore,
            memories: Vec::new(),
            ranges: Vec::new(),
            old: Vec::new(),
            old_bytes: Vec::new(),
            bytes: 0,
            keeps_old,
            headers,
            record_bytes_max: most.min(RECORD_BYTES_MAX as u64),
        }
    }

    /// Whether it can be undone.
    pub fn restore(&self) -> Restore {
        self.restore
    }

    /// The ranges so far, coalesced, and the bytes in them.
    pub fn size(&self) -> (usize, usize) {
        (self.ranges.len(), self.bytes)
    }

    /// Forgets the ranges; keeps the buffers.
    pub(super) fn clear(&mut self) {
        for memory in self.memories.drain(..) {
            memory.leave();
        }
        self.ranges.clear();
        self.old.clear();
        self.old_bytes.clear();
        self.bytes = 0;
    }

    /// Announces that the transaction changes `range` of `memory`. Call it before the change. An error leaves the transaction
    /// as it was.
    ///
    /// # Safety
    /// Until the transaction ends nobody but its caller reads or changes these bytes, and `commit` and `abort` have
    /// the same contract.
    #[inline]
    pub unsafe fn set_range(&mut self, memory: &Arc<Memory>, range: Range<usize>) -> Result<()> {
        if range.start > range.end || range.end > memory.bytes() {
            return Err(Error::Invalid(format!(
                "the range {}..{} is not in a region of {} B",
                range.start,
                range.end,
                memory.bytes()
            )));
        }
        if range.is_empty() {
            return Ok(());
        }
        let known = self.memories.iter().position(|known| Arc::ptr_eq(known, memory));
        let index = known.unwrap_or(self.memories.len()) as u32;
        let is_behind = |last: &Covered| last.memory == index && last.end < range.start;
        // SAFETY: as the caller promises.
        unsafe {
            if known.is_some() && self.ranges.last().is_some_and(is_behind) {
                self.push(index, range)
            } else {
                self.merge(memory, known.is_some(), index, range)
            }
        }
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
            let known = self.old.len();
            // SAFETY: as the caller promises.
            unsafe { self.set_range(memory, start + from..start + to)? };
            // The old bytes are not those that are there now.
            for old in &self.old[known..] {
                let Covered { start: from, end: to, .. } = old.covered;
                let kept = &mut self.old_bytes[old.at..old.at + to - from];
                kept.copy_from_slice(&before[from - start..to - start]);
            }
        }
        Ok(())
    }

    /// Adds a range behind all others.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    #[inline]
    unsafe fn push(&mut self, memory: u32, Range { start, end }: Range<usize>) -> Result<()> {
        let bytes = self.bytes + end - start;
        let needed = self.record_bytes(bytes, self.ranges.len() + 1);
        if needed > self.record_bytes_max {
            return Err(Error::TooLarge { needed, most: self.record_bytes_max });
        }
        if self.keeps_old {
            // SAFETY: as the caller promises.
            unsafe { self.keep(memory, start..end) };
        }
        self.bytes = bytes;
        self.ranges.push(Covered { memory, start, end });
        Ok(())
    }

    /// Adds a range anywhere.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    unsafe fn merge(
        &mut self,
        memory: &Arc<Memory>,
        is_known: bool,
        index: u32,
        range: Range<usize>,
    ) -> Result<()> {
        let key = |covered: &Covered| (covered.memory, covered.start, covered.end);
        // Ranges that overlap the new one or touch it.
        let first = self.ranges.partition_point(|covered| {
            let (memory, _, end) = key(covered);
            (memory, end) < (index, range.start)
        });
        let touching = self.ranges[first..].iter();
        let count =
            touching.take_while(|covered| covered.memory == index && covered.start <= range.end).count();
        let met = &self.ranges[first..first + count];
        let start = met.first().map_or(range.start, |covered| covered.start.min(range.start));
        let end = met.last().map_or(range.end, |covered| covered.end.max(range.end));
        let before: usize = met.iter().map(|covered| covered.end - covered.start).sum();
        let bytes = self.bytes - before + (end - start);
        let needed = self.record_bytes(bytes, self.ranges.len() - count + 1);
        if needed > self.record_bytes_max {
            return Err(Error::TooLarge { needed, most: self.record_bytes_max });
        }
        if !is_known {
            memory.enter();
            self.memories.push(memory.clone());
        }
        if self.keeps_old {
            let mut from = range.start;
            for at in first..first + count {
                let Covered { start, end, .. } = self.ranges[at];
                // SAFETY: the caller promises that nobody changes the range.
                unsafe { self.keep(index, from..start) };
                from = from.max(end);
            }
            // SAFETY: as above.
            unsafe { self.keep(index, from..range.end) };
        }
        self.bytes = bytes;
        let covered = Covered { memory: index, start, end };
        match count {
            0 => self.ranges.insert(first, covered),
            1 => self.ranges[first] = covered,
            _ => drop(self.ranges.splice(first..first + count, [covered])),
        }
        Ok(())
    }

    /// Copies old bytes.
    ///
    /// # Safety
    /// Nobody changes them meanwhile.
    #[inline]
    unsafe fn keep(&mut self, memory: u32, range: Range<usize>) {
        if range.start >= range.end {
            return;
        }
        let covered = Covered { memory, start: range.start, end: range.end };
        self.old.push(Old { covered, at: self.old_bytes.len() });
        let memory = &self.memories[memory as usize];
        // SAFETY: as the caller promises; the range is about to be changed.
        unsafe {
            memory.make_own(range.clone());
            extend(&mut self.old_bytes, memory.slice(range));
        }
    }

    /// The most bytes a record of so many ranges takes: each may need a header that selects its segment, and a long one
    /// several of its own.
    fn record_bytes(&self, bytes: usize, ranges: usize) -> u64 {
        let pieces = ranges + bytes / (1 << 23) + self.memories.len() + 1;
        (self.headers.transaction_bytes() + pieces * self.headers.range_bytes() + bytes + 8) as u64
    }

    /// The most bytes its record takes.
    pub(super) fn needed(&self) -> u64 {
        self.record_bytes(self.bytes, self.ranges.len())
    }

    /// Puts the old bytes back.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(super) unsafe fn undo(&mut self) {
        for old in &self.old {
            let Covered { memory, start, end } = old.covered;
            // SAFETY: as the caller promises.
            let bytes = unsafe { self.memories[memory as usize].slice_mut(start..end) };
            bytes.copy_from_slice(&self.old_bytes[old.at..old.at + end - start]);
        }
    }
}

impl Drop for RawTransaction {
    fn drop(&mut self) {
        self.clear();
    }
}
