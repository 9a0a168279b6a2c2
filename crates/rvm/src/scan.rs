//! Reads the records of a log in order and finds its tail.

use crate::core::View;
use crate::log::status::MARK_BYTES;
use crate::record::{HEADER_BYTES, Place, Record};
use crate::{Error, Log, Result, Status};
use nvlab_os::stores::{LINE, prefetch_for_load};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes read at a time while nobody else wants the log, and while others may. To read more at a time is no faster, but memory that has
/// not been used yet takes as long as the read.
const SCANNED_BYTES: usize = 256 << 10;
const WINDOW_BYTES: usize = 128 << 10;
/// Reads begin at multiples of this, as far as the head lets them, and so do writes: sectors, pages.
const ALIGN: u64 = 4096;
/// So much of flash that has been erased, and nothing was written behind it.
const ERASED_BYTES: usize = 64 << 10;

/// Reads a log from one position on.
struct Reader<'a> {
    log: &'a Mutex<Box<dyn Log>>,
    window: Vec<u8>,
    /// Position of the first byte in the window.
    start: u64,
    /// Nothing can be read from here on.
    end: u64,
    head: u64,
    /// What was read before the first position and checks up to the second is to be written once more from the first on; `None`: it
    /// is only read.
    rewritten: Option<u64>,
    checked: u64,
}

