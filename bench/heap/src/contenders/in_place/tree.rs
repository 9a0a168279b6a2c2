//! A B-tree of order 8: nodes are split and merged on the way down (Cormen et al., Introduction to Algorithms, chapter 18).

use super::{Heap, Transaction, load, lock};
use crate::Result;
use crate::workloads::Map;
use std::sync::Mutex;

pub const ROOT_BYTES: u64 = 64;
const ORDER: usize = 8;
const KEYS_MAX: usize = ORDER - 1;
const KEYS_MIN: usize = ORDER / 2 - 1;

#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    count: u32,
    is_leaf: u32,
    keys: [u64; KEYS_MAX],
    values: [u64; KEYS_MAX],
    children: [u64; ORDER],
}

const NODE_BYTES: usize = size_of::<Node>();

impl Node {
    fn count(&self) -> usize {
        self.count as usize
    }

    fn is_full(&self) -> bool {
        self.count() == KEYS_MAX
    }

    /// The index of a key, or of the child that may have it.
    fn find(&self, key: u64) -> std::result::Result<usize, usize> {
        let keys = &self.keys[..self.count()];
        let index = keys.iter().position(|&other| other >= key).unwrap_or(keys.len());
        if keys.get(index) == Some(&key) { Ok(index) } else { Err(index) }
    }

    /// Makes room for a key, and for a child behind it.
    fn insert(&mut self, index: usize, key: u64, value: u64, child: u64) {
        let count = self.count();
        self.keys.copy_within(index..count, index + 1);
        self.values.copy_within(index..count, index + 1);
        self.children.copy_within(index + 1..count + 1, index + 2);
        (self.keys[index], self.values[index], self.children[index + 1]) = (key, value, child);
        self.count += 1;
    }

    /// Removes a key, and the child behind it.
    fn remove(&mut self, index: usize) {
        let count = self.count();
        self.keys.copy_within(index + 1..count, index);
        self.values.copy_within(index + 1..count, index);
        self.children.copy_within(index + 2..count + 1, index + 1);
        self.count -= 1;
    }
}

/// Under one lock.
pub struct Tree<H> {
    heap: H,
    all: Mutex<()>,
}

impl<H: Heap> Tree<H> {
    pub fn new(heap: H) -> Tree<H> {
        Tree { heap, all: Mutex::default() }
    }

    /// The offset of the top node.
    fn top(&self) -> u64 {
        // SAFETY: the root area begins with it; the lock is held, or no thread changes it.
        unsafe { self.heap.at(self.heap.root()).cast::<u64>().read() }
    }

    fn node(&self, offset: u64) -> &Node {
        // SAFETY: the offset of a node. The reference does not outlive the next change: no method keeps it that long.
        unsafe { &*self.heap.at(offset).cast::<Node>() }
    }

    fn set_top(&self, transaction: &mut H::Transaction<'_>, top: u64) -> Result<()> {
        // SAFETY: as in `top`.
        unsafe { transaction.change(self.heap.root(), 8)?.cast::<u64>().write(top) };
        Ok(())
    }

    /// Changes a node by a function.
    fn change(
        &self,
        transaction: &mut H::Transaction<'_>,
        offset: u64,
        by: impl FnOnce(&mut Node),
    ) -> Result<()> {
        // SAFETY: the offset of a node, to which nobody has a reference now: the lock is held.
        by(unsafe { &mut *transaction.change(offset, NODE_BYTES)?.cast::<Node>() });
        Ok(())
    }

    fn allocate(&self, transaction: &mut H::Transaction<'_>, node: Node) -> Result<u64> {
        let offset = transaction.allocate(NODE_BYTES)?;
        // SAFETY: memory for a node, which nobody else has.
        unsafe { self.heap.at(offset).cast::<Node>().write(node) };
        Ok(offset)
    }

