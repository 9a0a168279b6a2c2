//! One slot after another, wrapping around at the end.

use super::Addresses;
use crate::Op;

/// Sequential addresses; reads, writes and trims each have their own position.
#[derive(Clone, Debug)]
pub struct Sequential {
    next: [u64; 4],
    slots: u64,
}

impl Sequential {
    /// Over `0..slots`.
    pub fn new(slots: u64) -> Sequential {
        assert!(slots > 0, "no slots");
        Sequential { next: [0; 4], slots }
    }
}

impl Addresses for Sequential {
    #[inline]
    fn slot(&mut self, op: Op, units: u64) -> u64 {
        let next = &mut self.next[op as usize];
        let slot = if *next + units > self.slots { 0 } else { *next };
        *next = slot + units;
        slot
    }
}
