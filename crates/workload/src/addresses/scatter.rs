//! A fixed permutation of `0..n` that moves neighbours far apart.
//!
//! A skewed distribution yields ranks; if the rank were the address, the hot pages would be adjacent and a
//! coarse-grained mapping would look better than it is. Odd multiplications and xor-shifts permute the next
//! power of two; a result out of range is permuted again until it is in range (cycle walking), so that it remains
//! a permutation. It needs no table and takes a few nanoseconds.

/// A keyed permutation of `0..n`, computed without a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scatter {
    n: u64,
    mask: u64,
    shift: u32,
    key: u64,
}

impl Scatter {
    /// A permutation of `0..n`; each `key` has its own. Panics if `n` is 0 or above 2^63.
    pub fn new(n: u64, key: u64) -> Scatter {
        assert!(n > 0 && n <= 1 << 63, "a permutation of {n} slots");
        let width = n.next_power_of_two().trailing_zeros();
        let mask = (1u64 << width) - 1;
        // The finalizer of splitmix64, so that similar keys differ widely.
        let key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Scatter { n, mask, shift: (width / 2).max(1), key: key ^ (key >> 31) }
    }

    /// The image of `rank`. Panics in debug builds if `rank` is not below `n`.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.n, "rank {rank} of {}", self.n);
        let mut x = rank;
        loop {
            x = self.once(x);
            if x < self.n {
                return x;
            }
        }
    }

    #[inline]
    fn once(&self, x: u64) -> u64 {
        let (mask, shift) = (self.mask, self.shift);
        let mut x = x.wrapping_add(self.key) & mask;
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        x ^= x >> shift;
        x = x.wrapping_mul(0xd6e8_feb8_6659_fd93) & mask;
        x ^= x >> shift;
        x = x.wrapping_mul(0xa076_1d64_78bd_642f) & mask;
        x ^ (x >> shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scatter_is_a_permutation() {
        for n in (1..200).chain([255, 256, 257, 1000, 4096, 65_537]) {
            for key in [0, 1, 77] {
                let scatter = Scatter::new(n, key);
                let mut hit = vec![false; n as usize];
                for rank in 0..n {
                    let slot = scatter.place(rank) as usize;
                    assert!(!std::mem::replace(&mut hit[slot], true), "n {n} key {key}: slot {slot} twice");
                }
            }
        }
    }

    #[test]
    fn neighbours_are_apart_and_every_region_gets_its_share() {
        let n = 1_000_000;
        let scatter = Scatter::new(n, 0);
        let near = (0..n - 1).filter(|&rank| scatter.place(rank).abs_diff(scatter.place(rank + 1)) < 64);
        assert!(near.count() < 300, "about 128 of a million pairs are near by chance");
        // The hottest thousand over 10 regions: 100 each, give or take 5 sigma.
        let mut regions = [0u32; 10];
        (0..1000).for_each(|rank| regions[(scatter.place(rank) * 10 / n) as usize] += 1);
        assert!(regions.iter().all(|count| (50..150).contains(count)), "{regions:?}");
    }

    #[test]
    fn golden_places_of_scatter() {
        let scatter = Scatter::new(1000, 0);
        assert_eq!([0, 1, 2, 999].map(|rank| scatter.place(rank)), GOLDEN);
    }
    const GOLDEN: [u64; 4] = [628, 365, 523, 829];
}
