//! Allocation of blocks.
//!
//! Pages of 64 KiB hold blocks of one size, or are part of a large block; the page table says which, and the header
//! of a block whether it is in use. Both change with the records of transactions, so a crash leaks nothing.
//! Everything else here is volatile or a hint: a thread takes a page for each size, finds its free blocks by their
//! headers, and keeps them in a list. After a crash nothing is rebuilt until a block is needed.
//!
//! A freed page is reused only after the epoch of its records has ended (or a replay would overwrite its new
//! contents) and after every transaction that may know its old contents.

use crate::error::{Error, Result};
use crate::layout::{Layout, PAGE};
use crate::memory::Memory;
use crate::mutex::locked;
use crate::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Bytes in front of an object: lock, references and type, link.
pub(crate) const HEADER: u64 = 24;
const SIZES: [u32; 35] = [
    32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280,
    1536, 1792, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 8192, 9360, 10912, 13104, 16384,
];
pub(crate) const CLASSES: usize = SIZES.len();
pub(crate) const SMALL_MAX: u64 = SIZES[CLASSES - 1] as u64;
const LARGE: u64 = 0xff;
/// Minimum number of pages by which a heap grows.
const GROWTH_MIN: u64 = 16;

/// The contents of a page table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Free,
    Small(usize),
    /// The first page of a block of so many.
    Large(u64),
    Damaged,
}

impl Kind {
    pub fn of(entry: u64) -> Kind {
        match (entry & 0xff, entry >> 8) {
            (0, 0) => Kind::Free,
            (LARGE, pages) if pages > 0 => Kind::Large(pages),
            (class, 0) if class as usize <= CLASSES => Kind::Small(class as usize - 1),
            _ => Kind::Damaged,
        }
    }

    pub fn entry(self) -> u64 {
        match self {
            Kind::Free => 0,
            Kind::Small(class) => class as u64 + 1,
            Kind::Large(pages) => pages << 8 | LARGE,
            Kind::Damaged => unreachable!("never written"),
        }
    }
}

pub(crate) fn class_of(bytes: u64) -> Option<usize> {
    (bytes <= SMALL_MAX).then(|| SIZES.partition_point(|&size| u64::from(size) < bytes))
}

pub(crate) fn block_bytes(class: usize) -> u64 {
    u64::from(SIZES[class])
}

/// A thread's page of a size and its free blocks.
#[derive(Debug, Default)]
pub(crate) struct Active {
    pub page: Option<u64>,
    pub free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Pages of the file.
    pages: u64,
    /// Pages that it may grow to.
    pages_max: u64,
    /// No page below it is free.
    lowest_free: u64,
    /// Pages from here on have been zero since the file was lengthened.
    zero_from: u64,
    /// Pages of threads, and pages that running transactions take.
    taken: BTreeSet<u64>,
    /// Pages that were freed since the last time it was quiet, and the number of the event.
    unclean: BTreeMap<u64, u64>,
    /// Times that pages were freed.
    freed: u64,
    /// Pages of each size that have free blocks.
    partial: Vec<Vec<u64>>,
    is_scanned: bool,
    /// The hints are correct for this program: blocks whose hints an earlier one did not write have been searched
    /// for.
    is_counted: bool,
    has_no_hints: bool,
    /// Free pages at the end of the file, as the last search found them.
    tail: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Space {
    inner: Mutex<Inner>,
}

/// Pages to be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub page: u64,
    /// True if it already holds blocks of the requested size.
    pub is_partial: bool,
    pub is_zero: bool,
    /// Freed so recently that the epoch must end and transactions must go first: what [`Space::cleaned`] is told then.
    pub unclean_until: Option<u64>,
}

pub(crate) fn page_of(layout: &Layout, at: u64) -> Option<u64> {
    at.checked_sub(layout.data()).map(|offset| offset / PAGE).filter(|&page| page < layout.pages_max)
}

