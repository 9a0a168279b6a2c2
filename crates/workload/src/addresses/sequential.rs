//! One slot after another, wrapping around at the end; also with gaps, or backwards.

use super::Addresses;
use crate::Op;

/// Sequential addresses; reads, writes and trims each have their own position.
#[derive(Clone, Debug)]
pub struct Sequential {
    next: [u64; 4],
    slots: u64,
    skip: i64,
}

impl Sequential {
    /// Over `0..slots`, from slot 0.
    pub fn new(slots: u64) -> Sequential {
        Sequential::skipping(slots, 0)
    }

    /// As `new`, with `skip` slots left out after each request. A negative skip goes back; if requests then run backwards, the
    /// first is at the end.
    pub(crate) fn skipping(slots: u64, skip: i64) -> Sequential {
        assert!(slots > 0, "no slots");
        let first = if skip < -1 { slots - 1 } else { 0 };
        Sequential { next: [first; 4], slots, skip }
    }
}

impl Addresses for Sequential {
    #[inline]
    fn slot(&mut self, op: Op, units: u64) -> u64 {
        let next = &mut self.next[op as usize];
        let wrapped = if self.skip < -1 { self.slots.saturating_sub(units) } else { 0 };
        let slot = if next.saturating_add(units) > self.slots { wrapped } else { *next };
        // Before the first slot it is far behind the last: wrapped at the next request.
        *next = (slot + units).wrapping_add_signed(self.skip);
        slot
    }
}