impl<'a> Reader<'a> {
    fn new(log: &'a Mutex<Box<dyn Log>>, status: &Status, end: u64, rewrites: bool) -> Reader<'a> {
        let head = status.head;
        let rewritten = rewrites.then_some(head);
        Reader { log, window: Vec::new(), start: head, end, head, rewritten, checked: head }
    }

    /// The `bytes` at `position`; `None` beyond the end.
    fn get(&mut self, position: u64, bytes: usize) -> Result<Option<&[u8]>> {
        if position + bytes as u64 > self.end {
            return Ok(None);
        }
        let is_inside =
            position >= self.start && position + bytes as u64 <= self.start + self.window.len() as u64;
        if !is_inside {
            self.write_back(self.checked / ALIGN * ALIGN)?;
            self.move_to((position / ALIGN * ALIGN).max(self.head), position + bytes as u64)?;
        }
        let at = (position - self.start) as usize;
        Ok(Some(&self.window[at..at + bytes]))
    }

    /// Moves the window to `start`; it has at least what is before `end` then. What it had of that stays in it.
    fn move_to(&mut self, start: u64, end: u64) -> Result<()> {
        let had = self.start..self.start + self.window.len() as u64;
        let kept = if had.contains(&start) { (had.end - start) as usize } else { 0 };
        self.window.drain(..self.window.len() - kept);
        self.start = start;
        let wanted = end.max(start + SCANNED_BYTES as u64).min(self.end);
        self.window.resize((wanted - start) as usize, 0);
        let read = lock(self.log).read(start + kept as u64, &mut self.window[kept..]);
        if read.is_err() {
            self.window.clear();
        }
        read
    }

    /// Writes what checks up to `end` once more. It is in the window still.
    fn write_back(&mut self, end: u64) -> Result<()> {
        if let Some(from) = self.rewritten.filter(|&from| from < end) {
            let bytes = (from - self.start) as usize..(end - self.start) as usize;
            lock(self.log).rewrite(from, &self.window[bytes])?;
            self.rewritten = Some(end);
        }
        Ok(())
    }

    /// The bytes of the record that seems to begin at `position`.
    fn record(&mut self, position: u64) -> Result<Option<&[u8]>> {
        let Some(header) = self.get(position, HEADER_BYTES)? else { return Ok(None) };
        match length(header) {
            Some(bytes) => self.get(position, bytes),
            None => Ok(None),
        }
    }
}

/// Calls `each` with position and contents of every record from the head on. Returns the tail: where the next record does not
/// check. It is an error if that was durable: if it lies before the log's mark, or before a record with a barrier. The log is
/// locked for one read at a time.
pub fn scan(log: &Mutex<Box<dyn Log>>, each: impl FnMut(u64, &Record<'_>) -> Result<()>) -> Result<u64> {
    let (status, end) = extent(log);
    scan_with(Reader::new(log, &status, end, false), status, each)
}

/// As [`scan`], and writes what checks once more ([`Log::rewrite`], which has been begun), so that this takes no second pass.
pub fn scan_and_rewrite(
    log: &Mutex<Box<dyn Log>>,
    each: impl FnMut(u64, &Record<'_>) -> Result<()>,
) -> Result<u64> {
    let (status, end) = extent(log);
    scan_with(Reader::new(log, &status, end, true), status, each)
}

fn scan_with(
    mut reader: Reader<'_>,
    status: Status,
    mut each: impl FnMut(u64, &Record<'_>) -> Result<()>,
) -> Result<u64> {
    let log = reader.log;
    let mut position = status.head;
    loop {
        let bytes = reader.record(position)?;
        match bytes.and_then(|bytes| Record::check(bytes, Place::new(&status, position))) {
            Some(Ok(record)) => {
                each(position, &record)?;
                position += record.bytes as u64;
                reader.checked = position;
            }
            Some(Err(why)) => return Err(damaged(log, position, why)),
            None => {
                reader.write_back(position)?;
                let lost = durable_behind(&mut reader, &status, position)?;
                return lost.map_or(Ok(position), |why| Err(damaged(log, position, why)));
            }
        }
    }
}

/// The records of a log that must check, as many at a time as can be read at once.
pub struct Windows<'l> {
    log: &'l Mutex<Box<dyn Log>>,
    /// What it holds, if it lies in memory: it need be neither locked nor copied then.
    view: Option<&'l View>,
    status: Status,
    buffer: Vec<u8>,
}

impl<'l> Windows<'l> {
    /// Over a log, from its head on.
    pub fn new(log: &'l Mutex<Box<dyn Log>>, view: Option<&'l View>) -> Windows<'l> {
        Windows { log, view, status: lock(log).status(), buffer: Vec::new() }
    }

    /// The position of the oldest record.
    pub fn head(&self) -> u64 {
        self.status.head
    }

    /// What begins at `position`, not beyond `end`; the record there is whole.
    pub fn get(&mut self, position: u64, end: u64) -> Result<Window<'_>> {
        let (log, status) = (self.log, self.status);
        if let Some(bytes) = self.view.map(|view| view.get(position, end))
            && length(bytes).is_some_and(|length| length <= bytes.len())
        {
            return Ok(Window { log, status, position, bytes });
        }
        let most = usize::try_from(end - position).unwrap_or(usize::MAX);
        let usual = if self.view.is_some() { HEADER_BYTES } else { WINDOW_BYTES };
        self.read(position, usual.min(most))?;
        if let Some(longer) = length(&self.buffer).filter(|&length| length > self.buffer.len()) {
            self.read(position, longer.min(most))?;
        }
        Ok(Window { log, status, position, bytes: &self.buffer })
    }

    fn read(&mut self, position: u64, bytes: usize) -> Result<()> {
        self.buffer.resize(bytes, 0);
        lock(self.log).read(position, &mut self.buffer)
    }
}

/// The length of the record that seems to begin here.
fn length(bytes: &[u8]) -> Option<usize> {
    Record::length(bytes.first_chunk()?)
}

/// A part of a log in memory, as read at once.
pub struct Window<'w> {
    log: &'w Mutex<Box<dyn Log>>,
    status: Status,
    position: u64,
    bytes: &'w [u8],
}

impl<'w> Window<'w> {
    /// Prefetches `bytes` bytes at a distance from its beginning, as far as it has them.
    #[inline]
    pub fn prefetch(&self, at: usize, bytes: usize) {
        let end = (at + bytes.min(WINDOW_BYTES)).min(self.bytes.len());
        for line in (at..end).step_by(LINE) {
            prefetch_for_load(&raw const self.bytes[line]);
        }
    }