pub(crate) fn kind(memory: &Memory, layout: &Layout, page: u64) -> Result<Kind> {
    Ok(Kind::of(memory.word(layout.page_table() + page * 8)?.load(Ordering::Relaxed)))
}

/// Adds to the number of free blocks that the hint of a page names; returns what it was.
pub(crate) fn add_hint(memory: &Memory, layout: &Layout, page: u64, blocks: u64) -> Result<u64> {
    let shift = page % 4 * 16;
    let word = memory.word(layout.hints() + page / 4 * 8)?;
    Ok(word.fetch_add(blocks << shift, Ordering::Relaxed) >> shift & 0xffff)
}

pub(crate) fn set_hint(memory: &Memory, layout: &Layout, page: u64, blocks: u64) -> Result<()> {
    let shift = page % 4 * 16;
    let word = memory.word(layout.hints() + page / 4 * 8)?;
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
        Some(old & !(0xffff << shift) | blocks.min(0xffff) << shift)
    });
    Ok(())
}

fn hint(memory: &Memory, layout: &Layout, page: u64) -> Result<u64> {
    Ok(memory.word(layout.hints() + page / 4 * 8)?.load(Ordering::Relaxed) >> (page % 4 * 16) & 0xffff)
}

impl Space {
    /// There are so many pages, which may become so many. Without hints every page may have free blocks.
    pub fn open([pages, pages_max]: [u64; 2], has_hints: bool) -> Space {
        let partial = vec![Vec::new(); CLASSES];
        let inner = Inner {
            pages,
            pages_max,
            zero_from: pages,
            partial,
            has_no_hints: !has_hints,
            ..Inner::default()
        };
        Space { inner: Mutex::new(inner) }
    }

    /// A page with free blocks of a size, or `count` free pages in a row.
    pub fn take(&self, memory: &Memory, layout: &Layout, class: Option<usize>, count: u64) -> Result<Taken> {
        let mut inner = locked(&self.inner);
        if let Some(taken) = inner.take_partial(memory, layout, class)? {
            return Ok(taken);
        }
        let mut page = inner.find(memory, layout, count)?;
        if page.is_none() && inner.reclaim(memory, layout)? {
            page = inner.find(memory, layout, count)?;
        }
        if page.is_none() && inner.is_full(count) && inner.count(memory, layout)? {
            if let Some(taken) = inner.take_partial(memory, layout, class)? {
                return Ok(taken);
            }
            inner.reclaim(memory, layout)?;
            page = inner.find(memory, layout, count)?;
        }
        let page = page.map_or_else(|| inner.grow(memory, layout, count), Ok)?;
        if class.is_some() {
            // A program that is killed while it has this page leaves free blocks in it, and the hint that says so.
            set_hint(memory, layout, page, 1)?;
        }
        let pages = page..page + count;
        let unclean_until = inner.unclean.range(pages.clone()).next().map(|_| inner.freed);
        inner.taken.extend(pages);
        let is_zero = page >= inner.zero_from && unclean_until.is_none();
        Ok(Taken { page, is_partial: false, is_zero, unclean_until })
    }

    /// The epoch has ended and it was quiet since pages were taken: those freed before that are like any other.
    pub fn cleaned(&self, until: u64) {
        locked(&self.inner).unclean.retain(|_, &mut freed| freed > until);
    }

    /// The transaction that took these pages was given up; something may have been written there.
    pub fn give_back(&self, page: u64, count: u64) {
        let mut inner = locked(&self.inner);
        inner.release(page, count);
        inner.dirty(page, count);
    }

    /// The large block in these pages exists from now on.
    pub fn settle(&self, page: u64, count: u64) {
        locked(&self.inner).release(page, count);
    }

    /// A large block has been freed.
    pub fn freed(&self, page: u64, count: u64) {
        locked(&self.inner).dirty(page, count);
    }

