//! The spare area written with each unit: enough to find the unit again without any map.
//!
//! Format, little-endian, [`SPARE_BYTES`] in total: kind u8, guard u24, lpa u32, sequence u64, stamp u64, crc32c u32
//! over all of these, with the guard as 0, and the unit's data. The guard is the lower part of the crc32c of everything
//! else in the spare area: with it the spare area still identifies the unit when its data is damaged. A torn page is
//! garbled from some byte on, its spare areas last, so that a spare area with a valid guard was programmed whole.

use nvlab_medium::flash::{Nand, SPARE_BYTES};
use nvlab_medium::{MediumError, Store};
use nvlab_units::checksum::crc32c;
use nvlab_units::{Lpa, Ppa};
use serde::{Deserialize, Serialize};

/// What a unit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Host data: `lpa` and `sequence` are the host's.
    Data = 0xd1,
    /// Part `lpa` of checkpoint number `sequence`.
    Checkpoint = 0xc1,
    /// Records of trims; `lpa` is meaningless.
    Trim = 0xb1,
    /// Host data in the last page of a merge: the block holds everything its logical block held then.
    Merged = 0xe1,
    /// Translation page `lpa`: entries of a map that is read on demand.
    Map = 0xe9,
    /// Host data of a page that is still being filled elsewhere.
    Logged = 0xf1,
    /// Nothing: the page was programmed before it was full.
    Padding = 0xa1,
}

/// A flag in the byte of the kind: the data did not match its checksum when it was copied here.
const DAMAGED: u8 = 2;
/// Where the fields end and the checksum begins.
const FIELDS_END: usize = 24;

/// The spare area of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spare {
    pub kind: Kind,
    /// The data is not what the host wrote: a read must fail.
    pub damaged: bool,
    /// The logical unit, or what the kind says.
    pub lpa: Lpa,
    /// The number of the host write; a relocated unit keeps it.
    pub sequence: u64,
    /// The number of the unit's program; increases with every unit programmed.
    pub stamp: u64,
}

impl Spare {
    /// Encodes the spare area for `data`.
    pub fn encode(&self, data: &[u8]) -> [u8; SPARE_BYTES] {
        self.encode_with(|bytes| crc(bytes, data))
    }

    /// [`Spare::encode`] for many units with the same data, without reading it each time.
    pub fn encoder(data: &[u8]) -> impl Fn(&Spare) -> [u8; SPARE_BYTES] {
        let (of_zeros, changes) = (crc(&[0; SPARE_BYTES], data), Changes::new(data.len()));
        move |spare| spare.encode_with(|bytes| of_zeros ^ changes.of(bytes))
    }

    /// The spare area of a copy of a unit that has the spare area `bytes`, without its data: this matches the checksum of the copy if it
    /// matches that in `bytes`, and only then.
    pub fn encode_copy(&self, changes: &Changes, bytes: &[u8; SPARE_BYTES]) -> [u8; SPARE_BYTES] {
        self.encode_with(|copy| {
            let changed: [u8; FIELDS_END] = std::array::from_fn(|place| copy[place] ^ bytes[place]);
            word(&bytes[FIELDS_END..]) as u32 ^ changes.of(&changed)
        })
    }

    fn encode_with(&self, crc: impl FnOnce(&[u8; SPARE_BYTES]) -> u32) -> [u8; SPARE_BYTES] {
        let mut bytes = [0; SPARE_BYTES];
        bytes[0] = self.kind as u8 | if self.damaged { DAMAGED } else { 0 };
        bytes[4..8].copy_from_slice(&self.lpa.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..FIELDS_END].copy_from_slice(&self.stamp.to_le_bytes());
        let crc = crc(&bytes);
        bytes[FIELDS_END..].copy_from_slice(&crc.to_le_bytes());
        let guard = guard(&bytes);
        bytes[1..4].copy_from_slice(&guard);
        bytes
    }

