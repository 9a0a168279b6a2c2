//! Memory mapped from a file, or from nothing.

use super::{bus, check};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, null_mut};

/// A mapping for loads and stores; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    told: Option<bus::Told>,
}

// SAFETY: a mapping belongs to the process, not to a thread; it is changed only through `&mut self` or raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&self` only reads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `bytes` of a file, shared with everybody who maps it.
    pub fn of_file(file: &File, bytes: u64) -> io::Result<Mapping> {
        Mapping::map(bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// The same, and nobody may touch it before [`Mapping::allow`]: not even a process that locks all its memory has it
    /// filled. It is not locked.
    pub fn of_file_closed(file: &File, bytes: u64) -> io::Result<Mapping> {
        let mapping = Mapping::map(bytes, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd())?;
        // SAFETY: the range is this mapping, whose contents it does not change.
        check(unsafe { libc::munlock(mapping.start().cast(), mapping.bytes) })?;
        Ok(mapping)
    }

    /// Allows loads and stores.
    pub fn allow(&self) -> io::Result<()> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is this mapping, whose contents it does not change.
        check(unsafe { libc::mprotect(self.start().cast(), self.bytes, protection) }).map(|_| ())
    }

    /// Zero bytes that belong to nobody else and take memory where they are written.
    pub fn anonymous(bytes: u64) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let mapping = Mapping::map(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1)?;
        // Or nearly every access of a large medium misses the translation cache. A kernel without huge pages: all the same.
        let _ = mapping.advise(libc::MADV_HUGEPAGE);
        Ok(mapping)
    }

    /// Should a page of it not be to be had later, this is said and the process ends ([`bus`]).
    pub fn say_at_fault(&mut self, text: String) -> io::Result<()> {
        let start = self.start().addr();
        self.told = bus::say_at_fault(start..start + self.bytes, text)?;
        Ok(())
    }

    fn map(bytes: u64, protection: libc::c_int, flags: libc::c_int, fd: libc::c_int) -> io::Result<Mapping> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the system chooses the place, so no mapping of anybody is replaced.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, fd, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().addr() != usize::MAX => Ok(Mapping { start, bytes, told: None }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// First byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping has these bytes as long as `self` lives, and nobody changes them meanwhile: `&mut self` is
        // excluded, and no other process writes to the files of a window (they are locked).
        unsafe { std::slice::from_raw_parts(self.start(), self.bytes) }
    }

    /// The bytes, to change.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.bytes) }
    }

    /// Tells the system how the bytes will be used.
    pub fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping, and callers pass advice that leaves its contents alone.
        check(unsafe { libc::madvise(self.start().cast(), self.bytes, advice) }).map(|_| ())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and no borrow of it is left.
        unsafe { libc::munmap(self.start().cast(), self.bytes) };
    }
}