    /// A thread releases a page of blocks, of which this many are free.
    pub fn put_back(
        &self,
        memory: &Memory,
        layout: &Layout,
        class: usize,
        page: u64,
        free: u64,
    ) -> Result<()> {
        let mut inner = locked(&self.inner);
        inner.taken.remove(&page);
        // Of a full page, too: who frees its first block tells by the hint that nobody knows of it.
        set_hint(memory, layout, page, free)?;
        if free > 0 {
            inner.partial[class].push(page);
        }
        Ok(())
    }

    /// A page that no thread has taken has its first free block.
    pub fn has_room(&self, class: usize, page: u64) {
        let mut inner = locked(&self.inner);
        if !inner.taken.contains(&page) && inner.is_scanned {
            inner.partial[class].push(page);
        }
    }
}

impl Inner {
    fn release(&mut self, page: u64, count: u64) {
        (page..page + count).for_each(|page| _ = self.taken.remove(&page));
    }

    /// Free pages whose contents others may know.
    fn dirty(&mut self, page: u64, count: u64) {
        self.freed += 1;
        self.unclean.extend((page..page + count).map(|page| (page, self.freed)));
        self.lowest_free = self.lowest_free.min(page);
        self.zero_from = self.zero_from.max(page + count);
    }

    /// A page with free blocks of a size.
    fn take_partial(
        &mut self,
        memory: &Memory,
        layout: &Layout,
        class: Option<usize>,
    ) -> Result<Option<Taken>> {
        let Some(class) = class else { return Ok(None) };
        self.scan(memory, layout)?;
        while let Some(page) = self.partial[class].pop() {
            let is_class = kind(memory, layout, page)? == Kind::Small(class);
            if is_class && hint(memory, layout, page)? > 0 && self.taken.insert(page) {
                return Ok(Some(Taken { page, is_partial: true, is_zero: false, unclean_until: None }));
            }
        }
        Ok(None)
    }

    /// Counts the free blocks of every page that no thread has taken, once: after a power cut the hints may be
    /// outdated. False if that was done before.
    fn count(&mut self, memory: &Memory, layout: &Layout) -> Result<bool> {
        if std::mem::replace(&mut self.is_counted, true) {
            return Ok(false);
        }
        let mut page = 0;
        while page < self.pages {
            match kind(memory, layout, page)? {
                Kind::Small(class) if !self.taken.contains(&page) => {
                    set_hint(memory, layout, page, free_blocks(memory, layout, class, page)?)?;
                }
                Kind::Large(pages) => page += pages.max(1) - 1,
                _ => {}
            }
            page += 1;
        }
        self.partial.iter_mut().for_each(Vec::clear);
        (self.is_scanned, self.has_no_hints) = (false, false);
        Ok(true)
    }

    /// Finds the pages with free blocks, once.
    fn scan(&mut self, memory: &Memory, layout: &Layout) -> Result<()> {
        if std::mem::replace(&mut self.is_scanned, true) {
            return Ok(());
        }
        let mut page = 0;
        while page < self.pages {
            match kind(memory, layout, page)? {
                Kind::Small(class) if self.has_no_hints || hint(memory, layout, page)? > 0 => {
                    if self.has_no_hints {
                        set_hint(memory, layout, page, 1)?;
                    }
                    self.partial[class].push(page);
                }
                Kind::Large(pages) => page += pages - 1,
                _ => {}
            }
            page += 1;
        }
        Ok(())
    }

    /// True if the page table says that a page is free and its checksums contradict it: the page is not used.
    fn is_lost(&mut self, memory: &Memory, page: u64) -> Result<bool> {
        let sums = memory.sums().filter(|_| page < self.zero_from);
        let is_lost = sums.map_or(Ok(false), |sums| sums.has_lost_entry(memory, page))?;
        if is_lost {
            self.taken.insert(page);
        }
        Ok(is_lost)
    }

