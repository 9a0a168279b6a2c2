//! A mapping under miri, the interpreter that checks Rust's rules, which has no mmap of files: memory of the program that is filled
//! from the file, and written to it when it is synced and when it ends. Nothing else sees the stores of a shared mapping before.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

const PAGE: usize = 4096;

#[derive(Debug)]
pub(super) struct Emulated {
    start: NonNull<u8>,
    bytes: usize,
    /// The file of a shared mapping.
    file: Option<File>,
}

impl Emulated {
    pub fn new(bytes: usize, flags: libc::c_int, file: Option<&File>) -> io::Result<Emulated> {
        // No file lies on persistent memory, and no mapping is empty.
        if flags & libc::MAP_SYNC == libc::MAP_SYNC || bytes == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // SAFETY: more than nothing.
        let start = NonNull::new(unsafe { alloc_zeroed(layout(bytes)) }).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut mapping = Emulated { start, bytes, file: None };
        if let Some(file) = file {
            let filled = mapping.end_in(file)?;
            // SAFETY: inside what was allocated, which nobody else knows yet.
            let memory = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), filled) };
            file.read_exact_at(memory, 0)?;
            if flags & libc::MAP_SHARED != 0 {
                mapping.file = Some(file.try_clone()?);
            }
        }
        Ok(mapping)
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where the file ends, or the mapping.
    fn end_in(&self, file: &File) -> io::Result<usize> {
        Ok((file.metadata()?.len() as usize).min(self.bytes))
    }

    /// Writes a range to the file, as far as it goes.
    pub fn write_back(&self, range: Range<usize>) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let end = range.end.min(self.end_in(file)?);
        if range.start >= end {
            return Ok(());
        }
        let at = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: pages of the mapping. Threads that stored to them meanwhile would be reported.
        let bytes = unsafe { std::slice::from_raw_parts(at, end - range.start) };
        file.write_all_at(bytes, range.start as u64)
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE).expect("a size of memory")
}

impl Drop for Emulated {
    fn drop(&mut self) {
        self.write_back(0..self.bytes).expect("the file takes what was stored to its mapping");
        // SAFETY: allocated with this layout, and no borrow of it is left.
        unsafe { dealloc(self.start.as_ptr(), layout(self.bytes)) };
    }
}
