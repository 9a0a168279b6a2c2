//! Tests of growing trees against sorted sets and queues, with walks over all nodes.

use super::*;
use nvlab_units::Rng;
use std::collections::BTreeSet;

const FANOUT: u32 = 6;

fn room() -> (Space, Pool) {
    (Space::new(200_000), Pool::new(1024))
}

/// Leaves with their least keys in order, after a walk that checks the inner nodes.
fn leaves(nodes: &Nodes) -> Vec<(u64, u32)> {
    let mut level = vec![(0, nodes.root)];
    for depth in 0..nodes.levels {
        let mut below = Vec::new();
        for &(least, node) in &level {
            let (base, count) = (node as usize * nodes.fanout, nodes.inner_counts[node as usize] as usize);
            assert!(count > 0 && count <= nodes.fanout, "{count} entries on level {depth}");
            let keys = &nodes.keys[base..base + count];
            assert!(keys.is_sorted() && keys[0] >= least, "{keys:?} below {least}");
            below.extend(keys.iter().copied().zip(nodes.children[base..base + count].iter().copied()));
        }
        assert!(below.is_sorted_by(|a, b| a.0 < b.0), "level {depth}");
        level = below;
    }
    let pages: BTreeSet<u32> = level.iter().map(|&(_, leaf)| nodes.leaf_pages[leaf as usize]).collect();
    assert_eq!(pages.len(), level.len(), "two leaves share a page");
    level
}

impl Ascending {
    /// How many keys there are, after a walk.
    pub fn entries(&self) -> u64 {
        let leaves = leaves(&self.nodes);
        leaves.iter().map(|&(_, leaf)| self.nodes.leaf_counts[leaf as usize] as u64).sum()
    }
}

impl Sorted {
    /// All keys in order, after a walk.
    pub fn all(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for (least, leaf) in leaves(&self.nodes) {
            let base = leaf as usize * self.nodes.fanout;
            let keys = &self.keys[base..base + self.nodes.leaf_counts[leaf as usize] as usize];
            assert!(keys.iter().all(|&key| key >= least || all.is_empty()), "{keys:?} below {least}");
            all.extend_from_slice(keys);
        }
        assert!(all.is_sorted());
        all
    }
}

#[test]
fn sorted_is_a_sorted_set() {
    for seed in 1..6 {
        let (mut space, mut pool) = room();
        let mut rng = Rng::new(seed);
        let mut model: BTreeSet<u64> = (0..rng.below(100) + 1).map(|_| rng.below(5000)).collect();
        let keys: Vec<u64> = model.iter().copied().collect();
        let mut tree = Sorted::load(&mut space, FANOUT, 4, &keys);
        for step in 0..4000 {
            let key = rng.below(5000);
            match model.contains(&key) {
                true if rng.chance(0.2) && model.len() > 1 => {
                    model.remove(&key);
                    tree.take_back(key, &mut pool);
                }
                true => tree.read(key, &mut pool),
                false => {
                    model.insert(key);
                    tree.insert(key, &mut pool, &mut space);
                }
            }
            if step % 100 == 0 {
                assert_eq!(tree.all(), model.iter().copied().collect::<Vec<_>>(), "seed {seed}, step {step}");
            }
        }
    }
}

/// Yao: ln 2. The even number of entries and splits exactly in the middle leave a little more or less.
#[test]
fn random_insertions_leave_leaves_69_percent_full() {
    let (mut space, mut pool) = room();
    let mut rng = Rng::new(3);
    let mut tree = Sorted::load(&mut space, 120, 100, &[1]);
    let mut model = BTreeSet::from([1]);
    while model.len() < 200_000 {
        let key = rng.bits();
        if model.insert(key) {
            tree.insert(key, &mut pool, &mut space);
        }
    }
    let fill = model.len() as f64 / (leaves(&tree.nodes).len() * 120) as f64;
    assert!((fill - std::f64::consts::LN_2).abs() < 0.014, "{fill}");
}

/// Orders of 7 districts come, go back and are delivered in random order; the leaf of every key holds it.
#[test]
fn ascending_keeps_each_districts_queue() {
    let (mut space, mut pool) = room();
    let mut rng = Rng::new(9);
    let mut queues: Vec<Range<u32>> = (0..7).map(|district| 10..12 + district * 5).collect();
    let loaded = queues.iter().map(|queue| queue.start as u64..queue.end as u64);
    let mut tree = Ascending::load(&mut space, FANOUT, loaded);
    for step in 0..50_000 {
        let district = rng.below(7) as u32;
        let queue = &mut queues[district as usize];
        // First they grow, then they shrink to nothing and stay near it.
        let grows = if step < 15_000 { 0.7 } else { 0.35 };
        if rng.chance(grows) {
            tree.append(district, queue.end, &mut pool, &mut space);
            queue.end += 1;
            if rng.chance(0.05) {
                queue.end -= 1;
                tree.take_back(district, queue.end, &mut pool);
            }
        } else if queue.start < queue.end {
            tree.remove_oldest(district, queue.start, queue.len() == 1, &mut pool);
            queue.start += 1;
        }
        if step % 500 == 0 {
            check_queues(&tree, &queues);
        }
    }
    let left: usize = queues.iter().map(|queue| queue.len()).sum();
    assert!(left < 700, "{left} left");
    assert!(tree.nodes.free_leaves.len() > 100, "no leaf was given up");
}

fn check_queues(tree: &Ascending, queues: &[Range<u32>]) {
    let leaves = leaves(&tree.nodes);
    let mut counts = vec![0; tree.nodes.leaf_pages.len()];
    for (district, queue) in (0..).zip(queues) {
        for key in queue.clone() {
            let behind = leaves.partition_point(|&(least, _)| least <= joined(district, key));
            let (least, leaf) = leaves[behind - 1];
            assert_eq!(least >> DISTRICT_SHIFT, district as u64, "{key} lies on a leaf of another district");
            counts[leaf as usize] += 1;
        }
    }
    for &(least, leaf) in &leaves {
        assert_eq!(tree.nodes.leaf_counts[leaf as usize], counts[leaf as usize], "leaf of {least:x}");
    }
}

#[test]
fn ascending_leaves_are_full() {
    let (mut space, mut pool) = room();
    let mut tree = Ascending::load(&mut space, FANOUT, (0..100).map(|_| 0..3));
    for key in 3..600 {
        (0..100).for_each(|district| tree.append(district, key, &mut pool, &mut space));
    }
    assert_eq!(tree.entries(), 60_000);
    assert_eq!(leaves(&tree.nodes).len(), 100 * 100);
    let mut reads = Pool::new(1024);
    tree.read_range(7, 11..35, &mut reads);
    let inner = tree.levels() as usize - 1;
    assert_eq!(reads.touches() as usize, 5 * (inner + 1), "a step of a leaf each, and the last key");
}
