//! B+trees over keys loaded once: the keys are `0..n` without gaps, so the page of every node is computed and
//! nothing is stored.

use super::pool::{Pool, Touch};
use super::space::{Heap, Space};

const LEVELS_MAX: usize = 8;

/// A full tree, its leaves first.
#[derive(Clone, Debug)]
pub struct FixedTree {
    bases: [u32; LEVELS_MAX],
    /// Entries below one node of a level.
    below: [u64; LEVELS_MAX],
    levels: usize,
    pages: u32,
}

impl FixedTree {
    /// A tree over `entries` keys with `fanout` entries in a node.
    pub fn new(space: &mut Space, entries: u64, fanout: u32) -> FixedTree {
        let mut tree = FixedTree { bases: [0; LEVELS_MAX], below: [0; LEVELS_MAX], levels: 0, pages: 0 };
        let mut below = 1;
        loop {
            below *= fanout as u64;
            let nodes = entries.div_ceil(below) as u32;
            tree.bases[tree.levels] = space.take(nodes);
            tree.below[tree.levels] = below;
            tree.levels += 1;
            tree.pages += nodes;
            if nodes == 1 {
                return tree;
            }
        }
    }

    /// Pages that a tree over `entries` keys needs.
    pub fn pages_for(entries: u64, fanout: u32) -> u64 {
        let (mut nodes, mut pages) = (entries, 0);
        loop {
            nodes = nodes.div_ceil(fanout as u64);
            pages += nodes;
            if nodes == 1 {
                return pages;
            }
        }
    }

    /// Levels, including the leaves.
    pub fn levels(&self) -> u32 {
        self.levels as u32
    }

    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Accesses the nodes from the root to the leaf of `key`.
    #[inline]
    pub fn search(&self, key: u64, pool: &mut Pool) {
        for level in (0..self.levels).rev() {
            pool.touch(self.bases[level] + (key / self.below[level]) as u32, Touch::Read);
        }
    }

    /// Accesses the leaves after that of `first` up to that of `last`: a range is read along the leaves.
    pub fn scan(&self, first: u64, last: u64, pool: &mut Pool) {
        for leaf in first / self.below[0] + 1..=last / self.below[0] {
            pool.touch(self.bases[0] + leaf as u32, Touch::Read);
        }
    }
}

/// A table whose rows are loaded once, in order of the primary key.
#[derive(Clone, Debug)]
pub struct FixedTable {
    pub rows: Heap,
    /// The index of the primary key.
    pub tree: FixedTree,
}

impl FixedTable {
    pub fn new(space: &mut Space, rows: u32, rows_per_page: u32, fanout: u32) -> FixedTable {
        FixedTable {
            rows: Heap::new(space, rows, rows_per_page),
            tree: FixedTree::new(space, rows as u64, fanout),
        }
    }

    /// Finds a row by its primary key and accesses it.
    #[inline]
    pub fn access(&self, row: u32, how: Touch, pool: &mut Pool) {
        self.tree.search(row as u64, pool);
        pool.touch(self.rows.page(row), how);
    }
}
