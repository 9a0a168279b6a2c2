//! Cuts off the end of a damaged hybrid log, whose records are in two places.
//!
//! What no entry has in the small log is at its place on the store, which has a place for every position between the head and the head
//! plus the capacity. So all that is kept moves to the store, and the small log is emptied:
//!
//! 1. What entries have in the small log is written to its place on the store, zeros behind the new tail, and both are forced. Until
//!    then the store has nothing at those places that is in use.
//! 2. The mark on the store moves back to the tail.
//! 3. The small log is reset, behind everything that it may say was durable.
//!
//! A power failure before the last step leaves the entries, of which what is before the tail is as readable as before, and the damage: to
//! cut it once more has the same result. After the last step there are no entries, and what is before the tail is on the store.

use super::HybridLog;
use super::entry::{Entry, HEADER};
use crate::flash::by_piece;
use crate::log::Status;
use crate::{Error, Log, Result, Store};

/// So many generations apart from that of its small log a hybrid may be: ahead by one for each power failure between its reset and
/// that one's, behind by one for each salvage.
const GENERATIONS: u64 = 4;
/// Bytes of a small log that are searched for entries.
const SEARCHED: u64 = 64 << 10;

impl<L: Log> HybridLog<L> {
    /// Opens a log of which entries of the small log may be damaged, to be read and cut; returns what [`HybridLog::open`] would have
    /// failed with.
    pub fn open_damaged(
        small: L,
        store: Box<dyn Store>,
        store_name: &str,
    ) -> Result<(HybridLog<L>, Option<Error>)> {
        let mut log = Self::find(small, store, store_name, usize::MAX)?;
        let damage = log.scan_damaged()?;
        Ok((log, damage))
    }

    /// Makes `tail` the end: see the module.
    pub(super) fn try_cut(&mut self, tail: u64) -> Result<()> {
        for index in 0..self.entries.len() {
            let (entry, at) = self.entries[index];
            let from = entry.position.max(self.status().head);
            if !entry.is_large && from < tail {
                let mut data = vec![0; (entry.end().min(tail) - from) as usize];
                self.small.read(at + HEADER as u64 + (from - entry.position), &mut data)?;
                self.write_store(from, &data)?;
            }
        }
        let end = self.status().head + self.capacity();
        by_piece(tail, end, |position, zeros| self.write_store(position, zeros))?;
        self.store.sync().map_err(Error::io("force", &self.name))?;
        self.status.cut(self.store.as_ref(), &self.name, tail)?;
        // New entries must not begin before what the small log says was durable.
        let small_tail = self.small_tail.max(self.small.mark().unwrap_or(0));
        self.small_tail = self.small.reset(small_tail)?;
        self.entries.clear();
        Ok(())
    }
}

/// Whether a log looks like the small part of a hybrid log.
pub(crate) fn has_entry(log: &mut dyn Log) -> Result<bool> {
    let small = log.status();
    let mut bytes = vec![0; log.capacity().min(SEARCHED) as usize];
    log.read(small.head, &mut bytes)?;
    let is_entry = |(header, at): (&[u8], u64)| {
        let generations = small.generation.saturating_sub(GENERATIONS)..small.generation + GENERATIONS;
        let mut statuses = generations.map(|generation| Status { generation, ..small });
        statuses.any(|status| Entry::decode(header.try_into().expect("24 bytes"), status, at).is_some())
    };
    Ok(bytes.windows(HEADER).zip(small.head..).any(is_entry))
}
