//! What is written beside a unit: enough to find it again without any map.
//!
//! Format, little-endian, [`SPARE_BYTES`] in all: kind u8, 3 zero bytes, lpa u32, sequence u64, stamp u64,
//! crc32c u32 over all of these and the unit's data.

use nvlab_medium::flash::SPARE_BYTES;
use nvlab_units::checksum::crc32c;

/// What a unit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Host data: `lpa` and `sequence` are the host's.
    Data = 0xd1,
    /// Part `lpa` of checkpoint number `sequence`.
    Checkpoint = 0xc1,
    /// Records of trims; `lpa` says nothing.
    Trim = 0xb1,
    /// Host data, and the last page of a merge: the block holds all its logical block had then.
    Merged = 0xe1,
    /// Nothing: the page was programmed before it was full.
    Padding = 0xa1,
}

/// The spare area of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spare {
    pub kind: Kind,
    pub lpa: u32,
    /// Which write of the host this is; a relocated unit keeps it.
    pub sequence: u64,
    /// Which program of the controller this is; grows with every unit programmed.
    pub stamp: u64,
}

impl Spare {
    /// The spare area beside `data`.
    pub fn encode(&self, data: &[u8]) -> [u8; SPARE_BYTES] {
        let mut bytes = [0; SPARE_BYTES];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.lpa.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stamp.to_le_bytes());
        let crc = crc32c(&[&bytes[..24], data]);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// What a spare area says; `None` if it or the data beside it is not what was written.
    pub fn decode(bytes: &[u8; SPARE_BYTES], data: &[u8]) -> Option<Spare> {
        let word = |range: std::ops::Range<usize>| {
            bytes[range].iter().rev().fold(0u64, |word, &byte| word << 8 | byte as u64)
        };
        let crc = crc32c(&[&bytes[..24], data]);
        if word(24..28) != crc as u64 {
            return None;
        }
        let kind = [Kind::Data, Kind::Checkpoint, Kind::Trim, Kind::Merged, Kind::Padding]
            .into_iter()
            .find(|k| *k as u8 == bytes[0])?;
        Some(Spare { kind, lpa: word(4..8) as u32, sequence: word(8..16), stamp: word(16..24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_bit_is_noticed() {
        let spare = Spare { kind: Kind::Data, lpa: 77, sequence: 1 << 40, stamp: 3 };
        let mut data = *b"the data beside it";
        let mut bytes = spare.encode(&data);
        assert_eq!(Spare::decode(&bytes, &data), Some(spare));
        for bit in 0..SPARE_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Spare::decode(&bytes, &data), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        data[3] ^= 4;
        assert_eq!(Spare::decode(&bytes, &data), None);
    }
}
