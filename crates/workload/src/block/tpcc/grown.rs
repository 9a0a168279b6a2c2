//! B+trees that grow: inner nodes with their keys, and leaves of which only the count is stored.
//!
//! 1. A key is a `u64` with the order of the columns: the district in the upper bits, then the columns that order its
//!    rows.
//! 2. An inner node's entries are the least keys below its children. A search goes to the last entry not above
//!    the key, or to the first.
//! 3. If keys arrive in ascending order within each district (orders, their lines, new-orders), a full leaf is split
//!    after the new entry, so that leaves are full, as in PostgreSQL (from 12) and InnoDB. The tree is loaded in the
//!    resulting shape: every district begins on its own leaf. So the keys of a leaf need not be stored: [`Ascending`].
//! 4. If they do not (orders by customer), a full leaf is split in the middle and its keys are stored: [`Sorted`].
//! 5. A full inner node is split in the middle. Nodes are never merged; an empty one is freed and reused (as in
//!    PostgreSQL), but every district keeps a leaf.

use super::fixed::FixedTree;
use super::pool::{Pool, Touch};
use super::space::{Segment, Space};
use std::ops::Range;

const LEVELS_MAX: usize = 12;

/// The bits of a key within a district.
pub const DISTRICT_SHIFT: u32 = 44;

/// The inner nodes and the pages of the leaves.
#[derive(Clone, Debug)]
struct Nodes {
    fanout: usize,
    segment: Segment,
    root: u32,
    /// Levels above the leaves.
    levels: usize,
    inner_pages: Vec<u32>,
    inner_counts: Vec<u16>,
    /// `fanout` entries per inner node: the least keys and the children.
    keys: Vec<u64>,
    children: Vec<u32>,
    leaf_pages: Vec<u32>,
    leaf_counts: Vec<u16>,
    free_inner: Vec<u32>,
    free_leaves: Vec<u32>,
    /// Node and entry on each inner level, of the last search.
    path: [(u32, u32); LEVELS_MAX],
    /// The range of keys that lead to the leaf of the last search; empty after a change of the nodes.
    reach: Range<u64>,
    found: u32,
}

impl Nodes {
    /// A tree with the leaves `(least key, count)`, inner nodes full.
    fn load(space: &mut Space, fanout: u32, leaves: &[(u64, u16)]) -> Nodes {
        let pages = leaves.len() as u64 + FixedTree::pages_for(leaves.len() as u64, fanout);
        let segment = Segment::new(space, pages as u32);
        let leaf_count = leaves.len() as u32;
        let mut nodes = Nodes {
            fanout: fanout as usize,
            root: 0,
            levels: 0,
            inner_pages: Vec::new(),
            inner_counts: Vec::new(),
            keys: Vec::new(),
            children: Vec::new(),
            leaf_pages: (0..leaf_count).map(|leaf| segment.page(leaf)).collect(),
            leaf_counts: leaves.iter().map(|leaf| leaf.1).collect(),
            free_inner: Vec::new(),
            free_leaves: Vec::new(),
            path: [(0, 0); LEVELS_MAX],
            reach: 0..0,
            found: 0,
            segment,
        };
        let mut level: Vec<(u64, u32)> =
            leaves.iter().zip(0..).map(|(leaf, number)| (leaf.0, number)).collect();
        // There is nothing before the first leaf: a key below its least key belongs to it.
        level[0].0 = 0;
        while level.len() > 1 || nodes.levels == 0 {
            let mut above = Vec::with_capacity(level.len().div_ceil(fanout as usize));
            for entries in level.chunks(fanout as usize) {
                let page = nodes.segment.page(leaf_count + nodes.inner_pages.len() as u32);
                let node = nodes.new_inner(page);
                for (slot, &(key, child)) in entries.iter().enumerate() {
                    nodes.put(node, slot, key, child);
                }
                above.push((entries[0].0, node));
            }
            (level, nodes.levels) = (above, nodes.levels + 1);
        }
        nodes.root = level[0].1;
        nodes
    }

