//! Response times of requests whose ends are events of their own, as in the text of blkparse.
//!
//! 1. An end belongs to the oldest request of its volume and operation that begins at the same address and has not ended; that
//!    of a flush to the oldest flush. A request may end in pieces.
//! 2. A few requests may lack an end: those in flight when the recording stopped, and events that the recorder lost. They are
//!    taken to have lasted as long as the longest other one, or until the recording stopped. If more than [`MISSING_MAX`] lack
//!    one, no response times are known.
//! 3. Of a trace that is taken in parts, a part is held until the next one is there: requests that were in flight at the border
//!    have their ends in that. Whatever has not ended then lacks its end.

use crate::Op;
use crate::columns::{Columns, op_of};
use crate::report::ReadReport;
use crate::rows::store::Store;
use std::collections::HashMap;

/// Of so many requests, one may lack its end; and so many may in any case.
const MISSING_MAX: usize = 1000;
const MISSING_FEW: usize = 256;
const UNKNOWN: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// The end of a request, in the ticks of its trace. Its volume is one of those that have ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub ticks: u64,
    pub offset: u64,
    pub bytes: u64,
    pub op: u8,
    pub volume: u16,
}

/// Volume, operation and address.
type Key = (u16, u8, u64);

struct Waiting {
    /// Its row, counted from the beginning of the trace.
    row: usize,
    ticks: u64,
    /// Bytes that have no completion yet.
    left: u64,
    /// The next one of its key.
    next: u32,
}

/// A part whose last requests may still end.
struct Held {
    columns: Columns,
    /// The response time of each row, in ticks.
    response: Vec<u64>,
    /// Number of rows before these.
    start: usize,
}

/// The ends of requests, and the requests that wait for theirs.
#[derive(Default)]
pub(crate) struct Ends {
    completions: Vec<Completion>,
    /// The first and the last request in flight of each key, as places in `waiting`.
    in_flight: HashMap<Key, (u32, u32)>,
    waiting: Vec<Waiting>,
    /// Free places of `waiting`.
    free: Vec<u32>,
    held: Option<Held>,
    /// Rows so far.
    rows: usize,
    /// The longest response so far, and the last end.
    longest: u64,
    last: u64,
}

impl Ends {
    pub fn add(&mut self, end: Completion) {
        self.completions.push(end);
    }

    /// Adds those of another one, whose volumes have the numbers `codes` here.
    pub fn append(&mut self, other: &Ends, codes: &[u16]) {
        let known = |one: &Completion| Completion { volume: codes[one.volume as usize], ..*one };
        self.completions.extend(other.completions.iter().map(known));
    }

    pub fn clear(&mut self) {
        self.completions.clear();
    }

    /// True if there are none, and were none.
    pub fn is_idle(&self) -> bool {
        self.completions.is_empty() && self.rows == 0
    }

    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// The response times of the rows of `store`, which are settled and sorted by time, as far as they are known; completions
    /// behind its last row are kept for the next one, if there is one. `volumes` are those of the rows.
    pub fn responses(&mut self, store: &Store, volumes: &[Option<u16>], is_last: bool) -> Vec<u64> {
        let mut completions = std::mem::take(&mut self.completions);
        completions.sort_by_key(|one| one.ticks);
        let until = if is_last { u64::MAX } else { store.ticks.last().copied().unwrap_or(0) };
        let due = completions.partition_point(|one| one.ticks <= until);
        let mut response = vec![UNKNOWN; store.ticks.len()];
        let mut next = 0;
        for end in &completions[..due] {
            while next < response.len() && store.ticks[next] <= end.ticks {
                self.begin(store, next);
                next += 1;
            }
            self.last = self.last.max(end.ticks);
            let Some(volume) = volumes[end.volume as usize] else { continue };
            self.end((volume, end.op, end.offset), end, &mut response);
        }
        (next..response.len()).for_each(|row| self.begin(store, row));
        completions.drain(..due);
        self.completions = completions;
        self.rows += response.len();
        response
    }

    fn begin(&mut self, store: &Store, row: usize) {
        let key = (store.volume[row], op_of(store.op[row]) as u8, store.offset[row]);
        let (ticks, left) = (store.ticks[row], store.bytes[row].into());
        let place = self.place(Waiting { row: self.rows + row, ticks, left, next: NONE });
        let (_, last) = self.in_flight.entry(key).or_insert((place, place));
        if *last != place {
            self.waiting[*last as usize].next = place;
            *last = place;
        }
    }

