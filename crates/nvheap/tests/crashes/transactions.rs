//! Power cuts in a simulated cache: at every flush, streamed write and fence, with every subset of the lines that are not
//! durable (random subsets where there are many), and again during recovery. What is found is the state before the
//! transaction or after it, and every block and count agrees, and every checksum if the heap has them.

use crate::common::{draw, file, images, with_and_without_checksums};
use nvlab_nvheap::{
    Brand, Delays, Heap, Options, PBox, PString, PVec, Persist, Result, Simulated, Strong, Tx, Weak,
};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

struct Power;
impl Brand for Power {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Power)]
#[repr(C)]
struct Root {
    balances: [u64; 8],
    list: Option<Strong<Node, Power>>,
    tree: Option<PBox<Tree, Power>>,
    weak: Option<Weak<Node, Power>>,
    text: PString<Power>,
    numbers: PVec<[u64; 8], Power>,
    nodes: PVec<Option<Strong<Node, Power>>, Power>,
}

#[derive(Persist)]
#[persist(heap = Power)]
#[repr(C)]
struct Node {
    value: u64,
    next: Option<Strong<Node, Power>>,
}

#[derive(Persist, Default)]
#[persist(heap = Power)]
#[repr(C)]
struct Tree {
    value: u64,
    children: [Option<PBox<Tree, Power>>; 3],
}

type State = (Vec<u64>, Vec<u64>, Vec<u64>, bool, String, Vec<u64>, Vec<Option<u64>>);

/// One brand: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn options(simulated: &Arc<Simulated>) -> Options {
    crate::common::options(simulated, 16 << 10)
}

fn create() -> (Heap<Power>, Arc<Simulated>) {
    let simulated = Simulated::new(Delays::PCM);
    let heap = Heap::create_in(file(), Path::new("simulated"), options(&simulated), |_| Ok(Root::default()))
        .unwrap();
    (heap, simulated)
}

fn open(image: &[u8]) -> (Result<Heap<Power>>, Arc<Simulated>) {
    let file = file();
    file.write_all_at(image, 0).unwrap();
    let simulated = Simulated::new(Delays::PCM);
    simulated.record();
    (Heap::open_in(file, Path::new("image"), options(&simulated)), simulated)
}

fn tree(tree: &Option<PBox<Tree, Power>>, tx: &Tx<'_, Power>, found: &mut Vec<u64>) -> Result<()> {
    let Some(tree_box) = tree else { return Ok(()) };
    let here = tree_box.read(tx)?;
    found.push(here.value);
    here.children.iter().try_for_each(|child| self::tree(child, tx, found))
}

fn state(heap: &Heap<Power>) -> State {
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        let mut list = Vec::new();
        let mut next = root.list.as_ref().map(|first| first.share(tx)).transpose()?;
        while let Some(node) = next {
            let node = node.read(tx)?;
            list.push(node.value);
            next = node.next.as_ref().map(|next| next.share(tx)).transpose()?;
        }
        let mut found = Vec::new();
        tree(&root.tree, tx, &mut found)?;
        let lives = root.weak.as_ref().map(|weak| weak.upgrade(tx)).transpose()?.flatten().is_some();
        let numbers = root.numbers.iter(tx).map(|element| Ok(element?[3])).collect::<Result<_>>()?;
        let nodes = root.nodes.iter(tx).map(|node| match &*node? {
            Some(node) => Ok(Some(node.read(tx)?.value)),
            None => Ok(None),
        });
        let nodes = nodes.collect::<Result<_>>()?;
        Ok((root.balances.to_vec(), list, found, lives, root.text.get(tx)?, numbers, nodes))
    })
    .unwrap()
}

