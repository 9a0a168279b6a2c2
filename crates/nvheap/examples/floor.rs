//! nvheap beside a floor: what the same changes cost a program that does nothing but make them durable, in CPU time, one thread.
//!
//! `cargo run --release -p nvlab-nvheap --example floor -- [elements] [operations] [turns]`
//!
//! An operation of the floor writes a record to a ring in a mapped file, of as many lines as nvheap's has on average, waits for it with
//! one fence, and changes memory of a mapped file. When half of the ring is full, it writes the lines that it has changed back, each
//! once (the processor's clwb or clflushopt), and fences: the log of nvheap has the same size and does the same when an epoch ends. The floor finds
//! elements by index, in leaves of 15 entries below a B-tree of the standard library, and in buckets of 15 entries. It has no locks, versions, checks,
//! undo, allocator or recovery. Both take turns. Lines and fences of nvheap are counted by a simulated cache.

mod measured;

use measured::cpu_ns;
use nvlab_nvheap::collections::{Entry, TreeEntry};
use nvlab_nvheap::{
    Brand, Counts, Delays, Handle, Heap, Options, PBTreeMap, PHashMap, PVec, Persist, Persistence, Simulated,
};
use nvlab_os::stores::publish;
use nvlab_os::{Flush, Mapping, file};
use std::collections::BTreeMap;

struct Mine;
impl Brand for Mine {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Mine)]
#[repr(C)]
struct Root {
    elements: PVec<[u64; 8], Mine>,
    tree: PBTreeMap<u64, u64, Mine>,
    hash: PHashMap<u64, u64, Mine>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Swap,
    Tree,
    Hash,
}

const LINE: usize = 64;
const SLOTS: usize = 15;

fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn make(path: &std::path::Path, elements: u64, persistence: Persistence) -> Heap<Mine> {
    let options = Options { bytes_max: 1 << 30, persistence, ..Options::default() };
    let heap = Heap::<Mine>::create(path, options, |tx| {
        let elements = PVec::from_fn(tx, elements as usize, |i| Ok([i as u64; 8]))?;
        Ok(Root { elements, tree: PBTreeMap::new(tx)?, hash: PHashMap::new(tx)? })
    })
    .unwrap();
    let root = heap.root().unwrap();
    for first in (0..elements).step_by(2000) {
        let fill = heap.transaction(|tx| {
            let root = root.read(tx)?;
            (first..elements.min(first + 2000)).step_by(2).try_for_each(|key| {
                root.tree.insert(tx, key, key)?;
                root.hash.insert(tx, key, key).map(drop)
            })
        });
        fill.unwrap();
    }
    heap
}

fn run(
    heap: &Heap<Mine>,
    root: &Handle<Root, Mine>,
    work: Work,
    elements: u64,
    operations: u64,
    seed: &mut u64,
) {
    for _ in 0..operations {
        let key = draw(seed) % elements;
        let other = draw(seed) % elements;
        let done = heap.transaction(|tx| {
            let root = root.read(tx)?;
            match work {
                Work::Swap => root.elements.swap(tx, key as usize, other as usize),
                Work::Tree => match root.tree.entry(tx, key)? {
                    TreeEntry::Occupied(found) => found.remove().map(drop),
                    TreeEntry::Vacant(free) => free.insert(key),
                },
                Work::Hash => match root.hash.entry(tx, key)? {
                    Entry::Occupied(found) => found.remove().map(drop),
                    Entry::Vacant(free) => free.insert(key),
                },
            }
        });
        done.unwrap();
    }
}

/// A bucket or leaf: which entries are used, keys, values.
#[repr(C, align(64))]
struct Node([u64; 1 + 2 * SLOTS]);

const ELEMENT_LINES: usize = 1;
const NODE_LINES: usize = size_of::<Node>() / LINE;
const RING_BYTES: usize = 512 << 10;