    /// The first `count` free pages in a row; clean ones if there are any.
    fn find(&mut self, memory: &Memory, layout: &Layout, count: u64) -> Result<Option<u64>> {
        let (mut page, mut run, mut unclean, mut lowest) = (self.lowest_free, 0, None, None);
        while page < self.pages {
            let entry = kind(memory, layout, page)?;
            let is_free =
                entry == Kind::Free && !self.taken.contains(&page) && !self.is_lost(memory, page)?;
            if is_free {
                lowest.get_or_insert(page);
                run += 1;
                if run >= count {
                    let first = page + 1 - count;
                    let is_clean = self.unclean.range(first..=page).next().is_none();
                    if is_clean {
                        self.lowest_free = lowest.unwrap_or(page);
                        return Ok(Some(first));
                    }
                    unclean.get_or_insert(first);
                }
            } else {
                run = 0;
            }
            page += match entry {
                Kind::Large(pages) => pages.max(1),
                _ => 1,
            };
        }
        self.lowest_free = lowest.unwrap_or(self.pages);
        self.tail = run;
        Ok(unclean)
    }

    /// Turns pages whose blocks are all free into free pages; true if there was one.
    fn reclaim(&mut self, memory: &Memory, layout: &Layout) -> Result<bool> {
        let (mut page, mut found) = (0, Vec::new());
        while page < self.pages {
            match kind(memory, layout, page)? {
                Kind::Large(pages) => page += pages.max(1) - 1,
                Kind::Small(class)
                    if hint(memory, layout, page)? >= PAGE / block_bytes(class)
                        && !self.taken.contains(&page)
                        && free_blocks(memory, layout, class, page)? == PAGE / block_bytes(class)
                        && memory.examine(layout.bytes(page), PAGE).is_ok() =>
                {
                    // Nobody finds it any more. The entry is a promise about empty blocks only, so it needs no record:
                    // before or after it, the page holds nothing.
                    let entry = layout.page_table() + page * 8;
                    memory.save(entry, 8);
                    memory.word(entry)?.store(0, Ordering::Relaxed);
                    memory.write_back(entry, 8);
                    set_hint(memory, layout, page, 0)?;
                    self.dirty(page, 1);
                    found.push((entry, 8));
                }
                _ => {}
            }
            page += 1;
        }
        // Before a large block covers some of them: when it is freed, nobody looks at what they were.
        if !found.is_empty() {
            memory.fence(&found)?;
        }
        Ok(!found.is_empty())
    }

    fn is_full(&self, count: u64) -> bool {
        self.pages - self.tail + count > self.pages_max
    }

    fn grow(&mut self, memory: &Memory, layout: &Layout, count: u64) -> Result<u64> {
        // Free pages at the end are part of what is needed.
        let first = self.pages - self.tail;
        let needed = first + count;
        if self.is_full(count) {
            return Err(Error::Full { bytes: count * PAGE, bytes_max: layout.bytes(self.pages_max) });
        }
        let pages = needed.max(self.pages + (self.pages / 8).max(GROWTH_MIN)).min(self.pages_max);
        memory.reserve(layout.page_table() + self.pages * 8, (pages - self.pages) * 8)?;
        memory.reserve(layout.hints() + self.pages * 2, (pages - self.pages) * 2)?;
        if layout.checksums {
            let old = layout.sums_bytes(self.pages);
            memory.reserve(layout.sums() + old, layout.sums_bytes(pages) - old)?;
        }
        memory.grow(layout.bytes(pages))?;
        self.pages = pages;
        Ok(first)
    }
}

/// How many blocks of a page are not in use.
pub(crate) fn free_blocks(memory: &Memory, layout: &Layout, class: usize, page: u64) -> Result<u64> {
    let (start, size) = (layout.data() + page * PAGE, block_bytes(class));
    let mut free = 0;
    for block in 0..PAGE / size {
        free += u64::from(memory.word(start + block * size + 8)?.load(Ordering::Acquire) == 0);
    }
    Ok(free)
}
