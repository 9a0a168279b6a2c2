//! Zipf: the slot of rank k is accessed in proportion to `1 / (k + 1)^theta`.

use super::{Ranks, Scatter};
use nvlab_units::Rng;
use nvlab_units::rng::Zipf;

/// Ranks drawn in proportion to `1 / (k + 1)^theta`, scattered over the slots or not.
#[derive(Clone, Debug)]
pub struct ZipfAddresses {
    rng: Rng,
    zipf: Zipf,
    scatter: Option<Scatter>,
}

impl ZipfAddresses {
    /// Over `0..slots` with exponent `theta`. With `scatter` the ranks are scattered, identically for every seed;
    /// without, the hottest slot is the first.
    pub fn new(slots: u64, theta: f64, scatter: bool, seed: u64) -> ZipfAddresses {
        let rng = Rng::stream(seed, "addresses");
        ZipfAddresses { rng, zipf: Zipf::new(slots, theta), scatter: scatter.then(|| Scatter::new(slots, 0)) }
    }
}

impl Ranks for ZipfAddresses {
    #[inline]
    fn rank(&mut self) -> u64 {
        self.zipf.sample(&mut self.rng)
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    #[inline]
    fn slot_of(&self, rank: u64) -> u64 {
        self.scatter.map_or(rank, |scatter| scatter.place(rank))
    }
}