    /// Splits the full child at `index`, whose middle key rises into its parent.
    fn split(&self, transaction: &mut H::Transaction<'_>, parent: u64, index: usize) -> Result<()> {
        let child = self.node(parent).children[index];
        let old = *self.node(child);
        let mut right = Node { count: (KEYS_MAX - KEYS_MIN - 1) as u32, ..old };
        right.keys.copy_within(KEYS_MIN + 1.., 0);
        right.values.copy_within(KEYS_MIN + 1.., 0);
        right.children.copy_within(KEYS_MIN + 1.., 0);
        let right = self.allocate(transaction, right)?;
        self.change(transaction, child, |child| child.count = KEYS_MIN as u32)?;
        self.change(transaction, parent, |parent| {
            parent.insert(index, old.keys[KEYS_MIN], old.values[KEYS_MIN], right);
        })
    }

    fn add(&self, transaction: &mut H::Transaction<'_>, key: u64, value: u64) -> Result<()> {
        let empty =
            Node { count: 0, is_leaf: 1, keys: [0; KEYS_MAX], values: [0; KEYS_MAX], children: [0; ORDER] };
        let mut at = self.top();
        if at == 0 {
            at = self.allocate(transaction, empty)?;
            self.set_top(transaction, at)?;
        } else if self.node(at).is_full() {
            let mut top = Node { is_leaf: 0, ..empty };
            top.children[0] = at;
            at = self.allocate(transaction, top)?;
            self.split(transaction, at, 0)?;
            self.set_top(transaction, at)?;
        }
        loop {
            let node = self.node(at);
            let Err(mut index) = node.find(key) else {
                return Err(format!("the key {key} is there already").into());
            };
            if node.is_leaf != 0 {
                return self.change(transaction, at, |node| node.insert(index, key, value, 0));
            }
            if self.node(node.children[index]).is_full() {
                self.split(transaction, at, index)?;
                index += usize::from(key > self.node(at).keys[index]);
            }
            at = self.node(at).children[index];
        }
    }

    /// Merges the children at `index` and behind it with the key between them.
    fn merge(&self, transaction: &mut H::Transaction<'_>, parent: u64, index: usize) -> Result<u64> {
        let Node { keys, values, children, .. } = *self.node(parent);
        let (left, right) = (children[index], children[index + 1]);
        let other = *self.node(right);
        self.change(transaction, left, |left| {
            let count = left.count();
            (left.keys[count], left.values[count]) = (keys[index], values[index]);
            let (behind, moved) = (count + 1, other.count());
            left.keys[behind..behind + moved].copy_from_slice(&other.keys[..moved]);
            left.values[behind..behind + moved].copy_from_slice(&other.values[..moved]);
            left.children[behind..=behind + moved].copy_from_slice(&other.children[..=moved]);
            left.count = (behind + moved) as u32;
        })?;
        self.change(transaction, parent, |parent| parent.remove(index))?;
        transaction.free(right, NODE_BYTES)?;
        if parent == self.top() && self.node(parent).count == 0 {
            self.set_top(transaction, left)?;
            transaction.free(parent, NODE_BYTES)?;
        }
        Ok(left)
    }

    /// Moves a key through the parent to the child at `index`, from the child before it.
    fn take_from_left(&self, transaction: &mut H::Transaction<'_>, parent: u64, index: usize) -> Result<()> {
        let Node { keys, values, children, .. } = *self.node(parent);
        let left = *self.node(children[index - 1]);
        let last = left.count() - 1;
        self.change(transaction, children[index], |child| {
            let first = child.children[0];
            child.insert(0, keys[index - 1], values[index - 1], first);
            child.children[0] = left.children[last + 1];
        })?;
        self.change(transaction, children[index - 1], |left| left.count -= 1)?;
        self.change(transaction, parent, |parent| {
            (parent.keys[index - 1], parent.values[index - 1]) = (left.keys[last], left.values[last]);
        })
    }