/// Memory of a file, its changed lines, and the ring of records.
struct Floor {
    /// The elements, the leaves, and the buckets, behind each other.
    home: Mapping,
    elements: usize,
    leaves: usize,
    buckets: usize,
    /// The number of the leaf by the first key in it.
    tree: BTreeMap<u64, usize>,
    /// Lines of the home that are to be written back, and whether a line is among them.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    ring: Mapping,
    at: usize,
    half_end: usize,
    /// Lines of a record, and what was left over of the last.
    lines: f64,
    left: f64,
    flush: Flush,
    written_back: u64,
}

fn mapped(bytes: usize) -> Mapping {
    let file = file::anonymous(c"floor", false).unwrap();
    file.set_len(bytes as u64).unwrap();
    let mapping = Mapping::shared(&file, bytes as u64).unwrap();
    mapping.populate();
    mapping
}

impl Floor {
    fn new(elements: u64) -> Floor {
        let (elements, leaves) = (elements as usize, elements as usize / 16);
        let buckets = leaves.next_power_of_two();
        let home = mapped((elements * ELEMENT_LINES + (leaves + buckets) * NODE_LINES) * LINE);
        let mut floor = Floor {
            is_changed: vec![false; home.len() / LINE],
            changed: Vec::new(),
            home,
            elements,
            leaves,
            buckets,
            // Half full on average, as nvheap's are.
            tree: (0..leaves).map(|leaf| (leaf as u64 * 16, leaf)).collect(),
            ring: mapped(RING_BYTES),
            at: 0,
            half_end: RING_BYTES / 2,
            lines: 0.0,
            left: 0.0,
            flush: Flush::detect().expect("x86-64"),
            written_back: 0,
        };
        for key in (0..elements as u64).step_by(2) {
            floor.toggle_tree(key);
            floor.toggle_hash(key);
        }
        floor.write_back();
        floor
    }

    /// A record of so many lines is durable.
    #[inline]
    fn record(&mut self, words: [u64; 4]) {
        self.left += self.lines;
        let lines = self.left as usize;
        self.left -= lines as f64;
        let bytes = lines * LINE;
        if self.at + bytes > self.half_end {
            self.write_back();
            self.at = self.half_end % RING_BYTES;
            self.half_end = self.at + RING_BYTES / 2;
        }
        let record = &mut self.ring.as_mut_slice()[self.at..][..bytes];
        for (number, word) in record.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = words[number % 4].wrapping_add(number as u64).to_le_bytes();
        }
        self.flush.lines(record);
        publish();
        self.at += bytes;
    }

    #[inline(never)]
    fn write_back(&mut self) {
        for line in self.changed.drain(..) {
            self.flush.lines(&self.home.as_slice()[line as usize * LINE..][..LINE]);
            self.is_changed[line as usize] = false;
            self.written_back += 1;
        }
        publish();
    }

    #[inline]
    fn changes(&mut self, line: usize) {
        if !std::mem::replace(&mut self.is_changed[line], true) {
            self.changed.push(line as u32);
        }
    }

    #[inline]
    fn words(&mut self, line: usize) -> &mut [[u8; 8]] {
        self.home.as_mut_slice()[line * LINE..].as_chunks_mut::<8>().0
    }

    /// Toggles a key in the node that begins at a line.
    #[inline]
    fn toggle(&mut self, at: usize, key: u64) {
        let node = self.words(at);
        let used = u64::from_le_bytes(node[0]);
        self.record([key, at as u64, used, 1]);
        let node = self.words(at);
        let found =
            (0..SLOTS).find(|&slot| used >> slot & 1 == 1 && u64::from_le_bytes(node[1 + slot]) == key);
        let now = match found {
            Some(slot) => used & !(1 << slot),
            None => {
                // One that has no room gives its last entry up: sizes stay as they are.
                let slot = ((!used).trailing_zeros() as usize).min(SLOTS - 1);
                (node[1 + slot], node[1 + SLOTS + slot]) = (key.to_le_bytes(), key.to_le_bytes());
                self.changes(at + (1 + slot) / 8);
                self.changes(at + (1 + SLOTS + slot) / 8);
                used | 1 << slot
            }
        };
        self.words(at)[0] = now.to_le_bytes();
        self.changes(at);
    }

    fn toggle_tree(&mut self, key: u64) {
        let leaf = *self.tree.range(..=key).next_back().expect("the first is 0").1;
        self.toggle(self.elements * ELEMENT_LINES + leaf * NODE_LINES, key);
    }

    fn toggle_hash(&mut self, key: u64) {
        let bucket = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.buckets - 1);
        self.toggle(self.elements * ELEMENT_LINES + (self.leaves + bucket) * NODE_LINES, key);
    }

    fn swap(&mut self, one: usize, other: usize) {
        let copy = |floor: &mut Floor, at| <[[u8; 8]; 8]>::try_from(&floor.words(at)[..8]).expect("eight");
        let (first, second) = (copy(self, one), copy(self, other));
        let word = u64::from_le_bytes;
        self.record([word(first[0]), word(second[0]), one as u64, other as u64]);
        self.words(one)[..8].copy_from_slice(&second);
        self.words(other)[..8].copy_from_slice(&first);
        self.changes(one);
        self.changes(other);
    }

    fn run(&mut self, work: Work, operations: u64, seed: &mut u64) {
        let elements = self.elements as u64;
        for _ in 0..operations {
            let (key, other) = (draw(seed) % elements, draw(seed) % elements);
            match work {
                Work::Swap => self.swap(key as usize, other as usize),
                Work::Tree => self.toggle_tree(key),
                Work::Hash => self.toggle_hash(key),
            }
        }
    }
}

