//! nvheap beside two floors: what the same changes cost programs that are written by hand for one structure and one thread, in CPU time.
//!
//! `cargo run --release -p nvlab-nvheap --example floor -- [elements] [operations] [turns] [swap,tree,hash]`
//!
//! * *Logged*: a swap of two elements, an insert or delete in a B+-tree and in a hash table, each a step that a power cut leaves done or undone
//!   (`durable.rs`). The program allocates nodes, splits and merges them and knows how many entries there are, as nvheap's collections do. Before it
//!   is measured, it is cut in the middle of steps, recovered, and compared with a model.
//! * *In place*: the same without a log: changed lines are written back (clwb, or what the processor has) and one fence ends each step.
//!   A power cut leaves half of a step, so this is no recoverable structure.
//!
//! Neither has locks, versions, a way back, checks of what the file says, or types. The hash table does not grow. All take turns. Memory of all lies in huge pages
//! where the kernel has them.

mod durable;
#[path = "../measured/mod.rs"]
mod measured;
mod table;
mod tree;

use durable::{Durable, How};
use measured::cpu_ns;
use nvlab_nvheap::collections::{Entry, TreeEntry};
use nvlab_nvheap::{
    Brand, Counts, Delays, Handle, Heap, Options, PBTreeMap, PHashMap, PVec, Persist, Persistence, Simulated,
};
use std::collections::BTreeSet;
use table::Table;
use tree::Tree;

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

/// A structure that is written by hand.
enum ByHand {
    /// Elements of a line each.
    Swap(Durable, u64),
    Tree(Tree),
    Hash(Table),
}

impl ByHand {
    fn new(work: Work, elements: u64, how: How) -> ByHand {
        let mut new = match work {
            Work::Swap => ByHand::Swap(Durable::new((elements as usize + 1) * 8, how), elements),
            Work::Tree => ByHand::Tree(Tree::new(elements as usize, how)),
            Work::Hash => ByHand::Hash(Table::new(elements as usize, how)),
        };
        for key in 0..elements {
            match &mut new {
                ByHand::Swap(memory, _) => {
                    memory.put(8 + key as usize * 8, [key; 8]);
                    memory.commit();
                }
                _ if key % 2 == 0 => new.step(key, 0),
                _ => {}
            }
        }
        new
    }

    #[inline]
    fn step(&mut self, key: u64, other: u64) {
        match self {
            ByHand::Swap(memory, _) => {
                let [one, other] = [key, other].map(|index| 8 + index as usize * 8);
                let copy = |at| -> [u64; 8] {
                    let words = memory.words(at);
                    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
                };
                let (first, second) = (copy(one), copy(other));
                memory.put(one, second);
                memory.put(other, first);
                memory.commit();
            }
            ByHand::Tree(tree) => tree.toggle(key),
            ByHand::Hash(table) => table.toggle(key),
        }
    }

    fn run(&mut self, elements: u64, operations: u64, seed: &mut u64) {
        for _ in 0..operations {
            let (key, other) = (draw(seed) % elements, draw(seed) % elements);
            self.step(key, other);
        }
    }

    fn memory(&mut self) -> &mut Durable {
        match self {
            ByHand::Swap(memory, _) => memory,
            ByHand::Tree(tree) => &mut tree.memory,
            ByHand::Hash(table) => &mut table.memory,
        }
    }

    /// The same structure as a power cut left it, after recovery.
    fn recovered(&self, elements: u64, cut: (Vec<u8>, Vec<u8>)) -> ByHand {
        let memory = Durable::recover(cut);
        match self {
            ByHand::Swap(..) => ByHand::Swap(memory, elements),
            ByHand::Tree(_) => ByHand::Tree(Tree::of(memory)),
            ByHand::Hash(_) => ByHand::Hash(Table::of(memory, elements as usize)),
        }
    }

    /// What it holds: the elements, or the keys.
    fn contents(&self) -> Vec<u64> {
        let (keys, is_counted) = match self {
            ByHand::Swap(memory, elements) => {
                ((1..=*elements as usize).map(|line| memory.word(line * 8 + 7)).collect(), true)
            }
            ByHand::Tree(tree) => tree.keys(),
            ByHand::Hash(table) => table.keys(),
        };
        assert!(is_counted, "the count is wrong");
        keys
    }
}

