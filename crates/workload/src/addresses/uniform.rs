//! Every slot equally likely, drawn with replacement.

use super::{Addresses, Ranks};
use crate::Op;
use nvlab_units::Rng;

/// Uniform addresses.
#[derive(Clone, Debug)]
pub struct Uniform {
    rng: Rng,
    slots: u64,
}

impl Uniform {
    /// Over `0..slots`.
    pub fn new(slots: u64, seed: u64) -> Uniform {
        assert!(slots > 0, "no slots");
        Uniform { rng: Rng::stream(seed, "addresses"), slots }
    }
}

impl Addresses for Uniform {
    #[inline]
    fn slot(&mut self, _op: Op, _units: u64) -> u64 {
        self.rank()
    }

    fn ranks(&self) -> Option<Box<dyn Ranks>> {
        Some(Box::new(self.clone()))
    }
}

impl Ranks for Uniform {
    #[inline]
    fn rank(&mut self) -> u64 {
        self.rng.below(self.slots)
    }
    fn slot_of(&self, rank: u64) -> u64 {
        rank
    }
}
