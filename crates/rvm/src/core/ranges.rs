//! The coalesced ranges of a transaction that did not name them in order.
//!
//! 1. They are in order of memory and start, and neither overlap nor touch.
//! 2. They lie in a list, or, once a range comes before many others, in a tree: to make room for each in a list takes a time that
//!    is quadratic in their number. A commit, which goes through all of them, has them in a list again ([`Ranges::settle`]).

use std::collections::BTreeMap;
use std::ops::Range;

/// A range of one of a transaction's memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// Index of the memory in the transaction's list.
    pub memory: u32,
    pub start: usize,
    pub end: usize,
}

/// Moving this many ranges in a list takes about as long as an insertion in a tree.
const MOVED_MAX: usize = 128;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    list: Vec<Covered>,
    /// Ends by memory and start. If it has any, the list is empty.
    tree: BTreeMap<(u32, usize), usize>,
}

impl Ranges {
    pub fn len(&self) -> usize {
        self.list.len() + self.tree.len()
    }

    /// Empties the list; keeps its buffer.
    pub fn clear(&mut self) {
        self.list.clear();
        self.tree.clear();
    }

    /// Takes ranges that are in order.
    pub fn clone_from(&mut self, ranges: &[Covered]) {
        self.tree.clear();
        ranges.clone_into(&mut self.list);
    }

    /// Moves them into the list.
    pub fn settle(&mut self) {
        if !self.tree.is_empty() {
            let tree = std::mem::take(&mut self.tree).into_iter();
            self.list.extend(tree.map(|((memory, start), end)| Covered { memory, start, end }));
        }
    }

    /// All of them, once they have been settled.
    #[inline]
    pub fn as_slice(&self) -> &[Covered] {
        assert!(self.tree.is_empty(), "{} ranges lie in the tree", self.tree.len());
        &self.list
    }

    /// Adds one behind all others, which it does not touch.
    pub fn push(&mut self, covered: Covered) {
        match self.tree.is_empty() {
            true => self.list.push(covered),
            false => drop(self.tree.insert((covered.memory, covered.start), covered.end)),
        }
    }

    /// Stores in `met` those that overlap a range or touch it. Returns how many come before them; in the tree nobody needs to know.
    pub fn touching(&self, memory: u32, range: &Range<usize>, met: &mut Vec<Covered>) -> usize {
        met.clear();
        if self.tree.is_empty() {
            let is_before = |covered: &Covered| (covered.memory, covered.end) < (memory, range.start);
            let first = self.list.partition_point(is_before);
            let touches = |covered: &&Covered| covered.memory == memory && covered.start <= range.end;
            met.extend(self.list[first..].iter().take_while(touches));
            return first;
        }
        let covered = |(&(memory, start), &end): (&(u32, usize), &usize)| Covered { memory, start, end };
        let before = self.tree.range((memory, 0)..(memory, range.start)).next_back();
        met.extend(before.map(covered).filter(|covered| covered.end >= range.start));
        met.extend(self.tree.range((memory, range.start)..=(memory, range.end)).map(covered));
        0
    }

    /// Puts one in the place of those that [`Ranges::touching`] found, `met` behind the first `first`. Returns whether it is the last.
    pub fn replace(&mut self, first: usize, met: &[Covered], covered: Covered) -> bool {
        let is_moved = met.len() != 1 && self.list.len().saturating_sub(first) > MOVED_MAX;
        if is_moved {
            let list = self.list.drain(..);
            self.tree = list.map(|covered| ((covered.memory, covered.start), covered.end)).collect();
        }
        let key = (covered.memory, covered.start);
        if !self.tree.is_empty() {
            for met in met {
                self.tree.remove(&(met.memory, met.start));
            }
            self.tree.insert(key, covered.end);
            return self.tree.last_key_value().is_some_and(|(last, _)| *last == key);
        }
        match met.len() {
            0 => self.list.insert(first, covered),
            1 => self.list[first] = covered,
            count => drop(self.list.splice(first..first + count, [covered])),
        }
        first + 1 == self.list.len()
    }
}
