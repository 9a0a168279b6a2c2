//! Flash as a character device: any byte can be read and programmed, a program only clears bits (the result is the
//! AND of old and new), and an erase sets all bits of one block.

pub mod memory;
pub mod mtd;
pub mod plain_file;

pub use memory::MemoryFlash;
pub use mtd::Mtd;
pub use plain_file::PlainFile;

use std::fmt::Debug;
use std::io;
use std::ops::Range;

/// How large a flash device and its erase blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of an erase block (of all chips that work in parallel).
    pub block_bytes: u64,
    /// How many erase blocks it has.
    pub blocks: u32,
}

impl Shape {
    /// Size of the whole device.
    pub fn bytes(self) -> u64 {
        self.block_bytes * u64::from(self.blocks)
    }

    /// Refuses a range that is not on the device.
    pub(crate) fn check(self, offset: u64, bytes: usize) -> io::Result<()> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => {
                let why = format!("{bytes} B at offset {offset} of a flash device of {} B", self.bytes());
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }

    /// Refuses a block that is not on the device; returns its offset.
    pub(crate) fn check_block(self, block: u32) -> io::Result<u64> {
        let offset = u64::from(block) * self.block_bytes;
        self.check(offset, self.block_bytes as usize).map(|()| offset)
    }
}

/// How an erase ended that was no error of the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Erased {
    /// All bits of the block are set.
    Clean,
    /// The block is worn out: the erase failed or took too long. It may hold anything and is not to be used again.
    WornOut,
}

/// A flash device. Calls return when the device has done the operation, and what is done or can be read is durable. A power
/// failure during a program leaves any bits to be cleared cleared or not; one during an erase leaves anything in the block.
pub trait Flash: Debug + Send {
    /// Its path or name, for messages.
    fn name(&self) -> String;
    /// Constant as long as it is open.
    fn shape(&self) -> Shape;
    /// Fills `into` from `offset`, which need not be aligned.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Clears the bits that are 0 in `data`. A bit that is 1 in `data` must not be cleared already: devices that can tell
    /// refuse it and change nothing.
    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Makes durable whatever can be read, and was not yet because a program was killed or a sync failed. True if it did: what was
    /// read before may be another thing now, which is durable. Devices have nothing to do.
    fn rewrite(&mut self) -> io::Result<bool> {
        Ok(false)
    }
    /// Sets all bits of a block. A block that cannot be erased any more is no error but [`Erased::WornOut`]; errors are those
    /// of the device as a whole.
    fn erase(&mut self, block: u32) -> io::Result<Erased>;
}

/// Splits `bytes` bytes at `offset` where blocks end, or a circular area of `block_bytes` bytes wraps round: block (or
/// round), offset within it, and which of the bytes.
pub(crate) fn by_block(
    block_bytes: u64,
    offset: u64,
    bytes: usize,
) -> impl Iterator<Item = (u64, u64, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == bytes {
            return None;
        }
        let at = offset + done as u64;
        let within = at % block_bytes;
        let length = ((block_bytes - within) as usize).min(bytes - done);
        let range = done..done + length;
        done += length;
        Some((at / block_bytes, within, range))
    })
}

const PIECE_BYTES: u64 = 1 << 20;

/// Calls `each` with the position and a buffer of every piece of at most 1 MiB from `from` to `end`, in order. What one call leaves
/// in the buffer the next one finds there, the first one zeros.
pub(crate) fn by_piece<E>(
    from: u64,
    end: u64,
    mut each: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let length = |position: u64| end.saturating_sub(position).min(PIECE_BYTES) as usize;
    let mut buffer = vec![0; length(from)];
    let mut positions = (from..end).step_by(PIECE_BYTES as usize);
    positions.try_for_each(|position| each(position, &mut buffer[..length(position)]))
}

/// Refuses `data` that would set a bit of `old`, which lies at `offset`.
fn check_clears(old: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
    match old.iter().zip(data).position(|(old, new)| new & !old != 0) {
        None => Ok(()),
        Some(at) => {
            let (old, new, offset) = (old[at], data[at], offset + at as u64);
            let why = format!("programming {new:#04x} over {old:#04x} at offset {offset} would set bits");
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}
