//! What records change, segment by segment.

use super::pages::Pages;
use crate::record::{Contents, Record};
use crate::{Result, Store};
use std::sync::Arc;

/// How far ahead of the record that is applied the places of later ones are prefetched: a store to a segment in memory waits
/// for its line, and this is time for some ten of them.
const AHEAD_BYTES: u64 = 4096;

/// Segments that records change.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// With their numbers, in the order in which they were first changed.
    segments: Vec<(u32, Pages)>,
    /// Index of the one that was changed last: most records change one.
    last: usize,
    /// The position up to which the places of records are prefetched.
    prefetched: u64,
}

impl Changes {
    /// Applies the record at `position`, behind which `following` has been read. `find` opens a segment that is changed for
    /// the first time.
    pub fn apply(
        &mut self,
        position: u64,
        record: &Record<'_>,
        following: &[u8],
        find: &mut dyn FnMut(u32) -> Result<(String, Arc<dyn Store>)>,
    ) -> Result<()> {
        self.prefetch(position + record.bytes as u64, following);
        let Contents::Commit(modifications) = &record.contents else { return Ok(()) };
        let mut result = Ok(());
        let listed = modifications.each(|change| {
            if result.is_ok() {
                result = self
                    .segment(change.segment, find)
                    .and_then(|pages| pages.insert(change.offset, change.data));
            }
        });
        listed.expect("the list was read when the record was checked");
        result
    }

    fn segment(
        &mut self,
        number: u32,
        find: &mut dyn FnMut(u32) -> Result<(String, Arc<dyn Store>)>,
    ) -> Result<&mut Pages> {
        if self.segments.get(self.last).is_none_or(|(last, _)| *last != number) {
            self.last = match self.segments.iter().position(|(known, _)| *known == number) {
                Some(index) => index,
                None => {
                    let (name, store) = find(number)?;
                    self.segments.push((number, Pages::new(name, store)?));
                    self.segments.len() - 1
                }
            };
        }
        Ok(&mut self.segments[self.last].1)
    }

    /// Prefetches what records will change that begin less than [`AHEAD_BYTES`] behind `position`, where `following` begins.
    fn prefetch(&mut self, position: u64, following: &[u8]) {
        self.prefetched = self.prefetched.max(position);
        while self.prefetched < position + AHEAD_BYTES {
            let rest = following.get((self.prefetched - position) as usize..).unwrap_or(&[]);
            let bytes = Record::glance(rest, |segment, offset, bytes| {
                if let Some((_, pages)) = self.segments.iter().find(|(number, _)| *number == segment) {
                    pages.prefetch(offset, bytes);
                }
            });
            let Some(bytes) = bytes else { return };
            self.prefetched += bytes as u64;
        }
    }

    /// Takes note of how long the segments are now.
    pub fn measure(&mut self) -> Result<()> {
        self.prefetched = 0;
        self.segments.iter_mut().try_for_each(|(_, pages)| pages.measure())
    }

    /// How many segments were changed.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Makes the changes durable and is ready for the next ones. Returns their bytes.
    pub fn finish(&mut self) -> Result<u64> {
        self.segments.iter_mut().map(|(_, pages)| pages.finish()).sum()
    }
}
