//! A heap in a region of a Rust program.

use super::Words;
use crate::{Part, Result, Transaction};
use std::ops::Range;

/// The words of a heap in a region that a transaction changes.
#[derive(Debug)]
pub struct InRegion<'t, 'r> {
    transaction: &'t mut Transaction<'r>,
    part: Part,
    range: Range<usize>,
}

impl<'t, 'r> InRegion<'t, 'r> {
    /// The words in a range of bytes of a region, from its beginning; at its end up to 7 bytes are left over.
    ///
    /// # Panics
    /// If the range is not in the region.
    pub fn new(transaction: &'t mut Transaction<'r>, part: Part, range: Range<usize>) -> InRegion<'t, 'r> {
        let bytes = transaction.region(part).len();
        assert!(range.start <= range.end && range.end <= bytes, "{range:?} in a region of {bytes} B");
        let words = (range.end - range.start) / 8;
        InRegion { transaction, part, range: range.start..range.start + 8 * words }
    }

    fn place(&self, at: u64) -> Range<usize> {
        assert!(at.is_multiple_of(8) && at < self.bytes(), "the word at {at} of {} B", self.bytes());
        let start = self.range.start + at as usize;
        start..start + 8
    }
}

impl Words for InRegion<'_, '_> {
    fn bytes(&self) -> u64 {
        self.range.len() as u64
    }

    fn get(&self, at: u64) -> u64 {
        let bytes = &self.transaction.region(self.part)[self.place(at)];
        u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
    }

    fn set(&mut self, at: u64, word: u64) -> Result<()> {
        let place = self.place(at);
        self.transaction.set_range_in(self.part, place)?.copy_from_slice(&word.to_le_bytes());
        Ok(())
    }
}
