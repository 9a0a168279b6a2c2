//! How many words of the table name a slot.
//!
//! A copy inside an array names the slot of what it copies, so a slot is free only when no word names it any more. The counts follow
//! from the table: they are in no file.

/// More than this many are not told apart.
const MANY: u8 = u8::MAX;

/// Words that name each slot, beyond the first.
#[derive(Debug, Default)]
pub(super) struct Names {
    beyond: Vec<u8>,
}

impl Names {
    /// True if several words name it.
    #[inline]
    pub fn are_several(&self, slot: u32) -> bool {
        self.beyond.get(slot as usize).is_some_and(|&beyond| beyond > 0)
    }

    /// Counts one more word that is going to name a slot which has a name; false if the counter is full.
    #[inline]
    #[must_use]
    pub fn add(&mut self, slot: u32) -> bool {
        let at = slot as usize;
        if at >= self.beyond.len() {
            self.beyond.resize(at + 1, 0);
        }
        let has_room = self.beyond[at] < MANY - 1;
        self.beyond[at] += has_room as u8;
        has_room
    }

    /// One more word of a file that was found names a slot. After many of them it has a name until the next start.
    pub fn add_found(&mut self, slot: u32) {
        if !self.add(slot) {
            self.beyond[slot as usize] = MANY;
        }
    }

    /// A word no longer names a slot. False: it was the only one.
    #[inline]
    #[must_use]
    pub fn remove(&mut self, slot: u32) -> bool {
        match self.beyond.get_mut(slot as usize) {
            None | Some(0) => false,
            Some(&mut MANY) => true,
            Some(beyond) => {
                *beyond -= 1;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_when_its_last_name_is_gone() {
        let mut names = Names::default();
        assert!(!names.remove(3) && !names.are_several(3));
        let added = (0..1000).take_while(|_| names.add(3)).count();
        assert_eq!(added, 254);
        assert!(names.are_several(3) && !names.are_several(2) && !names.are_several(4));
        (0..added).for_each(|_| assert!(names.remove(3)));
        assert!(!names.remove(3) && !names.are_several(3));
        (0..300).for_each(|_| names.add_found(5));
        (0..400).for_each(|_| assert!(names.remove(5)));
    }
}
