//! Bit arrays in 64-bit words.

/// The words that hold `count` bits starting at bit `first`, in order: (index, mask of the bits in the range).
#[inline]
pub fn words_of(first: u64, count: u64) -> impl Iterator<Item = (usize, u64)> {
    let (mut from, end) = (first, first + count);
    std::iter::from_fn(move || {
        let bits = (64 - from % 64).min(end - from);
        let word = (bits > 0).then(|| ((from / 64) as usize, (u64::MAX >> (64 - bits)) << (from % 64)));
        from += bits;
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_range_is_in_one_word() {
        for first in 0..130 {
            for count in 0..200 {
                let bits = words_of(first, count).flat_map(|(word, mask)| {
                    assert_ne!(mask, 0);
                    (0..64).filter(move |bit| mask >> bit & 1 != 0).map(move |bit| word as u64 * 64 + bit)
                });
                assert!(bits.eq(first..first + count), "{count} from {first}");
            }
        }
    }
}
