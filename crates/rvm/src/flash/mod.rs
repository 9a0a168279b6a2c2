//! Flash as a character device: any byte can be read and programmed, a program only clears bits (what is there becomes
//! the AND of old and new), and an erase sets all bits of one block.

use std::fmt::Debug;
use std::io;

/// The shape of a flash device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of an erase block (of all chips that work in parallel).
    pub block_bytes: u64,
    /// Erase blocks.
    pub blocks: u32,
}

/// A flash device. Calls return when the device has done the operation, and what is done is durable. A power failure during a
/// program leaves any bits to be cleared cleared or not; one during an erase leaves anything in the block.
pub trait Flash: Debug + Send {
    /// Its name in messages.
    fn name(&self) -> String;
    /// Its shape.
    fn shape(&self) -> Shape;
    /// Reads the bytes at `offset`.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    /// Clears the bits that are 0 in `data`.
    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Sets all bits of a block. An error that is not of the device itself says that the block is worn out.
    fn erase(&mut self, block: u32) -> io::Result<()>;
}
