//! The free slots of a file, and which of them is taken next.
//!
//! A free slot is *warm* if the host still has memory or disk for it, otherwise *cold*. The one that became free last is taken
//! first: its pages are there, in the caches as a rule, so that writing to it costs no fresh page. Cold slots are taken lowest
//! first, which keeps the file compact, and slots that were never used when there are no others.

use std::ops::Range;

/// The free slots of a file.
#[derive(Debug)]
pub(super) struct Room {
    /// In the order they became free.
    warm: Vec<u32>,
    cold: Set,
    /// From here on no slot was ever used.
    fresh: u32,
    slots: u32,
}

impl Room {
    /// All of `slots` slots are free.
    pub fn new(slots: u32) -> Room {
        Room { warm: Vec::new(), cold: Set::default(), fresh: 0, slots }
    }

    /// Slots in use below `used.end` are those in the set.
    pub fn found(slots: u32, used: &Set) -> Room {
        let fresh = used.end();
        let mut cold = Set::default();
        (0..fresh).filter(|&slot| !used.holds(slot)).for_each(|slot| cold.insert(slot));
        Room { warm: Vec::new(), cold, fresh, slots }
    }

    pub fn used(&self) -> u32 {
        self.fresh - self.warm.len() as u32 - self.cold.count
    }

    /// The next `count` slots will be taken together: of the warm ones, in their order in the file, so that what was written
    /// together lies together.
    #[inline]
    pub fn line_up(&mut self, count: usize) {
        let first = self.warm.len().saturating_sub(count);
        let next = &mut self.warm[first..];
        if !next.is_sorted_by(|a, b| a > b) {
            next.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Takes a free slot. There must be one.
    #[inline]
    pub fn take(&mut self) -> u32 {
        match self.warm.pop() {
            Some(slot) => slot,
            None => self.take_cold(),
        }
    }

    #[cold]
    fn take_cold(&mut self) -> u32 {
        self.cold.take_first().unwrap_or_else(|| {
            assert!(self.fresh < self.slots, "all of {} slots are in use", self.slots);
            self.fresh += 1;
            self.fresh - 1
        })
    }

    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.warm.push(slot);
    }

    /// Makes the oldest warm slots cold if there are more than `warm_max`, a quarter more of them so that it is seldom done. Returns
    /// the runs of them.
    pub fn cool(&mut self, warm_max: usize) -> Vec<Range<u32>> {
        if self.warm.len() <= warm_max {
            return Vec::new();
        }
        let kept = warm_max - warm_max / 4;
        let mut cooled: Vec<u32> = self.warm.drain(..self.warm.len() - kept).collect();
        cooled.sort_unstable();
        cooled.iter().for_each(|&slot| self.cold.insert(slot));
        let runs = cooled.chunk_by(|&a, &b| a + 1 == b);
        runs.map(|run| run[0]..run[run.len() - 1] + 1).collect()
    }

    /// True if the slot is free and cold, or was never used.
    pub fn is_cold(&self, slot: u32) -> bool {
        slot >= self.fresh || self.cold.holds(slot)
    }
}

/// A set of slots, a bit for each up to the highest.
#[derive(Debug, Default)]
pub(super) struct Set {
    words: Vec<u64>,
    count: u32,
    /// No word before it has a slot.
    first: usize,
}

impl Set {
    #[inline]
    pub fn holds(&self, slot: u32) -> bool {
        self.words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    pub fn insert(&mut self, slot: u32) {
        let at = slot as usize / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.count += !self.holds(slot) as u32;
        self.words[at] |= 1 << (slot % 64);
        self.first = self.first.min(at);
    }

    #[inline]
    pub fn remove(&mut self, slot: u32) {
        if self.holds(slot) {
            self.words[slot as usize / 64] &= !(1 << (slot % 64));
            self.count -= 1;
        }
    }

    fn take_first(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        self.first += self.words[self.first..].iter().position(|&word| word != 0)?;
        let slot = self.first as u32 * 64 + self.words[self.first].trailing_zeros();
        self.remove(slot);
        Some(slot)
    }

    /// One more than the highest slot.
    fn end(&self) -> u32 {
        let last = self.words.iter().rposition(|&word| word != 0);
        last.map_or(0, |at| at as u32 * 64 + 64 - self.words[at].leading_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn every_slot_is_given_once_and_the_freed_come_first() {
        let (mut room, mut rng) = (Room::new(1000), Rng::new(1));
        let mut used = BTreeSet::new();
        for round in 0..20_000 {
            if used.len() < 1000
                && (used.is_empty() || rng.chance(if round % 2000 < 1000 { 0.7 } else { 0.3 }))
            {
                let count = (1 + rng.below(4) as usize).min(1000 - used.len());
                room.line_up(count);
                (0..count).for_each(|_| assert!(used.insert(room.take())));
            } else {
                let slot = *used.iter().nth(rng.below(used.len() as u64) as usize).unwrap();
                used.remove(&slot);
                room.release(slot);
                let again = room.take();
                assert_eq!(again, slot);
                room.release(again);
            }
            for run in room.cool(40) {
                assert!(run.clone().all(|slot| room.is_cold(slot) && !used.contains(&slot)), "{run:?}");
            }
            assert!(room.warm.len() <= 40);
            assert_eq!(room.used() as usize, used.len());
        }
        let mut found = Set::default();
        used.iter().for_each(|&slot| found.insert(slot));
        let mut room = Room::found(1000, &found);
        assert_eq!(room.used() as usize, used.len());
        while used.len() < 1000 {
            assert!(used.insert(room.take()));
        }
        assert_eq!(used.last(), Some(&999));
    }

    #[test]
    fn what_is_taken_together_lies_together() {
        let mut room = Room::new(100);
        let taken: Vec<u32> = (0..8).map(|_| room.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7]);
        [5, 3, 4, 2].into_iter().for_each(|slot| room.release(slot));
        room.line_up(4);
        assert_eq!([room.take(), room.take(), room.take(), room.take(), room.take()], [2, 3, 4, 5, 8]);
    }
}
