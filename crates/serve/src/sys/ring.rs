//! Transfers through io_uring, one at a time or several together.

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use nvlab_os::Mapping;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A ring, the file it transfers to and from, and a buffer for each transfer under way.
///
/// 1. A call waits for all it has submitted: nothing is under way between calls.
/// 2. After a wait that failed, transfers may still be under way: further calls are refused, and the buffers are never freed.
pub struct Ring {
    ring: IoUring,
    file: File,
    buffers: Option<Mapping>,
    bytes: u32,
    depth: usize,
    under_way: usize,
}

impl Ring {
    /// A ring for `depth` transfers of `bytes` at a time.
    pub fn new(file: File, bytes: u32, depth: usize) -> io::Result<Ring> {
        let ring = IoUring::new(depth as u32)?;
        let mut buffers = Mapping::anonymous(bytes as u64 * depth as u64)?;
        buffers.as_mut_slice().fill(0xa5);
        Ok(Ring { ring, file, buffers: Some(buffers), bytes, depth, under_way: 0 })
    }

    /// Writes or reads at each offset, as many at a time as the ring is deep: they are submitted together, and waited for
    /// together.
    pub fn transfer(&mut self, writes: bool, offsets: &[u64]) -> io::Result<()> {
        if self.under_way > 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        for group in offsets.chunks(self.depth) {
            for (slot, offset) in group.iter().enumerate() {
                let entry = self.entry(writes, slot, *offset);
                // SAFETY: file and buffer of the entry live until it has ended (invariants 1 and 2).
                unsafe { self.ring.submission().push(&entry) }.expect("room for as many as the ring is deep");
                self.under_way += 1;
            }
            self.wait()?;
        }
        Ok(())
    }

    fn entry(&mut self, writes: bool, slot: usize, offset: u64) -> squeue::Entry {
        let (file, bytes) = (types::Fd(self.file.as_raw_fd()), self.bytes);
        let buffers = self.buffers.as_mut().expect("buffers until the ring is dropped");
        let buffer = &mut buffers.as_mut_slice()[slot * bytes as usize..][..bytes as usize];
        match writes {
            true => opcode::Write::new(file, buffer.as_ptr(), bytes).offset(offset).build(),
            false => opcode::Read::new(file, buffer.as_mut_ptr(), bytes).offset(offset).build(),
        }
    }

    /// Submits, and waits until nothing is under way.
    fn wait(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        while self.under_way > 0 {
            match self.ring.submit_and_wait(self.under_way) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for done in self.ring.completion() {
                self.under_way -= 1;
                result = result.and(whole(&done, self.bytes));
            }
        }
        result
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.under_way > 0 {
            std::mem::forget(self.buffers.take());
        }
    }
}

/// An error, or fewer bytes than were asked for.
fn whole(done: &cqueue::Entry, bytes: u32) -> io::Result<()> {
    match done.result() {
        error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
        count if count as u32 == bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
