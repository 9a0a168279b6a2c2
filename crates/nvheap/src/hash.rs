//! The checksum of records and headers, and the fingerprint of types: 64 bits, four multiplications per line of 64 B.
//!
//! A record is checked at recovery, never compared with another program's. The requirement is that a torn or damaged
//! one passes with a probability of only 2^-64, at less cost than writing it: the four multiplications are
//! independent. CRC-32C would cost 3 cycles for every 8 B.

const KEYS: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
/// Those of the second factors.
const OTHERS: [u64; 4] =
    [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Four independent chains, so that a line takes as long as one multiplication.
struct Lanes([u64; 4]);

impl Lanes {
    #[inline]
    fn new(seed: u64) -> Lanes {
        Lanes([
            seed ^ KEYS[0],
            seed.rotate_left(16) ^ KEYS[1],
            seed.rotate_left(32) ^ KEYS[2],
            !seed ^ KEYS[3],
        ])
    }

    #[inline]
    fn add(&mut self, line: &[u64; 8]) {
        for (i, lane) in self.0.iter_mut().enumerate() {
            *lane = fold(*lane ^ line[2 * i], line[2 * i + 1] ^ OTHERS[i]).wrapping_add(line[2 * i]);
        }
    }

    #[inline]
    fn finish(self, length: u64) -> u64 {
        let [a, b, c, d] = self.0;
        fold(a ^ KEYS[3] ^ length, b ^ KEYS[2])
            ^ fold(c ^ KEYS[1], d ^ KEYS[0]).rotate_left(23)
            ^ a
            ^ c.rotate_left(41)
    }
}

/// The hash of whole words.
#[inline(always)]
pub(crate) fn hash_words(seed: u64, words: &[u64]) -> u64 {
    let mut lanes = Lanes::new(seed);
    let (lines, rest) = words.as_chunks::<8>();
    lines.iter().for_each(|line| lanes.add(line));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        lanes.add(&last);
    }
    lanes.finish(words.len() as u64)
}

/// The hash of bytes.
pub(crate) fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut lanes = Lanes::new(seed);
    for part in bytes.chunks(64) {
        let mut line = [0; 64];
        line[..part.len()].copy_from_slice(part);
        let words = line.as_chunks::<8>().0;
        lanes.add(&std::array::from_fn(|i| u64::from_le_bytes(words[i])));
    }
    lanes.finish(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_flipped_bit_and_every_length_changes_it() {
        let mut seen = HashSet::new();
        for length in 0..24 {
            let mut words: Vec<u64> = vec![0; length];
            assert!(seen.insert(hash_words(7, &words)), "{length} zero words");
            for bit in 0..length * 64 {
                words[bit / 64] ^= 1 << (bit % 64);
                assert!(seen.insert(hash_words(7, &words)), "bit {bit} of {length} words");
                words[bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
}
