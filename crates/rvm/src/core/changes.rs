//! The changes of records, segment by segment.

use super::batch::Batch;
use super::pages::Pages;
use crate::record::{Contents, InPlace, Modification};
use crate::scan::{Window, Windows};
use crate::{Result, Store};
use std::sync::Arc;

/// How many records are checked and prefetched before the ranges of the first are stored: a store to a segment in memory waits for
/// its line.
const QUEUED_MAX: usize = 16;

/// Bytes of records are prefetched so far ahead: stored past the caches, they come from memory.
const AHEAD_BYTES: usize = 2048;

/// Opens the segment of a number when it is changed for the first time.
pub(super) type Find<'a> = &'a mut dyn FnMut(u32) -> Result<(String, Arc<dyn Store>)>;

/// Segments that records change.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// With their numbers, in the order in which they were first changed.
    segments: Vec<(u32, Pages)>,
    /// Index of the one that was changed last: most records change one.
    last: usize,
    /// Bytes decompressed since [`Changes::take_decompressed`].
    decompressed_bytes: u64,
}

impl Changes {
    /// Applies the records of a log from `position` up to `end`, all of which must check.
    pub fn apply(
        &mut self,
        mut windows: Windows<'_>,
        mut position: u64,
        end: u64,
        find: Find<'_>,
    ) -> Result<()> {
        while position < end {
            let window = windows.get(position, end)?;
            position += self.apply_window(&window, find)? as u64;
        }
        Ok(())
    }

    /// Applies the records that are whole in a window; returns their bytes.
    fn apply_window(&mut self, window: &Window<'_>, find: Find<'_>) -> Result<usize> {
        let mut queue = Vec::with_capacity(QUEUED_MAX);
        let mut done = 0;
        while let Some(record) = window.record(done)? {
            window.prefetch(done + AHEAD_BYTES, record.bytes);
            done += record.bytes;
            let Contents::Commit(modifications) = &record.contents else { continue };
            if let Some(ranges) = modifications.in_place() {
                self.prefetch(ranges.clone(), find)?;
                queue.push(ranges);
                if queue.len() >= QUEUED_MAX {
                    self.store(&mut queue, find)?;
                }
                continue;
            }
            self.store(&mut queue, find)?;
            self.decompressed_bytes += modifications.decompressed_bytes();
            let mut result = Ok(());
            let listed = modifications.each(|Modification { segment, offset, data }| {
                if result.is_ok() {
                    result = self.segment(segment, find).and_then(|pages| pages.insert(offset, data));
                }
            });
            listed.expect("the list was read when the record was checked");
            result?;
        }
        self.store(&mut queue, find)?;
        Ok(done)
    }

    #[inline(always)]
    fn prefetch(&mut self, ranges: InPlace<'_>, find: Find<'_>) -> Result<()> {
        for Modification { segment, offset, data } in ranges {
            self.segment(segment, find)?.prefetch(offset, data.len());
        }
        Ok(())
    }

    /// Stores the ranges of queued records.
    fn store(&mut self, queue: &mut Vec<InPlace<'_>>, find: Find<'_>) -> Result<()> {
        for ranges in queue.drain(..) {
            for Modification { segment, offset, data } in ranges {
                self.segment(segment, find)?.insert(offset, data)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn segment(&mut self, number: u32, find: Find<'_>) -> Result<&mut Pages> {
        if self.segments.get(self.last).is_none_or(|(last, _)| *last != number) {
            self.last = self.other_segment(number, find)?;
        }
        Ok(&mut self.segments[self.last].1)
    }

    /// The index of a segment.
    #[inline(never)]
    fn other_segment(&mut self, number: u32, find: Find<'_>) -> Result<usize> {
        if let Some(index) = self.segments.iter().position(|(known, _)| *known == number) {
            return Ok(index);
        }
        let (name, store) = find(number)?;
        self.segments.push((number, Pages::new(name, store)?));
        Ok(self.segments.len() - 1)
    }

    /// Takes the changes of a segment that come before all others.
    pub fn take(&mut self, number: u32, batch: Batch, find: Find<'_>) -> Result<()> {
        self.segment(number, find)?.take(batch)
    }

    /// Takes note of how long the segments are now.
    pub fn measure(&mut self) -> Result<()> {
        self.segments.iter_mut().try_for_each(|(_, pages)| pages.measure())
    }

    /// Bytes that were decompressed since the last call.
    pub fn take_decompressed(&mut self) -> u64 {
        std::mem::take(&mut self.decompressed_bytes)
    }

    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Makes the changes durable and is ready for the next ones. Returns their bytes.
    pub fn finish(&mut self) -> Result<u64> {
        self.segments.iter_mut().map(|(_, pages)| pages.finish()).sum()
    }
}
