//! Host accesses: words of a memory, and lines as blocks.

use super::Cached;
use super::lines::TOGETHER;
use crate::{Background, Controller, ControllerError, read_in_one, write_in_one};
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{Extent, Lpa, Served, Time};

impl<F: Controller, S: Store> Cached<F, S> {
    /// Loads `bytes` at `offset`, word by word.
    #[inline]
    pub fn load(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        let (mut end, mut done) = (at, 0);
        while done < bytes {
            let piece = self.word_piece(offset, bytes, done);
            let into = into.get_mut(done as usize..(done + piece) as usize).unwrap_or(&mut []);
            end = self.load_word(end, offset + done as u64, piece, into)?;
            done += piece;
        }
        Ok(Served { start: at, end })
    }

    /// Stores `bytes` at `offset`, word by word.
    #[inline]
    pub fn store(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        data: &[u8],
    ) -> Result<Served, ControllerError> {
        ControllerError::check_window(offset, bytes, self.capacity_bytes())?;
        let (mut end, mut done) = (at, 0);
        while done < bytes {
            let piece = self.word_piece(offset, bytes, done);
            let data = data.get(done as usize..(done + piece) as usize).unwrap_or(&[]);
            end = self.store_word(end, offset + done as u64, piece, data)?;
            done += piece;
        }
        Ok(Served { start: at, end })
    }

    /// How many of the bytes from `done` on are in one word.
    #[inline]
    fn word_piece(&self, offset: u64, bytes: u32, done: u32) -> u32 {
        let word = self.config.word_bytes;
        let inside = (offset + done as u64) as u32 & (word - 1);
        (bytes - done).min(word - inside)
    }

    /// The frame of the line that holds a word, when the line is present, and whether the stream detector must be
    /// told.
    #[inline]
    fn frame_of(&mut self, now: Time, at: Time, line: u32) -> Result<(usize, Time, bool), ControllerError> {
        if let Some(frame) = self.table.find(line) {
            let (there, first) = self.table.used(frame, at);
            self.stats.hits += 1;
            self.stats.ahead_used += first as u64;
            return Ok((frame, there, first));
        }
        let there = self.fetch(now, at, (line, 1), false)?;
        Ok((self.table.find(line).expect("a line just fetched"), there, true))
    }

    #[inline]
    fn load_word(
        &mut self,
        now: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        let (at, line) = (now + self.config.control, (offset >> self.line_shift) as u32);
        let (frame, there, news) = self.frame_of(now, at, line)?;
        self.stats.loads += 1;
        if S::KEEPS {
            self.ram.peek(self.inside(frame, offset), into);
        }
        let end = self.cross_out(now, there, bytes as u64);
        if news {
            self.look_ahead(now, at, line)?;
        }
        Ok(end)
    }

    #[inline]
    fn store_word(
        &mut self,
        now: Time,
        offset: u64,
        bytes: u32,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let (at, line) = (now + self.config.control, (offset >> self.line_shift) as u32);
        let (frame, there, news) = self.frame_of(now, at, line)?;
        self.stats.stores += 1;
        self.stats.written_bytes += bytes as u64;
        let crossing = self.cross_in(now, there, bytes as u64);
        self.stored = self.stored.max(crossing.end);
        self.put(crossing, self.inside(frame, offset), data);
        self.dirtied(frame, crossing.end);
        let end = self.limit_dirty(now, crossing.start)?;
        if news {
            self.look_ahead(now, at, line)?;
        }
        Ok(end)
    }

    /// Address of a byte whose line is in a frame.
    fn inside(&self, frame: usize, offset: u64) -> u64 {
        self.address(frame) + (offset & (self.config.line_bytes as u64 - 1))
    }

    /// How many lines from `line` on, up to `most`, are all in the cache (or all absent).
    fn alike(&self, line: u32, most: u32) -> (u32, bool) {
        let found = self.table.find(line).is_some();
        let same = |nth: &u32| self.table.find(line + nth).is_some() == found;
        (1 + (1..most).take_while(same).count() as u32, found)
    }

    /// Reads lines that are all in the cache.
    fn read_lines(
        &mut self,
        (now, at): (Time, Time),
        (line, count): (u32, u32),
        into: &mut [u8],
    ) -> (Time, bool) {
        let bytes = self.config.line_bytes as usize;
        let (mut end, mut news) = (at, false);
        for nth in 0..count {
            let frame = self.table.find(line + nth).expect("a line in the cache");
            let (there, first) = self.table.used(frame, at);
            self.stats.ahead_used += first as u64;
            news |= first;
            if S::KEEPS {
                self.ram.peek(self.address(frame), &mut into[nth as usize * bytes..][..bytes]);
            }
            end = end.max(self.cross_out(now, there, bytes as u64));
        }
        (end, news)
    }

