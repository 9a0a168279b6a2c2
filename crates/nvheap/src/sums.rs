//! Checksums of what lies at home, for heaps that have them ([`crate::Options::checksums`]).
//!
//! Each line of 64 B in a page that is in use has one of 4 B, in a table behind the page table: a hash of the line, of where it lies and
//! of what the page table says about its page. So do the lists of each log of objects to be destroyed. Words of locks count as 0,
//! as they are never flushed: those of blocks, and those of the elements of large arrays, as the block's header tells. Not summed are
//! hints, free pages, and the halves of logs, whose records have hashes of their own.
//!
//! 1. The checksum of a line is right unless a record of an epoch that is not done names the line, or the entry of its page in
//!    the page table. Everything that is stored at home is named like that: what is written in place lies in pages that the same record
//!    takes.
//! 2. When an epoch ends, the checksums of what its records name are made anew and flushed, before the header says that it is done.
//!    A commit of the next epoch may change a line meanwhile, so that its sum is of a mixture: its record, which was durable
//!    before, names it. Recovery does the same with what it replays.
//! 3. A page is compared as a whole when a transaction first needs something in it ([`Sums::examine`]). Until then nothing in it has been
//!    changed since the heap was opened, as whoever changes or frees something needs it first: its sums are right, and none was made
//!    anew of what has not been compared. Threads that compare take turns.
//! 4. A page that was free is not compared by who takes it: all of its sums are made anew.
//! 5. Who reads that a page has become free says so durably before the epoch is done, as this may have happened without a record
//!    (`space::Inner::reclaim`).
//!
//! What is not noticed: damage that happens to a page in memory or on its device after it was compared, where the program then changes
//! the same line; and damage, between a crash and the recovery from it, to other words of lines that are replayed.
//!
//! Rejected: *a sum for each object*, of which the shape of each has to be known at each change; *a sum for each 4 KiB*, as 64 lines
//! would have to be read for one that has changed; *a bit in memory for each line that has been compared*, which commits would
//! have to look at; *comparing all when a heap is opened*.

use crate::error::{Error, Result};
use crate::hash::hash_words;
use crate::layout::{LINE, Layout, PAGE, PAGE_SUMS};
use crate::memory::Memory;
use crate::mutex::locked;
use crate::space::{self, Kind, block_bytes};
use crate::sync::Mutex;
use crate::tx::{ArrayShape, CAPACITY_AT, Meta};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const LINE_WORDS: usize = LINE as usize / 8;

/// What a heap with checksums knows about them while it is open.
#[derive(Debug)]
pub(crate) struct Sums {
    layout: Layout,
    /// Where the first page lies.
    data: u64,
    /// By the number of the type less one: bytes from one element of an array block to the next; 0: it is no array.
    strides: Vec<u64>,
    /// A bit for each page: it has been compared, or was free and taken.
    known: Box<[AtomicU64]>,
    /// Held by who compares.
    turn: Mutex<()>,
    /// First pages of large blocks that have been found, some of which may be free by now.
    large: Mutex<BTreeSet<u64>>,
}

/// What lies in a page.
#[derive(Clone, Debug)]
struct Extent {
    pages: Range<u64>,
    /// Of the first page in the page table.
    entry: u64,
    /// Bytes of a block from which on another lies; of a large one, all of them.
    block_bytes: u64,
    /// Where locks of elements lie.
    locks: Range<u64>,
}

impl Sums {
    /// `None` for a heap that has none.
    pub fn new(layout: &Layout, strides: impl Iterator<Item = u64>) -> Option<Box<Sums>> {
        let words = layout.pages_max.div_ceil(64);
        layout.checksums.then(|| {
            Box::new(Sums {
                layout: *layout,
                data: layout.data(),
                strides: strides.collect(),
                known: (0..words).map(|_| AtomicU64::new(0)).collect(),
                turn: Mutex::default(),
                large: Mutex::default(),
            })
        })
    }

