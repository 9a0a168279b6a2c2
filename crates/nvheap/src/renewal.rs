//! Recomputes checksums from the contents at home: see [`crate::sums`].

use crate::compare::Extent;
use crate::error::{Error, Result};
use crate::layout::{LINE, PAGE};
use crate::memory::Memory;
use crate::space::{self, Kind};
use crate::sums::Sums;
use std::ops::Range;

/// Lines that are loaded while others are summed, together with where their checksums lie.
const BATCH: usize = 64;
/// Lines of checksums that wait to be flushed.
const PENDING: usize = 512;
/// Large blocks that are remembered.
const LARGE: usize = 16;

/// No other thread recomputes checksums at the same time.
pub(crate) struct Renewal<'m> {
    sums: &'m Sums,
    memory: &'m Memory,
    /// Large blocks that were found last, and how many were.
    large: [Option<Extent>; LARGE],
    large_count: usize,
    /// The run of free pages found last.
    free: Range<u64>,
    batch: Vec<u64>,
    pending: [u64; PENDING],
}

impl Sums {
    /// Of a heap that is being made, without pages in use.
    pub fn begin(&self, memory: &Memory) -> Result<()> {
        Renewal::new(self, memory).all(|_| false)?;
        memory.fence(&[(self.layout.sums(), self.layout.sums_bytes(0))])
    }
}

impl<'m> Renewal<'m> {
    pub fn new(sums: &'m Sums, memory: &'m Memory) -> Renewal<'m> {
        let (large, batch, pending) = ([None; LARGE], Vec::with_capacity(BATCH), [u64::MAX; PENDING]);
        Renewal { sums, memory, large, large_count: 0, free: 0..0, batch, pending }
    }

    /// What a record changed there, which is at home.
    pub fn change(&mut self, home: u64, words: usize) -> Result<()> {
        self.entries(home, words)?;
        let end = home + words as u64 * 8;
        (home / LINE * LINE..end).step_by(LINE as usize).try_for_each(|line| self.line(line))
    }

    /// Of all pages of which a record changed the entries in the page table, if it did that.
    #[inline]
    pub fn entries(&mut self, home: u64, words: usize) -> Result<()> {
        match home < self.sums.data {
            true => self.pages_of_entries(home, words),
            false => Ok(()),
        }
    }

    fn pages_of_entries(&mut self, home: u64, words: usize) -> Result<()> {
        let layout = &self.sums.layout;
        if !(layout.page_table()..layout.hints()).contains(&home) {
            return Ok(());
        }
        (self.large, self.free) = ([None; LARGE], 0..0);
        let first = (home - layout.page_table()) / 8;
        for page in first..first + words as u64 {
            let count = match space::kind(self.memory, layout, page)? {
                Kind::Large(count) => count,
                _ => 1,
            };
            self.pages(page, count)?;
        }
        Ok(())
    }

    /// Of whole pages, as far as there are any and they are in use.
    fn pages(&mut self, first: u64, count: u64) -> Result<()> {
        let all = self.memory.bytes().saturating_sub(self.sums.data) / PAGE;
        for page in first..first.saturating_add(count).min(all) {
            if self.extent(page)?.is_some() {
                let start = self.sums.data + page * PAGE;
                (start..start + PAGE).step_by(LINE as usize).try_for_each(|line| self.line(line))?;
            }
        }
        Ok(())
    }

    /// Of the lists of all logs but those that are known to be wrong, and of all pages in use that are wanted.
    pub fn all(&mut self, is_wanted: impl Fn(u64) -> bool) -> Result<()> {
        let layout = &self.sums.layout;
        let heads = (0..layout.logs as usize).map(|log| layout.log_head(log));
        heads.filter(|&head| !self.sums.is_head_wrong(head)).try_for_each(|head| self.line(head))?;
        let (mut page, pages) = (0, (self.memory.bytes() - self.sums.data) / PAGE);
        while page < pages {
            let count = match space::kind(self.memory, layout, page)? {
                Kind::Large(count) => count,
                _ => 1,
            };
            let mut wanted = (page..pages.min(page + count)).filter(|&page| is_wanted(page));
            wanted.try_for_each(|page| self.pages(page, 1))?;
            page += count;
        }
        self.finish()
    }

    /// What a page belongs to; nothing if it is free.
    #[inline]
    fn extent(&mut self, page: u64) -> Result<Option<Extent>> {
        if let Kind::Small(class) = space::kind(self.memory, &self.sums.layout, page)? {
            return Ok(Some(self.sums.small(page, class)));
        }
        let has = |extent: &&Extent| (extent.pages.0..extent.pages.1).contains(&page);
        match self.large.iter().flatten().find(has) {
            Some(extent) => Ok(Some(*extent)),
            None => self.find(page),
        }
    }

    fn find(&mut self, page: u64) -> Result<Option<Extent>> {
        if self.free.contains(&page) {
            return Ok(None);
        }
        // No block that begins in front of a free page has the one behind it.
        let is_next = page == self.free.end
            && !self.free.is_empty()
            && space::kind(self.memory, &self.sums.layout, page)? == Kind::Free;
        let found = if is_next { Ok(None) } else { self.sums.extent(self.memory, page) };
        let extent = match found {
            // No checksum is made where the page table or the block's header is wrong: what is written there is written all the same,
            // and whoever uses it is refused.
            Err(Error::Damaged { .. }) => return Ok(None),
            found => found?,
        };
        if extent.is_some() {
            self.large[self.large_count % LARGE] = extent;
            self.large_count += 1;
        } else {
            self.free = if is_next { self.free.start } else { page }..page + 1;
            // It may be free without a record.
            self.memory.write_back(self.sums.layout.page_table() + page * 8, 8);
        }
        Ok(extent)
    }

    /// Of a line that has changed, if it has a checksum; starts to write both back.
    #[inline]
    pub fn changed(&mut self, line: u64) -> Result<()> {
        self.sums.place(line).into_iter().for_each(|at| self.memory.prefetch(at));
        self.memory.prefetch_to_read(line);
        self.batch.push(line);
        if self.batch.len() == BATCH { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        for i in 0..self.batch.len() {
            self.line(self.batch[i])?;
            self.memory.write_back_line(self.batch[i]);
        }
        self.batch.clear();
        Ok(())
    }

    /// Of one line, if it has a checksum.
    #[inline]
    fn line(&mut self, line: u64) -> Result<()> {
        let Some(at) = self.sums.place(line) else { return Ok(()) };
        let sum = match line.checked_sub(self.sums.data) {
            None => Sums::sum_head(self.memory, line)?,
            Some(offset) => match self.extent(offset / PAGE)? {
                Some(extent) => Sums::sum(self.memory, &extent, line)?,
                None => return Ok(()),
            },
        };
        Sums::keep(self.memory, at, sum)?;
        self.flush(at / LINE);
        Ok(())
    }

    /// Lines with many checksums are flushed once, mostly.
    #[inline]
    fn flush(&mut self, line: u64) {
        let place = &mut self.pending[line as usize % PENDING];
        if *place != line {
            if *place != u64::MAX {
                self.memory.write_back_line(*place * LINE);
            }
            *place = line;
        }
    }

    /// Starts to write back what is left.
    pub fn finish(&mut self) -> Result<()> {
        self.end_batch()?;
        for line in self.pending.iter_mut().filter(|line| **line != u64::MAX) {
            self.memory.write_back_line(std::mem::replace(line, u64::MAX) * LINE);
        }
        Ok(())
    }
}
