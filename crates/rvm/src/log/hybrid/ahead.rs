//! Write-ahead: the data of a large append that has not come yet, begun on the store (slide 49: "speculatively" writes to disk, and flash
//! for the final commit write).
//!
//! 1. It lies behind the tail, where nothing is in use, in whole sectors: the one at its end would be written again. The first sector
//!    may have bytes before the tail, which stay the same.
//! 2. What is kept of it in memory is what the store holds there, so an append writes only the sectors in which it differs. An append of
//!    something else begins at the same place and writes all it has; what was written ahead is waste then.

use super::HybridLog;
use super::entry::{Entry, HEADER};
use crate::checksum::crc32c;
use crate::{Error, Log, Result};
use std::ops::Range;

/// What was written ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    position: u64,
    bytes: Vec<u8>,
    /// Bytes that no append has used.
    pub(super) wasted_bytes: u64,
}

impl Ahead {
    fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }

    /// No append will use it.
    pub(super) fn abandon(&mut self) {
        self.wasted_bytes += self.bytes.len() as u64;
        self.bytes.clear();
    }

    /// Takes what was begun, for an append.
    fn take(&mut self) -> Ahead {
        let bytes = std::mem::take(&mut self.bytes);
        Ahead { position: self.position, bytes, wasted_bytes: 0 }
    }
}

impl<L: Log> HybridLog<L> {
    fn sector_bytes(&self) -> u64 {
        u64::from(self.status.sector_bytes())
    }

    pub(super) fn try_write_ahead(&mut self, position: u64, data: &[u8]) -> Result<usize> {
        let sector = self.sector_bytes();
        let end = (position + data.len() as u64) / sector * sector;
        let is_behind = self.tail.is_some_and(|tail| tail <= position);
        if !is_behind || end <= position || end > self.status().head + self.capacity() {
            return Ok(0);
        }
        let data = &data[..(end - position) as usize];
        let is_more = self.ahead.position == position && data.starts_with(&self.ahead.bytes);
        if !is_more {
            self.ahead.abandon();
        }
        let known = self.ahead.bytes.len();
        self.write_store(position + known as u64, &data[known..])?;
        self.ahead.position = position;
        data.clone_into(&mut self.ahead.bytes);
        self.store.start_sync().map_err(Error::io("append to", &self.name))?;
        Ok(data.len() - known)
    }

    /// Appends `data` in one entry, or around what was written ahead of it.
    pub(super) fn try_append_parts(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let ahead = self.ahead.take();
        let Some(body) = self.body(&ahead, position, data) else {
            self.ahead.wasted_bytes += ahead.bytes.len() as u64;
            return self.try_append(self.entry(position, data, false), data);
        };
        self.ahead.wasted_bytes += self.write_differing(&ahead, &data[body.clone()])?;
        let is_idle = self.store.start_sync().map_err(Error::io("append to", &self.name))?;
        let rest = &data[body.end..];
        // The store would have to be waited for anyway.
        let is_inline = is_idle && !rest.is_empty() && rest.len() < self.threshold;
        let end = if is_inline { body.end } else { data.len() };
        self.write_store(ahead.end(), &data[body.end..end])?;
        if body.start > 0 {
            let before = &data[..body.start];
            self.try_append(self.entry(position, before, true), before)?;
        }
        let stub = self.entry(ahead.position, &data[body.start..end], is_inline);
        self.unforced.push(Entry { is_large: true, ..stub });
        match is_inline {
            true => self.try_append(self.entry(ahead.end(), rest, false), rest),
            false => Ok(()),
        }
    }

    fn entry(&self, position: u64, data: &[u8], goes_on: bool) -> Entry {
        let is_large = data.len() >= self.threshold;
        Entry { position, bytes: data.len() as u32, is_large, goes_on, crc: crc32c(&[data]) }
    }

    /// What of `data` was written ahead; `None` if that was for something else, or the small log has no room for the entries.
    fn body(&self, ahead: &Ahead, position: u64, data: &[u8]) -> Option<Range<usize>> {
        let start = ahead.position.checked_sub(position)? as usize;
        let body = start..start + ahead.bytes.len();
        let now = data.get(body.clone()).filter(|now| !now.is_empty())?;
        let sectors = now.chunks(self.sector_bytes() as usize);
        let is_same = sectors.clone().zip(ahead.bytes.chunks(self.sector_bytes() as usize));
        let same = is_same.filter(|(now, written)| now == written).count();
        let most = HEADER * (self.unforced.len() + 3) + data.len() - body.len();
        (2 * same >= sectors.len() && self.has_room(most)).then_some(body)
    }

    /// Writes the sectors in which `now` is not what was written ahead; returns their bytes.
    fn write_differing(&self, ahead: &Ahead, now: &[u8]) -> Result<u64> {
        let sector = self.sector_bytes();
        let (mut at, mut written) = (0, 0);
        while at < now.len() {
            let place = ahead.position + at as u64;
            let end = now.len().min(at + (sector - place % sector) as usize);
            if now[at..end] != ahead.bytes[at..end] {
                self.write_store(place, &now[at..end])?;
                written += (end - at) as u64;
            }
            at = end;
        }
        Ok(written)
    }
}
