//! A set of units, one bit each. The bits of a whole array fit in a processor's caches where its maps do not.

use nvlab_units::bits::words_of;
use serde::{Deserialize, Serialize};

const BITS: u32 = u64::BITS;

/// One bit for each unit of a device, logical or physical, by its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BitSet {
    #[serde(with = "nvlab_units::plain")]
    words: Vec<u64>,
}

impl BitSet {
    /// None of so many units.
    pub fn new(units: u64) -> BitSet {
        BitSet { words: vec![0; units.div_ceil(BITS as u64) as usize] }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    #[inline]
    pub fn holds(&self, unit: u32) -> bool {
        self.words[(unit / BITS) as usize] >> (unit % BITS) & 1 != 0
    }

    #[inline]
    pub fn add(&mut self, unit: u32) {
        self.words[(unit / BITS) as usize] |= 1 << (unit % BITS);
    }

    #[inline]
    pub fn remove(&mut self, unit: u32) {
        self.words[(unit / BITS) as usize] &= !(1 << (unit % BITS));
    }

    /// Adds `count` units from `first` on.
    pub fn add_many(&mut self, first: u32, count: u32) {
        for (word, mask) in words_of(first as u64, count as u64) {
            self.words[word] |= mask;
        }
    }

    /// Removes `count` units from `first` on.
    pub fn remove_many(&mut self, first: u32, count: u32) {
        for (word, mask) in words_of(first as u64, count as u64) {
            self.words[word] &= !mask;
        }
    }

    /// Passes the units of the set in `first..end` to `take`, at most `limit` of them; returns the first that it was not passed,
    /// or `end`.
    #[inline]
    pub fn each(&self, first: u32, end: u32, limit: u32, mut take: impl FnMut(u32)) -> u32 {
        let (mut base, mut left) = (first / BITS * BITS, limit);
        let mut mask = u64::MAX << (first % BITS);
        while base < end {
            let mut word = self.words[(base / BITS) as usize] & mask;
            if end - base < BITS {
                word &= !(u64::MAX << (end - base));
            }
            // Counted once for all units of a word, not with each of them.
            let (count, mut refused) = (word.count_ones(), 0);
            if count > left {
                refused = (0..left).fold(word, |rest, _| rest & (rest - 1));
                word ^= refused;
            }
            while word != 0 {
                take(base + word.trailing_zeros());
                word &= word - 1;
            }
            if refused != 0 {
                return base + refused.trailing_zeros();
            }
            (base, mask, left) = (base + BITS, u64::MAX, left - count);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;

    #[test]
    fn ranges_and_searches_match_a_plain_array() {
        let mut rng = Rng::new(3);
        let (mut set, mut plain) = (BitSet::new(300), vec![false; 300]);
        for _ in 0..3000 {
            let first = rng.below(300) as u32;
            let count = if rng.chance(0.5) { 1 } else { rng.below(301 - first as u64) as u32 };
            let value = rng.chance(0.5);
            match (count, value) {
                (1, true) => set.add(first),
                (1, false) => set.remove(first),
                (_, true) => set.add_many(first, count),
                (_, false) => set.remove_many(first, count),
            }
            plain[first as usize..(first + count) as usize].fill(value);
            assert!((0..300).all(|unit| set.holds(unit) == plain[unit as usize]));
            let (from, end) = (rng.below(300) as u32, rng.below(301) as u32);
            let expected: Vec<u32> = (from..end).filter(|&unit| plain[unit as usize]).collect();
            let limit = rng.below(40) as usize;
            let mut found = Vec::new();
            let next = set.each(from, end, limit as u32, |unit| found.push(unit));
            assert_eq!(found, expected[..expected.len().min(limit)]);
            assert_eq!(next, expected.get(limit).copied().unwrap_or(end));
        }
    }
}
