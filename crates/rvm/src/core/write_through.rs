//! Write-through: if the log and the segments lie in memory, commits store their changes to the segments themselves.
//! Truncation then has nothing to apply: it syncs the segments and moves the head. Reading the records back from the
//! log, which was written past the caches, took 140 to 180 ns of processor time a transaction.
//!
//! A force first stores the records of the force before: the lines of the segments, prefetched when those were made,
//! have arrived. Directly after its own fence they would delay the next transaction, which the processor begins while
//! it waits for the fence.
//!
//! 1. Nothing is stored to a segment before its record is durable, and changes are stored in the order of the
//!    records: the thread that forces does it, and holds the state of the log.
//! 2. While it is on, everything forced has been stored, except the last force; a truncation stores that, too. It is
//!    turned off permanently by the first record or segment that it does not support; truncation then applies
//!    everything after the head, once more.
//! 3. A crash in the middle leaves part of a record in a segment, which recovery stores again.

use super::pages::PREFETCH_BYTES_MAX;
use crate::record::written_in_place;
use crate::{Error, Result, Store};
use nvlab_os::Mapping;
use nvlab_os::stores::prefetch_lines_for_store;
use std::ops::Range;

/// The segments in use, by number.
#[derive(Debug, Default)]
pub(super) struct WriteThrough {
    segments: Vec<Mapping>,
}

impl WriteThrough {
    /// Takes note of a segment, the next one or one whose length changed. `false`: it does not lie in memory.
    pub fn map(&mut self, number: usize, name: &str, store: &dyn Store) -> Result<bool> {
        let failed = |what: &'static str| Error::io(what, &name);
        let Some(file) = store.file() else { return Ok(false) };
        let bytes = store.len().map_err(failed("measure"))?;
        if bytes == 0 || !nvlab_os::file::is_in_memory(file).map_err(failed("examine"))? {
            return Ok(false);
        }
        let mapping = Mapping::shared(file, bytes).map_err(failed("map"))?;
        match self.segments.get_mut(number) {
            Some(known) => *known = mapping,
            None => self.segments.push(mapping),
        }
        assert!(number < self.segments.len(), "segment {number} of {}", self.segments.len());
        Ok(true)
    }

    /// Gets the pages of a part of a segment ready for stores.
    pub fn populate(&self, segment: u32, range: Range<u64>) {
        self.segments[segment as usize].populate_part(range);
    }

    /// Asks for the lines that [`WriteThrough::store`] will store to.
    #[inline(always)]
    pub fn prefetch(&self, segment: u32, offset: u64, bytes: usize) {
        let start = self.segments[segment as usize].start().wrapping_add(offset as usize);
        prefetch_lines_for_store(start, bytes.min(PREFETCH_BYTES_MAX));
    }

    /// Stores what forced records change; returns the bytes. `None`: some of them are not made for this.
    pub fn store(&mut self, mut records: &[u8]) -> Option<u64> {
        let mut stored = 0;
        while !records.is_empty() {
            let (ranges, rest) = written_in_place(records)?;
            for range in ranges {
                let segment = self.segments.get_mut(range.segment as usize)?.as_mut_slice();
                let into =
                    segment.get_mut(range.offset as usize..range.offset as usize + range.data.len())?;
                crate::record::copy(into, range.data);
                stored += range.data.len() as u64;
            }
            records = rest;
        }
        Some(stored)
    }
}
