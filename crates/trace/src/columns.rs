//! A trace in memory: one array per column, 23 bytes per request (31 with response times), sorted by time.
//!
//! 1. All columns have the same length; times never decrease and the first is zero.
//! 2. Addresses are those of the request's own volume. A replay lays the volumes out on one device, so that a trace can
//!    be written back as it was read.
//! 3. A flush has offset 0 and 0 bytes; every other request has bytes and ends below 2^64.
//! 4. Response times are known for all requests or for none.

use crate::{Op, Request, TraceError};
use nvlab_units::{Span, Time};
use std::ops::Range;

/// More requests than this (25 GB in memory) are refused: split the trace by volume first.
pub const ROWS_MAX: u64 = 1 << 30;

/// The bit of the `op` column that marks force unit access; the two lowest bits are the [`Op`].
pub(crate) const FUA_BIT: u8 = 4;

/// The origin of a trace, preserved by every conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The format it was first read from (`msr`), or what generated it.
    pub format: String,
    /// xxh3 of the first source file's bytes as stored on disk; 0 if it did not come from a file.
    pub hash: u64,
}

/// A trace in memory, column by column, its requests in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    pub(crate) at_ps: Vec<u64>,
    pub(crate) offset: Vec<u64>,
    pub(crate) bytes: Vec<u32>,
    pub(crate) op: Vec<u8>,
    pub(crate) volume: Vec<u16>,
    /// Time from a request to its response; empty if not recorded.
    pub(crate) response_ps: Vec<u64>,
    pub(crate) volumes: Vec<String>,
    /// Where it came from.
    pub origin: Origin,
}

impl Columns {
    /// An empty trace of one unnamed volume, to be filled with [`Columns::push`].
    pub fn new(origin: Origin) -> Columns {
        Columns { volumes: vec!["0".to_owned()], origin, ..Columns::default() }
    }

    /// Requests given column by column: all of the same length, times (if there are any) since the first of them. The error names
    /// the row, from 1.
    pub fn of_lists(
        at_ps: Option<&[u64]>,
        op: &[Op],
        offset: &[u64],
        bytes: &[u32],
        origin: Origin,
    ) -> Result<Columns, TraceError> {
        let refused = |reason: String| TraceError::Refused { what: origin.format.clone(), reason };
        let count = op.len();
        let lengths =
            [("at", at_ps.map_or(count, <[u64]>::len)), ("offset", offset.len()), ("bytes", bytes.len())];
        if let Some((name, length)) = lengths.into_iter().find(|(_, length)| *length != count) {
            return Err(refused(format!("there are {count} operations, and {length} values of `{name}`")));
        }
        let mut columns = Columns::new(origin.clone());
        for row in 0..count {
            let (op, bytes, offset, at) = (op[row], bytes[row], offset[row], at_ps.map_or(0, |at| at[row]));
            let wrong = match op {
                Op::Flush if bytes > 0 => Some("a flush has 0 bytes"),
                Op::Read | Op::Write | Op::Trim if bytes == 0 => Some("only a flush has 0 bytes"),
                _ if offset.checked_add(bytes.into()).is_none() => Some("it ends beyond 2^64"),
                _ if columns.at_ps.last().is_some_and(|&last| last > at) => {
                    Some("it is issued before the previous one")
                }
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Err(refused(format!(
                    "request {}, a {op} of {bytes} B at {offset}: {wrong}",
                    row + 1
                )));
            }
            columns.push(Request { at: Time::from_ps(at), offset, bytes, op, ..Request::default() });
        }
        columns.rebase();
        Ok(columns)
    }

    /// Appends a request of an existing volume. Panics if its time is before the last one's, its volume is
    /// unknown, or it violates invariant 3. Call [`Columns::rebase`] if the first was not at zero.
    pub fn push(&mut self, request: Request) {
        let at = request.at.ps();
        assert!(self.at_ps.last().is_none_or(|&last| last <= at), "time went back to {at} ps");
        assert!((request.volume as usize) < self.volumes.len(), "volume {} has no name", request.volume);
        let is_flush = request.op == Op::Flush;
        assert_eq!(is_flush, request.bytes == 0, "a {} of {} bytes", request.op, request.bytes);
        assert!(request.offset.checked_add(request.bytes as u64).is_some(), "address past 2^64");
        self.at_ps.push(at);
        self.offset.push(if is_flush { 0 } else { request.offset });
        self.bytes.push(request.bytes);
        self.op.push(request.op as u8 | if request.fua { FUA_BIT } else { 0 });
        self.volume.push(request.volume);
    }

