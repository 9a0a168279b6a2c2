//! Fetching, replacement and write-back of lines.

use super::Cached;
use super::config::MARK_BYTES;
use super::stride::Ahead;
use super::table::{AHEAD, DIRTY, FILLING, NO_LINE, USED};
use crate::{Controller, ControllerError};
use nvlab_medium::Store;
use nvlab_units::{Extent, Lpa, Served, Span, Time};

/// Maximum number of lines read from the controller below in one request.
pub(super) const TOGETHER: u32 = 64;

impl<F: Controller, S: Store> Cached<F, S> {
    /// The units of consecutive lines in the controller behind.
    pub(super) fn units(&self, line: u32, count: u32) -> Extent {
        Extent { start: Lpa(line * self.line_units), count: count * self.line_units }
    }

    /// The address of a frame in the memory.
    pub(super) fn address(&self, frame: usize) -> u64 {
        (frame as u64) << self.line_shift
    }

    /// Time for this many bytes to cross the data bus of the memory, each word in `each`.
    #[inline]
    fn crossing(&self, bytes: u64, each: Span) -> Span {
        each * bytes.div_ceil(self.ram.config().word_bytes as u64)
    }

    /// When bytes available at `at` have crossed to the memory. `now` is the time of the request.
    #[inline]
    pub(super) fn cross_in(&mut self, now: Time, at: Time, bytes: u64) -> Served {
        let span = self.crossing(bytes, self.ram.config().write.next);
        self.bus.book(now, at, span)
    }

    /// When bytes read from the memory at `at` have left it. `now` is the time of the request.
    #[inline]
    pub(super) fn cross_out(&mut self, now: Time, at: Time, bytes: u64) -> Time {
        let span = self.crossing(bytes, self.ram.config().read.next);
        self.bus.book(now, at + self.ram.config().read.first, span).end
    }

    /// Stores bytes in the memory while they cross to it.
    pub(super) fn put(&mut self, crossing: Served, at: u64, data: &[u8]) {
        if S::KEEPS {
            self.ram.write_during((crossing.start, crossing.end), at, data);
        }
    }

    /// Makes the line of a frame dirty, after its new bytes are in the memory.
    pub(super) fn dirtied(&mut self, frame: usize, at: Time) {
        if self.table.dirtied(frame) && S::KEEPS {
            self.mark(frame, at, self.table.line(frame) + 1);
        }
    }

    fn mark(&mut self, frame: usize, at: Time, mark: u32) {
        let marks = self.address(self.table.frames());
        self.put(Served { start: at, end: at }, marks + frame as u64 * MARK_BYTES, &mark.to_le_bytes());
    }

    /// The dirty line that an earlier process left in a frame.
    pub(super) fn marked(&self, frame: usize) -> Option<u32> {
        let mut mark = [0; MARK_BYTES as usize];
        self.ram.peek(self.address(self.table.frames()) + frame as u64 * MARK_BYTES, &mut mark);
        u32::from_le_bytes(mark).checked_sub(1)
    }

    pub(super) fn cleaned(&mut self, frame: usize, at: Time) {
        if self.table.is(frame, DIRTY) {
            self.table.cleaned(frame);
            if S::KEEPS {
                self.mark(frame, at, 0);
            }
        }
    }

    pub(super) fn resize_scratch(&mut self, lines: u32) {
        let bytes = if S::KEEPS { (lines as usize) << self.line_shift } else { 0 };
        self.scratch.resize(bytes, 0);
    }

    /// Writes back the line of a frame; returns when the controller below has accepted it.
    fn write_back(&mut self, now: Time, at: Time, frame: usize) -> Result<Time, ControllerError> {
        let begin = self.table.there_at(frame, at);
        let out = self.cross_out(now, begin, self.config.line_bytes as u64);
        self.resize_scratch(1);
        if S::KEEPS {
            self.ram.peek(self.address(frame), &mut self.scratch);
        }
        let units = self.units(self.table.line(frame), 1);
        let end = self.behind.write(out, units, &self.scratch)?.end;
        self.stats.written_back += 1;
        self.accepted = self.accepted.max(end);
        self.cleaned(frame, end);
        Ok(end)
    }

