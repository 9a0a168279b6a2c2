//! The checksum of everything nvlab stores.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC-32C (Castagnoli; RFC 3720, section 12.1) of the concatenated pieces.
#[inline]
pub fn crc32c(pieces: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    pieces.iter().for_each(|piece| digest.update(piece));
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_3720() {
        // Appendix B.4.
        let counted: Vec<u8> = (0..32).collect();
        for (data, crc) in [(vec![0; 32], 0x8a91_36aa), (vec![0xff; 32], 0x62a8_ab43), (counted, 0x46dd_794e)]
        {
            assert_eq!(crc32c(&[&data]), crc);
            assert_eq!(crc32c(&[&data[..7], &[], &data[7..]]), crc);
        }
    }
}