    /// The record at a distance from its beginning; `None` if it does not hold the whole of it.
    pub fn record(&self, at: usize) -> Result<Option<Record<'w>>> {
        let rest = &self.bytes[at..];
        let position = self.position + at as u64;
        let record = match length(rest) {
            Some(length) => rest.get(..length),
            None if rest.len() < HEADER_BYTES => None,
            None => return Err(damaged(self.log, position, "no record begins here".into())),
        };
        match record.map(|record| Record::check(record, Place::new(&self.status, position))) {
            Some(Some(Ok(record))) => Ok(Some(record)),
            Some(Some(Err(why))) => Err(damaged(self.log, position, why)),
            // The first one is whole, if it is one.
            None if at > 0 => Ok(None),
            _ => Err(damaged(self.log, position, "a record is invalid".into())),
        }
    }
}

fn lock(log: &Mutex<Box<dyn Log>>) -> MutexGuard<'_, Box<dyn Log>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The status, and where the log ends at most.
fn extent(log: &Mutex<Box<dyn Log>>) -> (Status, u64) {
    let log = lock(log);
    (log.status(), log.status().head + log.capacity())
}

fn damaged(log: &Mutex<Box<dyn Log>>, position: u64, why: String) -> Error {
    let log = lock(log);
    Error::Damaged { what: log.name_at(position), offset: log.offset(position), why }
}

/// Why what is at `position`, where no record checks, was durable; `None` if it is the tail.
///
/// A log with a mark: the last append lies within [`MARK_BYTES`] behind the mark, or the mark is where it begins. So the record
/// with a barrier that an append behind `position` begins with is whole within that distance. In other logs the stated length is
/// followed, and else records that are not longer than that are looked for to their end.
fn durable_behind(reader: &mut Reader<'_>, status: &Status, position: u64) -> Result<Option<String>> {
    let (log, end) = (reader.log, reader.end);
    let mark = lock(log).mark();
    if let Some(mark) = mark.filter(|&mark| position < mark) {
        return Ok(Some(format!("a record is invalid, but everything before position {mark} was durable")));
    }
    let later = match mark {
        Some(_) => {
            let limit = end.min(position + MARK_BYTES);
            barrier_before(reader, status, position, limit)?
        }
        None => match barrier_after(reader, status, position)? {
            Some(later) => Some(later),
            None => barrier_from(log, status, position, end)?,
        },
    };
    let why = "was written after it was durable";
    Ok(later.map(|later| format!("a record is invalid, but one at position {later} {why}")))
}

/// The position of the first record with a barrier that is whole between `from` and `limit`.
fn barrier_before(
    reader: &mut Reader<'_>,
    status: &Status,
    mut from: u64,
    limit: u64,
) -> Result<Option<u64>> {
    while from + HEADER_BYTES as u64 <= limit {
        let bytes = (limit - from).min(SCANNED_BYTES as u64) as usize;
        let Some(window) = reader.get(from, bytes)? else { return Ok(None) };
        let seems = |at: &usize| {
            barrier_length(&window[*at..]).is_some_and(|length| length as u64 <= limit - from - *at as u64)
        };
        let ends = bytes - HEADER_BYTES + 1;
        let Some(at) = (0..ends).step_by(4).find(seems) else {
            from += ends.next_multiple_of(4) as u64;
            continue;
        };
        from += at as u64;
        let length = barrier_length(&window[at..]).expect("as it seemed");
        let record = reader.get(from, length)?;
        if record.and_then(|record| Record::check(record, Place::new(status, from))).is_some() {
            return Ok(Some(from));
        }
        from += 4;
    }
    Ok(None)
}

/// The length of the record with a barrier that seems to begin here.
fn barrier_length(bytes: &[u8]) -> Option<usize> {
    Record::barrier_length(bytes.first_chunk()?)
}

