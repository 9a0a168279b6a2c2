//! The memory of a region. Programs hold pointers to it, so this is where `unsafe` code lives.

use crate::{Error, Result, Store};
use nvlab_os::PrivateCopy;
use nvlab_os::stores::prefetch_lines_for_store;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Regions begin and end at multiples of this in their segments.
pub const PAGE_BYTES: u64 = 4096;
const PAGE: usize = PAGE_BYTES as usize;

/// A part of a segment in memory: a private mapping of its file, or a copy where there is no file.
#[derive(Debug)]
pub struct Memory {
    mapping: PrivateCopy,
    /// Number of the segment in this generation of the log.
    pub(super) segment: u32,
    pub(super) name: String,
    pub(super) offset: u64,
    /// Pages known to be its own, a bit each.
    own: Vec<AtomicU64>,
    /// Whether all pages are.
    is_own: AtomicBool,
    /// No region has it any more; set with the state locked.
    is_unmapped: AtomicBool,
    debug: bool,
    /// Transactions that have ranges in it; counted in debug mode only.
    active: AtomicU32,
    /// What it holds without uncommitted changes; kept in debug mode only.
    committed: Mutex<Vec<u8>>,
}

/// Bits for the pages of `bytes` bytes, none of which is its own yet.
fn own_pages(bytes: usize) -> Vec<AtomicU64> {
    (0..bytes.div_ceil(64 * PAGE)).map(|_| AtomicU64::new(0)).collect()
}

impl Memory {
    /// Maps `range` of a segment.
    pub fn map(
        segment: u32,
        name: &str,
        store: &dyn Store,
        range: Range<u64>,
        debug: bool,
    ) -> Result<Memory> {
        let bytes = range.end - range.start;
        let source = store.file().map(|file| (file, range.start));
        let mut mapping = PrivateCopy::new(source, bytes).map_err(Error::io("map", &name))?;
        if source.is_none() {
            store.read(mapping.as_mut_slice(), range.start).map_err(Error::io("read", &name))?;
        }
        let committed = Mutex::new(if debug { mapping.as_slice().to_vec() } else { Vec::new() });
        let (own, active) = (own_pages(mapping.len()), AtomicU32::new(0));
        let (name, offset) = (name.into(), range.start);
        let [is_own, is_unmapped] = [false, false].map(AtomicBool::new);
        Ok(Memory { mapping, segment, name, offset, own, is_own, is_unmapped, debug, active, committed })
    }