    fn new_inner(&mut self, page: u32) -> u32 {
        let length = self.keys.len() + self.fanout;
        self.keys.resize(length, 0);
        self.children.resize(length, 0);
        self.inner_pages.push(page);
        self.inner_counts.push(0);
        (self.inner_pages.len() - 1) as u32
    }

    /// Inserts an entry at `slot` of an inner node that has room, moving those after it.
    fn put(&mut self, node: u32, slot: usize, key: u64, child: u32) {
        let (base, count) = (node as usize * self.fanout, self.inner_counts[node as usize] as usize);
        assert!(slot <= count && count < self.fanout, "entry {slot} of {count} in node {node}");
        self.keys.copy_within(base + slot..base + count, base + slot + 1);
        self.children.copy_within(base + slot..base + count, base + slot + 1);
        self.keys[base + slot] = key;
        self.children[base + slot] = child;
        self.inner_counts[node as usize] += 1;
    }

    /// Accesses the inner nodes on the path to `key`, records them, and returns its leaf. The lines of an order take
    /// the same path one after another: then nothing is compared.
    #[inline]
    fn search(&mut self, key: u64, pool: &mut Pool) -> usize {
        if self.reach.contains(&key) {
            for &(node, _) in &self.path[..self.levels] {
                pool.touch(self.inner_pages[node as usize], Touch::Read);
            }
            return self.found as usize;
        }
        let (mut node, mut reach) = (self.root, 0..u64::MAX);
        for level in 0..self.levels {
            pool.touch(self.inner_pages[node as usize], Touch::Read);
            let base = node as usize * self.fanout;
            let keys = &self.keys[base..base + self.inner_counts[node as usize] as usize];
            let behind = keys.partition_point(|&least| least <= key);
            let slot = behind.saturating_sub(1);
            reach.end = keys.get(slot + 1).map_or(reach.end, |&next| next);
            if behind > 0 {
                reach.start = keys[slot];
            }
            self.path[level] = (node, slot as u32);
            node = self.children[base + slot];
        }
        (self.reach, self.found) = (reach, node);
        node as usize
    }

    /// Adds a leaf with the least key `key` after the leaf of the last search.
    fn add_leaf(&mut self, key: u64, pool: &mut Pool, space: &mut Space) -> usize {
        let leaf = match self.free_leaves.pop() {
            Some(leaf) => leaf,
            None => {
                self.leaf_pages.push(self.segment.grow(space));
                self.leaf_counts.push(0);
                (self.leaf_pages.len() - 1) as u32
            }
        };
        pool.touch(self.leaf_pages[leaf as usize], Touch::Create);
        self.reach = 0..0;
        let (mut key, mut child) = (key, leaf);
        for level in (0..self.levels).rev() {
            let (node, slot) = self.path[level];
            pool.touch(self.inner_pages[node as usize], Touch::Change);
            if (self.inner_counts[node as usize] as usize) < self.fanout {
                self.put(node, slot as usize + 1, key, child);
                return leaf as usize;
            }
            (key, child) = self.split(node, slot as usize + 1, key, child, pool, space);
        }
        let old = (self.keys[self.root as usize * self.fanout], self.root);
        self.root = self.created_inner(pool, space);
        self.put(self.root, 0, old.0, old.1);
        self.put(self.root, 1, key, child);
        self.levels += 1;
        assert!(self.levels <= LEVELS_MAX, "{} levels", self.levels);
        leaf as usize
    }

    fn created_inner(&mut self, pool: &mut Pool, space: &mut Space) -> u32 {
        let node = match self.free_inner.pop() {
            Some(node) => node,
            None => {
                let page = self.segment.grow(space);
                self.new_inner(page)
            }
        };
        pool.touch(self.inner_pages[node as usize], Touch::Create);
        node
    }

