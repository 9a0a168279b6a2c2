//! Ranges of any length: trimmed, zeroed or examined piece by piece, so that other requests are served in between. The reply
//! is due when the piece that takes longest is done.

use super::{Drive, Due, Session, asked};
use crate::served::DriveError;
use nvlab_workload::Op;
use std::sync::LazyLock;

/// Bytes that are trimmed or zeroed before other requests are served.
const PIECE_BYTES: u64 = 4 << 20;
/// Made when it is needed first: otherwise the program's file would hold it.
static ZEROS: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; 256 << 10].into());
/// Units examined for one reply about what is mapped.
const STATUS_UNITS_MAX: u64 = 1 << 18;

/// The flags of a WRITE_ZEROES.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zero {
    /// The range may be deallocated, if it then reads as zeros.
    pub may_trim: bool,
    /// Only if that is quicker than writing.
    pub fast: bool,
    /// It is durable when the reply is due.
    pub fua: bool,
}

impl Drive {
    /// Discards the whole units of a range, in pieces of 4 MiB.
    pub fn trim(&self, session: Session, offset: u64, bytes: u64, fua: bool) -> Result<Due, DriveError> {
        self.check(offset, bytes)?;
        let mut due = None;
        for (offset, bytes) in pieces(offset, bytes, PIECE_BYTES) {
            let request = asked(Op::Trim, offset, bytes as u32, fua);
            let trimmed = self
                .entered(session)
                .serve(session, request, |device, at| device.trim(at, offset, bytes as u32))?;
            due = due.max(trimmed);
        }
        Ok(due)
    }

    /// Makes `range` (offset, bytes) read as zeros.
    pub fn zero(&self, session: Session, range: (u64, u64), how: Zero) -> Result<Due, DriveError> {
        let (offset, bytes) = range;
        self.check(offset, bytes)?;
        let trims = how.may_trim && self.trims_last;
        if how.fast && !trims {
            return Err(DriveError::NotFast);
        }
        let unit = self.unit_bytes as u64;
        let (first, end) = (offset.next_multiple_of(unit), (offset + bytes) / unit * unit);
        if !trims || first >= end {
            return self.write_zeros(session, offset, bytes, how.fua);
        }
        let head = self.write_zeros(session, offset, first - offset, how.fua)?;
        let tail = self.write_zeros(session, end, offset + bytes - end, how.fua)?;
        let middle = self.trim(session, first, end - first, how.fua)?;
        Ok(head.max(tail).max(middle))
    }

    fn write_zeros(
        &self,
        session: Session,
        mut offset: u64,
        bytes: u64,
        fua: bool,
    ) -> Result<Due, DriveError> {
        let (end, mut due) = (offset + bytes, None);
        while offset < end {
            let count = (end - offset).min(ZEROS.len() as u64);
            due = due.max(self.write(session, offset, &ZEROS[..count as usize], fua)?);
            offset += count;
        }
        Ok(due)
    }

    /// Calls `give(bytes, is_mapped)` in order from `offset` on until the range ends, `give` returns false, or enough units were
    /// examined.
    pub fn mapped(
        &self,
        session: Session,
        range: (u64, u64),
        mut give: impl FnMut(u64, bool) -> bool,
    ) -> Result<(), DriveError> {
        let (offset, bytes) = range;
        self.check(offset, bytes)?;
        let mut inner = self.inner();
        let device = inner.available(session)?;
        let (unit, end) = (self.unit_bytes as u64, offset + bytes);
        let end = end.min((offset / unit + STATUS_UNITS_MAX) * unit);
        let mut from = offset;
        while from < end {
            let mapped = device.is_mapped(from);
            let mut to = (from / unit + 1) * unit;
            while to < end && device.is_mapped(to) == mapped {
                to += unit;
            }
            let to = to.min(end);
            if !give(to - from, mapped) {
                break;
            }
            from = to;
        }
        Ok(())
    }
}

/// The pieces of a valid range as (offset, bytes), at most `most` each: split at multiples of that, so that no unit is split.
pub(crate) fn pieces(offset: u64, bytes: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset + bytes;
    let next = move |from: u64| (from / most + 1) * most;
    std::iter::successors((bytes > 0).then_some(offset), move |&from| Some(next(from)))
        .take_while(move |&from| from < end)
        .map(move |from| (from, next(from).min(end) - from))
}