    /// Moves it to an address at a page boundary, in place of whatever is mapped there.
    ///
    /// # Safety
    /// As for [`PrivateCopy::move_to`].
    pub(crate) unsafe fn move_to(&mut self, address: *mut u8) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.mapping.move_to(address) }.map_err(Error::io("map", &self.name))
    }

    /// Whether its range of the segment may be another's by now: commits to it are refused.
    #[inline]
    pub(super) fn is_unmapped(&self) -> bool {
        self.is_unmapped.load(Ordering::Relaxed)
    }

    /// The caller holds the state.
    pub(super) fn set_unmapped(&self) {
        self.is_unmapped.store(true, Ordering::Relaxed);
    }

    /// Length of the mapped range.
    pub fn bytes(&self) -> usize {
        self.mapping.len()
    }

    /// Where it is mapped; the same until it is dropped or moved.
    pub fn start(&self) -> *mut u8 {
        self.mapping.start()
    }

    /// The bytes of its segment that it holds.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes() as u64
    }

    /// Refuses a range that is not in it.
    #[inline]
    pub fn check(&self, range: &Range<usize>) -> Result<()> {
        if range.start <= range.end && range.end <= self.bytes() {
            return Ok(());
        }
        Err(self.outside(range))
    }

    #[cold]
    fn outside(&self, Range { start, end }: &Range<usize>) -> Error {
        Error::Invalid(format!("the range {start}..{end} is not in a region of {} B", self.bytes()))
    }

    /// Some of its bytes.
    ///
    /// # Safety
    /// Nobody changes them while the slice lives.
    #[inline]
    pub unsafe fn slice(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.bytes());
        // SAFETY: the range is within the mapping, and the caller promises that it is not changed.
        unsafe { std::slice::from_raw_parts(self.start().add(range.start), range.end - range.start) }
    }

    /// Some of its bytes, mutable.
    ///
    /// # Safety
    /// Nobody else reads or changes them while the slice lives.
    #[expect(clippy::mut_from_ref)]
    #[inline]
    pub unsafe fn slice_mut(&self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.bytes());
        // SAFETY: the range is within the mapping, and the caller promises that nobody else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.start().add(range.start), range.end - range.start) }
    }

    /// Asks for the cache lines of a range, which somebody is about to change; of those outside the memory nothing happens.
    #[inline]
    pub fn prefetch(&self, range: Range<usize>) {
        let bytes = range.end.min(self.bytes()).saturating_sub(range.start);
        prefetch_lines_for_store(self.start().wrapping_add(range.start), bytes);
    }

    /// Makes the pages of a range its own, as the first store to each would. A page that is read first is mapped twice, and
    /// its second mapping interrupts every processor that runs a thread of the program.
    ///
    /// # Safety
    /// Nobody else reads or changes the range meanwhile.
    #[inline(always)]
    pub(super) unsafe fn make_own(&self, range: Range<usize>) {
        if !self.is_own.load(Ordering::Relaxed) {
            // SAFETY: as the caller promises.
            unsafe { self.make_pages_own(range) };
        }
    }

    /// As [`Memory::make_own`], where some pages may not be.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn make_pages_own(&self, range: Range<usize>) {
        assert!(range.start < range.end && range.end <= self.bytes());
        for page in range.start / PAGE..=(range.end - 1) / PAGE {
            if self.own[page / 64].load(Ordering::Relaxed) & 1 << (page % 64) == 0 {
                // SAFETY: the byte is within the mapping, and the caller promises that nobody else uses it.
                unsafe { self.make_page_own(page, range.start.max(page * PAGE)) };
            }
        }
    }

    /// # Safety
    /// The byte at `at` is in that page of the mapping, and nobody else uses it.
    #[cold]
    unsafe fn make_page_own(&self, page: usize, at: usize) {
        // SAFETY: as the caller promises.
        let byte = unsafe { AtomicU8::from_ptr(self.start().add(at)) };
        // Zero in place of zero: a store that changes nothing, whatever is there.
        let _ = byte.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        self.own[page / 64].fetch_or(1 << (page % 64), Ordering::Relaxed);
    }

    /// Gets every page ready for stores: they are its own then.
    pub(super) fn populate(&self) {
        self.is_own.store(self.mapping.populate(), Ordering::Relaxed);
    }

    /// Lengthens it to `bytes`, which `store` has by now.
    pub fn grow(&mut self, store: &dyn Store, bytes: u64) -> Result<()> {
        let old = self.bytes();
        let source = store.file().map(|file| (file, self.offset));
        self.mapping.grow(source, bytes).map_err(Error::io("map", &self.name))?;
        (self.own, self.is_own) = (own_pages(self.mapping.len()), AtomicBool::new(false));
        if source.is_none() {
            let offset = self.offset + old as u64;
            let added = &mut self.mapping.as_mut_slice()[old..];
            store.read(added, offset).map_err(Error::io("read", &self.name))?;
        }
        let committed = self.committed.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !committed.is_empty() {
            committed.extend_from_slice(&self.mapping.as_slice()[old..]);
        }
        Ok(())
    }

    /// A transaction has its first range in it.
    #[inline]
    pub(super) fn enter(&self) {
        if self.debug {
            self.active.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A transaction with ranges in it has ended.
    #[inline]
    pub(super) fn leave(&self) {
        if self.debug {
            self.active.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Debug mode: fails if bytes outside `ranges` (in order) differ from what was committed, unless another transaction
    /// may have changed them.
    ///
    /// # Safety
    /// Nobody changes the memory meanwhile.
    pub(super) unsafe fn find_missed(&self, ranges: impl Iterator<Item = Range<usize>>) -> Result<()> {
        let committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        if committed.is_empty() || self.active.load(Ordering::Relaxed) > 1 {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        let now = unsafe { self.slice(0..self.bytes()) };
        let mut from = 0;
        for range in ranges.chain(std::iter::once(self.bytes()..self.bytes())) {
            if now[from..range.start] != committed[from..range.start] {
                let differs = |at: &usize| now[*at] != committed[*at];
                let first = (from..range.start).find(differs).unwrap_or(from);
                let bytes = (first..range.start).take_while(differs).count() as u64;
                let offset = self.offset + first as u64;
                return Err(Error::MissedRange { segment: self.name.clone(), offset, bytes });
            }
            from = range.end;
        }
        Ok(())
    }

    /// Debug mode: `range` has been committed.
    ///
    /// # Safety
    /// Nobody changes the range meanwhile.
    pub unsafe fn committed(&self, range: Range<usize>) {
        let mut committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        if !committed.is_empty() {
            // SAFETY: as the caller promises.
            committed[range.clone()].copy_from_slice(unsafe { self.slice(range) });
        }
    }
}
