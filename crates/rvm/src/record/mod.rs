//! Records: the contents of a log.
//!
//! Every record begins with 8 bytes, little endian:
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..4 | CRC-32C of everything after these 4 bytes; its initial state is a hash of the log's identity and generation and the record's position |
//! | 4..8 | bits 0..28: length of the record in bytes, these 8 included, a multiple of 4; bit 28: the body is compressed; bit 29: *barrier*; bit 30: it names a segment; bit 31: the headers have the original's sizes |
//!
//! A commit's body is a list of ranges. With compact headers a range is 8 bytes, then its data: bits 0..24 are the length,
//! bits 24..64 the offset in the segment; length 0 selects the segment whose number takes the place of the offset (0 is
//! selected at first). With the original's headers (system 001, section 1.3: 48 + 28 B a transaction, 56 B a range) the
//! fields are wider and the rest is fill. A compressed body is 4 bytes (bits 0..28: length of the plain one;
//! bits 28..32: bytes of fill at its end) and an LZ4 block.
//!
//! The body of a record that names a segment is its number (4 bytes), the bytes of its name (4 bytes) and the name.
//!
//! Invariants
//! 1. A record is valid only at its own position in its own log and generation: neither a stale record of an earlier
//!    round nor one from before the last recovery is taken for a new one.
//! 2. A record with the barrier bit was written after everything before it was durable. So an invalid record before
//!    one with the bit was damaged; without one it was never acknowledged.

mod decode;
mod encode;

pub use decode::{Contents, Modification, Modifications, Record};
pub(crate) use decode::{InPlace, written_in_place};
pub use encode::{Encoder, copy, extend, segment_name};

use crate::Status;
use crc_fast::{CrcAlgorithm, Digest};

/// Bytes that every record begins with: length, flags and checksum.
pub const HEADER_BYTES: usize = 8;
/// Length of the longest record, header included: 256 MiB less 4 B.
pub const RECORD_BYTES_MAX: usize = LENGTH_MASK as usize & !3;
/// The most bytes one range header can describe; longer ranges take several.
const RANGE_BYTES_MAX: usize = (1 << 24) - 4;
/// Segments end here: a compact header has 40 bits of offset.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 1 << 40;

const LENGTH_MASK: u32 = (1 << 28) - 1;
const COMPRESSED: u32 = 1 << 28;
const BARRIER: u32 = 1 << 29;
const NAME: u32 = 1 << 30;
const ORIGINAL: u32 = 1 << 31;

/// Which headers records have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headers {
    /// 8 B a transaction, 8 B a range.
    #[default]
    Compact,
    /// 76 B a transaction, 56 B a range, as in the original (system 001, slide 40).
    Original,
}

impl Headers {
    /// Bytes of a transaction's header and trailer.
    pub(crate) const fn transaction_bytes(self) -> usize {
        match self {
            Headers::Compact => HEADER_BYTES,
            Headers::Original => 76,
        }
    }

    /// Those of them before the ranges.
    pub(crate) const fn before_ranges(self) -> usize {
        match self {
            Headers::Compact => HEADER_BYTES,
            Headers::Original => 48,
        }
    }

    /// Bytes of the header before each range.
    pub const fn range_bytes(self) -> usize {
        match self {
            Headers::Compact => 8,
            Headers::Original => 56,
        }
    }
}

/// Where a record is, which its checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    identity: u64,
    generation: u64,
    position: u64,
}

impl Place {
    /// The place at `position` of a log.
    pub fn new(log: &Status, position: u64) -> Place {
        Place { identity: log.identity, generation: log.generation, position }
    }

    /// The checksum of a record here; `rest` is everything after the checksum. The place is the initial state: one call
    /// instead of two for records of a few hundred bytes.
    #[inline]
    fn checksum(&self, rest: &[u8]) -> u32 {
        let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(self.seed()));
        digest.update(rest);
        digest.finalize() as u32
    }

    /// 32 bits that depend on all bits of the place: two rounds of splitmix64 (Steele, Lea, Flood, OOPSLA 2014, figure 17).
    fn seed(&self) -> u32 {
        let mix = |mut word: u64| {
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ word >> 31
        };
        let log = mix(self.identity ^ self.generation.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (mix(log ^ self.position) >> 32) as u32
    }
}

#[cfg(test)]
mod tests;
