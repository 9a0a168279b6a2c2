//! Memory that a program allocated and is about to fill.

use std::mem::MaybeUninit;

/// Memory that is filled from one end to the other is allocated by the kernel in huge pages, if it has any: with small ones, a
/// page fault for every 4 KiB takes longer than what fills them. Bytes outside of whole huge pages stay as they are, and a kernel
/// without huge pages changes nothing.
pub fn in_huge_pages<T>(room: &mut [MaybeUninit<T>]) {
    const PAGE_BYTES: usize = 4096;
    let bytes = room.as_mut_ptr_range();
    let start = (bytes.start as usize).next_multiple_of(PAGE_BYTES);
    let end = bytes.end as usize / PAGE_BYTES * PAGE_BYTES;
    if end > start {
        let pages = bytes.start.cast::<u8>().wrapping_add(start - bytes.start as usize);
        // SAFETY: the pages lie in `room`, which is borrowed. The advice changes what they are made of, not what they hold.
        let _ = unsafe { libc::madvise(pages.cast(), end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_and_the_room_can_be_filled() {
        for rows in [0, 1, 100, 1 << 20] {
            let mut column: Vec<u64> = Vec::with_capacity(rows + 3);
            column.extend([1, 2, 3]);
            in_huge_pages(column.spare_capacity_mut());
            column.extend(0..rows as u64);
            assert_eq!(column[..3], [1, 2, 3]);
            assert!(column[3..].iter().copied().eq(0..rows as u64));
        }
    }
}
