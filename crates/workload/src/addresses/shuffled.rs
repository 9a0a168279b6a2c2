//! Every slot once per pass, in random order: what fio does unless `norandommap` is given.

use super::{Addresses, Scatter};
use crate::Op;
use nvlab_units::Rng;

/// A new permutation for each pass, or the same for all.
#[derive(Clone, Debug)]
pub struct Shuffled {
    keys: Rng,
    order: Scatter,
    next: u64,
    slots: u64,
    repeats: bool,
}

impl Shuffled {
    /// Over `0..slots`; each pass in the order of the first if it `repeats`.
    pub fn new(slots: u64, repeats: bool, seed: u64) -> Shuffled {
        let mut keys = Rng::stream(seed, "addresses");
        let order = Scatter::new(slots, keys.bits());
        Shuffled { keys, order, next: 0, slots, repeats }
    }
}

impl Addresses for Shuffled {
    #[inline]
    fn slot(&mut self, _op: Op, _units: u64) -> u64 {
        if self.next == self.slots {
            self.next = 0;
            if !self.repeats {
                self.order = Scatter::new(self.slots, self.keys.bits());
            }
        }
        self.next += 1;
        self.order.place(self.next - 1)
    }

    fn passes(&self) -> bool {
        true
    }
}
