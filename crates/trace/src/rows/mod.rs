//! Collects a reader's requests: rows in the format's own ticks, and the names of the volumes.
//!
//! Times are kept in ticks until the end, because an absolute Windows time in picoseconds would overflow and the
//! earliest request is known only when all are read.

mod completions;
mod store;

use crate::columns::{Columns, FUA_BIT, Origin, ROWS_MAX, no_volume};
use crate::report::ReadReport;
use crate::text::lines::{Bad, BadLine};
use crate::{Op, TraceError};
use completions::{Clock, Completion, Ends};
use rayon::prelude::*;
use std::collections::HashMap;
use std::mem::take;
use store::Store;

/// A volume whose requests are skipped.
const LEFT_OUT: u32 = u32::MAX;
/// A number not seen before.
const UNSEEN: u32 = u32::MAX - 1;
/// The longest piece of a split trim; its length must fit in 32 bits.
const TRIM_PIECE_BYTES: u64 = 1 << 31;

pub(crate) struct Rows {
    store: Store,
    pub volumes: Volumes,
    pub report: ReadReport,
    latest: u64,
    /// False if the request just added was left out.
    is_kept: bool,
    /// What was recorded of the ends of requests, if their lines do not say how long they took.
    ends: Ends,
    /// The volumes of these ends: not all of them have requests.
    pub ended: Volumes,
    /// The earliest time of the first part that was taken.
    first: Option<u64>,
}

impl Rows {
    pub fn new(wanted: &[String], report: ReadReport) -> Rows {
        let [volumes, ended] = [Volumes::new(wanted), Volumes::new(wanted)];
        let (store, ends) = (Store::default(), Ends::default());
        Rows { store, volumes, report, latest: 0, is_kept: false, ends, ended, first: None }
    }

    /// Adds a request of `volume`; `None` is a volume that is skipped.
    #[inline(always)]
    pub fn push(
        &mut self,
        ticks: u64,
        offset: u64,
        bytes: u64,
        op: Op,
        volume: Option<u16>,
    ) -> Result<(), BadLine> {
        let Some(volume) = volume else {
            self.report.other_volumes += 1;
            self.is_kept = false;
            return Ok(());
        };
        if bytes.wrapping_sub(1) >= u32::MAX as u64 || offset.checked_add(bytes).is_none() {
            return self.push_unusual(ticks, offset, bytes, op, volume);
        }
        self.put(ticks, offset, bytes as u32, op as u8, volume);
        Ok(())
    }

    /// Leaves out a bad line: the last one if it was cut off behind others, or one of those that may be skipped.
    #[cold]
    pub fn forgive(&mut self, bad: BadLine, is_whole: bool, skip_bad: u64) -> Result<(), BadLine> {
        if self.report.bad_lines < skip_bad {
            self.report.bad_lines += 1;
        } else if !is_whole && (self.len() > 0 || self.report.requests > 0) {
            self.report.ends_cut = true;
        } else {
            return Err(bad);
        }
        Ok(())
    }

    /// Marks the request just added as force unit access, if it was kept.
    pub fn mark_fua(&mut self) {
        if self.is_kept {
            self.store.mark(FUA_BIT);
        }
    }

    /// Sets the response time, in ticks, of the request just added, if it was kept.
    #[inline(always)]
    pub fn answered(&mut self, ticks: u64) {
        if self.is_kept {
            self.store.answered(ticks);
        }
    }

    /// Notes that a request of `volume`, one of those `ended`, was done; a flush has neither offset nor bytes.
    pub fn completed(&mut self, ticks: u64, offset: u64, bytes: u64, op: Op, volume: Option<u16>) {
        if let Some(volume) = volume {
            self.ends.add(Completion { ticks, offset, bytes, op: op as u8, volume });
        }
    }

