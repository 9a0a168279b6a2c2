//! Doubly linked lists of blocks with all links in one array: O(1) push, unlink and first, no allocation.

use nvlab_units::BlockId;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    prev: u32,
    next: u32,
}

/// Lists over a fixed set of blocks; a block is in at most one of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Lists {
    links: Vec<Link>,
    ends: Vec<Link>,
}

impl Lists {
    pub fn new(blocks: usize, lists: usize) -> Lists {
        let none = Link { prev: NONE, next: NONE };
        Lists { links: vec![none; blocks], ends: vec![none; lists] }
    }

    /// Appends a block to a list.
    #[inline]
    pub fn push(&mut self, list: usize, block: BlockId) {
        let ends = &mut self.ends[list];
        let last = std::mem::replace(&mut ends.prev, block.0);
        if last == NONE {
            ends.next = block.0;
        } else {
            self.links[last as usize].next = block.0;
        }
        self.links[block.0 as usize] = Link { prev: last, next: NONE };
    }

    /// Removes a block from the list it is in.
    #[inline]
    pub fn unlink(&mut self, list: usize, block: BlockId) {
        let Link { prev, next } = self.links[block.0 as usize];
        match prev {
            NONE => self.ends[list].next = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            NONE => self.ends[list].prev = prev,
            next => self.links[next as usize].prev = prev,
        }
    }

    /// The first block of a list.
    #[inline]
    pub fn first(&self, list: usize) -> Option<BlockId> {
        Some(self.ends[list].next).filter(|&block| block != NONE).map(BlockId)
    }

    /// The blocks of a list, first to last.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = BlockId> {
        let next = |block: &BlockId| {
            Some(self.links[block.0 as usize].next).filter(|&block| block != NONE).map(BlockId)
        };
        std::iter::successors(self.first(list), next)
    }
}
