//! Self-similar ("80/20 all the way down"): a share `h` of the slots receives `1 - h` of the accesses, and the
//! same holds within the hot part. fio calls it `pareto`.
//!
//! After Gray and others, "Quickly generating billion-record synthetic databases" (SIGMOD 1994): with u
//! uniform in [0, 1) the rank is `n * u^(ln h / ln(1 - h))`.

use super::{Ranks, Scatter};
use nvlab_units::Rng;

/// Ranks with a share `h` of the slots taking `1 - h` of the accesses, at every scale.
#[derive(Clone, Debug)]
pub struct SelfSimilar {
    rng: Rng,
    slots: u64,
    power: f64,
    scatter: Option<Scatter>,
}

impl SelfSimilar {
    /// Over `0..slots`; `0 < h <= 0.5`, where 0.5 is uniform. Scattered as in [`super::ZipfAddresses`].
    pub fn new(slots: u64, h: f64, scatter: bool, seed: u64) -> SelfSimilar {
        assert!(slots > 0 && h > 0.0 && h <= 0.5, "self-similar over {slots} with h = {h}");
        let rng = Rng::stream(seed, "addresses");
        let power = h.ln() / (1.0 - h).ln();
        SelfSimilar { rng, slots, power, scatter: scatter.then(|| Scatter::new(slots, 0)) }
    }
}

impl Ranks for SelfSimilar {
    #[inline]
    fn rank(&mut self) -> u64 {
        let rank = (self.slots as f64 * self.rng.unit().powf(self.power)) as u64;
        rank.min(self.slots - 1)
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    #[inline]
    fn slot_of(&self, rank: u64) -> u64 {
        self.scatter.map_or(rank, |scatter| scatter.place(rank))
    }
}
