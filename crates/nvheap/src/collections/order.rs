//! The order of at most fifteen slots in one word, so that an insertion or removal in a sorted node moves no keys (Mao, Kohler
//! and Morris, Cache craftiness for fast multicore key-value storage, EuroSys 2012).
//!
//! ```text
//! bits 0..4    count of used slots
//! bits 4..64   fifteen slots of four bits: the used ones in order, then the free ones
//! ```

/// Slots of a node.
pub(crate) const SLOTS: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Order(u64);

/// The lowest `count` slots of the word without its count.
#[inline]
fn low(count: usize) -> u64 {
    (1 << (4 * count)) - 1
}

impl Order {
    /// No slot is used.
    pub const EMPTY: Order = Order(0xedcb_a987_6543_2100);

    #[inline]
    pub fn of(word: u64) -> Order {
        Order(word)
    }

    #[inline]
    pub fn count(self) -> usize {
        (self.0 & 15) as usize
    }

    /// The slot at a position.
    #[inline]
    pub fn slot(self, position: usize) -> usize {
        (self.0 >> (4 + 4 * position)) as usize & 15
    }

    /// Whether every slot is one of a node. (That none is named twice is the matter of a check of the heap.)
    #[inline]
    pub fn is_valid(self) -> bool {
        let slots = self.0 >> 4;
        slots & slots >> 1 & slots >> 2 & slots >> 3 & 0x0111_1111_1111_1111 == 0
    }

    /// Uses a free slot at a position, and returns it.
    #[inline]
    pub fn insert(&mut self, position: usize) -> usize {
        let (slots, count) = (self.0 >> 4, self.count());
        assert!(position <= count && count < SLOTS, "position {position} of {count}");
        let slot = slots >> (4 * count) & 15;
        let between = slots >> (4 * position) & low(count - position);
        let above = slots & !low(count + 1);
        let slots = slots & low(position) | slot << (4 * position) | between << (4 * (position + 1)) | above;
        self.0 = slots << 4 | (count + 1) as u64;
        slot as usize
    }

    /// Frees the slot at a position, and returns it.
    #[inline]
    pub fn remove(&mut self, position: usize) -> usize {
        let (slots, count) = (self.0 >> 4, self.count());
        assert!(position < count, "position {position} of {count}");
        let slot = slots >> (4 * position) & 15;
        let behind = slots >> (4 * (position + 1)) & low(count - 1 - position);
        let above = slots & !low(count);
        let slots = slots & low(position) | behind << (4 * position) | slot << (4 * (count - 1)) | above;
        self.0 = slots << 4 | (count - 1) as u64;
        slot as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a list of used slots.
    #[test]
    fn an_order_stays_a_permutation() {
        let (mut order, mut model, mut word) = (Order::EMPTY, Vec::new(), 1_u64);
        for _ in 0..20_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (word >> 33) as usize;
            if model.len() < SLOTS && (model.is_empty() || random & 1 == 0) {
                let position = (random >> 1) % (model.len() + 1);
                model.insert(position, order.insert(position));
            } else {
                let position = (random >> 1) % model.len();
                assert_eq!(order.remove(position), model.remove(position));
            }
            assert!(order.is_valid());
            assert_eq!((0..order.count()).map(|position| order.slot(position)).collect::<Vec<_>>(), model);
            let mut all: Vec<_> = (0..SLOTS).map(|position| order.slot(position)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..SLOTS).collect::<Vec<_>>());
        }
        assert!(!Order(0xfdcb_a987_6543_2100).is_valid());
    }
}