/// Whether steps are done or undone after power cuts, and nothing else has changed.
fn check(work: Work) {
    const ELEMENTS: u64 = 2000;
    let mut floor = ByHand::new(work, ELEMENTS, How::Logged);
    floor.memory().expect_cuts();
    let mut seed = 88_172_645_463_325_252;
    let (mut order, mut keys): (Vec<u64>, BTreeSet<u64>) =
        ((0..ELEMENTS).collect(), (0..ELEMENTS).step_by(2).collect());
    let model = |order: &Vec<u64>, keys: &BTreeSet<u64>| match work {
        Work::Swap => order.clone(),
        _ => keys.iter().copied().collect(),
    };
    for step in 0..60_000 {
        // Now and then most keys are there, or few: nodes are split, merged and chained.
        let (mut key, other) = (draw(&mut seed) % ELEMENTS, draw(&mut seed) % ELEMENTS);
        if work != Work::Swap && (step / 6000 % 2 == 0) == keys.contains(&key) {
            key = other;
        }
        let before = (step % 149 == 0).then(|| model(&order, &keys));
        floor.memory().is_cut_next = before.is_some();
        floor.step(key, other);
        order.swap(key as usize, other as usize);
        if !keys.remove(&key) {
            keys.insert(key);
        }
        if let Some(before) = before {
            let torn = floor.memory().cut.take().expect("a cut in the middle of the step");
            assert_eq!(floor.recovered(ELEMENTS, torn).contents(), before, "{work:?}, step {step}");
            let whole = floor.memory().cut_now();
            let after = model(&order, &keys);
            assert_eq!(floor.recovered(ELEMENTS, whole).contents(), after, "{work:?}, step {step}");
        }
    }
    assert_eq!(floor.contents(), model(&order, &keys));
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

/// Median and minimum.
fn median(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0])
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (elements, operations, turns) = (number(1 << 20), number(500_000), number(11));
    let asked = arguments.next();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let heap = make(&folder.path().join("heap"), elements, Persistence::Detect);
    let root = heap.root().unwrap();
    println!(
        "{elements} elements, {turns} turns of {operations} operations; CPU-ns an operation, median (minimum)"
    );
    for (name, work) in [("swap", Work::Swap), ("tree", Work::Tree), ("hash", Work::Hash)] {
        if asked.as_ref().is_some_and(|asked| !asked.split(',').any(|asked| asked == name)) {
            continue;
        }
        check(work);
        let [lines, home, fences] = count(folder.path(), work);
        println!(
            "{name}: nvheap has records of {lines:.2} lines, {home:.2} lines at home, {fences:.3} fences"
        );
        let mut floors = [How::Logged, How::InPlace].map(|how| ByHand::new(work, elements, how));
        let before = floors.each_mut().map(|floor| floor.memory().counts);
        let (mut seeds, mut times) = ([88_172_645_463_325_252; 3], [const { Vec::new() }; 3]);
        for _ in 0..turns {
            for (i, (seed, times)) in seeds.iter_mut().zip(&mut times).enumerate() {
                let before = cpu_ns();
                match i.checked_sub(1) {
                    None => run(&heap, &root, work, elements, operations, seed),
                    Some(floor) => floors[floor].run(elements, operations, seed),
                }
                times.push((cpu_ns() - before) as f64 / operations as f64);
            }
        }
        let [(nvheap, least), floors_ns @ ..] = times.each_mut().map(|times| median(times));
        println!("  nvheap {nvheap:.0} ({least:.0})");
        for (i, (ns, floor_least)) in floors_ns.into_iter().enumerate() {
            let after = floors[i].memory().counts;
            let per = |which: usize| (after[which] - before[i][which]) as f64 / (turns * operations) as f64;
            println!(
                "  {} {ns:.0} ({floor_least:.0}): {:.2} x ({:.2} x); records of {:.2} lines, {:.2} lines at home, {:.3} fences",
                ["logged", "in place"][i],
                nvheap / ns,
                least / floor_least,
                per(0),
                per(1),
                per(2)
            );
        }
    }
}