    /// Like [`Columns::push`], for a request that completed after `response`. Panics if earlier ones were pushed
    /// without.
    pub fn push_answered(&mut self, request: Request, response: Span) {
        assert_eq!(
            self.response_ps.len(),
            self.at_ps.len(),
            "requests without a response time before this one"
        );
        self.push(request);
        self.response_ps.push(response.ps());
    }

    /// Adds a named volume and returns its number. Panics if there are more than 65536 volumes.
    pub fn add_volume(&mut self, name: impl Into<String>) -> u16 {
        let number = u16::try_from(self.volumes.len()).expect("at most 65536 volumes");
        self.volumes.push(name.into());
        number
    }

    /// Shifts all times so that the first is zero.
    pub fn rebase(&mut self) {
        if let Some(&first) = self.at_ps.first() {
            self.at_ps.iter_mut().for_each(|at| *at -= first);
        }
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.at_ps.len()
    }
    /// Bytes of memory that the requests take.
    pub fn memory_bytes(&self) -> u64 {
        let each = size_of::<(u64, u64)>() + size_of::<u32>() + size_of::<u8>() + size_of::<u16>();
        (self.len() * each + self.response_ps.len() * size_of::<u64>()) as u64
    }

    /// Whether it has no requests; it may still have volumes.
    pub fn is_empty(&self) -> bool {
        self.at_ps.is_empty()
    }
    /// The names of the volumes; a request's `volume` is an index into them.
    pub fn volumes(&self) -> &[String] {
        &self.volumes
    }
    /// Request `row`, with the address on its own volume. Panics if it does not exist.
    #[inline]
    pub fn request(&self, row: usize) -> Request {
        Request {
            at: Time::from_ps(self.at_ps[row]),
            offset: self.offset[row],
            bytes: self.bytes[row],
            op: op_of(self.op[row]),
            fua: self.op[row] & FUA_BIT != 0,
            volume: self.volume[row],
            ..Request::default()
        }
    }
    /// All requests, in order of time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Request> + '_ {
        (0..self.len()).map(|row| self.request(row))
    }
    /// The requests of these rows, without a check of the bounds of each. Panics if there are not as many.
    #[inline]
    pub fn rows(&self, rows: Range<usize>) -> impl Iterator<Item = Request> + '_ {
        let (at_ps, offset, bytes) =
            (&self.at_ps[rows.clone()], &self.offset[rows.clone()], &self.bytes[rows.clone()]);
        let places = at_ps.iter().zip(offset).zip(bytes);
        let rest = self.op[rows.clone()].iter().zip(&self.volume[rows]);
        places.zip(rest).map(|(((&at_ps, &offset), &bytes), (&op, &volume))| Request {
            at: Time::from_ps(at_ps),
            offset,
            bytes,
            op: op_of(op),
            fua: op & FUA_BIT != 0,
            volume,
            ..Request::default()
        })
    }
    /// Picoseconds since the first request, never decreasing.
    pub fn at_ps(&self) -> &[u64] {
        &self.at_ps
    }
    /// Picoseconds from each request to its response; `None` if not recorded.
    pub fn response_ps(&self) -> Option<&[u64]> {
        (self.response_ps.len() == self.len()).then_some(&self.response_ps)
    }
    /// First byte of each request on its own volume; 0 of a flush.
    pub fn offsets(&self) -> &[u64] {
        &self.offset
    }
    /// Bytes of each; 0 of a flush.
    pub fn lengths(&self) -> &[u32] {
        &self.bytes
    }
    /// The operation of each request.
    pub fn ops(&self) -> impl ExactSizeIterator<Item = Op> + '_ {
        self.op.iter().map(|&code| op_of(code))
    }

    /// Changes the times, addresses and lengths of the requests, each with its row, until `change` fails. What it leaves must
    /// satisfy the invariants; requests that it leaves without bytes may be dropped afterwards ([`Columns::retain`]).
    pub fn update<E>(
        &mut self,
        mut change: impl FnMut(usize, &mut Request) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in 0..self.len() {
            let mut request = self.request(row);
            change(row, &mut request)?;
            (self.at_ps[row], self.offset[row], self.bytes[row]) =
                (request.at.ps(), request.offset, request.bytes);
        }
        Ok(())
    }

    /// An empty trace with the same volumes and origin.
    pub fn emptied(&self) -> Columns {
        Columns { volumes: self.volumes.clone(), origin: self.origin.clone(), ..Columns::default() }
    }

    /// Keeps the requests for which `keep` is true, in place and in order. Does not rebase.
    pub fn retain(&mut self, mut keep: impl FnMut(Request) -> bool) {
        let mut kept = 0;
        for row in 0..self.len() {
            if keep(self.request(row)) {
                self.at_ps[kept] = self.at_ps[row];
                self.offset[kept] = self.offset[row];
                self.bytes[kept] = self.bytes[row];
                self.op[kept] = self.op[row];
                self.volume[kept] = self.volume[row];
                if let Some(&response) = self.response_ps.get(row) {
                    self.response_ps[kept] = response;
                }
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Keeps the volumes called `names`, renumbered in their old order, and makes times relative to the first
    /// remaining request. A name that does not exist is an error.
    pub(crate) fn keep_volumes(&mut self, names: &[String], what: &str) -> Result<(), TraceError> {
        if let Some(missing) = names.iter().find(|&name| !self.volumes.contains(name)) {
            return Err(no_volume(what, missing, self.volumes.iter().map(String::as_str)));
        }
        let mut numbers = vec![None; self.volumes.len()];
        let mut kept = Vec::new();
        for (number, name) in numbers.iter_mut().zip(&self.volumes) {
            if names.contains(name) {
                *number = Some(kept.len() as u16);
                kept.push(name.clone());
            }
        }
        self.retain(|request| numbers[request.volume as usize].is_some());
        for volume in &mut self.volume {
            *volume = numbers[*volume as usize].unwrap_or(0);
        }
        self.volumes = kept;
        self.rebase();
        Ok(())
    }

    /// Drops the requests from row `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        self.at_ps.truncate(rows);
        self.offset.truncate(rows);
        self.bytes.truncate(rows);
        self.op.truncate(rows);
        self.volume.truncate(rows);
        self.response_ps.truncate(rows);
    }

    /// Adds the requests of a later part of the same volume. Response times are kept if both have them.
    pub(crate) fn append(&mut self, part: &Columns) {
        if self.response_ps.len() == self.len() && part.response_ps.len() == part.len() {
            self.response_ps.extend_from_slice(&part.response_ps);
        } else {
            self.response_ps.clear();
        }
        self.at_ps.extend_from_slice(&part.at_ps);
        self.offset.extend_from_slice(&part.offset);
        self.bytes.extend_from_slice(&part.bytes);
        self.op.extend_from_slice(&part.op);
        self.volume.extend_from_slice(&part.volume);
    }

    /// The trace of each volume that has requests, with the times of the whole trace: `nvlab trace split`.
    pub fn split(&self) -> Vec<Columns> {
        let mut parts: Vec<Columns> = (self.volumes.iter())
            .map(|name| Columns {
                volumes: vec![name.clone()],
                origin: self.origin.clone(),
                ..Columns::default()
            })
            .collect();
        for (row, request) in self.iter().enumerate() {
            let (part, request) = (&mut parts[request.volume as usize], Request { volume: 0, ..request });
            match self.response_ps.get(row) {
                Some(&response) => part.push_answered(request, Span::from_ps(response)),
                None => part.push(request),
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Checks the invariants for all rows. Panics with the first row that violates one.
    pub fn check(&self) {
        let rows = self.len();
        let lengths = [self.offset.len(), self.bytes.len(), self.op.len(), self.volume.len()];
        assert_eq!(lengths, [rows; 4], "columns of unequal length");
        assert!(
            [0, rows].contains(&self.response_ps.len()),
            "response times of {} of {rows} rows",
            self.response_ps.len()
        );
        for row in 0..rows {
            if let Err(reason) = self.check_row(row) {
                panic!("row {row}: {reason}");
            }
        }
    }

    /// Checks the invariants for `row`; returns the violated one as an error.
    #[inline]
    pub(crate) fn check_row(&self, row: usize) -> Result<(), &'static str> {
        let (op, bytes) = (self.op[row], self.bytes[row]);
        if op & !(FUA_BIT | 3) != 0 {
            return Err("an operation that does not exist");
        }
        if (op & 3 == Op::Flush as u8) != (bytes == 0) {
            return Err("a flush with a length, or another request without one");
        }
        if self.offset[row].checked_add(bytes as u64).is_none() {
            return Err("an address past 2^64");
        }
        if self.volume[row] as usize >= self.volumes.len() {
            return Err("a volume without a name");
        }
        if row > 0 && self.at_ps[row] < self.at_ps[row - 1] {
            return Err("a time earlier than the previous one");
        }
        Ok(())
    }
}

/// The error for a requested volume that does not exist.
pub(crate) fn no_volume<'a>(what: &str, missing: &str, known: impl Iterator<Item = &'a str>) -> TraceError {
    const LISTED: usize = 12;
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    let more = known.len().saturating_sub(LISTED);
    known.truncate(LISTED);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    let reason = format!("has no volume '{missing}'; its volumes are {}{tail}", known.join(", "));
    TraceError::Refused { what: what.to_owned(), reason }
}

#[inline]
pub(crate) fn op_of(code: u8) -> Op {
    Op::ALL[(code & 3) as usize]
}