    /// Stores a request in flight; returns its place.
    fn place(&mut self, waiting: Waiting) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.waiting[place as usize] = waiting;
                place
            }
            None => {
                self.waiting.push(waiting);
                self.waiting.len() as u32 - 1
            }
        }
    }

    /// Ends the oldest request of its key, or a piece of it.
    fn end(&mut self, key: Key, end: &Completion, response: &mut [u64]) {
        let Some((place, last)) = self.in_flight.get(&key).copied() else { return };
        let waiting = &mut self.waiting[place as usize];
        let next = std::mem::replace(&mut waiting.next, NONE);
        if next == NONE {
            self.in_flight.remove(&key);
        } else {
            self.in_flight.insert(key, (next, last));
        }
        let is_piece = end.op != Op::Flush as u8 && (1..waiting.left).contains(&end.bytes);
        if is_piece {
            waiting.left -= end.bytes;
            let rest = self.in_flight.entry((key.0, key.1, end.offset + end.bytes));
            let (first, _) = rest.or_insert((NONE, place));
            waiting.next = std::mem::replace(first, place);
            return;
        }
        let (row, ticks) = (waiting.row, end.ticks - waiting.ticks);
        self.free.push(place);
        self.longest = self.longest.max(ticks);
        if let Some(row) = row.checked_sub(self.rows) {
            response[row] = ticks;
        } else if let Some(held) = &mut self.held
            && let Some(row) = row.checked_sub(held.start)
        {
            held.response[row] = ticks;
        }
    }

    /// Holds a part with the responses known so far; returns the one before it.
    pub fn hold(
        &mut self,
        columns: Columns,
        response: Vec<u64>,
        clock: Clock,
        report: &mut ReadReport,
    ) -> Option<Columns> {
        let before = self.release(clock, report);
        let start = self.rows - response.len();
        self.held = Some(Held { columns, response, start });
        before
    }

    /// The part that is held, with its response times.
    pub fn release(&mut self, clock: Clock, report: &mut ReadReport) -> Option<Columns> {
        let Held { mut columns, mut response, start } = self.held.take()?;
        self.forget(start);
        let count = response.len();
        let answered = response.iter().filter(|&&ticks| ticks != UNKNOWN).count();
        let unanswered = count - answered;
        report.answered += answered as u64;
        report.unanswered += unanswered as u64;
        if answered == 0 || unanswered > MISSING_FEW.max(count / MISSING_MAX) || unanswered > answered {
            return Some(columns);
        }
        for (response, at_ps) in response.iter_mut().zip(&columns.at_ps) {
            if *response == UNKNOWN {
                let at = clock.first + at_ps / clock.tick_ps;
                *response = self.longest.min(self.last.saturating_sub(at));
            }
            *response = response.saturating_mul(clock.tick_ps);
        }
        columns.response_ps = response;
        Some(columns)
    }

    /// Forgets requests before a row that have not ended: a late end of one that was handed out must not be that of a newer
    /// request, but those of which the end was lost would become more and more.
    fn forget(&mut self, row: usize) {
        let Ends { in_flight, waiting, free, .. } = self;
        in_flight.retain(|_, (first, _)| {
            while *first != NONE && waiting[*first as usize].row < row {
                free.push(*first);
                *first = waiting[*first as usize].next;
            }
            *first != NONE
        });
    }
}

/// The ticks of a trace: the first one, and how long they are.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    pub first: u64,
    pub tick_ps: u64,
}

#[cfg(test)]
mod tests {
    use crate::Op;
    use crate::columns::{Columns, Origin};
    use crate::report::ReadReport;
    use crate::rows::Rows;

    /// Adds requests (`true`) and ends of 4 KiB at a time and an address.
    fn add(rows: &mut Rows, events: &[(bool, u64, u64)]) {
        for &(is_request, ticks, offset) in events {
            if is_request {
                let volume = rows.volumes.named(b"a").unwrap();
                rows.push(ticks, offset, 4096, Op::Write, volume).unwrap();
            } else {
                let volume = rows.ended.named(b"a").unwrap();
                rows.completed(ticks, offset, 4096, Op::Write, volume);
            }
        }
    }

    fn take(rows: &mut Rows, is_last: bool) -> Option<Columns> {
        rows.take("t", 1, Origin::default(), is_last).unwrap()
    }

    #[test]
    fn requests_end_in_later_parts() {
        let mut rows = Rows::new(&[], ReadReport::default());
        // The first one is in flight at the border; the next request to its address is another one.
        add(
            &mut rows,
            &[(true, 10, 8), (true, 20, 0), (true, 21, 16), (false, 30, 0), (true, 40, 0), (false, 45, 0)],
        );
        assert_eq!(take(&mut rows, false).map(|part| part.len()), None);
        add(&mut rows, &[(false, 50, 8), (true, 60, 8), (false, 65, 8), (true, 66, 0), (false, 67, 0)]);
        let first = take(&mut rows, false).unwrap();
        // What has no end lasted as long as the longest, or until the last end.
        assert_eq!(first.response_ps(), Some(&[40, 10, 40, 5][..]));
        // The late end of a request that was handed out is not that of a new one to its address.
        add(&mut rows, &[(true, 70, 16), (false, 90, 16), (false, 95, 16), (true, 96, 0), (false, 99, 0)]);
        assert_eq!(take(&mut rows, true).unwrap().response_ps(), Some(&[5, 1][..]));
        let (last, report) = rows.finish("t", 1, Origin::default()).unwrap();
        assert_eq!(last.response_ps(), Some(&[25, 3][..]));
        assert_eq!((report.requests, report.answered, report.unanswered), (8, 7, 1));
    }

    #[test]
    fn a_request_ends_in_pieces() {
        let mut rows = Rows::new(&[], ReadReport::default());
        add(&mut rows, &[(true, 10, 0), (true, 11, 0), (true, 12, 2048)]);
        for (ticks, offset, bytes) in [(20, 0, 2048), (21, 0, 4096), (22, 2048, 2048), (23, 2048, 4096)] {
            let volume = rows.ended.named(b"a").unwrap();
            rows.completed(ticks, offset, bytes, Op::Write, volume);
        }
        let (all, _) = rows.finish("t", 1, Origin::default()).unwrap();
        assert_eq!(all.response_ps(), Some(&[12, 10, 11][..]));
    }
}
