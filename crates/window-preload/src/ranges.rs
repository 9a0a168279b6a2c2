//! The mappings of the window in the address space: what must not be moved, and the descriptors to close.

use super::{Fd, abi};
use std::ffi::c_void;
use std::mem::forget;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Mappings at a time.
pub(crate) const RANGES_MAX: usize = 64;

/// A mapping and its userfaultfd. `end` is 0 while the slot is free, 1 while it is being filled.
pub(crate) struct Range {
    from: AtomicU64,
    to: AtomicU64,
    faults: AtomicI32,
}

/// The mappings: with the one below the only state.
pub(crate) static RANGES: [Range; RANGES_MAX] =
    [const { Range { from: AtomicU64::new(0), to: AtomicU64::new(0), faults: AtomicI32::new(-1) } };
        RANGES_MAX];

impl Range {
    fn meets(&self, from: u64, to: u64) -> bool {
        from < self.to.load(Ordering::Acquire) && to > self.from.load(Ordering::Relaxed)
    }

    /// Takes a free slot.
    pub(crate) fn claim() -> Option<&'static Range> {
        let free =
            |range: &&Range| range.to.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let range = RANGES.iter().find(free)?;
        range.from.store(1, Ordering::Relaxed);
        Some(range)
    }

    pub(crate) fn fill(&self, from: u64, bytes: u64, faults: Fd) {
        self.faults.store(faults.0, Ordering::Relaxed);
        // Kept until it is unmapped (rule 1).
        forget(faults);
        self.from.store(from, Ordering::Relaxed);
        self.to.store(from + bytes, Ordering::Release);
    }

    /// Frees a slot that was claimed and not filled.
    pub(crate) fn give_back(&self) {
        self.to.store(0, Ordering::Release);
    }

    /// Frees the slot if the mapping lies within a range that is about to be unmapped.
    fn release_within(&self, from: u64, to: u64) {
        let end = self.to.load(Ordering::Acquire);
        let inside = end > 1 && from <= self.from.load(Ordering::Relaxed) && end <= to;
        if inside && self.to.compare_exchange(end, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.from.store(1, Ordering::Relaxed);
            drop(Fd(self.faults.swap(-1, Ordering::Relaxed)));
            self.to.store(0, Ordering::Release);
        }
    }
}

/// True if a range of addresses, at least a byte, lies in a mapping.
pub(crate) fn meets_window(address: *mut c_void, bytes: usize) -> bool {
    let from = address as u64;
    let to = from.saturating_add(bytes.max(1) as u64);
    RANGES.iter().any(|range| range.meets(from, to))
}

/// Frees the slots of mappings that lie within a range that is about to be unmapped.
pub(crate) fn release(address: *mut c_void, bytes: usize) {
    let from = address as u64;
    let to = from.saturating_add(bytes as u64).saturating_add(abi::PAGE_BYTES as u64 - 1);
    RANGES.iter().for_each(|range| range.release_within(from, to));
}
