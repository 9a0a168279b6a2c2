//! Files past the page cache (`O_DIRECT`), and memory aligned for them.
//!
//! Offsets and lengths are whole blocks of 4 KiB: a device or file system that wants more alignment refuses.

use crate::Result;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4096;

/// An aligned block of memory.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// Aligned memory, seen as bytes or as numbers.
pub struct Buffer(Vec<Block>);

impl Buffer {
    /// At least so many bytes, zero.
    pub fn new(bytes: usize) -> Buffer {
        Buffer(vec![Block([0; BLOCK_BYTES]); bytes.div_ceil(BLOCK_BYTES)])
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }

    /// Its contents as numbers, in the machine's byte order.
    pub fn of<T: FromBytes + IntoBytes + KnownLayout + Immutable>(&self) -> &[T] {
        <[T]>::ref_from_bytes(self.bytes()).expect("a block is aligned for numbers and a multiple of them")
    }

    pub fn of_mut<T: FromBytes + IntoBytes + KnownLayout + Immutable>(&mut self) -> &mut [T] {
        <[T]>::mut_from_bytes(self.bytes_mut())
            .expect("a block is aligned for numbers and a multiple of them")
    }
}

/// When a write is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After [`DirectFile::sync`].
    OnSync,
    /// When it returns (`O_DSYNC`).
    EachWrite,
}

/// A file or block device past the page cache.
pub struct DirectFile(File);

impl DirectFile {
    pub fn open(path: &Path, durability: Durability) -> Result<DirectFile> {
        let dsync = if durability == Durability::EachWrite { libc::O_DSYNC } else { 0 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT | dsync);
        Ok(DirectFile(options.open(path).map_err(|error| format!("{}: {error}", path.display()))?))
    }

    /// A new file of so many bytes; the blocks are not allocated.
    pub fn create(path: &Path, bytes: u64) -> Result<DirectFile> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        file.set_len(bytes)?;
        DirectFile::open(path, Durability::OnSync)
    }

    pub fn bytes(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        Ok(self.0.read_exact_at(into, offset)?)
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write_all_at(bytes, offset)?)
    }

    /// Waits until all written is durable.
    pub fn sync(&self) -> Result<()> {
        Ok(self.0.sync_data()?)
    }
}
