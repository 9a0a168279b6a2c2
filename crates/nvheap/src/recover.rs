//! Recovery: replays the records of the epochs that were not finished, in the order of their clocks.
//!
//! It reads each log front to back and holds one record of each half, of any size. It may be interrupted at any point
//! and begin again: records are values, not differences, and the header names their epochs until they are at home.
//! The checksums of what they changed are computed anew from the contents at home.

use crate::error::{Error, Result};
use crate::layout::{Header, LINE};
use crate::log::{self, Found};
use crate::memory::Memory;
use crate::renewal::Renewal;

/// A half of a log and the next record in it.
struct Cursor {
    at: u64,
    end: u64,
    epoch: u64,
    next: Option<Found>,
}

impl Cursor {
    fn advance(&mut self, memory: &Memory, identity: u64) -> Result<()> {
        let bytes = self.next.as_ref().map_or(0, |found| found.log_bytes);
        self.at += bytes;
        self.next = log::read(memory, identity, self.at, self.end, self.epoch)?;
        if self.next.is_none() {
            // An unused half costs one page, so that a heap with many logs opens quickly.
            let end = if bytes > 0 || self.is_begun(memory)? { self.end } else { self.at + 4096 };
            self.check_tail(memory, identity, end)?;
        }
        Ok(())
    }

    /// True if an invalid record still carries the epoch.
    fn is_begun(&self, memory: &Memory) -> Result<bool> {
        Ok(self.at + LINE <= self.end && log::epoch_at(memory, self.at)? == self.epoch)
    }

    /// If a valid record of the epoch follows an invalid one, the invalid one is damaged: records become durable in
    /// order.
    fn check_tail(&self, memory: &Memory, identity: u64, end: u64) -> Result<()> {
        for at in (self.at + LINE..end).step_by(LINE as usize) {
            if log::read(memory, identity, at, self.end, self.epoch)?.is_some() {
                return Err(Error::damaged(self.at, "a record of a log is damaged: later ones are whole"));
            }
        }
        Ok(())
    }
}

/// Writes committed changes home, makes them durable, and returns the number of records.
pub(crate) fn replay(memory: &Memory, header: &Header) -> Result<u64> {
    let (layout, identity) = (header.layout, header.identity);
    let mut cursors = Vec::new();
    for log in 0..layout.logs as usize {
        for epoch in header.epoch_done + 1..=header.epoch_done + 2 {
            let at = layout.half(log, epoch);
            let mut cursor = Cursor { at, end: at + layout.half_bytes, epoch, next: None };
            cursor.advance(memory, identity)?;
            if cursor.next.is_some() {
                cursors.push(cursor);
            } else if log::read(memory, identity, at, at + layout.half_bytes, epoch + 2)?.is_some() {
                return Err(Error::damaged(
                    at,
                    "a log has records of an epoch that the header does not know",
                ));
            }
        }
    }
    let mut renewal = memory.sums().map(|sums| Renewal::new(sums, memory));
    let mut records = 0;
    while let Some(first) =
        cursors.iter_mut().min_by_key(|cursor| cursor.next.as_ref().map(|found| found.clock))
    {
        let found = first.next.as_ref().expect("only cursors with a record are kept");
        log::for_each(&found.words, |home, words| {
            check_home(header, home)?;
            memory.store(home, words)?;
            memory.write_back(home, words.len() as u64 * 8);
            Ok(())
        })?;
        if let Some(renewal) = &mut renewal {
            log::for_each(&found.words, |home, words| renewal.change(home, words.len()))?;
        }
        records += 1;
        first.advance(memory, identity)?;
        cursors.retain(|cursor| cursor.next.is_some());
    }
    renewal.iter_mut().try_for_each(Renewal::finish)?;
    if records > 0 {
        memory.fence(&[(0, memory.bytes())])?;
    }
    Ok(records)
}

/// A record changes objects, the page table and the heads of logs, nothing else.
fn check_home(header: &Header, home: u64) -> Result<()> {
    let layout = &header.layout;
    let is_table = (layout.page_table()..layout.hints()).contains(&home);
    let is_head = (0..layout.logs as usize)
        .any(|log| (layout.log_head(log)..layout.log_head(log) + 64).contains(&home));
    match home >= layout.data() || is_table || is_head {
        true => Ok(()),
        false => Err(Error::damaged(home, "a record changes what no transaction changes")),
    }
}
