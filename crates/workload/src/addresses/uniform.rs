//! Every slot equally likely, drawn with replacement.

use super::Ranks;
use nvlab_units::Rng;

/// Independent draws, all slots equally likely.
#[derive(Clone, Debug)]
pub struct Uniform {
    rng: Rng,
    slots: u64,
}

impl Uniform {
    /// Over `0..slots`; panics if there are none.
    pub fn new(slots: u64, seed: u64) -> Uniform {
        assert!(slots > 0, "no slots");
        Uniform { rng: Rng::stream(seed, "addresses"), slots }
    }
}

impl Ranks for Uniform {
    #[inline]
    fn rank(&mut self) -> u64 {
        self.rng.below(self.slots)
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    fn slot_of(&self, rank: u64) -> u64 {
        rank
    }
    fn is_in_order(&self) -> bool {
        true
    }
    fn is_uniform(&self) -> bool {
        true
    }
}
