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
//! 3. A page is compared as a whole when a transaction first needs something in it (`compare.rs`). Until then nothing in it has been
//!    changed since the heap was opened, as whoever changes or frees something needs it first: its sums are right, and none was made
//!    anew of what has not been compared. Threads that compare take turns.
//! 4. A page that was free is not compared by who takes it: all of its sums are made anew.
//! 5. Who reads that a page has become free says so durably before the epoch is done, as this may have happened without a record
//!    (`space::Inner::reclaim`).
//!
//! 6. A page of which the page table says that it is free is taken only if its checksums are not those of small blocks, some of them in use
//!    (`Sums::has_lost_entry`).
//!
//! What is not noticed: damage that happens to a page in memory or on its device after it was compared, where the program then changes
//! the same line, or in a backup; damage to a block that was taken in an epoch that is not done, all lines of which are summed as they are
//! found, when the epoch ends and by replay; and damage, between a crash and the recovery from it, to other words of lines that are
//! replayed. Of a large block whose entry in the page table is damaged, the pages behind its first may be taken by others before they
//! are compared.
//!
//! Rejected: *a sum for each object*, of which the shape of each has to be known at each change; *a sum for each 4 KiB*, as 64 lines
//! would have to be read for one that has changed; *a bit in memory for each line that has been compared*, which commits would
//! have to look at; *comparing all when a heap is opened*.

use crate::layout::{LINE, Layout, PAGE, SUM};
use crate::sync::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a heap with checksums knows about them while it is open.
#[derive(Debug)]
pub(crate) struct Sums {
    pub layout: Layout,
    /// Where the first page lies, and the checksum of its first line.
    pub data: u64,
    pub first: u64,
    /// By the number of the type less one: bytes from one element of an array block to the next; 0: it is no array.
    pub strides: Vec<u64>,
    /// A bit for each page: it has been compared, or was free and taken.
    pub known: Box<[AtomicU64]>,
    /// Held by who compares.
    pub turn: Mutex<()>,
    /// First pages of large blocks that have been found. Those that are free by now are removed when somebody meets them.
    pub large: Mutex<BTreeSet<u64>>,
    /// Where the lists of logs lie that were wrong when the heap was opened.
    pub wrong_heads: OnceLock<Vec<u64>>,
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
                wrong_heads: OnceLock::new(),
            })
        })
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
    pub fn is_known(&self, at: u64) -> bool {
        let page = at.wrapping_sub(self.data) / PAGE;
        self.known
            .get(page as usize / 64)
            .is_some_and(|bits| bits.load(Ordering::Acquire) >> (page % 64) & 1 == 1)
    }

    /// Whether a page was compared since the heap was opened, or taken.
    pub fn is_known_page(&self, page: u64) -> bool {
        self.is_known(self.layout.bytes(page))
    }

    /// Pages that were free have been taken: what was in them does not matter.
    pub fn taken(&self, pages: Range<u64>) {
        for page in pages {
            self.known[page as usize / 64].fetch_or(1 << (page % 64), Ordering::Release);
        }
    }

    pub fn is_head_wrong(&self, head: u64) -> bool {
        self.wrong_heads.get().is_some_and(|wrong| wrong.contains(&head))
    }

    /// Those of a copy of the heap, of which nothing has been compared but the lists of logs.
    pub fn of_copy(&self) -> Option<Box<Sums>> {
        let mut sums = Sums::new(&self.layout, self.strides.iter().copied())?;
        sums.wrong_heads = self.wrong_heads.clone();
        Some(sums)
    }
}