    /// Splits a full inner node in the middle, inserts the entry, and returns the entry of the new node.
    fn split(
        &mut self,
        node: u32,
        slot: usize,
        key: u64,
        child: u32,
        pool: &mut Pool,
        space: &mut Space,
    ) -> (u64, u32) {
        let new = self.created_inner(pool, space);
        let half = self.fanout.div_ceil(2);
        let (from, to) = (node as usize * self.fanout, new as usize * self.fanout);
        self.keys.copy_within(from + half..from + self.fanout, to);
        self.children.copy_within(from + half..from + self.fanout, to);
        self.inner_counts[node as usize] = half as u16;
        self.inner_counts[new as usize] = (self.fanout - half) as u16;
        match slot <= half {
            true => self.put(node, slot, key, child),
            false => self.put(new, slot - half, key, child),
        }
        (self.keys[to], new)
    }

    /// Frees the empty leaf of the last search, and inner nodes that become empty with it.
    fn drop_leaf(&mut self, leaf: usize, pool: &mut Pool) {
        self.free_leaves.push(leaf as u32);
        self.reach = 0..0;
        for level in (0..self.levels).rev() {
            let (node, slot) = self.path[level];
            let (base, count) = (node as usize * self.fanout, self.inner_counts[node as usize] as usize);
            pool.touch(self.inner_pages[node as usize], Touch::Change);
            self.keys.copy_within(base + slot as usize + 1..base + count, base + slot as usize);
            self.children.copy_within(base + slot as usize + 1..base + count, base + slot as usize);
            self.inner_counts[node as usize] -= 1;
            if count > 1 {
                return;
            }
            assert!(level > 0, "the root became empty");
            self.free_inner.push(node);
        }
    }
}

/// A tree whose keys ascend within each district.
#[derive(Clone, Debug)]
pub struct Ascending {
    nodes: Nodes,
}

impl Ascending {
    /// A tree that holds the keys in each district's range; `fanout` entries per node.
    pub fn load(space: &mut Space, fanout: u32, districts: impl Iterator<Item = Range<u64>>) -> Ascending {
        let mut leaves = Vec::new();
        for (district, range) in (0u64..).zip(districts) {
            for first in range.clone().step_by(fanout as usize) {
                let count = (range.end - first).min(fanout as u64);
                leaves.push((district << DISTRICT_SHIFT | first, count as u16));
            }
        }
        Ascending { nodes: Nodes::load(space, fanout, &leaves) }
    }

    /// How many pages it has, including freed ones.
    pub fn pages(&self) -> u32 {
        self.nodes.segment.pages()
    }

    /// Levels, including the leaves.
    pub fn levels(&self) -> u32 {
        self.nodes.levels as u32 + 1
    }

    #[inline]
    pub fn read(&mut self, district: u32, key: u32, pool: &mut Pool) {
        let leaf = self.nodes.search(joined(district, key), pool);
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Read);
    }

    /// Reads a range of a district's keys, which are dense: accesses each of its leaves at least once.
    pub fn read_range(&mut self, district: u32, keys: Range<u32>, pool: &mut Pool) {
        for key in keys.clone().step_by(self.nodes.fanout).chain([keys.end - 1]) {
            self.read(district, key, pool);
        }
    }

    /// Adds the next key of its district.
    #[inline]
    pub fn append(&mut self, district: u32, key: u32, pool: &mut Pool, space: &mut Space) {
        let key = joined(district, key);
        let mut leaf = self.nodes.search(key, pool);
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Change);
        if self.nodes.leaf_counts[leaf] as usize == self.nodes.fanout {
            leaf = self.nodes.add_leaf(key, pool, space);
        }
        self.nodes.leaf_counts[leaf] += 1;
    }

    /// Removes the newest key of its district: the transaction that added it is rolled back. Its leaf stays.
    pub fn take_back(&mut self, district: u32, key: u32, pool: &mut Pool) {
        let leaf = self.nodes.search(joined(district, key), pool);
        self.nodes.leaf_counts[leaf] -= 1;
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Change);
    }

    /// Removes the oldest key of its district; `is_last` if no other is left.
    #[inline]
    pub fn remove_oldest(&mut self, district: u32, key: u32, is_last: bool, pool: &mut Pool) {
        let leaf = self.nodes.search(joined(district, key), pool);
        self.nodes.leaf_counts[leaf] -= 1;
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Change);
        if self.nodes.leaf_counts[leaf] == 0 && !is_last {
            self.nodes.drop_leaf(leaf, pool);
        }
    }
}

