//! A private copy of a part of a file in memory, made where it is stored to.
//!
//! Where the file has a hole of 2 MiB, the copy is plain memory in huge pages. A store to a hole of a mapped file
//! takes the kernel a page of zeros for the file and a copy of it (2 to 3 us each 4 KiB); loads and stores all over a large
//! file miss the TLB. Of a file in memory this is done for the hole before its first data only: its pages are examined one by one,
//! those without data too, which took 13 ms of each GiB.
//!
//! 1. Address space is reserved first, and everything is mapped inside it, so that the copy ends as one and whatever fails
//!    leaves nothing behind.
//! 2. Parts of a file and plain memory are mapped each on its own, and moved so.
//!
//! Rejected: plain memory in small pages (a fault each); mapping pages of the file ahead of time (saves the fault, not the page
//! and its copy).

use crate::{check, file};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

/// Bytes of a huge page; parts that use them begin at a multiple.
const HUGE_BYTES: usize = 2 << 20;
const PAGE_BYTES: usize = 4096;
const PROTECTION: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_NORESERVE;

/// Bytes of a file, or zero bytes, that take memory where they are stored to; stores are seen by nobody else and never reach the
/// file. What has not been stored to shows the file as it is, but for holes that there were when it was made: those stay zero.
#[derive(Debug)]
pub struct PrivateCopy {
    place: Place,
    bytes: usize,
    /// End of each part, in order.
    ends: Vec<usize>,
}

/// A part of a file: from this offset on, a multiple of the page size.
pub type Source<'a> = (&'a File, u64);

impl PrivateCopy {
    /// `bytes` of a file; zero bytes without one. The file must have them.
    pub fn new(source: Option<Source<'_>>, bytes: u64) -> io::Result<PrivateCopy> {
        let bytes = length(bytes)?;
        let place = Place::reserve(bytes)?;
        let ends = place.map(source, 0..bytes)?;
        Ok(PrivateCopy { place, bytes, ends })
    }

    /// Lengthens it to `bytes`, of the same source as what there is; it may move.
    pub fn grow(&mut self, source: Option<Source<'_>>, bytes: u64) -> io::Result<()> {
        let bytes = length(bytes)?;
        if bytes <= self.bytes {
            return Ok(());
        }
        // What may fail comes first: the old memory stays until all of the new is there.
        let place = Place::reserve(bytes)?;
        // The last page is whole already.
        let from = self.bytes.next_multiple_of(PAGE_BYTES);
        let added = if from < bytes { place.map(source, from..bytes)? } else { Vec::new() };
        self.move_parts(place.start())?;
        // Nothing is mapped at the old place any more.
        std::mem::forget(std::mem::replace(&mut self.place, place));
        self.ends.extend(added);
        self.bytes = bytes;
        Ok(())
    }

    /// Moves it to an address at a page boundary, in place of whatever is mapped there.
    ///
    /// # Safety
    /// Nobody needs what is mapped there now, and no pointer to where this copy was is used any more.
    pub unsafe fn move_to(&mut self, address: *mut u8) -> io::Result<()> {
        let place = NonNull::new(address).ok_or(io::ErrorKind::InvalidInput)?;
        self.move_parts(address)?;
        std::mem::forget(std::mem::replace(&mut self.place, Place { start: place, bytes: self.bytes }));
        Ok(())
    }

    /// Moves every part to an address; if one cannot be, those before it return.
    fn move_parts(&self, to: *mut u8) -> io::Result<()> {
        let from = self.start();
        for (moved, range) in self.parts().enumerate() {
            if let Err(error) = move_part(from, to, &range) {
                for range in self.parts().take(moved) {
                    move_part(to, from, &range).expect("memory returns to where it was");
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The mapped parts, in whole pages.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| start.next_multiple_of(PAGE_BYTES)..*end)
    }

    /// Gets every page of it ready for stores now, so that none faults later, as far as memory and the kernel (5.14) permit.
    /// Returns whether all are.
    pub fn populate(&self) -> bool {
        // SAFETY: advice about memory that is this copy; it leaves the contents alone.
        unsafe { libc::madvise(self.start().cast(), self.bytes, libc::MADV_POPULATE_WRITE) == 0 }
    }

    /// Where it is mapped; another place after a move.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.place.start()
    }

    /// Never 0.
    // No copy is empty: the kernel refuses a length of 0.
    #[expect(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// All of it: the file's bytes except where stores replaced them.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the copy has these bytes as long as `self` lives, and nobody changes them meanwhile: `&mut self` is excluded,
        // and the file is locked by its one user.
        unsafe { std::slice::from_raw_parts(self.start(), self.bytes) }
    }

    /// All of it; stores do not reach the file.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.bytes) }
    }
}

