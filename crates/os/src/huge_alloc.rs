//! An allocator that gives the largest vectors huge pages.

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;

/// The system's allocator. Memory of 512 MiB and more is advised to be huge pages, if the kernel has any: with small ones nearly every
/// access to the map of a drive of a terabyte misses the TLB. A huge page is filled whole at its first access, which takes a
/// second or two for such a map, and smaller memory gains nothing.
#[derive(Debug)]
pub struct HugeAlloc;

/// From here on huge pages are worth it.
const LARGE_BYTES: usize = 512 << 20;

// SAFETY: everything is the system's; advice changes what memory is made of, not what it holds.
unsafe impl GlobalAlloc for HugeAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: passed on.
        advised(unsafe { System.realloc(start, layout, bytes) }, bytes)
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

#[inline]
fn advised(start: *mut u8, bytes: usize) -> *mut u8 {
    if bytes >= LARGE_BYTES && !start.is_null() {
        // SAFETY: the memory has just been allocated, and nobody else knows it yet.
        crate::in_huge_pages(unsafe {
            std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), bytes)
        });
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small or large, zero or grown: memory is what the system's is.
    #[test]
    fn memory_is_zero_where_asked_and_kept_where_it_grows() {
        for bytes in [64, LARGE_BYTES + 12_345] {
            let layout = Layout::from_size_align(bytes, 64).unwrap();
            let (probes, more) = ([0, bytes / 2, bytes - 1], bytes + (4 << 20));
            // SAFETY: the layouts are those the memory has, and every access lies in it.
            unsafe {
                let start = HugeAlloc.alloc_zeroed(layout);
                assert!(!start.is_null() && start.addr().is_multiple_of(64));
                for at in probes {
                    assert_eq!(start.add(at).replace(7), 0);
                }
                let grown = HugeAlloc.realloc(start, layout, more);
                assert!(!grown.is_null() && probes.iter().all(|&at| *grown.add(at) == 7));
                grown.add(more - 1).write(8);
                HugeAlloc.dealloc(grown, Layout::from_size_align(more, 64).unwrap());
            }
        }
    }
}