/// A tree whose keys arrive in any order.
#[derive(Clone, Debug)]
pub struct Sorted {
    nodes: Nodes,
    /// `fanout` keys per leaf.
    keys: Vec<u64>,
}

impl Sorted {
    /// A tree that holds `keys`, which are ascending, `fill` of them per leaf.
    pub fn load(space: &mut Space, fanout: u32, fill: u32, keys: &[u64]) -> Sorted {
        let chunks = || keys.chunks(fill as usize);
        let leaves: Vec<(u64, u16)> = chunks().map(|keys| (keys[0], keys.len() as u16)).collect();
        let mut kept = vec![0; leaves.len() * fanout as usize];
        for (leaf, keys) in kept.chunks_mut(fanout as usize).zip(chunks()) {
            leaf[..keys.len()].copy_from_slice(keys);
        }
        Sorted { nodes: Nodes::load(space, fanout, &leaves), keys: kept }
    }

    pub fn pages(&self) -> u32 {
        self.nodes.segment.pages()
    }

    /// Levels, including the leaves.
    pub fn levels(&self) -> u32 {
        self.nodes.levels as u32 + 1
    }

    /// The leaf of a key, and the key's position there.
    #[inline]
    fn find(&mut self, key: u64, pool: &mut Pool) -> (usize, usize) {
        let leaf = self.nodes.search(key, pool);
        let base = leaf * self.nodes.fanout;
        let keys = &self.keys[base..base + self.nodes.leaf_counts[leaf] as usize];
        (leaf, keys.partition_point(|&other| other < key))
    }

    /// Finds a key. Panics if it does not exist.
    pub fn read(&mut self, key: u64, pool: &mut Pool) {
        let (leaf, slot) = self.find(key, pool);
        assert_eq!(self.keys[leaf * self.nodes.fanout + slot], key, "entry {slot} of leaf {leaf}");
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Read);
    }

    pub fn insert(&mut self, key: u64, pool: &mut Pool, space: &mut Space) {
        let (mut leaf, mut slot) = self.find(key, pool);
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Change);
        let fanout = self.nodes.fanout;
        if self.nodes.leaf_counts[leaf] as usize == fanout {
            let half = fanout.div_ceil(2);
            let from = leaf * fanout;
            let new = self.nodes.add_leaf(self.keys[from + half], pool, space);
            self.keys.resize(self.keys.len().max((new + 1) * fanout), 0);
            self.keys.copy_within(from + half..from + fanout, new * fanout);
            self.nodes.leaf_counts[leaf] = half as u16;
            self.nodes.leaf_counts[new] = (fanout - half) as u16;
            if slot > half {
                (leaf, slot) = (new, slot - half);
            }
        }
        let (base, count) = (leaf * fanout, self.nodes.leaf_counts[leaf] as usize);
        self.keys.copy_within(base + slot..base + count, base + slot + 1);
        self.keys[base + slot] = key;
        self.nodes.leaf_counts[leaf] += 1;
    }

    /// Removes a key: the transaction that added it is rolled back. Its leaf stays.
    pub fn take_back(&mut self, key: u64, pool: &mut Pool) {
        let (leaf, slot) = self.find(key, pool);
        let (base, count) = (leaf * self.nodes.fanout, self.nodes.leaf_counts[leaf] as usize);
        assert_eq!(self.keys[base + slot], key, "entry {slot} of leaf {leaf}");
        self.keys.copy_within(base + slot + 1..base + count, base + slot);
        self.nodes.leaf_counts[leaf] -= 1;
        pool.touch(self.nodes.leaf_pages[leaf], Touch::Change);
    }
}

/// The key of a district's row.
#[inline]
fn joined(district: u32, key: u32) -> u64 {
    (district as u64) << DISTRICT_SHIFT | key as u64
}

#[cfg(test)]
mod tests;
