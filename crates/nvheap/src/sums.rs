//! Checksums of the contents at home, for heaps that have them ([`crate::Options::checksums`]).
//!
//! Each line of 64 B in a page in use has one of 4 B, in a table after the page table: a hash of the line, of its
//! position and of the page table entry of its page. So have the lists of objects to be destroyed of each log. Words
//! of locks count as 0, as they are never flushed: those of blocks, and those of the elements of large arrays, as
//! given by the block's header. Hints, free pages, and the halves of logs, whose records have hashes of their own,
//! have no checksums.
//!
//! 1. The checksum of a line is correct unless a record of an unfinished epoch names the line, or the entry of its
//!    page in the page table. Everything stored at home is named in this way: data written in place lies in pages
//!    that the same record takes.
//! 2. When an epoch ends, the checksums of what its records name are recomputed and flushed, before the header marks
//!    it finished. A commit of the next epoch may change a line at the same time, so that its sum is of a mixture:
//!    its record, which was durable before, names it. Recovery does the same with the records it replays.
//! 3. A page is compared as a whole when a transaction first needs data in it (`compare.rs`). Until then nothing in
//!    it has changed since the heap was opened, because changing or freeing also needs it first: its sums are
//!    correct, and none was recomputed from contents that had not been compared. Threads that compare take turns.
//! 4. A page that was free is not compared when it is taken: all of its sums are recomputed.
//! 5. A thread that finds that a page has become free makes that durable before the epoch is finished, as it may have
//!    happened without a record (`space::Inner::reclaim`).
//!
//! 6. A page that is free according to the page table is taken only if its checksums are not those of small blocks,
//!    some of them in use (`Sums::has_lost_entry`).
//!
//! Not detected: damage to a page in memory or on its device after it was compared, if the program then changes the
//! same line, or in a backup; damage to a block taken in an unfinished epoch, all lines of which are summed as they
//! are found, when the epoch ends and by replay; and damage, between a crash and the recovery from it, to other words
//! of lines that are replayed. If the page table entry of a large block is damaged, the pages after its first may be
//! reused before they are compared.
//!
//! Rejected: *a sum for each object*, which needs the shape of each object at each change; *a sum for each 4 KiB*,
//! which needs 64 lines to be read for one that has changed; *a bit in memory for each compared line*, which commits
//! would have to read; *comparing everything when a heap is opened*.

use crate::layout::{LINE, Layout, PAGE, SUM};
use crate::sync::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// State of the checksums of an open heap.
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
    /// Held by the thread that compares.
    pub turn: Mutex<()>,
    /// First pages of large blocks that have been found. Those freed since are removed when they are next looked up.
    pub large: Mutex<BTreeSet<u64>>,
    /// Positions of the lists of logs that were damaged when the heap was opened.
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