    /// The extent of a page in use; `None` if it is free.
    fn extent(&self, memory: &Memory, page: u64) -> Result<Option<Extent>> {
        let first = match space::kind(memory, &self.layout, page)? {
            Kind::Free => match self.find_large(memory, page)? {
                Some(first) => first,
                None => return Ok(None),
            },
            _ => page,
        };
        let kind = space::kind(memory, &self.layout, first)?;
        let extent = match kind {
            Kind::Free => return Ok(None),
            Kind::Damaged => {
                let at = self.layout.page_table() + first * 8;
                return Err(Error::damaged(at, "an entry of the page table that says nothing"));
            }
            Kind::Small(class) => Extent {
                pages: first..first + 1,
                entry: kind.entry(),
                block_bytes: block_bytes(class),
                locks: 0..0,
            },
            Kind::Large(count) => {
                let (start, bytes) = (self.layout.bytes(first), count.saturating_mul(PAGE));
                let end = start.saturating_add(bytes);
                let locks = self.locks(memory, start)?;
                let locks = locks.start.min(end)..locks.end.min(end);
                Extent { pages: first..first + count, entry: kind.entry(), block_bytes: bytes, locks }
            }
        };
        Ok(Some(extent))
    }

    /// The first page of the large block that has a page, of which the page table says nothing.
    fn find_large(&self, memory: &Memory, page: u64) -> Result<Option<u64>> {
        let has = |first: u64| -> Result<Option<bool>> {
            Ok(match space::kind(memory, &self.layout, first)? {
                Kind::Free => None,
                Kind::Large(count) => Some(page - first < count),
                _ => Some(false),
            })
        };
        let last = locked(&self.large).range(..page).next_back().copied();
        if let Some(first) = last
            && has(first)? == Some(true)
        {
            return Ok(Some(first));
        }
        for first in (0..page).rev() {
            if let Some(is_it) = has(first)? {
                if is_it {
                    locked(&self.large).insert(first);
                }
                return Ok(is_it.then_some(first));
            }
        }
        Ok(None)
    }

    /// Where the locks of the elements of a large block lie.
    fn locks(&self, memory: &Memory, at: u64) -> Result<Range<u64>> {
        let tag = usize::from(Meta(memory.word(at + 8)?.load(Ordering::Relaxed)).tag());
        let stride = tag.checked_sub(1).and_then(|number| self.strides.get(number)).copied().unwrap_or(0);
        let capacity = memory.word(at + CAPACITY_AT)?.load(Ordering::Relaxed);
        let shape = ArrayShape::new(capacity, stride).filter(|_| stride > 0);
        Ok(shape.map_or(0..0, |shape| shape.locks(at)))
    }

    /// The checksum of what a line holds now.
    fn sum(&self, memory: &Memory, extent: &Extent, line: u64) -> Result<u32> {
        let mut words = [0; LINE_WORDS];
        memory.copy_words(line, &mut words)?;
        extent.clear_locks(&self.layout, line, &mut words);
        Ok(sum(extent.entry, line, &words))
    }

    fn sum_head(memory: &Memory, line: u64) -> Result<u32> {
        let mut words = [0; LINE_WORDS];
        memory.copy_words(line, &mut words)?;
        // The locks of both lists.
        (words[0], words[2]) = (0, 0);
        Ok(sum(0, line, &words))
    }

    fn kept(memory: &Memory, at: u64) -> Result<u32> {
        Ok((memory.word(at & !7)?.load(Ordering::Relaxed) >> (at % 8 * 8)) as u32)
    }

    /// Nobody else stores to checksums meanwhile.
    fn keep(memory: &Memory, at: u64, sum: u32) -> Result<()> {
        let (word, shift) = (memory.word(at & !7)?, at % 8 * 8);
        let others = word.load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(others | u64::from(sum) << shift, Ordering::Relaxed);
        Ok(())
    }