    /// The same from the child behind it.
    fn take_from_right(&self, transaction: &mut H::Transaction<'_>, parent: u64, index: usize) -> Result<()> {
        let Node { keys, values, children, .. } = *self.node(parent);
        let right = *self.node(children[index + 1]);
        self.change(transaction, children[index], |child| {
            let count = child.count();
            child.insert(count, keys[index], values[index], right.children[0]);
        })?;
        self.change(transaction, children[index + 1], |right| {
            right.children[0] = right.children[1];
            right.remove(0);
        })?;
        self.change(transaction, parent, |parent| {
            (parent.keys[index], parent.values[index]) = (right.keys[0], right.values[0]);
        })
    }

    /// The child at `index`, with a key more than the least, or what it was merged to.
    fn filled(&self, transaction: &mut H::Transaction<'_>, parent: u64, index: usize) -> Result<u64> {
        let node = self.node(parent);
        let (count, child) = (node.count(), node.children[index]);
        let spare = |index: usize| self.node(node.children[index]).count() > KEYS_MIN;
        if spare(index) {
            return Ok(child);
        }
        if index > 0 && spare(index - 1) {
            self.take_from_left(transaction, parent, index)?;
        } else if index < count && spare(index + 1) {
            self.take_from_right(transaction, parent, index)?;
        } else {
            return self.merge(transaction, parent, index.min(count - 1));
        }
        Ok(child)
    }

    /// The first or last key below a node, and its value.
    fn extreme(&self, mut at: u64, is_last: bool) -> (u64, u64) {
        loop {
            let node = self.node(at);
            let count = node.count();
            if node.is_leaf != 0 {
                let index = if is_last { count - 1 } else { 0 };
                return (node.keys[index], node.values[index]);
            }
            at = node.children[if is_last { count } else { 0 }];
        }
    }

    fn take(&self, transaction: &mut H::Transaction<'_>, mut key: u64) -> Result<bool> {
        let mut at = self.top();
        while at != 0 {
            let node = self.node(at);
            at = match (node.find(key), node.is_leaf != 0) {
                (Ok(index), true) => {
                    self.change(transaction, at, |node| node.remove(index))?;
                    return Ok(true);
                }
                (Err(_), true) => return Ok(false),
                (Ok(index), false) => {
                    let (left, right) = (node.children[index], node.children[index + 1]);
                    let is_left = self.node(left).count() > KEYS_MIN;
                    if is_left || self.node(right).count() > KEYS_MIN {
                        // A neighbour in the order takes the place of the key, and is what must go.
                        let child = if is_left { left } else { right };
                        let (other, value) = self.extreme(child, is_left);
                        self.change(transaction, at, |node| {
                            (node.keys[index], node.values[index]) = (other, value);
                        })?;
                        key = other;
                        child
                    } else {
                        self.merge(transaction, at, index)?
                    }
                }
                (Err(index), false) => self.filled(transaction, at, index)?,
            };
        }
        Ok(false)
    }

    fn visit(&self, at: u64, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let node = self.node(at);
        for index in 0..=node.count() {
            if node.is_leaf == 0 {
                self.visit(node.children[index], each)?;
            }
            if index < node.count() {
                each(node.keys[index], node.values[index])?;
            }
        }
        Ok(())
    }
}

impl<H: Heap> Map for Tree<H> {
    fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()> {
        load(&self.heap, pairs, |transaction, key, value| self.add(transaction, key, value))
    }

    fn insert(&self, key: u64, value: u64) -> Result<()> {
        let _guard = lock(&self.all);
        self.heap.update(|transaction| self.add(transaction, key, value))
    }

    fn delete(&self, key: u64) -> Result<bool> {
        let _guard = lock(&self.all);
        self.heap.update(|transaction| self.take(transaction, key))
    }

    fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        if self.top() == 0 { Ok(()) } else { self.visit(self.top(), each) }
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.heap.close()
    }
}
