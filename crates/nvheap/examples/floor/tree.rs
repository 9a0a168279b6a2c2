//! A sorted map: a B+-tree of nodes of 32 words, with at most 15 keys each. Nodes that become short are merged, as nvheap's are.
//!
//! A leaf has the order of its keys in the first word: their count in four bits, then their slots in four bits each, the free ones behind
//! those in use. Keys follow, then values. An inner node has the count of its keys, the keys in order, and the children between them.

use crate::durable::{Durable, How};

const WORDS: usize = 32;
const SLOTS: usize = 15;
const SHORT: usize = 5;
const MERGED_MAX: usize = 12;
/// Of a node: the keys, and values or children.
const KEYS: usize = 1;
const VALUES: usize = KEYS + SLOTS;
/// Words of the first line but one: the top node, levels of inner nodes, entries, the first free node, and how many were ever used.
const HEAD: usize = 8;
const EMPTY: u64 = 0xedcb_a987_6543_2100;

/// The inner nodes on the way to a leaf, and which child was followed in each.
type Path = ([(usize, usize); 16], usize);

pub struct Tree {
    pub memory: Durable,
    /// What the first words say.
    head: [u64; 5],
}

const TOP: usize = 0;
const HEIGHT: usize = 1;
const COUNT: usize = 2;
const FREE: usize = 3;
const END: usize = 4;

fn word(words: &[[u8; 8]], at: usize) -> u64 {
    u64::from_le_bytes(words[at])
}

fn low(count: usize) -> u64 {
    (1 << (4 * count)) - 1
}

/// An entry at a position of an order: the new order, and its slot.
fn inserted(order: u64, position: usize) -> (u64, usize) {
    let (slots, count) = (order >> 4, order as usize & 15);
    let slot = slots >> (4 * count) & 15;
    let between = slots >> (4 * position) & low(count - position);
    let slots = slots & low(position)
        | slot << (4 * position)
        | between << (4 * (position + 1))
        | slots & !low(count + 1);
    (slots << 4 | (count + 1) as u64, slot as usize)
}

fn removed(order: u64, position: usize) -> u64 {
    let (slots, count) = (order >> 4, order as usize & 15);
    let slot = slots >> (4 * position) & 15;
    let behind = slots >> (4 * (position + 1)) & low(count - 1 - position);
    let slots =
        slots & low(position) | behind << (4 * position) | slot << (4 * (count - 1)) | slots & !low(count);
    slots << 4 | (count - 1) as u64
}

fn slot(order: u64, position: usize) -> usize {
    (order >> (4 + 4 * position)) as usize & 15
}

/// What nodes hold, for what happens seldom. A leaf has as many others as keys, an inner node one more.
struct Node {
    keys: Vec<u64>,
    others: Vec<u64>,
}

impl Tree {
    pub fn new(elements: usize, how: How) -> Tree {
        let mut memory = Durable::new((elements / 4 + 64) * WORDS, how);
        let head = [1, 0, 0, 0, 2];
        memory.put(HEAD, head);
        memory.put(WORDS, [EMPTY]);
        memory.commit();
        Tree { memory, head }
    }

    pub fn of(memory: Durable) -> Tree {
        let head = std::array::from_fn(|i| memory.word(HEAD + i));
        Tree { memory, head }
    }

    #[inline]
    fn node(&self, at: usize) -> &[[u8; 8]] {
        &self.memory.words(at * WORDS)[..WORDS]
    }

    /// The leaf of a key.
    #[inline]
    fn find(&self, key: u64) -> (usize, Path) {
        let (mut at, mut path) = (self.head[TOP] as usize, [(0, 0); 16]);
        let height = self.head[HEIGHT] as usize;
        for step in &mut path[..height] {
            let node = self.node(at);
            let (mut position, mut size) = (0, word(node, 0) as usize);
            while size > 0 {
                let half = size / 2;
                let is_before = word(node, KEYS + position + half) <= key;
                (position, size) =
                    if is_before { (position + half + 1, size - half - 1) } else { (position, half) };
            }
            *step = (at, position);
            at = word(node, VALUES + position) as usize;
        }
        (at, (path, height))
    }

    /// Inserts a key with itself as its value, or deletes it.
    #[inline]
    pub fn toggle(&mut self, key: u64) {
        let (at, path) = self.find(key);
        let leaf = self.node(at);
        let order = word(leaf, 0);
        let (mut position, mut size) = (0, order as usize & 15);
        while size > 0 {
            let half = size / 2;
            let is_before = word(leaf, KEYS + slot(order, position + half)) < key;
            (position, size) =
                if is_before { (position + half + 1, size - half - 1) } else { (position, half) };
        }
        let count = order as usize & 15;
        let is_there = position < count && word(leaf, KEYS + slot(order, position)) == key;
        self.head[COUNT] = self.head[COUNT].wrapping_add(if is_there { u64::MAX } else { 1 });
        if is_there && (count > SHORT || path.1 == 0) {
            self.memory.put(at * WORDS, [removed(order, position)]);
        } else if is_there {
            self.refill(at, path, position);
        } else if count < SLOTS {
            let (order, slot) = inserted(order, position);
            self.memory.put(at * WORDS, [order]);
            self.memory.put(at * WORDS + KEYS + slot, [key]);
            self.memory.put(at * WORDS + VALUES + slot, [key]);
        } else {
            self.split(at, path, position, key);
        }
        self.memory.put(HEAD + COUNT, [self.head[COUNT]]);
        self.memory.commit();
    }