    /// The first line of a page in use that is not what its checksum says.
    pub fn wrong(&self, memory: &Memory, page: u64) -> Result<Option<u64>> {
        let Some(extent) = self.extent(memory, page)? else {
            return Err(Error::damaged(self.layout.bytes(page), "an object in a page that is free"));
        };
        let start = self.layout.bytes(page);
        let mut sums = [0; PAGE_SUMS as usize / 8];
        memory.copy_words(self.at(start), &mut sums)?;
        for (i, pair) in sums.into_iter().enumerate() {
            for (k, kept) in [pair as u32, (pair >> 32) as u32].into_iter().enumerate() {
                let line = start + (2 * i + k) as u64 * LINE;
                if self.sum(memory, &extent, line)? != kept {
                    return Ok(Some(line));
                }
            }
        }
        self.taken(page..page + 1);
        Ok(None)
    }

    /// The first log whose lists are not what their checksum says.
    pub fn wrong_head(&self, memory: &Memory) -> Result<Option<u64>> {
        for log in 0..self.layout.logs as usize {
            let line = self.layout.log_head(log);
            if Self::sum_head(memory, line)? != Self::kept(memory, self.at(line))? {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Before the lists of logs are used.
    pub fn examine_heads(&self, memory: &Memory) -> Result<()> {
        self.wrong_head(memory)?.map_or(Ok(()), |line| Err(Error::damaged(line, WRONG)))
    }

    fn at(&self, line: u64) -> u64 {
        self.layout.sum(line).expect("a line of a page or the head of a log")
    }

    #[inline(always)]
    fn is_known(&self, at: u64) -> bool {
        let page = at.wrapping_sub(self.data) / PAGE;
        self.known
            .get(page as usize / 64)
            .is_some_and(|bits| bits.load(Ordering::Acquire) >> (page % 64) & 1 == 1)
    }

    /// Whether a page was compared since the heap was opened, or taken.
    fn is_known_page(&self, page: u64) -> bool {
        self.is_known(self.layout.bytes(page))
    }

    /// Pages that were free have been taken: what was in them does not matter.
    fn taken(&self, pages: Range<u64>) {
        for page in pages {
            self.known[page as usize / 64].fetch_or(1 << (page % 64), Ordering::Release);
        }
    }

    /// Before a transaction uses the words at `home`, which the lock at `lock` protects: the pages that they lie in are what
    /// their checksums say, or were at the first use since the heap was opened.
    #[inline(always)]
    fn examine(&self, memory: &Memory, lock: u64, home: u64, words: usize) -> Result<()> {
        let end = home.wrapping_add(words as u64 * 8).wrapping_sub(8);
        let is_known = self.is_known(lock) && self.is_known(home) && self.is_known(end);
        match is_known && words as u64 * 8 <= PAGE {
            true => Ok(()),
            false => {
                self.examine_pages(memory, lock, 8)?;
                self.examine_pages(memory, home, words as u64 * 8)
            }
        }
    }

    /// The same of whole pages.
    #[cold]
    fn examine_pages(&self, memory: &Memory, at: u64, bytes: u64) -> Result<()> {
        // What lies elsewhere is refused by whoever accesses it.
        let (start, end) = (at.max(self.data), at.saturating_add(bytes).min(memory.bytes()));
        for at in (start / PAGE * PAGE..end.max(start)).step_by(PAGE as usize) {
            let Some(page) = space::page_of(&self.layout, at) else { continue };
            if !self.is_known_page(page) {
                self.compare(memory, page)?;
            }
        }
        Ok(())
    }

    fn compare(&self, memory: &Memory, page: u64) -> Result<()> {
        let _alone = locked(&self.turn);
        if self.is_known_page(page) {
            return Ok(());
        }
        self.wrong(memory, page)?.map_or(Ok(()), |line| Err(Error::damaged(line, WRONG)))
    }

    /// Of a heap that is being made, without pages in use.
    pub fn begin(&self, memory: &Memory) -> Result<()> {
        Renewal::new(self, memory).all(|_| false)?;
        memory.fence(&[(self.layout.sums(), self.layout.sums_bytes(0))])
    }

    /// Those of a copy of the heap, of which nothing has been compared.
    pub fn of_copy(&self) -> Option<Box<Sums>> {
        Sums::new(&self.layout, self.strides.iter().copied())
    }

    /// The checksums of a page, if it has not been compared, and so not changed, since the heap was opened.
    pub fn unchanged(&self, memory: &Memory, page: u64) -> Result<Option<Vec<u64>>> {
        let found = memory.load_words(self.at(self.layout.bytes(page)), PAGE_SUMS as usize / 8)?;
        // They are changed only after the page has been compared.
        fence(Ordering::Acquire);
        Ok((!self.is_known_page(page)).then_some(found))
    }
}

impl Memory {
    /// The same with the checksums of its heap, if that has any.
    pub fn with_sums(mut self, sums: Option<Box<Sums>>) -> Memory {
        self.sums = sums;
        self
    }

    pub fn sums(&self) -> Option<&Sums> {
        self.sums.as_deref()
    }

    /// The lock at `lock`, which protects the words at `home`, whose checksums are right: see [`Sums::examine`].
    #[inline(always)]
    pub fn lock_of(&self, lock: u64, home: u64, words: usize) -> Result<&crate::sync::AtomicU64> {
        let word = self.lock_word(lock)?;
        match self.sums() {
            None => Ok(word),
            Some(sums) => sums.examine(self, lock, home, words).map(|()| word),
        }
    }

    /// Before something in these bytes is used.
    pub fn examine(&self, at: u64, bytes: u64) -> Result<()> {
        self.sums().map_or(Ok(()), |sums| sums.examine_pages(self, at, bytes))
    }

    /// Pages that were free have been taken.
    pub fn taken(&self, pages: Range<u64>) {
        self.sums().into_iter().for_each(|sums| sums.taken(pages.clone()));
    }
}

/// What is wrong with a line.
pub(crate) const WRONG: &str = "this is not what the checksum says";

/// `entry` is that of the page in the page table.
fn sum(entry: u64, line: u64, words: &[u64; LINE_WORDS]) -> u32 {
    let hash = hash_words(line ^ entry.rotate_left(40), words);
    (hash ^ hash >> 32) as u32
}

impl Extent {
    /// Words of locks count as 0.
    fn clear_locks(&self, layout: &Layout, line: u64, words: &mut [u64; LINE_WORDS]) {
        let start = layout.bytes(self.pages.start);
        if self.pages.end - self.pages.start == 1 {
            // Blocks of a page: none begins where there is no room for it. They have less than 4 GiB.
            let (size, offset) = (self.block_bytes as u32, (line - start) as u32);
            let mut block = offset.div_ceil(size) * size;
            while block < offset + LINE as u32 && block + size <= PAGE as u32 {
                words[(block - offset) as usize / 8] = 0;
                block += size;
            }
        } else if line == start {
            words[0] = 0;
        }
        let locks = self.locks.start.max(line)..self.locks.end.min(line + LINE);
        for lock in locks.step_by(8) {
            words[(lock - line) as usize / 8] = 0;
        }
    }
}

/// Table lines that wait to be flushed.
const PENDING: usize = 512;

/// Checksums being made anew. Nobody else makes any meanwhile.
pub(crate) struct Renewal<'m> {
    sums: &'m Sums,
    memory: &'m Memory,
    /// What the last page belongs to, with others; nothing if it is free.
    last: Option<(Range<u64>, Option<Extent>)>,
    pending: [u64; PENDING],
}

impl<'m> Renewal<'m> {
    pub fn new(sums: &'m Sums, memory: &'m Memory) -> Renewal<'m> {
        Renewal { sums, memory, last: None, pending: [u64::MAX; PENDING] }
    }

    /// What a record changed there, which is at home.
    pub fn change(&mut self, home: u64, words: usize) -> Result<()> {
        self.entries(home, words)?;
        let end = home + words as u64 * 8;
        (home / LINE * LINE..end).step_by(LINE as usize).try_for_each(|line| self.line(line))
    }

    /// Of all pages of which a record changed the entries in the page table, if it did that.
    pub fn entries(&mut self, home: u64, words: usize) -> Result<()> {
        let layout = &self.sums.layout;
        if !(layout.page_table()..layout.hints()).contains(&home) {
            return Ok(());
        }
        let first = (home - layout.page_table()) / 8;
        for page in first..first + words as u64 {
            self.last = None;
            let pages = match space::kind(self.memory, layout, page)? {
                Kind::Large(count) => count,
                _ => 1,
            };
            self.pages(page..page.saturating_add(pages))?;
        }
        Ok(())
    }

    /// Of whole pages, as far as there are any and they are in use.
    fn pages(&mut self, pages: Range<u64>) -> Result<()> {
        let layout = &self.sums.layout;
        let all = self.memory.bytes().saturating_sub(self.sums.data) / PAGE;
        for page in pages.start..pages.end.min(all) {
            let lines = (0..PAGE).step_by(LINE as usize).take(if self.extent(page)?.is_some() {
                usize::MAX
            } else {
                0
            });
            lines.map(|offset| layout.bytes(page) + offset).try_for_each(|line| self.line(line))?;
        }
        Ok(())
    }

    /// Of the lists of all logs, and of all pages in use that are wanted.
    pub fn all(&mut self, is_wanted: impl Fn(u64) -> bool) -> Result<()> {
        let layout = &self.sums.layout;
        (0..layout.logs as usize).try_for_each(|log| self.line(layout.log_head(log)))?;
        let (mut page, pages) = (0, (self.memory.bytes() - self.sums.data) / PAGE);
        while page < pages {
            let count = match space::kind(self.memory, layout, page)? {
                Kind::Free => 0,
                Kind::Large(count) => count,
                _ => 1,
            };
            (page..page + count)
                .filter(|&page| is_wanted(page))
                .try_for_each(|page| self.pages(page..page + 1))?;
            page += count.max(1);
        }
        self.finish();
        Ok(())
    }

    /// What a page belongs to; nothing if it is free.
    #[inline]
    fn extent(&mut self, page: u64) -> Result<Option<&Extent>> {
        if self.last.as_ref().is_none_or(|(pages, _)| !pages.contains(&page)) {
            let extent = self.sums.extent(self.memory, page)?;
            if extent.is_none() {
                // It may be free without a record.
                self.memory.write_back(self.sums.layout.page_table() + page * 8, 8);
            }
            let pages = extent.as_ref().map_or(page..page + 1, |extent| extent.pages.clone());
            self.last = Some((pages, extent));
        }
        Ok(self.last.as_ref().and_then(|(_, extent)| extent.as_ref()))
    }

    /// Of one line, if it has a checksum.
    #[inline]
    pub fn line(&mut self, line: u64) -> Result<()> {
        let layout = &self.sums.layout;
        let Some(at) = layout.sum(line) else { return Ok(()) };
        let sum = match space::page_of(layout, line) {
            None => Sums::sum_head(self.memory, line)?,
            Some(page) => {
                let (sums, memory) = (self.sums, self.memory);
                let Some(extent) = self.extent(page)? else { return Ok(()) };
                sums.sum(memory, extent, line)?
            }
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
    pub fn finish(&mut self) {
        for line in self.pending.iter_mut().filter(|line| **line != u64::MAX) {
            self.memory.write_back_line(std::mem::replace(line, u64::MAX) * LINE);
        }
    }
}
