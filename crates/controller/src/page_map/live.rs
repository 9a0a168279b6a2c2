//! Which units are live: one bit each, so that finding the live units of a block needs no map lookup for each of
//! them. The bits of a whole array fit in a processor's caches where its maps do not.

use nvlab_units::bits::words_of;
use serde::{Deserialize, Serialize};

const BITS: u32 = u64::BITS;

/// One bit for each physical unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Live {
    #[serde(with = "nvlab_units::plain")]
    words: Vec<u64>,
}

impl Live {
    /// No unit is live.
    pub fn new(units: u64) -> Live {
        Live { words: vec![0; units.div_ceil(BITS as u64) as usize] }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    #[inline]
    pub fn holds(&self, unit: u32) -> bool {
        self.words[(unit / BITS) as usize] >> (unit % BITS) & 1 != 0
    }

    #[inline]
    pub fn set(&mut self, unit: u32) {
        self.words[(unit / BITS) as usize] |= 1 << (unit % BITS);
    }

    #[inline]
    pub fn clear(&mut self, unit: u32) {
        self.words[(unit / BITS) as usize] &= !(1 << (unit % BITS));
    }

    /// Marks `count` units from `first` on live.
    pub fn set_many(&mut self, first: u32, count: u32) {
        for (word, mask) in words_of(first as u64, count as u64) {
            self.words[word] |= mask;
        }
    }

    /// Marks `count` units from `first` on dead.
    pub fn clear_many(&mut self, first: u32, count: u32) {
        for (word, mask) in words_of(first as u64, count as u64) {
            self.words[word] &= !mask;
        }
    }

    /// Passes the live units in `first..end` to `take`, at most `limit` of them; returns the first that it was not passed,
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
        let (mut live, mut plain) = (Live::new(300), vec![false; 300]);
        for _ in 0..3000 {
            let first = rng.below(300) as u32;
            let count = if rng.chance(0.5) { 1 } else { rng.below(301 - first as u64) as u32 };
            let value = rng.chance(0.5);
            match (count, value) {
                (1, true) => live.set(first),
                (1, false) => live.clear(first),
                (_, true) => live.set_many(first, count),
                (_, false) => live.clear_many(first, count),
            }
            plain[first as usize..(first + count) as usize].fill(value);
            assert!((0..300).all(|unit| live.holds(unit) == plain[unit as usize]));
            let (from, end) = (rng.below(300) as u32, rng.below(301) as u32);
            let expected: Vec<u32> = (from..end).filter(|&unit| plain[unit as usize]).collect();
            let limit = rng.below(40) as usize;
            let mut found = Vec::new();
            let next = live.each(from, end, limit as u32, |unit| found.push(unit));
            assert_eq!(found, expected[..expected.len().min(limit)]);
            assert_eq!(next, expected.get(limit).copied().unwrap_or(end));
        }
    }
}
