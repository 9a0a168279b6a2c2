//! Finds the entries of the small log of a hybrid when it is opened. Damage is an error, or, for [`super::salvage`], passed over.

use super::HybridLog;
use super::entry::{Entry, HEADER};
use crate::checksum::crc32c;
use crate::{Error, Log, Result};

/// Bytes of the small log searched at a time.
const WINDOW: usize = 64 << 10;

impl<L: Log> HybridLog<L> {
    /// Finds the entries of the small log. Damage to them is an error.
    pub(super) fn scan(&mut self) -> Result<()> {
        while let Some(entry) = self.entry_at(self.small_tail)? {
            let at = self.small_tail;
            if !self.is_whole(&entry, at)? {
                // The last append may have been torn. A stub was appended when its data were durable.
                if !entry.is_large && self.entry_behind(at)?.is_none() {
                    return Ok(());
                }
                return Err(self.damaged(&entry, at));
            }
            self.add(entry, at);
        }
        self.lost_before_entry()
    }

    /// Finds every entry of the small log that can be read, and keeps also those whose data do not match: their records have
    /// checksums of their own. Returns what [`HybridLog::scan`] would have failed with.
    pub(super) fn scan_damaged(&mut self) -> Result<Option<Error>> {
        let mut damage = None;
        loop {
            while let Some(entry) = self.entry_at(self.small_tail)? {
                let at = self.small_tail;
                if damage.is_none() && !self.is_whole(&entry, at)? {
                    if !entry.is_large && self.entry_behind(at)?.is_none() {
                        return Ok(None);
                    }
                    damage = Some(self.damaged(&entry, at));
                }
                self.add(entry, at);
            }
            if let Err(error) = self.lost_before_entry() {
                damage.get_or_insert(error);
            }
            match self.search_entry(self.small_tail + 1)? {
                Some(later) => self.small_tail = later,
                None => return Ok(damage),
            }
        }
    }

    /// Takes note of the next entry.
    fn add(&mut self, entry: Entry, at: u64) {
        let follows = if entry.is_large { 0 } else { u64::from(entry.bytes) };
        let is_later = self.entries.back().is_none_or(|(last, _)| last.end() <= entry.position);
        if entry.end() > self.status().head && is_later {
            self.entries.push_back((entry, at));
        }
        self.small_tail = at + HEADER as u64 + follows;
    }

    /// Whether the data of an entry match it. Of a large one that is partly before the head, the store may have been written again.
    fn is_whole(&mut self, entry: &Entry, at: u64) -> Result<bool> {
        if entry.is_large && entry.position < self.status().head {
            return Ok(true);
        }
        let mut data = vec![0; entry.bytes as usize];
        match entry.is_large {
            false => self.small.read(at + HEADER as u64, &mut data)?,
            true => self.read_store(entry.position, &mut data)?,
        }
        Ok(crc32c(&[&data]) == entry.crc)
    }

    /// Fails if no entry can be read where the next one should be, and something behind was durable.
    fn lost_before_entry(&mut self) -> Result<()> {
        let at = self.small_tail;
        let Some(later) = self.entry_behind(at)? else { return Ok(()) };
        let why = format!("no entry can be read, but everything before position {later} was durable");
        Err(Error::Damaged { what: self.small.name(), offset: self.small.offset(at), why })
    }

    /// A position of the small log behind `at` before which everything was durable: one with an entry, or its mark.
    fn entry_behind(&mut self, at: u64) -> Result<Option<u64>> {
        // Without an entry of this generation, the small log may not have been reset for it.
        let head = self.small.status().head;
        match self.small.mark().filter(|&mark| head < at && at < mark) {
            Some(mark) => Ok(Some(mark)),
            None => self.search_entry(at + 1),
        }
    }

    /// The position of the first entry from a position of the small log on.
    fn search_entry(&mut self, from: u64) -> Result<Option<u64>> {
        let (small, status) = (self.small.status(), self.status());
        let end = small.head + self.small.capacity();
        let mut window = Vec::new();
        for start in (from..end).step_by(WINDOW) {
            window.resize((end - start).min((WINDOW + HEADER - 1) as u64) as usize, 0);
            self.small.read(start, &mut window)?;
            let mut headers = window.windows(HEADER).zip(start..);
            let is_entry =
                |header: &[u8], at| Entry::decode(header.try_into().expect("24 bytes"), status, at).is_some();
            if let Some((_, found)) = headers.find(|&(header, at)| is_entry(header, at)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