/// Runs `change`, brings it home, and cuts the power everywhere; returns how many images were tried.
fn cut_everywhere(
    heap: Heap<Power>,
    simulated: &Arc<Simulated>,
    change: impl Fn(&Heap<Power>) -> Result<()>,
) -> usize {
    let before = state(&heap);
    simulated.record();
    change(&heap).unwrap();
    heap.checkpoint().unwrap();
    let points = simulated.take_points();
    let after = state(&heap);
    assert!(!points.is_empty());
    drop(heap);
    let (mut seed, mut tried) = (88_172_645_463_325_252, 0);
    let mut verify = |image: &[u8], what: String| {
        let (heap, simulated) = open(image);
        let mut heap = heap.unwrap_or_else(|error| panic!("{what}: {error}"));
        let recovery = simulated.take_points();
        // Before the check, which compares all checksums, what the program uses compares its own.
        let now = state(&heap);
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.unreachable == 0, "{what}: {found:?}");
        assert!(now == before || now == after, "{what}: {now:?} is neither {before:?} nor {after:?}");
        // It can be used.
        let root = heap.root().unwrap();
        heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            root.text.set(tx, "usable")?;
            root.list = Some(Strong::new(tx, Node { value: 5, next: None })?);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(root);
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.unreachable == 0, "{what}, used: {found:?}");
        tried += 1;
        (now == after, recovery)
    };
    for (number, point) in points.iter().enumerate() {
        for (i, image) in images(point, &mut seed, 64, 24).iter().enumerate() {
            let (_, recovery) = verify(image, format!("point {number} of {}, image {i}", points.len()));
            // Again while it recovers, for a few of them.
            if i % 16 == 0 {
                for (step, point) in recovery.iter().enumerate() {
                    let picked = point.image(|line| draw(&mut seed) as usize % point.choices()[line]);
                    verify(&picked, format!("point {number}, image {i}, recovery step {step}"));
                }
            }
        }
    }
    let last = points.last().unwrap();
    let (is_after, _) = verify(&last.image(|line| last.choices()[line] - 1), "everything".into());
    assert!(is_after, "it was acknowledged");
    tried
}

fn in_root(
    heap: &Heap<Power>,
    change: impl Fn(&mut Root, &Tx<'_, Power>) -> Result<()> + Send + Sync,
) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| change(&mut *root.write(tx)?, tx))
}

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

#[test]
fn a_transfer_is_whole_or_not_there() {
    with_and_without_checksums(|| {
        let _turn = turn();
        let (heap, simulated) = create();
        let tried = cut_everywhere(heap, &simulated, |heap| {
            in_root(heap, |root, _| {
                root.balances[0] += 5;
                root.balances[7] += 6;
                Ok(())
            })
        });
        assert!(tried > 4, "{tried}");
    });
}

#[test]
fn new_objects_and_the_pointers_to_them_come_together() {
    with_and_without_checksums(|| {
        let _turn = turn();
        let (heap, simulated) = create();
        cut_everywhere(heap, &simulated, |heap| {
            in_root(heap, |root, tx| {
                for value in 0..3 {
                    let next = root.list.take();
                    root.list = Some(Strong::new(tx, Node { value, next })?);
                }
                root.weak = Some(root.list.as_ref().unwrap().downgrade(tx)?);
                root.text.set(tx, "some text of several words")
            })
        });
    });
}

fn grown(depth: u64, tx: &Tx<'_, Power>) -> Result<Option<PBox<Tree, Power>>> {
    if depth == 0 {
        return Ok(None);
    }
    let children = [grown(depth - 1, tx)?, grown(depth - 1, tx)?, grown(depth - 1, tx)?];
    PBox::new(tx, Tree { value: depth, children }).map(Some)
}

#[test]
fn a_tree_is_destroyed_whole_even_in_several_transactions() {
    with_and_without_checksums(|| {
        let _turn = turn();
        let (heap, simulated) = create();
        in_root(&heap, |root, tx| {
            root.tree = grown(5, tx)?;
            Ok(())
        })
        .unwrap();
        let blocks = {
            let mut heap = heap;
            let blocks = heap.check().unwrap().blocks;
            cut_everywhere(heap, &simulated, |heap| {
                in_root(heap, |root, _| {
                    root.tree = None;
                    Ok(())
                })
            });
            blocks
        };
        assert_eq!(blocks, 1 + 121);
    });
}

#[test]
fn a_list_longer_than_any_transaction_is_destroyed() {
    let _turn = turn();
    let (mut heap, _) = create();
    for _ in 0..40 {
        in_root(&heap, |root, tx| {
            for value in 0..50 {
                let next = root.list.take();
                root.list = Some(Strong::new(tx, Node { value, next })?);
            }
            Ok(())
        })
        .unwrap();
    }
    assert_eq!(heap.check().unwrap().blocks, 2001);
    in_root(&heap, |root, _| {
        root.list = None;
        Ok(())
    })
    .unwrap();
    let found = heap.check().unwrap();
    assert_eq!((found.blocks, found.problems.len()), (1, 0), "{found:?}");
}

