//! The checksum of records and headers, and the fingerprint of types: 64 bits, two multiplications per 32 B.
//!
//! A record is checked when it is recovered, never compared with another program's, so what counts is that a torn or
//! damaged one passes with a chance of 2^-64 at a price below that of writing it. CRC-32C would cost 3 cycles for every 8 B.

const KEYS: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of whole words.
#[inline]
pub(crate) fn hash_words(seed: u64, words: &[u64]) -> u64 {
    let (mut a, mut b) = (seed ^ KEYS[0], seed.rotate_left(32) ^ KEYS[1]);
    let (quads, rest) = words.as_chunks::<4>();
    for quad in quads {
        a = fold(a ^ quad[0], quad[1] ^ KEYS[2]).wrapping_add(quad[0]);
        b = fold(b ^ quad[2], quad[3] ^ KEYS[3]).wrapping_add(quad[2]);
    }
    for &word in rest {
        a = fold(a ^ word, KEYS[2]).wrapping_add(b);
        b = b.rotate_left(17) ^ word;
    }
    fold(a ^ KEYS[3] ^ words.len() as u64, b ^ KEYS[2]) ^ a.rotate_left(29)
}

/// The hash of bytes.
pub(crate) fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut words: Vec<u64> = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.push(u64::from_le_bytes(last));
    words.push(bytes.len() as u64);
    hash_words(seed, &words)
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