/// Lines of a record of nvheap's operations, lines at home that are written back, and fences.
fn count(folder: &std::path::Path, work: Work) -> [f64; 3] {
    const ELEMENTS: u64 = 100_000;
    const OPERATIONS: u64 = 20_000;
    let simulated = Simulated::new(Delays::PCM);
    let heap = make(&folder.join(format!("{work:?}")), ELEMENTS, Persistence::Simulated(simulated.clone()));
    let (root, mut seed) = (heap.root().unwrap(), 88_172_645_463_325_252);
    run(&heap, &root, work, ELEMENTS, OPERATIONS, &mut seed);
    let before = simulated.counts();
    run(&heap, &root, work, ELEMENTS, OPERATIONS, &mut seed);
    let Counts { fences, streamed_lines, flushes, .. } = simulated.counts().since(&before);
    [streamed_lines, flushes, fences].map(|count| count as f64 / OPERATIONS as f64)
}

fn median(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0])
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (elements, operations, turns) = (number(1 << 20), number(500_000), number(11));
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let heap = make(&folder.path().join("heap"), elements, Persistence::Detect);
    let (root, mut floor) = (heap.root().unwrap(), Floor::new(elements));
    println!(
        "{elements} elements, {turns} turns of {operations} operations; CPU-ns an operation, median (minimum)"
    );
    for work in [Work::Swap, Work::Tree, Work::Hash] {
        let [lines, home, fences] = count(folder.path(), work);
        (floor.lines, floor.written_back) = (lines, 0);
        let (mut seeds, mut times) = ([88_172_645_463_325_252; 2], [Vec::new(), Vec::new()]);
        for _ in 0..turns {
            let before = cpu_ns();
            run(&heap, &root, work, elements, operations, &mut seeds[0]);
            let between = cpu_ns();
            floor.run(work, operations, &mut seeds[1]);
            let after = cpu_ns();
            times[0].push((between - before) as f64 / operations as f64);
            times[1].push((after - between) as f64 / operations as f64);
        }
        let [(nvheap, nvheap_min), (plain, plain_min)] = times.each_mut().map(|times| median(times));
        let written_back = floor.written_back as f64 / (turns * operations) as f64;
        println!(
            "{work:?}: records of {lines:.2} lines, {fences:.3} fences, {home:.2} lines at home (floor {written_back:.2}); \
             nvheap {nvheap:.0} ({nvheap_min:.0}), floor {plain:.0} ({plain_min:.0}): {:.2} x ({:.2} x)",
            nvheap / plain,
            nvheap_min / plain_min
        );
    }
}