#[test]
fn arrays_grow_into_large_blocks_and_go() {
    with_and_without_checksums(|| {
        let _turn = turn();
        let (heap, simulated) = create();
        in_root(&heap, |root, tx| {
            for i in 0..64 {
                root.numbers.push(tx, [i; 8])?;
            }
            Ok(())
        })
        .unwrap();
        // 64 elements of 64 B are a small block, 300 a large one.
        cut_everywhere(heap, &simulated, |heap| {
            in_root(heap, |root, tx| {
                root.numbers.reserve(tx, 300)?;
                root.numbers.push(tx, [77; 8])?;
                root.numbers.swap(tx, 1, 64)?;
                let node = Strong::new(tx, Node { value: 3, next: None })?;
                root.nodes.push(tx, Some(node.share(tx)?))?;
                root.nodes.push(tx, None)?;
                root.nodes.push(tx, Some(node))
            })
        });
        let (heap, simulated) = create();
        in_root(&heap, |root, tx| {
            root.numbers = PVec::from_fn(tx, 1000, |i| Ok([i as u64; 8]))?;
            root.nodes = PVec::from_fn(tx, 20, |value| {
                Ok(Some(Strong::new(tx, Node { value: value as u64, next: None })?))
            })?;
            Ok(())
        })
        .unwrap();
        cut_everywhere(heap, &simulated, |heap| {
            in_root(heap, |root, tx| {
                root.numbers = PVec::new();
                root.nodes = PVec::new();
                root.list = Some(Strong::new(tx, Node { value: 1, next: None })?);
                Ok(())
            })
        });
    });
}

#[test]
fn recovery_replays_many_transactions_in_order() {
    with_and_without_checksums(|| {
        let _turn = turn();
        let (heap, simulated) = create();
        // Enough for several epochs.
        for round in 0..100 {
            in_root(&heap, |root, tx| {
                root.balances[round % 8] = round as u64;
                root.text.set(tx, &format!("round {round}"))
            })
            .unwrap();
        }
        cut_everywhere(heap, &simulated, |heap| {
            in_root(heap, |root, tx| {
                root.balances = [1; 8];
                root.text.set(tx, "the last")
            })
        });
    });
}

/// What operations cost is exact.
#[test]
fn small_transactions_wait_once() {
    let _turn = turn();
    let (heap, simulated) = create();
    in_root(&heap, |root, tx| {
        root.numbers = PVec::from_fn(tx, 1000, |i| Ok([i as u64; 8]))?;
        Ok(())
    })
    .unwrap();
    heap.checkpoint().unwrap();
    let cost = |change: &(dyn Fn(&mut Root, &Tx<'_, Power>) -> Result<()> + Send + Sync)| {
        let before = simulated.counts();
        in_root(&heap, change).unwrap();
        let after = simulated.counts();
        (
            after.fences - before.fences,
            after.flushes - before.flushes,
            after.streamed_lines - before.streamed_lines,
        )
    };
    let add = |root: &mut Root, _: &Tx<'_, Power>| {
        root.balances[0] += 1;
        Ok(())
    };
    let remove = |root: &mut Root, _: &Tx<'_, Power>| {
        root.list = None;
        Ok(())
    };
    // (fences, flushed lines, lines of the log)
    assert_eq!(cost(&|_, _| Ok(())), (0, 0, 0), "nothing changed");
    assert_eq!(cost(&add), (1, 0, 1), "a word");
    // Two elements of 64 B: 3 + 2 * 9 words.
    assert_eq!(cost(&|root, tx| root.numbers.swap(tx, 3, 900)), (1, 0, 3), "a swap");
    let insert = |root: &mut Root, tx: &Tx<'_, Power>| {
        root.list = Some(Strong::new(tx, Node { value: 1, next: None })?);
        Ok(())
    };
    // Page table, header, value, pointer: 3 + 2 + 3 + 3 + 2 words the first time, without the page table later.
    assert_eq!(cost(&insert), (1, 0, 2), "a new object in a new page");
    assert_eq!(cost(&remove), (1, 0, 1), "an object removed");
    assert_eq!(cost(&insert), (1, 0, 2), "a new object");
    // Home: what five transactions changed is flushed once, line by line.
    let before = simulated.counts();
    heap.checkpoint().unwrap();
    let after = simulated.counts();
    assert_eq!(after.fences - before.fences, 2 * 3, "per epoch: home, header, its copy");
    // Of the root the lines of the balance and the list, two elements of a line each, page table, the node's block; and for
    // each epoch a line of the header and of its copy.
    assert_eq!(after.flushed_lines - before.flushed_lines, 6 + 2 * 2, "{before:?} {after:?}");
}
