//! Memory mapped from a file, or anonymous.

#[cfg(miri)]
mod emulated;

use crate::{check, sigbus};
use std::fs::File;
use std::io;
use std::ops::Range;
#[cfg(not(miri))]
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
#[cfg(not(miri))]
use std::ptr::null_mut;

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

/// A mapping for loads and stores; unmapped when dropped. It begins at a page.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    fault_message: Option<sigbus::FaultMessage>,
    #[cfg(miri)]
    emulated: emulated::Emulated,
}

// SAFETY: a mapping belongs to the process, not to a thread; it is changed only through `&mut self` or raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&self` only reads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `bytes` of a file, shared with everybody who maps it. Where there is room, it begins where a huge page can.
    pub fn shared(file: &File, bytes: u64) -> io::Result<Mapping> {
        Mapping::map(bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, Some(file))
    }

    /// Like [`Mapping::shared`], of a file on persistent memory (DAX): flushed cache lines are durable, and so is whatever
    /// the file system needs to find them. Refused for every other file.
    pub fn persistent(file: &File, bytes: u64) -> io::Result<Mapping> {
        let flags = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
        Mapping::map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, Some(file))
    }

    /// Like [`Mapping::shared`], but inaccessible until [`Mapping::make_accessible`], so that not even a process that
    /// locks all its memory has it filled. It is not locked.
    pub fn shared_inaccessible(file: &File, bytes: u64) -> io::Result<Mapping> {
        let mapping = Mapping::map(bytes, libc::PROT_NONE, libc::MAP_SHARED, Some(file))?;
        // SAFETY: the range is this mapping, whose contents it does not change.
        check(unsafe { libc::munlock(mapping.start().cast(), mapping.bytes) })?;
        Ok(mapping)
    }

    /// Ends the state of [`Mapping::shared_inaccessible`]: loads and stores work.
    pub fn make_accessible(&self) -> io::Result<()> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is this mapping, whose contents it does not change.
        check(unsafe { libc::mprotect(self.start().cast(), self.bytes, protection) }).map(|_| ())
    }

    /// The first `bytes` of a file, which may be open for reading only: what is stored stays in this process.
    pub fn private(file: &File, bytes: u64) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        Mapping::map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, Some(file))
    }

    /// Whether a file, which may be open for reading only, lies on persistent memory (DAX).
    pub fn can_be_persistent(file: &File) -> bool {
        let flags = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
        Mapping::map(1, libc::PROT_READ, flags, Some(file)).is_ok()
    }

    /// Private zero bytes that take memory where they are written.
    pub fn anonymous(bytes: u64) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Mapping::map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, None)?;
        // Without huge pages nearly every access to a large mapping misses the TLB. A kernel without them refuses, which
        // changes nothing.
        let _ = mapping.advise(libc::MADV_HUGEPAGE);
        Ok(mapping)
    }

    /// Should a page of it become unavailable later (the disk is full or failed), `text` is written to stderr before the
    /// process ends with status 4.
    pub fn report_fault(&mut self, text: String) -> io::Result<()> {
        let start = self.start().addr();
        self.fault_message = sigbus::on_fault(start..start + self.bytes, text)?;
        Ok(())
    }

    #[cfg(not(miri))]
    fn map(
        bytes: u64,
        protection: libc::c_int,
        flags: libc::c_int,
        file: Option<&File>,
    ) -> io::Result<Mapping> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let fd = file.map_or(-1, |file| file.as_raw_fd());
        let at = if flags == libc::MAP_SHARED { place_for_huge_pages(bytes) } else { null_mut() };
        // SAFETY: the address is a wish: the system chooses another rather than replace a mapping.
        let start = unsafe { libc::mmap(at, bytes, protection, flags, fd, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().addr() != usize::MAX => {
                Ok(Mapping { start, bytes, fault_message: None })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[cfg(miri)]
    fn map(bytes: u64, _: libc::c_int, flags: libc::c_int, file: Option<&File>) -> io::Result<Mapping> {
        let emulated = emulated::Emulated::new(bytes as usize, flags, file)?;
        Ok(Mapping { start: emulated.start(), bytes: bytes as usize, fault_message: None, emulated })
    }

    /// Writes the pages that hold these bytes of a shared mapping to the file and waits until they are durable (msync).
    pub fn sync(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let end =
            offset.checked_add(bytes).filter(|&end| end <= self.bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let first = offset & !(PAGE - 1);
        #[cfg(miri)]
        return self.emulated.write_back(first..end);
        // SAFETY: the range is inside this mapping, whose contents it does not change.
        #[cfg(not(miri))]
        check(unsafe { libc::msync(self.start().add(first).cast(), end - first, libc::MS_SYNC) }).map(|_| ())
    }

    /// Where it is mapped; the same until it is dropped.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Never 0.
    // No mapping is empty: the kernel refuses a length of 0.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// All of it; of a file, what was stored so far by anyone.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping has these bytes as long as `self` lives, and nobody changes them meanwhile: `&mut self` is
        // excluded, and files that are mapped shared are locked by their one user (`folder`).
        unsafe { std::slice::from_raw_parts(self.start(), self.bytes) }
    }

    /// All of it; stores to a shared mapping reach the file.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.bytes) }
    }

    /// Gets every page of it ready for stores now, so that none faults later. A kernel that cannot (before 5.14) leaves it to
    /// the first store to each.
    pub fn populate(&self) {
        self.populate_part(0..self.bytes as u64);
    }

    /// The same for some of its bytes; those outside are left out.
    pub fn populate_part(&self, range: Range<u64>) {
        let (start, end) = (range.start as usize / PAGE * PAGE, (range.end as usize).min(self.bytes));
        if start < end && !cfg!(miri) {
            // SAFETY: the range is within this mapping, and the advice leaves its contents alone.
            let _ = unsafe {
                libc::madvise(self.start().add(start).cast(), end - start, libc::MADV_POPULATE_WRITE)
            };
        }
    }

    /// Returns these bytes of anonymous memory to the system, as far as they fill pages; they read as zero.
    pub fn forget(&mut self, range: Range<u64>) -> io::Result<()> {
        let start = (range.start as usize).next_multiple_of(PAGE);
        let end = (range.end as usize).min(self.bytes) / PAGE * PAGE;
        if start < end && !cfg!(miri) {
            // SAFETY: the range is within this mapping, which is borrowed exclusively; every byte stays initialised.
            check(unsafe {
                libc::madvise(self.start().add(start).cast(), end - start, libc::MADV_DONTNEED)
            })?;
        }
        Ok(())
    }

    /// Has the system keep these bytes of a mapped file in huge pages, as far as they fill some, where the file lies in memory
    /// (tmpfs, Linux 6.1): accesses to a large file otherwise miss the TLB. It takes as long as copying them. Elsewhere nothing
    /// happens.
    pub fn use_huge_pages(&self, range: Range<u64>) {
        let start = range.start as usize / HUGE_PAGE * HUGE_PAGE;
        let end = (range.end as usize).min(self.bytes) / HUGE_PAGE * HUGE_PAGE;
        if start < end && !cfg!(miri) {
            // SAFETY: the range is within this mapping, and the advice leaves its contents alone.
            let _ =
                unsafe { libc::madvise(self.start().add(start).cast(), end - start, libc::MADV_COLLAPSE) };
        }
    }

    /// Excludes the mapping from children made by fork.
    pub fn exclude_from_fork(&self) -> io::Result<()> {
        self.advise(libc::MADV_DONTFORK)
    }

    /// Uses no huge pages from this byte on, which begins a page, where the kernel has any.
    pub fn refuse_huge_pages(&self, from: u64) {
        // A kernel without huge pages refuses the advice.
        let _ = self.advise_part(from as usize..self.bytes, libc::MADV_NOHUGEPAGE);
    }

    /// Uses single pages for the first `bytes` of it, and reads none ahead. Where the page cache holds a file in larger pieces, as
    /// readahead makes them, a store to one page gives all the piece room on the disk, holes too.
    pub fn use_single_pages(&self, bytes: usize) {
        // A kernel that does not know the advice has small pages, too.
        let _ = self.advise_part(0..bytes.min(self.bytes), libc::MADV_RANDOM);
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        self.advise_part(0..self.bytes, advice)
    }

    fn advise_part(&self, part: Range<usize>, advice: libc::c_int) -> io::Result<()> {
        if cfg!(miri) || part.is_empty() {
            return Ok(());
        }
        assert!(part.end <= self.bytes, "advice for bytes behind the mapping");
        // SAFETY: the range is of this mapping, and callers pass advice that leaves its contents alone.
        check(unsafe { libc::madvise(self.start().add(part.start).cast(), part.len(), advice) }).map(|_| ())
    }
}

/// An address at a huge page with `bytes` of room behind it; null if there is none or it is of no use.
#[cfg(not(miri))]
fn place_for_huge_pages(bytes: usize) -> *mut libc::c_void {
    let Some(room) = bytes.checked_add(HUGE_PAGE).filter(|_| bytes >= HUGE_PAGE) else { return null_mut() };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the system chooses the address; nobody has used the mapping when it goes.
    unsafe {
        let found = libc::mmap(null_mut(), room, libc::PROT_NONE, flags, -1, 0);
        if found == libc::MAP_FAILED {
            return null_mut();
        }
        libc::munmap(found, room);
        found.wrapping_byte_add(found.addr().next_multiple_of(HUGE_PAGE) - found.addr())
    }
}

#[cfg(not(miri))]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and no borrow of it is left.
        unsafe { libc::munmap(self.start().cast(), self.bytes) };
    }
}
