//! Compares pages with their checksums, and computes the checksum of a line: see [`crate::sums`].

use crate::block::{ArrayShape, CAPACITY_AT, Meta};
use crate::error::{Error, Result};
use crate::hash::hash_words;
use crate::layout::{LINE, PAGE, PAGE_SUMS};
use crate::memory::Memory;
use crate::mutex::locked;
use crate::space::{self, CLASSES, Kind, block_bytes};
use crate::sums::Sums;
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

const LINE_WORDS: usize = LINE as usize / 8;

/// What is wrong with a line.
pub(crate) const WRONG: &str = "the contents do not match their checksum";

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
                Err(Error::damaged(at, "an invalid entry of the page table"))
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
        // The locks of both lists, and what is not used.
        (words[0], words[2]) = (0, 0);
        words[4..].fill(0);
        Ok(sum(0, line, &words))
    }

    fn kept(memory: &Memory, at: u64) -> Result<u32> {
        Ok((memory.word(at & !7)?.load(Ordering::Relaxed) >> (at % 8 * 8)) as u32)
    }

    /// No other thread stores to checksums at the same time.
    #[inline]
    pub fn keep(memory: &Memory, at: u64, sum: u32) -> Result<()> {
        let (word, shift) = (memory.word(at & !7)?, at % 8 * 8);
        let others = word.load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        // Who finds it finds that the page is known: see `unchanged`.
        word.store(others | u64::from(sum) << shift, Ordering::Release);
        Ok(())
    }

    /// The first line of a page in use that does not match its checksum.
    pub fn wrong(&self, memory: &Memory, page: u64) -> Result<Option<u64>> {
        let Some(extent) = self.extent(memory, page)? else {
            return Err(Error::damaged(self.layout.bytes(page), "an object in a page that is free"));
        };
        let wrong = self.wrong_in(memory, &extent, page)?;
        if wrong.is_none() {
            self.taken(page..page + 1);
        }
        Ok(wrong)
    }

    /// The same for a page of an extent.
    fn wrong_in(&self, memory: &Memory, extent: &Extent, page: u64) -> Result<Option<u64>> {
        let start = self.layout.bytes(page);
        let mut sums = [0; PAGE_SUMS as usize / 8];
        memory.copy_words(self.at(start), &mut sums)?;
        for (i, pair) in sums.into_iter().enumerate() {
            for (k, kept) in [pair as u32, (pair >> 32) as u32].into_iter().enumerate() {
                let line = start + (2 * i + k) as u64 * LINE;
                if Self::sum(memory, extent, line)? != kept {
                    return Ok(Some(line));
                }
            }
        }
        Ok(None)
    }

    /// Whether a page that is free, as the page table says, is full of blocks of a size according to its checksums, and some are in use:
    /// its entry is damaged. A page becomes free only when all of its blocks are, and what is in it is not summed from then on.
    pub fn has_lost_entry(&self, memory: &Memory, page: u64) -> Result<bool> {
        let line = self.layout.bytes(page);
        let kept = Self::kept(memory, self.at(line))?;
        // No page has been summed there, mostly.
        if kept == 0 || self.is_known_page(page) {
            return Ok(false);
        }
        for class in 0..CLASSES {
            let extent = self.small(page, class);
            if Self::sum(memory, &extent, line)? == kept
                && self.wrong_in(memory, &extent, page)?.is_none()
                && space::free_blocks(memory, &self.layout, class, page)? < PAGE / block_bytes(class)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Logs whose lists do not match their checksums: where these lie.
    pub fn find_wrong_heads(&self, memory: &Memory) -> Result<Vec<u64>> {
        let mut wrong = Vec::new();
        for log in 0..self.layout.logs as usize {
            let line = self.layout.log_head(log);
            if Self::sum_head(memory, line)? != Self::kept(memory, self.at(line))? {
                wrong.push(line);
            }
        }
        Ok(wrong)
    }

    /// Called before the lists of logs are used: damaged lists stay unused until the heap is opened again.
    pub fn examine_heads(&self, memory: &Memory) -> Result<()> {
        let wrong = self.find_wrong_heads(memory)?;
        self.wrong_heads.get_or_init(|| wrong);
        Ok(())
    }

    fn at(&self, line: u64) -> u64 {
        self.place(line).expect("a line of a page or the head of a log")
    }

    /// Called before a transaction uses the words at `home`, which the lock at `lock` protects: compares the pages
    /// they lie in with their checksums, at the first use since the heap was opened.
    #[inline(never)]
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

    /// The same for whole pages.
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

    /// Before a transaction uses the words at `home`, which the lock at `lock` protects.
    #[inline(always)]
    pub fn examine_locked(&self, lock: u64, home: u64, words: usize) -> Result<()> {
        // No closure: the compiler would make it a function that is called where there are no checksums.
        match self.sums() {
            None => Ok(()),
            Some(sums) => sums.examine(self, lock, home, words),
        }
    }

    /// Whether the lists of a log, which lie at `head`, were not what their checksum says when the heap was opened.
    pub fn is_head_wrong(&self, head: u64) -> bool {
        self.sums().is_some_and(|sums| sums.is_head_wrong(head))
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