    /// The first bytes of a spare area that no longer names what its unit held, but padding.
    pub fn label_of_padding(mut bytes: [u8; SPARE_BYTES]) -> [u8; 4] {
        bytes[0] = Kind::Padding as u8;
        let [a, b, c] = guard(&bytes);
        [bytes[0], a, b, c]
    }

    /// Decodes a spare area; `None` if it or its data is not what was written.
    pub fn decode(bytes: &[u8; SPARE_BYTES], data: &[u8]) -> Option<Spare> {
        (word(&bytes[24..28]) == crc(bytes, data) as u64).then(|| Spare::parse(bytes)).flatten()
    }

    /// Decodes a spare area whose data is known to be damaged; `None` if it is not what was written either.
    pub fn of_damaged(bytes: &[u8; SPARE_BYTES]) -> Option<Spare> {
        Spare::alone(bytes).map(|spare| Spare { damaged: true, ..spare })
    }

    /// Decodes a spare area without its data; `None` if it is not what was written.
    pub fn alone(bytes: &[u8; SPARE_BYTES]) -> Option<Spare> {
        (guard(bytes) == bytes[1..4]).then(|| Spare::parse(bytes)).flatten()
    }

    /// Decodes a spare area that was encoded here and is not yet programmed, or that was decoded before.
    pub fn of_known(bytes: &[u8]) -> Spare {
        let spare = bytes.try_into().ok().and_then(Spare::parse);
        spare.expect("a spare area that was encoded here")
    }

    /// True if a spare area that was encoded here says that its unit is damaged.
    #[inline]
    pub fn says_damaged(bytes: &[u8]) -> bool {
        bytes[0] & DAMAGED != 0
    }

    fn parse(bytes: &[u8; SPARE_BYTES]) -> Option<Spare> {
        let kinds =
            [Kind::Data, Kind::Checkpoint, Kind::Trim, Kind::Merged, Kind::Map, Kind::Logged, Kind::Padding];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == bytes[0] & !DAMAGED)?;
        let damaged = bytes[0] & DAMAGED != 0;
        let (lpa, sequence, stamp) =
            (Lpa(word(&bytes[4..8]) as u32), word(&bytes[8..16]), word(&bytes[16..24]));
        Some(Spare { kind, damaged, lpa, sequence, stamp })
    }
}

/// What each byte of the fields changes in the checksum of a unit. A checksum is linear: this depends on the length of the data and
/// not on what it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Vec<[u32; 256]>);

impl Changes {
    /// Of units of so many bytes.
    pub fn new(unit_bytes: usize) -> Changes {
        let data = vec![0; unit_bytes];
        let of_zeros = crc(&[0; SPARE_BYTES], &data);
        let of_place = |place| {
            let mut changes = [0; 256];
            for byte in 1..256usize {
                let lowest = byte & byte.wrapping_neg();
                changes[byte] = if byte == lowest {
                    let mut bytes = [0; SPARE_BYTES];
                    bytes[place] = byte as u8;
                    crc(&bytes, &data) ^ of_zeros
                } else {
                    changes[lowest] ^ changes[byte ^ lowest]
                };
            }
            changes
        };
        Changes((0..FIELDS_END).map(of_place).collect())
    }

    #[inline]
    fn of(&self, bytes: &[u8]) -> u32 {
        let changed = bytes.iter().zip(&self.0).map(|(&byte, changes)| changes[byte as usize]);
        changed.fold(0, |crc, change| crc ^ change)
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | byte as u64)
}

fn crc(bytes: &[u8; SPARE_BYTES], data: &[u8]) -> u32 {
    crc32c(&[&[bytes[0], 0, 0, 0], &bytes[4..24], data])
}

fn guard(bytes: &[u8; SPARE_BYTES]) -> [u8; 3] {
    let [a, b, c, _] = crc32c(&[&bytes[..1], &bytes[4..]]).to_le_bytes();
    [a, b, c]
}