/// The position of the first record with a barrier, of whatever length, among those behind the one at `position`, which does not
/// check but may state its length rightly.
fn barrier_after(reader: &mut Reader<'_>, status: &Status, position: u64) -> Result<Option<u64>> {
    let stated = reader.get(position, HEADER_BYTES)?.and_then(length);
    let Some(mut at) = stated.map(|bytes| position + bytes as u64) else { return Ok(None) };
    while let Some(bytes) = reader.record(at)? {
        match Record::check(bytes, Place::new(status, at)) {
            Some(Ok(record)) if record.barrier => return Ok(Some(at)),
            Some(Ok(record)) => at += record.bytes as u64,
            _ => break,
        }
    }
    Ok(None)
}

/// The position of the first record with a barrier, of at most [`MARK_BYTES`], between `from` and `limit`, or where flash has been
/// erased.
fn barrier_from(
    log: &Mutex<Box<dyn Log>>,
    status: &Status,
    mut from: u64,
    limit: u64,
) -> Result<Option<u64>> {
    let is_flash = lock(log).is_flash();
    let mut window = Vec::new();
    while from < limit && !(is_flash && is_erased(log, from, limit)?) {
        let begins = read_window(log, from, limit, &mut window)?;
        if let Some(later) = barrier_in(&window, begins, status, from) {
            return Ok(Some(later));
        }
        from += begins as u64;
    }
    Ok(None)
}

/// Calls `each` with position and contents of the records that can be read behind `position`, where one cannot; of those longer
/// than [`MARK_BYTES`] none is looked for.
pub fn scan_behind(
    log: &Mutex<Box<dyn Log>>,
    position: u64,
    mut each: impl FnMut(u64, &Record<'_>),
) -> Result<()> {
    let (status, end) = extent(log);
    let mut from = position + 4;
    let mut window = Vec::new();
    while from < end {
        let begins = read_window(log, from, end, &mut window)?;
        let mut at = 0;
        while at < begins {
            let bytes = length(&window[at..]).filter(|&bytes| bytes as u64 <= MARK_BYTES).unwrap_or(0);
            let place = Place::new(&status, from + at as u64);
            let record = window.get(at..at + bytes).and_then(|bytes| Record::check(bytes, place));
            match record {
                Some(Ok(record)) => {
                    each(from + at as u64, &record);
                    at += record.bytes;
                }
                _ => at += 4,
            }
        }
        from += at as u64;
    }
    Ok(())
}

/// Reads a part of a log from `from` on, which ends at `limit` at most. A record of at most [`MARK_BYTES`] that begins among so many
/// of its first bytes as are returned is whole in it.
fn read_window(log: &Mutex<Box<dyn Log>>, from: u64, limit: u64, window: &mut Vec<u8>) -> Result<usize> {
    window.resize((limit - from).min(2 * MARK_BYTES) as usize, 0);
    lock(log).read(from, window)?;
    Ok(if from + window.len() as u64 == limit { window.len() } else { MARK_BYTES as usize })
}

/// Whether what is at `position` looks like flash that nothing has been written to.
fn is_erased(log: &Mutex<Box<dyn Log>>, position: u64, limit: u64) -> Result<bool> {
    let mut bytes = vec![0; (limit - position).min(ERASED_BYTES as u64) as usize];
    lock(log).read(position, &mut bytes)?;
    Ok(bytes.iter().all(|byte| *byte == 0xff))
}

/// The position of the first record with a barrier, of at most [`MARK_BYTES`], that begins among the first `begins` bytes of a
/// part of a log.
fn barrier_in(window: &[u8], begins: usize, status: &Status, position: u64) -> Option<u64> {
    (0..begins).step_by(4).find_map(|at| {
        let rest = &window[at..];
        let length =
            Record::barrier_length(rest.first_chunk()?).filter(|&bytes| bytes as u64 <= MARK_BYTES)?;
        let place = Place::new(status, position + at as u64);
        Record::check(rest.get(..length)?, place).map(|_| position + at as u64)
    })
}
