//! Reads the records of a log in order and finds its tail.

use crate::record::{HEADER_BYTES, Place, Record};
use crate::{Error, Log, Result, Status};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes read at a time.
const WINDOW_BYTES: usize = 128 << 10;
/// How far behind a record that does not check others are looked for: a damaged length hides where the next one begins.
const SEARCH_BYTES: u64 = 64 << 10;

/// Reads a log from one position on.
struct Reader<'a> {
    log: &'a Mutex<Box<dyn Log>>,
    window: Vec<u8>,
    /// Position of the first byte in the window.
    start: u64,
    /// Nothing can be read from here on.
    end: u64,
}

impl Reader<'_> {
    /// The `bytes` at `position`; `None` beyond the end.
    fn get(&mut self, position: u64, bytes: usize) -> Result<Option<&[u8]>> {
        if position + bytes as u64 > self.end {
            return Ok(None);
        }
        let is_inside =
            position >= self.start && position + bytes as u64 <= self.start + self.window.len() as u64;
        if !is_inside {
            let most = (self.end - position).min(usize::MAX as u64) as usize;
            self.window.resize(bytes.max(WINDOW_BYTES).min(most), 0);
            self.start = position;
            lock(self.log).read(position, &mut self.window)?;
        }
        let at = (position - self.start) as usize;
        Ok(Some(&self.window[at..at + bytes]))
    }

    /// What has been read from `position` on.
    fn following(&self, position: u64) -> &[u8] {
        self.window.get((position - self.start) as usize..).unwrap_or(&[])
    }

    /// The bytes of the record that seems to begin at `position`, if it is not longer than `most`.
    fn record(&mut self, position: u64, most: u64) -> Result<Option<&[u8]>> {
        let Some(header) = self.get(position, HEADER_BYTES)? else { return Ok(None) };
        let header = header.try_into().expect("8 bytes");
        match Record::length(header) {
            Some(bytes) if bytes as u64 <= most => self.get(position, bytes),
            _ => Ok(None),
        }
    }
}

/// Calls `each` with position and contents of every record from the head on, and what has been read behind it, which is not
/// checked yet. Returns the tail: where the next record does not check. With `until`, the records up to there must check. The
/// log is locked for one read at a time.
pub fn scan(
    log: &Mutex<Box<dyn Log>>,
    until: Option<u64>,
    mut each: impl FnMut(u64, &Record<'_>, &[u8]) -> Result<()>,
) -> Result<u64> {
    let (status, capacity) = {
        let log = lock(log);
        (log.status(), log.capacity())
    };
    let end = until.unwrap_or(status.head + capacity);
    let mut reader = Reader { log, window: Vec::new(), start: 0, end };
    let mut position = status.head;
    loop {
        let bytes = reader.record(position, u64::MAX)?.map(<[u8]>::len);
        let checked = bytes.and_then(|bytes| {
            Record::check(&reader.following(position)[..bytes], Place::new(&status, position))
        });
        match checked {
            Some(Ok(record)) => {
                each(position, &record, reader.following(position + record.bytes as u64))?;
                position += record.bytes as u64;
            }
            Some(Err(why)) => return Err(damaged(reader.log, position, why)),
            None if until == Some(position) => return Ok(position),
            None => {
                let why = match until {
                    Some(_) => Some("a record does not check".to_string()),
                    None => later_barrier(&mut reader, &status, position)?.map(|later| {
                        format!("a record does not check, but one at position {later} was written after it was durable")
                    }),
                };
                return why.map_or(Ok(position), |why| Err(damaged(reader.log, position, why)));
            }
        }
    }
}

fn lock(log: &Mutex<Box<dyn Log>>) -> MutexGuard<'_, Box<dyn Log>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn damaged(log: &Mutex<Box<dyn Log>>, position: u64, why: String) -> Error {
    let log = lock(log);
    Error::Damaged { what: log.name(), offset: log.offset(position), why }
}

/// The first record with a barrier after `position`, where one does not check.
fn later_barrier(reader: &mut Reader<'_>, status: &Status, position: u64) -> Result<Option<u64>> {
    let stated = match reader.get(position, HEADER_BYTES)? {
        Some(header) => Record::length(header.try_into().expect("8 bytes")),
        None => return Ok(None),
    };
    let near = (position + 4..position + SEARCH_BYTES).step_by(4);
    for candidate in stated.map(|bytes| position + bytes as u64).into_iter().chain(near) {
        let (mut at, mut most) =
            (candidate, if near_end(candidate, position) { SEARCH_BYTES } else { u64::MAX });
        while let Some(bytes) = reader.record(at, most)? {
            match Record::check(bytes, Place::new(status, at)) {
                Some(Ok(record)) if record.barrier => return Ok(Some(at)),
                Some(Ok(record)) => at += record.bytes as u64,
                _ => break,
            }
            most = u64::MAX;
        }
    }
    Ok(None)
}

/// Whether a candidate is one of many, whose checksums may not take long.
fn near_end(candidate: u64, position: u64) -> bool {
    candidate < position + SEARCH_BYTES
}