/// Reads the spare area of a unit, and its payload into `data`. Data that does not match its checksum is reported as
/// damaged if the spare area is intact.
///
/// Errors: [`MediumError::Erased`]; [`MediumError::Uncorrectable`]: `data` holds zeros or undefined bytes.
pub(crate) fn peek<S: Store>(nand: &Nand<S>, unit: Ppa, data: &mut [u8]) -> Result<Spare, MediumError> {
    let mut spare = [0; SPARE_BYTES];
    if let Err(error) = nand.peek(unit, data, &mut spare) {
        data.fill(0);
        return Err(error);
    }
    let found = Spare::decode(&spare, data).or_else(|| Spare::of_damaged(&spare));
    found.ok_or(MediumError::Uncorrectable(unit))
}

/// True if units that are read must be compared with their checksums: all of them, or those written by an earlier
/// process or known to be damaged.
#[inline]
pub(crate) fn is_to_verify<S: Store>(nand: &Nand<S>, all: bool, first: Ppa, count: u32) -> bool {
    S::KEEPS && (all || nand.is_unverified(first, count))
}

/// Checks that a unit that was read holds what the host wrote to `lpa`. `data`: what was read; empty: viewed in place.
///
/// Errors: as [`Nand::reject`].
pub(crate) fn verify<S: Store>(
    nand: &mut Nand<S>,
    unit: Ppa,
    lpa: Lpa,
    data: &[u8],
) -> Result<(), MediumError> {
    let spare = nand.spare(unit)?;
    let found = Spare::decode(&spare, if data.is_empty() { nand.view(unit, 1)? } else { data });
    let holds =
        |spare: Spare| matches!(spare.kind, Kind::Data | Kind::Merged) && spare.lpa == lpa && !spare.damaged;
    if !found.is_some_and(holds) {
        return Err(nand.reject(unit));
    }
    nand.set_verified(unit);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_bit_is_noticed() {
        let spare = Spare { kind: Kind::Data, damaged: false, lpa: Lpa(77), sequence: 1 << 40, stamp: 3 };
        let mut data = *b"the data beside it";
        let mut bytes = spare.encode(&data);
        assert_eq!(Spare::decode(&bytes, &data), Some(spare));
        for bit in 0..SPARE_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let in_guard = (8..32).contains(&bit);
            assert_eq!(Spare::decode(&bytes, &data), in_guard.then_some(spare), "bit {bit}");
            assert_eq!(Spare::of_damaged(&bytes), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(Spare::encoder(&data)(&spare), bytes);
        assert_eq!(Spare::alone(&bytes), Some(spare));
        let mut padding = bytes;
        padding[..4].copy_from_slice(&Spare::label_of_padding(bytes));
        assert_eq!(Spare::decode(&padding, &data), None);
        assert_eq!(Spare::of_damaged(&padding), Some(Spare { kind: Kind::Padding, damaged: true, ..spare }));
        data[3] ^= 4;
        assert_eq!(Spare::decode(&bytes, &data), None);
        let damaged = Spare { damaged: true, ..spare };
        assert_eq!(Spare::of_damaged(&bytes), Some(damaged));
        assert_eq!(Spare::decode(&damaged.encode(&data), &data), Some(damaged));
    }

    #[test]
    fn a_copy_matches_its_data_if_what_was_copied_did() {
        let mut data = *b"the data beside it";
        let changes = Changes::new(data.len());
        let spare = Spare { kind: Kind::Data, damaged: false, lpa: Lpa(77), sequence: 1 << 40, stamp: 3 };
        let bytes = spare.encode(&data);
        for (kind, stamp) in [(Kind::Merged, 4), (Kind::Data, 1 << 40), (Kind::Data, 3)] {
            let copy = Spare { kind, stamp, ..spare };
            let copied = copy.encode_copy(&changes, &bytes);
            assert_eq!(copied, copy.encode(&data));
            data[5] ^= 1;
            assert_eq!(Spare::decode(&copied, &data), None);
            data[5] ^= 1;
        }
    }
}
