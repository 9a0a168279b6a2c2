//! A bell around the middle of the space (fio's `normal`).

use super::Ranks;
use nvlab_units::Rng;

/// Slots normally distributed around the middle, without scatter.
#[derive(Clone, Debug)]
pub struct Normal {
    rng: Rng,
    slots: u64,
    deviation: f64,
}

impl Normal {
    /// Over `0..slots`, around the middle, with a standard deviation of `deviation` of the space. Draws outside are repeated.
    /// Panics unless `0 < deviation <= 1`.
    pub fn new(slots: u64, deviation: f64, seed: u64) -> Normal {
        assert!(slots > 0 && deviation > 0.0 && deviation <= 1.0, "deviation {deviation} over {slots}");
        Normal { rng: Rng::stream(seed, "addresses"), slots, deviation }
    }
}

impl Ranks for Normal {
    #[inline]
    fn rank(&mut self) -> u64 {
        loop {
            let place = self.rng.normal(0.5, self.deviation);
            if (0.0..1.0).contains(&place) {
                return ((place * self.slots as f64) as u64).min(self.slots - 1);
            }
        }
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    fn slot_of(&self, rank: u64) -> u64 {
        rank
    }
}