    fn load(&self, at: usize, is_leaf: bool) -> Node {
        let node = self.node(at);
        let (head, count) = (word(node, 0), word(node, 0) as usize & 15);
        let place = |position| if is_leaf { slot(head, position) } else { position };
        Node {
            keys: (0..count).map(|i| word(node, KEYS + place(i))).collect(),
            others: (0..count + usize::from(!is_leaf)).map(|i| word(node, VALUES + place(i))).collect(),
        }
    }

    fn store(&mut self, at: usize, node: &Node, is_leaf: bool) {
        let mut words = [0; WORDS];
        words[0] = if is_leaf { EMPTY } else { 0 } | node.keys.len() as u64;
        words[KEYS..][..node.keys.len()].copy_from_slice(&node.keys);
        words[VALUES..][..node.others.len()].copy_from_slice(&node.others);
        self.memory.put(at * WORDS, words);
    }

    fn allocate(&mut self) -> usize {
        let at = match self.head[FREE] {
            0 => {
                self.head[END] += 1;
                self.head[END] - 1
            }
            free => {
                self.head[FREE] = self.memory.word(free as usize * WORDS);
                free
            }
        };
        at as usize
    }

    fn free(&mut self, at: usize) {
        self.memory.put(at * WORDS, [self.head[FREE]]);
        self.head[FREE] = at as u64;
    }

    #[cold]
    fn split(&mut self, mut at: usize, (path, height): Path, position: usize, key: u64) {
        let mut node = self.load(at, true);
        node.keys.insert(position, key);
        node.others.insert(position, key);
        let mut level = height;
        loop {
            let is_leaf = level == height;
            if node.keys.len() <= SLOTS {
                self.store(at, &node, is_leaf);
                break;
            }
            // The key that rises stays in a leaf.
            let half = node.keys.len() / 2;
            let raised = node.keys[half];
            let right = Node {
                keys: node.keys.split_off(half + usize::from(!is_leaf)),
                others: node.others.split_off(half + usize::from(!is_leaf)),
            };
            node.keys.truncate(half);
            let new = self.allocate();
            self.store(at, &node, is_leaf);
            self.store(new, &right, is_leaf);
            if level == 0 {
                let top = self.allocate();
                self.store(top, &Node { keys: vec![raised], others: vec![at as u64, new as u64] }, false);
                (self.head[TOP], self.head[HEIGHT]) = (top as u64, self.head[HEIGHT] + 1);
                break;
            }
            level -= 1;
            let child;
            (at, child) = path[level];
            node = self.load(at, false);
            node.keys.insert(child, raised);
            node.others.insert(child + 1, new as u64);
        }
        self.memory.put(HEAD, self.head);
    }

    /// Removes an entry of a leaf that is short then.
    #[cold]
    fn refill(&mut self, mut at: usize, (path, height): Path, position: usize) {
        let mut node = self.load(at, true);
        node.keys.remove(position);
        node.others.remove(position);
        let mut level = height;
        while level > 0 && node.keys.len() < SHORT {
            let is_leaf = level == height;
            level -= 1;
            let (above, child) = path[level];
            let mut parent = self.load(above, false);
            let between = child.saturating_sub(1);
            let other = parent.others[if child == 0 { 1 } else { between }] as usize;
            let neighbour = self.load(other, is_leaf);
            let ((left_at, mut left), (right_at, right)) = match child {
                0 => ((at, node), (other, neighbour)),
                _ => ((other, neighbour), (at, node)),
            };
            if !is_leaf {
                left.keys.push(parent.keys[between]);
            }
            let is_merged = left.keys.len() + right.keys.len() <= MERGED_MAX;
            left.keys.extend(right.keys);
            left.others.extend(right.others);
            if is_merged {
                parent.keys.remove(between);
                parent.others.remove(between + 1);
                self.store(left_at, &left, is_leaf);
                self.free(right_at);
            } else {
                let half = left.keys.len() / 2;
                parent.keys[between] = left.keys[half];
                let rest = half + usize::from(!is_leaf);
                let right = Node { keys: left.keys.split_off(rest), others: left.others.split_off(rest) };
                left.keys.truncate(half);
                self.store(left_at, &left, is_leaf);
                self.store(right_at, &right, is_leaf);
            }
            (at, node) = (above, parent);
        }
        if level == 0 && height > 0 && node.keys.is_empty() {
            // The only child takes the place of the top.
            (self.head[TOP], self.head[HEIGHT]) = (node.others[0], self.head[HEIGHT] - 1);
            self.free(at);
        } else {
            self.store(at, &node, level == height);
        }
        self.memory.put(HEAD, self.head);
    }

    /// Every key in order; and whether their count is what the tree says.
    pub fn keys(&self) -> (Vec<u64>, bool) {
        let mut keys = Vec::new();
        self.collect(self.head[TOP] as usize, self.head[HEIGHT], &mut keys);
        let count = keys.len() as u64;
        (keys, count == self.head[COUNT])
    }

    fn collect(&self, at: usize, levels: u64, into: &mut Vec<u64>) {
        let node = self.load(at, levels == 0);
        match levels {
            0 => {
                assert_eq!(node.keys, node.others, "values are their keys");
                into.extend(node.keys);
            }
            _ => node.others.iter().for_each(|&child| self.collect(child as usize, levels - 1, into)),
        }
    }
}
