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
//! the same line, or in a backup; and damage, between a crash and the recovery from it, to other words of lines that are replayed.
//!
//! Rejected: *a sum for each object*, of which the shape of each has to be known at each change; *a sum for each 4 KiB*, as 64 lines
//! would have to be read for one that has changed; *a bit in memory for each line that has been compared*, which commits would
//! have to look at; *comparing all when a heap is opened*.

use crate::error::{Error, Result};
use crate::hash::hash_words;
use crate::layout::{LINE, Layout, PAGE, PAGE_SUMS, SUM};
use crate::memory::Memory;
use crate::mutex::locked;
use crate::renewal::Renewal;
use crate::space::{self, Kind, block_bytes};
use crate::sync::Mutex;
use crate::tx::{ArrayShape, CAPACITY_AT, Meta};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const LINE_WORDS: usize = LINE as usize / 8;

/// What is wrong with a line.
pub(crate) const WRONG: &str = "this is not what the checksum says";

/// What a heap with checksums knows about them while it is open.
#[derive(Debug)]
pub(crate) struct Sums {
    pub layout: Layout,
    /// Where the first page lies, and the checksum of its first line.
    pub data: u64,
    first: u64,
    /// By the number of the type less one: bytes from one element of an array block to the next; 0: it is no array.
    strides: Vec<u64>,
    /// A bit for each page: it has been compared, or was free and taken.
    known: Box<[AtomicU64]>,
    /// Held by who compares.
    turn: Mutex<()>,
    /// First pages of large blocks that have been found. Those that are free by now are removed when somebody meets them.
    large: Mutex<BTreeSet<u64>>,
}

/// What lies in a page, and in others of the same large block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The first page, and the one behind the last.
    pub pages: (u64, u64),
    start: u64,
    /// Of the first page in the page table.
    entry: u64,
    /// Bytes from one block to the next; a large block has no other.
    block_bytes: u32,
    /// Where the locks of elements begin and end.
    locks: (u64, u64),
}

impl Sums {
    /// `None` for a heap that has none.
    pub fn new(layout: &Layout, strides: impl Iterator<Item = u64>) -> Option<Box<Sums>> {
        let words = layout.pages_max.div_ceil(64);
        layout.checksums.then(|| {
            Box::new(Sums {
                layout: *layout,
                data: layout.data(),
                first: layout.page_sums(),
                strides: strides.collect(),
                known: (0..words).map(|_| AtomicU64::new(0)).collect(),
                turn: Mutex::default(),
                large: Mutex::default(),
            })
        })
    }

    /// The extent of a page in use; `None` if it is free.
    pub fn extent(&self, memory: &Memory, page: u64) -> Result<Option<Extent>> {
        let first = match space::kind(memory, &self.layout, page)? {
            Kind::Free => match self.find_large(memory, page)? {
                Some(first) => first,
                None => return Ok(None),
            },
            _ => page,
        };
        let kind = space::kind(memory, &self.layout, first)?;
        match kind {
            Kind::Free => Ok(None),
            Kind::Damaged => {
                let at = self.layout.page_table() + first * 8;
                Err(Error::damaged(at, "an entry of the page table that says nothing"))
            }
            Kind::Small(class) => Ok(Some(self.small(first, class))),
            Kind::Large(count) => {
                let start = self.layout.bytes(first);
                let end = start.saturating_add(count.saturating_mul(PAGE));
                let locks = self.locks(memory, start)?;
                Ok(Some(Extent {
                    pages: (first, first + count),
                    start,
                    entry: kind.entry(),
                    block_bytes: u32::MAX,
                    locks: (locks.start.min(end), locks.end.min(end)),
                }))
            }
        }
    }

    /// That of a page of blocks of a size.
    #[inline]
    pub fn small(&self, page: u64, class: usize) -> Extent {
        Extent {
            pages: (page, page + 1),
            start: self.data + page * PAGE,
            entry: Kind::Small(class).entry(),
            block_bytes: block_bytes(class) as u32,
            locks: (0, 0),
        }
    }

    /// The first page of the large block that has a page, of which the page table says nothing.
    fn find_large(&self, memory: &Memory, page: u64) -> Result<Option<u64>> {
        let mut large = locked(&self.large);
        while let Some(&first) = large.range(..page).next_back() {
            match space::kind(memory, &self.layout, first)? {
                Kind::Large(count) if page - first < count => return Ok(Some(first)),
                Kind::Large(_) => break,
                _ => large.remove(&first),
            };
        }
        for first in (0..page).rev() {
            match space::kind(memory, &self.layout, first)? {
                Kind::Free => {}
                Kind::Large(count) if page - first < count => {
                    large.insert(first);
                    return Ok(Some(first));
                }
                _ => break,
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

    /// The checksum of what a line of a page holds now.
    #[inline]
    pub fn sum(memory: &Memory, extent: &Extent, line: u64) -> Result<u32> {
        let mut words = [0; LINE_WORDS];
        memory.copy_words(line, &mut words)?;
        extent.clear_locks(line, &mut words);
        Ok(sum(extent.entry, line, &words))
    }

    /// That of the lists of a log.
    pub fn sum_head(memory: &Memory, line: u64) -> Result<u32> {
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
    #[inline]
    pub fn keep(memory: &Memory, at: u64, sum: u32) -> Result<()> {
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
                if Self::sum(memory, &extent, line)? != kept {
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
        self.place(line).expect("a line of a page or the head of a log")
    }

    /// Where the checksum of a line lies; `None` if it has none.
    #[inline]
    pub fn place(&self, line: u64) -> Option<u64> {
        match line.checked_sub(self.data) {
            Some(offset) => Some(self.first + offset / LINE * SUM),
            None => self.layout.sum_of_head(line),
        }
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

/// `entry` is that of the page in the page table.
fn sum(entry: u64, line: u64, words: &[u64; LINE_WORDS]) -> u32 {
    let hash = hash_words(line ^ entry.rotate_left(40), words);
    (hash ^ hash >> 32) as u32
}

impl Extent {
    /// Words of locks count as 0.
    #[inline]
    fn clear_locks(&self, line: u64, words: &mut [u64; LINE_WORDS]) {
        let (offset, size) = (line - self.start, self.block_bytes);
        if offset < PAGE {
            // Blocks begin in the first page of a large one only, and none where there is no room for it.
            let mut block = (offset as u32).div_ceil(size).wrapping_mul(size);
            while u64::from(block) < offset + LINE && (block == 0 || block + size <= PAGE as u32) {
                words[(u64::from(block) - offset) as usize / 8] = 0;
                block = block.saturating_add(size);
            }
        }
        let locks = self.locks.0.max(line)..self.locks.1.min(line + LINE);
        for lock in locks.step_by(8) {
            words[(lock - line) as usize / 8] = 0;
        }
    }
}
