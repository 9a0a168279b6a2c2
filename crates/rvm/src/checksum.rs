//! CRC-32C, by which records, entries and status of a log are checked.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli; RFC 3720, section 12.1) of the concatenated pieces.
pub fn crc32c(pieces: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    pieces.iter().for_each(|piece| digest.update(piece));
    digest.finalize() as u32
}
