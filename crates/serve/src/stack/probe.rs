//! Requests to a layer, one after the other: what is timed.

use crate::Drive;
use crate::nbd::client::Client;
use crate::sys::process;
use crate::sys::ring::Ring;
use crate::window::Window;
use nvlab_os::Mapping;
use nvlab_workload::Op;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Something that requests can be made to.
///
/// Between calls nothing is under way. A request moves the same number of bytes as every other of the probe, at an offset that
/// is a multiple of them.
pub(super) trait Probe {
    /// Makes a request at each offset, one after the other.
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()>;

    /// Ends what requests have left to be done later, so that no other layer's are timed with it.
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is written.
const PATTERN: u8 = 0xa5;

/// A page-aligned buffer for one request.
pub(super) fn buffer(bytes: u32) -> io::Result<Mapping> {
    let mut buffer = Mapping::anonymous(bytes as u64)?;
    buffer.as_mut_slice().fill(PATTERN);
    Ok(buffer)
}

/// The processor copies; `memory` and `buffer` are plain memory.
fn copy(op: Op, memory: &mut [u8], buffer: &mut [u8], offsets: &[u64]) {
    let bytes = buffer.len();
    for &offset in offsets {
        let place = &mut memory[offset as usize..][..bytes];
        match op {
            Op::Write => place.copy_from_slice(black_box(buffer)),
            _ => black_box(&mut *buffer).copy_from_slice(place),
        }
    }
}

/// Mapped memory.
pub(super) struct Memory {
    memory: Mapping,
    buffer: Mapping,
}

impl Memory {
    pub fn new(file: &File, file_bytes: u64, bytes: u32) -> io::Result<Memory> {
        let memory = Mapping::shared(file, file_bytes)?;
        memory.populate();
        Ok(Memory { memory, buffer: buffer(bytes)? })
    }
}

impl Probe for Memory {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        copy(op, self.memory.as_mut_slice(), self.buffer.as_mut_slice(), offsets);
        Ok(())
    }
}

/// A memory window.
pub(super) struct Resident {
    pub window: Window,
    pub buffer: Mapping,
}

impl Probe for Resident {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        copy(op, self.window.as_mut_slice(), self.buffer.as_mut_slice(), offsets);
        Ok(())
    }
}

/// Pages of a file that have not been touched yet. They are touched in order of address, far enough apart that the kernel,
/// which maps the pages around one that is read, has not mapped the next one.
pub(super) struct Fault {
    file: File,
    file_bytes: u64,
    buffer: Mapping,
}

/// What the kernel maps around a page that is read (`fault_around_bytes`).
const AROUND_BYTES: u64 = 64 << 10;

impl Fault {
    pub fn new(file: File, file_bytes: u64, bytes: u32) -> io::Result<Fault> {
        Ok(Fault { file, file_bytes, buffer: buffer(bytes)? })
    }
}

impl Probe for Fault {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        let step = AROUND_BYTES.max(self.buffer.len() as u64);
        let places: Vec<u64> = (0..self.file_bytes / step).map(|place| place * step).collect();
        for group in offsets.chunks(places.len()) {
            let mut memory = Mapping::shared(&self.file, self.file_bytes)?;
            copy(op, memory.as_mut_slice(), self.buffer.as_mut_slice(), &places[..group.len()]);
        }
        Ok(())
    }
}

/// The RAM disk, in this process.
pub(super) struct Call {
    pub drive: Arc<Drive>,
    pub buffer: Mapping,
}

impl Probe for Call {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        let session = self.drive.session();
        for &offset in offsets {
            let done = match op {
                Op::Write => self.drive.write(session, offset, self.buffer.as_slice(), false),
                _ => self.drive.read(session, offset, self.buffer.as_mut_slice()),
            };
            done.map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// A system call that does nothing.
pub(super) struct SystemCall;

impl Probe for SystemCall {
    fn run(&mut self, _: Op, offsets: &[u64]) -> io::Result<()> {
        for _ in offsets {
            black_box(process::user());
        }
        Ok(())
    }
}

/// What follows each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    DataSync,
    Sync,
}

/// A file.
pub(super) struct Opened {
    file: File,
    buffer: Mapping,
    after: After,
}

impl Opened {
    pub fn new(file: File, bytes: u32, after: After) -> io::Result<Opened> {
        Ok(Opened { file, buffer: buffer(bytes)?, after })
    }
}

impl Probe for Opened {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        for &offset in offsets {
            match op {
                Op::Write => self.file.write_all_at(self.buffer.as_slice(), offset)?,
                _ => self.file.read_exact_at(self.buffer.as_mut_slice(), offset)?,
            }
            match self.after {
                After::Nothing => {}
                After::DataSync => self.file.sync_data()?,
                After::Sync => self.file.sync_all()?,
            }
        }
        Ok(())
    }

    /// Writes what is in the page cache.
    fn settle(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Probe for Ring {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        self.transfer(op == Op::Write, offsets)
    }
}

/// A server of a disk, one request at a time.
impl Probe for Client {
    fn run(&mut self, op: Op, offsets: &[u64]) -> io::Result<()> {
        offsets.iter().try_for_each(|&offset| self.together(op, &[offset]))
    }
}