    pub fn flush(&mut self, ticks: u64, volume: Option<u16>) {
        match volume {
            Some(volume) => self.put(ticks, 0, 0, Op::Flush as u8, volume),
            None => {
                self.report.other_volumes += 1;
                self.is_kept = false;
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, ticks: u64, offset: u64, bytes: u32, op: u8, volume: u16) {
        if ticks < self.latest {
            self.report.reordered += 1;
        } else {
            self.latest = ticks;
        }
        self.is_kept = true;
        self.store.put(ticks, offset, bytes, op, volume);
    }

    /// Skips and counts requests of 0 bytes. A trim beyond 32 bits is split; a read or write is refused.
    #[cold]
    fn push_unusual(
        &mut self,
        ticks: u64,
        offset: u64,
        bytes: u64,
        op: Op,
        volume: u16,
    ) -> Result<(), BadLine> {
        if bytes == 0 {
            self.report.without_bytes += 1;
            self.is_kept = false;
            return Ok(());
        }
        let Some(end) = offset.checked_add(bytes) else {
            return Err(Bad::new(
                "offset",
                &offset.to_string(),
                format!("offset + {bytes} bytes exceeds 2^64"),
            ));
        };
        if op != Op::Trim {
            let allowed = format!("a {op} has at most {} bytes", u32::MAX);
            return Err(Bad::new("size", &bytes.to_string(), allowed));
        }
        if bytes / TRIM_PIECE_BYTES > 1 << 20 {
            let allowed = "a trim has at most 2^51 bytes (2 PiB)".to_owned();
            return Err(Bad::new("size", &bytes.to_string(), allowed));
        }
        self.report.trims_cut += 1;
        let mut from = offset;
        while from < end {
            let piece = (end - from).min(TRIM_PIECE_BYTES);
            self.put(ticks, from, piece as u32, op as u8, volume);
            from += piece;
        }
        Ok(())
    }

    pub fn is_full(&self) -> bool {
        self.len() as u64 >= ROWS_MAX
    }

    /// Adds the rows of the next part, which is ready for another one then. False: they have to be read again, one by one, and
    /// the part is as it was.
    pub fn append(&mut self, part: &mut Part) -> bool {
        let Part { rows: read, codes, ended, others } = part;
        if (self.len() + read.len()) as u64 > ROWS_MAX {
            return false;
        }
        if !self.volumes.number(&read.volumes, codes) || !self.ended.number(&read.ended, ended) {
            return false;
        }
        for name in &read.volumes.others[*others..] {
            if self.volumes.named(name.as_bytes()).is_err() {
                return false;
            }
        }
        *others = read.volumes.others.len();
        self.store.settle();
        read.store.settle();
        if read.report.reordered == 0 && read.store.ticks.first().is_none_or(|&first| first >= self.latest) {
            self.latest = self.latest.max(read.latest);
        } else {
            // More of them may come after a later one than the part could know.
            read.report.reordered = 0;
            for &ticks in &read.store.ticks {
                read.report.reordered += u64::from(ticks < self.latest);
                self.latest = self.latest.max(ticks);
            }
        }
        self.store.append(&read.store, codes);
        self.ends.append(&read.ends, ended);
        self.report.add(&read.report);
        part.clear();
        true
    }

    /// Sorts by time if necessary, makes times relative to the first and returns the columns.
    pub fn finish(
        mut self,
        file: &str,
        tick_ps: u64,
        origin: Origin,
    ) -> Result<(Columns, ReadReport), TraceError> {
        self.volumes.complain_about_missing(file)?;
        if self.len() == 0 && self.report.requests == 0 {
            return Err(TraceError::Empty {
                file: file.to_owned(),
                lines: self.report.lines,
                because: self.report.left_out(),
            });
        }
        let taken = match self.is_holding() && self.len() == 0 {
            true => None,
            false => self.take(file, tick_ps, origin, true)?,
        };
        let clock = Clock { first: self.first.unwrap_or(0), tick_ps };
        let columns = taken.or_else(|| self.ends.release(clock, &mut self.report));
        Ok((columns.expect("what is not held is taken"), self.report))
    }

    /// True if a part of the requests was not taken with the others, as their ends may follow.
    pub fn is_holding(&self) -> bool {
        self.ends.is_holding()
    }

    /// The next part of the requests, up to those so far: sorted by time, with times relative to the earliest of the first part.
    /// `None`: their ends may follow, and they are the next part.
    pub fn take(
        &mut self,
        file: &str,
        tick_ps: u64,
        origin: Origin,
        is_last: bool,
    ) -> Result<Option<Columns>, TraceError> {
        self.store.settle();
        if self.report.reordered > 0 && !self.store.ticks.is_sorted() {
            self.store.sort();
        }
        if self.ends.is_idle() {
            return self.columns(file, tick_ps, origin).map(Some);
        }
        let volumes: Vec<Option<u16>> =
            self.ended.names.iter().map(|name| self.volumes.known(name)).collect();
        let response = self.ends.responses(&self.store, &volumes, is_last);
        let columns = self.columns(file, tick_ps, origin)?;
        let clock = Clock { first: self.first.unwrap_or(0), tick_ps };
        Ok(self.ends.hold(columns, response, clock, &mut self.report))
    }

    /// The rows so far, which are settled and sorted by time.
    fn columns(&mut self, file: &str, tick_ps: u64, origin: Origin) -> Result<Columns, TraceError> {
        let damaged = |reason: String| TraceError::Damaged { file: file.to_owned(), reason };
        let store = &mut self.store;
        if let (Some(&earliest), Some(&latest)) = (store.ticks.first(), store.ticks.last()) {
            let first = *self.first.get_or_insert(earliest);
            if earliest < first {
                return Err(damaged(
                    "a request is earlier than the first million; sort the trace by time".to_owned(),
                ));
            }
            if (latest - first).checked_mul(tick_ps).is_none() {
                let days = (latest - first) as f64 * tick_ps as f64 * 1e-12 / 86400.0;
                return Err(damaged(format!("its times span {days:.0} days; at most 213 can be replayed")));
            }
            in_pieces(&mut store.ticks).for_each(|ticks| *ticks = (*ticks - first) * tick_ps);
        }
        if store.response.len() != store.ticks.len() {
            // Some lines have none.
            store.response.clear();
        }
        in_pieces(&mut store.response).for_each(|ticks| *ticks = ticks.saturating_mul(tick_ps));
        self.report.requests += store.ticks.len() as u64;
        Ok(Columns {
            at_ps: take(&mut store.ticks),
            offset: take(&mut store.offset),
            bytes: take(&mut store.bytes),
            op: take(&mut store.op),
            volume: take(&mut store.volume),
            response_ps: take(&mut store.response),
            volumes: self.volumes.names.clone(),
            origin,
        })
    }

    /// How many there are that were not taken.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Makes room for `rows` requests, counted like [`Rows::len`].
    pub fn expect(&mut self, rows: usize) {
        self.store.expect(rows);
    }
}

/// Rows of a block, read before those of the blocks before it are known. It is used for one block after another.
pub(crate) struct Part {
    rows: Rows,
    /// The numbers that its volumes have in the whole, as far as they are known.
    codes: Vec<u16>,
    /// As `codes`, for the volumes of its completions.
    ended: Vec<u16>,
    /// How many of the names of volumes it skipped are known to the whole.
    others: usize,
}

impl Part {
    pub fn new(wanted: &[String]) -> Part {
        let rows = Rows::new(wanted, ReadReport::default());
        Part { rows, codes: Vec::new(), ended: Vec::new(), others: 0 }
    }

    /// What a block is read into.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// Forgets the rows, and keeps the names of volumes.
    pub fn clear(&mut self) {
        let Rows { store, report, latest, ends, .. } = &mut self.rows;
        store.clear();
        ends.clear();
        *report = ReadReport::default();
        *latest = 0;
    }
}

/// Volume names to numbers, in the order of their first request.
pub(crate) struct Volumes {
    names: Vec<String>,
    by_name: HashMap<Vec<u8>, u32>,
    by_number: Vec<u32>,
    last: (Vec<u8>, u32),
    wanted: Vec<String>,
    /// Names seen and skipped, for the message when a selected one is missing.
    others: Vec<String>,
}

impl Volumes {
    fn new(wanted: &[String]) -> Volumes {
        Volumes {
            names: Vec::new(),
            by_name: HashMap::new(),
            by_number: Vec::new(),
            last: (Vec::new(), UNSEEN),
            wanted: wanted.to_vec(),
            others: Vec::new(),
        }
    }

    /// The number of the volume called `name`, or `None` if it is skipped.
    #[inline]
    pub fn named(&mut self, name: &[u8]) -> Result<Option<u16>, BadLine> {
        if self.last.1 == UNSEEN || self.last.0 != name {
            let code = match self.by_name.get(name) {
                Some(&code) => code,
                None => self.enter(name)?,
            };
            self.last.0.clear();
            self.last.0.extend_from_slice(name);
            self.last.1 = code;
        }
        Ok(volume_of(self.last.1))
    }

    /// Continues `codes`, the numbers that the volumes of a part have here; false if one cannot have a number.
    fn number(&mut self, part: &Volumes, codes: &mut Vec<u16>) -> bool {
        part.names[codes.len()..].iter().all(|name| match self.named(name.as_bytes()) {
            Ok(Some(code)) => {
                codes.push(code);
                true
            }
            _ => false,
        })
    }

    /// The number of the volume called `name`, if it has one already.
    fn known(&self, name: &str) -> Option<u16> {
        self.by_name.get(name.as_bytes()).and_then(|&code| volume_of(code))
    }

    /// The number of the volume called `number`, or `None` if it is skipped.
    #[inline]
    pub fn numbered(&mut self, number: u64) -> Result<Option<u16>, BadLine> {
        match self.by_number.get(number as usize) {
            Some(&code) if code != UNSEEN => Ok(volume_of(code)),
            _ => self.enter_number(number),
        }
    }

    #[cold]
    fn enter_number(&mut self, number: u64) -> Result<Option<u16>, BadLine> {
        const DIRECT_MAX: u64 = 1 << 20;
        let name = number.to_string();
        let code = match self.by_name.get(name.as_bytes()) {
            Some(&code) => code,
            None => self.enter(name.as_bytes())?,
        };
        if number < DIRECT_MAX {
            let index = number as usize;
            if self.by_number.len() <= index {
                self.by_number.resize(index + 1, UNSEEN);
            }
            self.by_number[index] = code;
        }
        Ok(volume_of(code))
    }

    #[cold]
    fn enter(&mut self, name: &[u8]) -> Result<u32, BadLine> {
        let text = String::from_utf8_lossy(name).into_owned();
        let code = if !self.wanted.is_empty() && !self.wanted.contains(&text) {
            self.others.push(text);
            LEFT_OUT
        } else if self.names.len() > u16::MAX as usize {
            let allowed = "at most 65536 volumes in one trace; read some of them with volume=NAME";
            return Err(Bad::new("volume", &text, allowed.to_owned()));
        } else {
            self.names.push(text);
            self.names.len() as u32 - 1
        };
        self.by_name.insert(name.to_vec(), code);
        Ok(code)
    }

    fn complain_about_missing(&self, file: &str) -> Result<(), TraceError> {
        let Some(missing) = self.wanted.iter().find(|&name| !self.names.contains(name)) else {
            return Ok(());
        };
        let known = self.names.iter().chain(&self.others).map(String::as_str);
        Err(no_volume(file, missing, known))
    }
}

/// The times of a column, on all cores.
fn in_pieces(column: &mut [u64]) -> impl IndexedParallelIterator<Item = &mut u64> {
    const PIECE_ROWS: usize = 1 << 16;
    column.par_iter_mut().with_min_len(PIECE_ROWS)
}

#[inline]
fn volume_of(code: u32) -> Option<u16> {
    if code == LEFT_OUT { None } else { Some(code as u16) }
}