    /// Writes back the next dirty line as soon as a write-back slot is free. Returns when that is, and when the line
    /// is accepted.
    pub(super) fn write_back_next(&mut self, now: Time, at: Time) -> Result<(Time, Time), ControllerError> {
        let frame = self.table.next_dirty();
        let begin = at.max(self.backs[self.next_back]);
        let end = self.write_back(now, begin, frame)?;
        self.backs[self.next_back] = end;
        self.next_back = if self.next_back + 1 == self.backs.len() { 0 } else { self.next_back + 1 };
        Ok((begin, end))
    }

    /// Writes back lines while too many are dirty; returns when the access that exceeded the limit may continue.
    #[inline]
    pub(super) fn limit_dirty(&mut self, now: Time, at: Time) -> Result<Time, ControllerError> {
        let mut at = at;
        while self.table.dirty() > self.config.dirty_lines_max {
            at = self.write_back_next(now, at)?.0;
        }
        Ok(at)
    }

    /// An empty frame for a missing line, and when it may be filled: its old line is written back first.
    pub(super) fn make_room(
        &mut self,
        now: Time,
        at: Time,
        line: u32,
    ) -> Result<(usize, Time), ControllerError> {
        let frame = self.table.victim(line);
        if self.table.line(frame) == NO_LINE {
            return Ok((frame, at));
        }
        let there = self.table.there_at(frame, at);
        let free = if self.table.is(frame, DIRTY) { self.write_back(now, at, frame)? } else { there };
        self.table.drop(frame);
        Ok((frame, free))
    }

    /// Fetches consecutive missing lines, at most [`TOGETHER`] and at most as many as there are sets. Returns when
    /// they are present.
    pub(super) fn fetch(
        &mut self,
        now: Time,
        at: Time,
        (line, count): (u32, u32),
        ahead: bool,
    ) -> Result<Time, ControllerError> {
        let mut free = at;
        for line in line..line + count {
            let (frame, empty) = self.make_room(now, at, line)?;
            free = free.max(empty);
            // Taken already, so that the next line does not take it; it counts once it is filled, below.
            self.table.insert(frame, line, 0, Time::ZERO);
        }
        let filled = self.fill(now, at, (line, count), free, if ahead { AHEAD } else { USED });
        if filled.is_err() {
            for line in line..line + count {
                let frame = self.table.find(line).expect("a line just inserted");
                self.table.drop(frame);
            }
        }
        filled
    }

    fn fill(
        &mut self,
        now: Time,
        at: Time,
        (line, count): (u32, u32),
        free: Time,
        flags: u8,
    ) -> Result<Time, ControllerError> {
        self.resize_scratch(count);
        let units = self.units(line, count);
        let read = self.behind.read(at, units, &mut self.scratch)?.end;
        let bytes = self.config.line_bytes as usize;
        let begin = read.max(free);
        let crossing = self.cross_in(now, begin, (count as usize * bytes) as u64);
        let ready = crossing.end;
        for nth in 0..count {
            let frame = self.table.find(line + nth).expect("a line just inserted");
            self.table.insert(frame, line + nth, flags | FILLING, ready);
            if S::KEEPS {
                let data = nth as usize * bytes..(nth as usize + 1) * bytes;
                self.ram.write_during((crossing.start, ready), self.address(frame), &self.scratch[data]);
            }
        }
        match flags & AHEAD {
            0 => self.stats.fetched += count as u64,
            _ => self.stats.fetched_ahead += count as u64,
        }
        Ok(ready)
    }

    /// Prefetches lines for a program that has just used `line`, if it strides through memory.
    pub(super) fn look_ahead(&mut self, now: Time, at: Time, line: u32) -> Result<(), ControllerError> {
        if self.config.prefetch_lines == 0 {
            return Ok(());
        }
        let Some(Ahead { first, stride, count }) =
            self.streams.used(line, self.config.prefetch_lines, self.lines)
        else {
            return Ok(());
        };
        let nth = |nth: u32| (first as i64 + nth as i64 * stride as i64) as u32;
        let mut from = 0;
        while from < count {
            let line = nth(from);
            from += 1;
            if self.table.find(line).is_some() {
                continue;
            }
            // Neighbours are read together.
            let mut together = 1;
            while stride == 1 && together < TOGETHER && from < count && self.table.find(nth(from)).is_none() {
                (from, together) = (from + 1, together + 1);
            }
            self.fetch(now, at, (line, together), true)?;
        }
        Ok(())
    }
}
