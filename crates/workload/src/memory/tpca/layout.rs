//! The layout of the database in memory: records first, then the index trees.
//!
//! ```text
//! branches | tellers | accounts | history (if kept) | branch tree | teller tree | account tree
//! ```
//!
//! 1. Every region begins on a page, so that no page holds two kinds of data.
//! 2. Accounts and history records are packed: a record of 100 B may straddle two pages. Its balance is one
//!    word at a multiple of 4, so it never does.
//! 3. Branches and tellers are packed, or each has its own page (`spread-hot`).
//! 4. A node holds `fanout` entries of a 4 B key and a 4 B pointer. Keys are `0..n` without gaps, so the nodes
//!    of a level are in key order and their addresses are computed; no tree is stored. Unused entries of the last
//!    node of a level hold the largest key, so a search needs no count.

use crate::memory::Access;

/// A key or pointer, and the word that holds a balance.
pub(super) const WORD_BYTES: u16 = 4;
/// A key and a pointer.
const ENTRY_BYTES: u64 = 8;
/// The most levels a tree of 2^32 keys can have, at a fanout of 2.
const LEVELS_MAX: usize = 32;

/// A region of equal records, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records {
    /// Offset of the first record in the memory.
    pub base: u64,
    /// Bytes from the start of a record to that of the next.
    pub stride: u64,
    /// Number of records.
    pub count: u64,
}

impl Records {
    #[inline]
    pub(super) fn at(&self, key: u64) -> u64 {
        debug_assert!(key < self.count, "record {key} of {}", self.count);
        self.base + key * self.stride
    }

    /// The bytes from the first to the end of the last.
    pub fn bytes(&self) -> u64 {
        self.count * self.stride
    }
}

/// An index tree with full nodes: its levels lie one after another, the leaves first.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    /// First bytes of the levels, the leaves first.
    pub(super) bases: [u64; LEVELS_MAX],
    pub(super) levels: usize,
    nodes: u64,
    pub(super) fanout_bits: u32,
}

impl Tree {
    /// A tree over the keys `0..count`, its leaves at `base`.
    pub(super) fn new(base: u64, count: u64, fanout: u32) -> Tree {
        assert!(count > 0 && fanout.is_power_of_two() && fanout > 1, "{count} keys, fanout {fanout}");
        let node_bytes = fanout as u64 * ENTRY_BYTES;
        let (mut bases, mut levels, mut nodes, mut entries) = ([0; LEVELS_MAX], 0, 0, count);
        loop {
            bases[levels] = base + nodes * node_bytes;
            levels += 1;
            entries = entries.div_ceil(fanout as u64);
            nodes += entries;
            if entries == 1 {
                break;
            }
        }
        Tree { bases, levels, nodes, fanout_bits: fanout.trailing_zeros() }
    }

    /// Levels, including the leaves.
    pub fn levels(&self) -> u32 {
        self.levels as u32
    }

    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    pub(crate) fn node_bytes(&self) -> u64 {
        ENTRY_BYTES << self.fanout_bits
    }

    /// Bytes of all its nodes.
    pub fn bytes(&self) -> u64 {
        self.nodes * self.node_bytes()
    }

    /// Key loads in one node: a binary search of `fanout` entries, of which the first is known not to be too large.
    pub(crate) fn probes(&self) -> u32 {
        self.fanout_bits
    }

    /// The loads of a search for `key`: in every node a binary search for the last key not above it and the
    /// pointer beside that key; in the leaf first that key itself, to know that it is the one wanted.
    #[inline]
    pub(super) fn search(&self, key: u64, accesses: &mut Vec<Access>) {
        let bits = self.fanout_bits;
        for level in (0..self.levels).rev() {
            let node = self.bases[level] + (key >> (bits * (level as u32 + 1))) * (ENTRY_BYTES << bits);
            let slot = (key >> (bits * level as u32)) & ((1 << bits) - 1);
            // The probe of a step lies at the bits of the slot found so far, plus half of what is left.
            accesses.extend((0..bits).rev().map(|bit| {
                let probe = (slot >> bit | 1) << bit;
                Access::load(node + probe * ENTRY_BYTES, WORD_BYTES)
            }));
            let entry = node + slot * ENTRY_BYTES;
            if level == 0 {
                accesses.push(Access::load(entry, WORD_BYTES));
            }
            accesses.push(Access::load(entry + WORD_BYTES as u64, WORD_BYTES));
        }
    }
}