fn length(bytes: u64) -> io::Result<usize> {
    usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

fn move_part(from: *mut u8, to: *mut u8, range: &Range<usize>) -> io::Result<()> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let (from, to) = (from.wrapping_add(range.start), to.wrapping_add(range.start));
    // SAFETY: the part is a mapping of its own whose owner is borrowed exclusively or gives it up, and nobody needs what is at
    // the new place: reserved address space, or what the caller of `move_to` answers for.
    let moved = unsafe { libc::mremap(from.cast(), range.len(), range.len(), flags, to) };
    if moved == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Address space; what is mapped in it ends with it.
#[derive(Debug)]
struct Place {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: memory belongs to the process, not to a thread; it is changed only through `&mut PrivateCopy` or raw pointers.
unsafe impl Send for Place {}
// SAFETY: as above; `&self` only reads.
unsafe impl Sync for Place {}

impl Place {
    /// Reserves `bytes` of addresses that begin at a multiple of a huge page.
    fn reserve(bytes: usize) -> io::Result<Place> {
        let flags = FLAGS | libc::MAP_ANONYMOUS;
        let more = bytes.checked_add(HUGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the system chooses the address, so no existing mapping is replaced.
        let start = unsafe { libc::mmap(null_mut(), more, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.cast::<u8>();
        let before = start.addr().next_multiple_of(HUGE_BYTES) - start.addr();
        let end = (before + bytes).next_multiple_of(PAGE_BYTES);
        // SAFETY: both ranges are within what was just mapped and is not used.
        unsafe {
            if before > 0 {
                check(libc::munmap(start.cast(), before))?;
            }
            if end < more {
                check(libc::munmap(start.add(end).cast(), more - end))?;
            }
        }
        let start = NonNull::new(start.wrapping_add(before)).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Place { start, bytes })
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Maps a range of it, which begins at a page; where the parts end.
    fn map(&self, source: Option<Source<'_>>, range: Range<usize>) -> io::Result<Vec<usize>> {
        let filled = source.map_or(Vec::new(), |source| filled(source, &range));
        let (mut ends, mut from) = (Vec::new(), range.start);
        for part in filled {
            if from < part.start {
                self.map_part(None, &(from..part.start))?;
                ends.push(part.start);
            }
            self.map_part(source, &part)?;
            ends.push(part.end);
            from = part.end;
        }
        if from < range.end {
            self.map_part(None, &(from..range.end))?;
            ends.push(range.end);
        }
        Ok(ends)
    }

    fn map_part(&self, source: Option<Source<'_>>, range: &Range<usize>) -> io::Result<()> {
        let at = self.start().wrapping_add(range.start).cast();
        let (flags, descriptor, offset) = match source {
            Some((file, offset)) => (FLAGS, file.as_raw_fd(), offset + range.start as u64),
            None => (FLAGS | libc::MAP_ANONYMOUS, -1, 0),
        };
        let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = flags | libc::MAP_FIXED;
        // SAFETY: replaces a part of this reserved address space, which nobody uses yet.
        let mapped = unsafe { libc::mmap(at, range.len(), PROTECTION, flags, descriptor, offset) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if source.is_none() {
            // A kernel without huge pages refuses, which changes nothing.
            // SAFETY: advice about what was just mapped; it leaves the contents alone.
            let _ = unsafe { libc::madvise(at, range.len(), libc::MADV_HUGEPAGE) };
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: the range is owned, and no borrow of it is left.
        unsafe { libc::munmap(self.start().cast(), self.bytes) };
    }
}

/// The parts of a range that the file has data in, widened to multiples of a huge page; all of it if the file knows no holes.
fn filled((file, offset): Source<'_>, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let place = |at: u64| usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
    if file::is_in_memory(file).is_ok_and(|is| is) {
        let from = offset + range.start as u64;
        return match file::next_data(file, from) {
            Ok(data) => {
                let start = data.map_or(range.end, |at| place(at) / HUGE_BYTES * HUGE_BYTES);
                let start = start.max(range.start);
                Some(start..range.end).filter(|part| !part.is_empty()).into_iter().collect()
            }
            Err(_) => vec![range.clone()],
        };
    }
    let listed = file::data_ranges(file, |at, bytes| {
        let start = (place(at) / HUGE_BYTES * HUGE_BYTES).max(range.start);
        let end = place(at + bytes).checked_next_multiple_of(HUGE_BYTES).unwrap_or(usize::MAX).min(range.end);
        match parts.last_mut() {
            _ if start >= end => {}
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => parts.push(start..end),
        }
    });
    if listed.is_ok() { parts } else { vec![range.clone()] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// A file in memory that has memory for all of it: to search it for holes takes a time in proportion to its length.
    #[test]
    fn behind_the_first_data_of_a_file_in_memory_no_hole_is_searched_for() {
        const BYTES: u64 = 64 << 20;
        let file = file::anonymous(c"test", false).unwrap();
        file::reserve(&file, 0, BYTES).unwrap();
        for (data_at, ends) in
            [(None, &[64 << 20][..]), (Some(40 << 20), &[40 << 20, 64 << 20]), (Some(0), &[64 << 20])]
        {
            data_at.iter().for_each(|&at| file.write_all_at(&[7], at).unwrap());
            let copy = PrivateCopy::new(Some((&file, 0)), BYTES).unwrap();
            assert_eq!(copy.ends, ends, "{data_at:?}");
            for at in [0, 40 << 20, BYTES - 1] {
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                assert_eq!(copy.as_slice()[at as usize], byte[0]);
            }
        }
    }
}