    /// Writes a whole line; returns when it is accepted.
    fn write_line(&mut self, at: Time, line: u32, data: &[u8]) -> Result<Time, ControllerError> {
        let (frame, free) = match self.table.find(line) {
            Some(frame) => {
                self.stats.hits += 1;
                (frame, at)
            }
            None => {
                let (frame, free) = self.make_room(at, at, line)?;
                self.table.insert(frame, line, 0, Time::ZERO);
                (frame, free)
            }
        };
        self.table.replaced(frame);
        let crossing = self.cross_in(at, free, self.config.line_bytes as u64);
        self.stored = self.stored.max(crossing.end);
        self.put(crossing, self.address(frame), data);
        self.dirtied(frame, crossing.end);
        self.limit_dirty(at, crossing.start)
    }
}

/// Lines as blocks; a unit is a line.
impl<F: Controller, S: Store> Controller for Cached<F, S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.lines
    }
    fn unit_bytes(&self) -> u32 {
        self.config.line_bytes
    }

    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.lines)?;
        self.stats.loads += extent.count as u64;
        let bytes = self.config.line_bytes as usize;
        let most = TOGETHER.min(self.config.sets);
        let (mut end, mut done) = (at, 0);
        while done < extent.count {
            let line = extent.start.0 + done;
            let (count, found) = self.alike(line, most.min(extent.count - done));
            if !found {
                self.fetch(at, at, (line, count), false)?;
            }
            self.stats.hits += if found { count as u64 } else { 0 };
            let into = into.get_mut(done as usize * bytes..(done + count) as usize * bytes);
            let (read, first) = self.read_lines((at, at), (line, count), into.unwrap_or(&mut []));
            end = end.max(read);
            if first || !found {
                self.look_ahead(at, at, line)?;
            }
            done += count;
        }
        Ok(Served { start: at, end })
    }

    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.lines)?;
        let bytes = self.config.line_bytes as usize;
        self.stats.stores += extent.count as u64;
        self.stats.written_bytes += extent.count as u64 * bytes as u64;
        let mut end = at;
        for nth in 0..extent.count {
            let data = data.get(nth as usize * bytes..(nth as usize + 1) * bytes).unwrap_or(&[]);
            end = end.max(self.write_line(at, extent.start.0 + nth, data)?);
        }
        Ok(Served { start: at, end })
    }

    /// A request is one piece: a line is whole before it is sent.
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        read_in_one(self, at, extent, into, send)
    }
    fn write_in_pieces(
        &mut self,
        _: Time,
        extent: Extent,
        data: &[u8],
        receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        write_in_one(self, extent, data, receive)
    }

    /// The lines leave the cache after the controller below has applied the trim: if this process is killed in
    /// between, the written data is still there.
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        ControllerError::check_extent(extent, self.lines)?;
        let served = self.behind.trim(at, self.units(extent.start.0, extent.count))?;
        for line in extent.units() {
            if let Some(frame) = self.table.find(line.0) {
                self.cleaned(frame, at);
                self.table.drop(frame);
            }
        }
        self.accepted = self.accepted.max(served.end);
        Ok(served)
    }

    /// Writes back every dirty line, and waits until all of them are durable below the cache.
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let mut end = at.max(self.accepted);
        while self.table.dirty() > 0 {
            end = end.max(self.write_back_next(at, at)?.1);
        }
        let flushed = self.behind.flush(end)?.end;
        Ok(Served { start: at, end: flushed })
    }

    /// The data below the cache may be older.
    fn view(&self, _: Extent) -> Option<&[u8]> {
        None
    }
    fn is_mapped(&self, line: Lpa) -> bool {
        let units = self.units(line.0, 1);
        self.table.find(line.0).is_some() || units.units().any(|unit| self.behind.is_mapped(unit))
    }
    #[inline]
    fn prefetch(&self, line: Lpa) {
        self.table.prefetch(line.0);
        self.behind.prefetch(Lpa(line.0.saturating_mul(self.line_units)));
    }
    /// Which lines will be written back is unknown.
    fn prefetch_writes(&self, _: impl Iterator<Item = Lpa>) {}
}

impl<F: Background, S: Store> Background for Cached<F, S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.behind.idle_at(at.max(self.stored).max(self.accepted))
    }
    fn settle(&mut self, upto: Time) {
        self.ram.settle(upto);
        self.behind.settle(upto);
    }
}
