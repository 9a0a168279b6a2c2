//! Errors of media: broken rules and failing cells.

use nvlab_units::{BlockId, Ppa};
use thiserror::Error;

/// Why an operation on a medium failed. The first group is the caller's fault (a broken rule), the second that of the
/// cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MediumError {
    /// The address or length is outside the medium: address, capacity.
    #[error("{0} is outside the medium, which ends at {1}")]
    OutOfRange(u64, u64),
    /// A program of a NAND page out of order: not the next page of its block.
    #[error("page {page} of block {} was to be programmed, but page {next} is next in order", block.0)]
    OutOfOrder {
        /// The block.
        block: BlockId,
        /// The requested page.
        page: u32,
        /// The only page that may be programmed.
        next: u32,
    },
    /// A second program of a NAND page since its block was erased.
    #[error("page {page} of block {} is already programmed: its block must be erased first", block.0)]
    Programmed {
        /// The block.
        block: BlockId,
        /// The page.
        page: u32,
    },
    /// A write would set a bit of a NOR byte that is 0.
    #[error("byte {offset}: bits can only be cleared, the write of {value:#04x} over {held:#04x} sets some")]
    BitsSet {
        /// Byte address.
        offset: u64,
        /// Value to write.
        value: u8,
        /// Value the byte holds.
        held: u8,
    },
    /// The page has not been programmed since its block was erased.
    #[error("unit {} is erased", .0.0)]
    Erased(Ppa),
    /// The block is marked bad.
    #[error("block {} is bad", .0.0)]
    BadBlock(BlockId),
    /// The program operation failed; the block should be retired. The pages programmed before stay readable.
    #[error("programming block {} failed", .0.0)]
    ProgramFailed(BlockId),
    /// The erase failed; the block should be retired.
    #[error("erasing block {} failed", .0.0)]
    EraseFailed(BlockId),
    /// More bit errors than the error correction can correct, after all retries.
    #[error("unit {} cannot be corrected", .0.0)]
    Uncorrectable(Ppa),
    /// The payload found in the store, written by an earlier process, does not match its checksum.
    #[error("unit {} does not match its checksum: something else changed the file {file} at byte {at}", unit.0)]
    Changed {
        /// The affected unit.
        unit: Ppa,
        /// File of the medium.
        file: &'static str,
        /// Offset of the unit in the file.
        at: u64,
    },
    /// A word or line of an in-place medium is worn out.
    #[error("line {line} is worn out after {writes} writes")]
    WornOut {
        /// The line.
        line: u64,
        /// Its write count.
        writes: u32,
    },
}
