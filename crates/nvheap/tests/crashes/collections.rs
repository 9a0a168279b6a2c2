//! Power cuts in a simulated cache while collections change: at every flush, streamed write and fence, with subsets of the lines
//! that are not durable. What is found is the state before the transaction or after it, and every block and count agrees.

use crate::common::{file, images, is_exhaustive, with_and_without_checksums};
use nvlab_nvheap::collections::TreeEntry;
use nvlab_nvheap::{
    Brand, Delays, Heap, Options, PBTreeMap, PBox, PHashMap, PList, PString, Persist, Result, Simulated, Tx,
};
use std::cell::Cell;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

struct Power;
impl Brand for Power {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Power)]
#[repr(C)]
struct Root {
    tree: PBTreeMap<u64, u64, Power>,
    hash: PHashMap<u64, u64, Power>,
    names: PBTreeMap<PString<Power>, PBox<u64, Power>, Power>,
    list: PList<PString<Power>, Power>,
}

type State = (Vec<(u64, u64)>, Vec<(u64, u64)>, Vec<(String, u64)>, Vec<String>, [usize; 3]);

/// One brand: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn options(simulated: &Arc<Simulated>) -> Options {
    crate::common::options(simulated, 256 << 10)
}

fn state(heap: &Heap<Power>) -> State {
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        let mut tree = Vec::new();
        for entry in root.tree.iter(tx) {
            let (key, value) = entry?;
            tree.push((*key, *value));
        }
        let mut hash = Vec::new();
        for entry in root.hash.iter(tx) {
            let (key, value) = entry?;
            hash.push((*key, *value));
        }
        hash.sort_unstable();
        let mut names = Vec::new();
        for entry in root.names.iter(tx) {
            let (key, value) = entry?;
            names.push((key.get(tx)?, *value.read(tx)?));
        }
        let list = root.list.iter(tx).map(|text| text?.get(tx)).collect::<Result<_>>()?;
        Ok((tree, hash, names, list, [root.tree.len(tx)?, root.hash.len(tx)?, root.names.len(tx)?]))
    })
    .unwrap()
}

type Change = fn(&mut Root, &Tx<'_, Power>) -> Result<()>;

fn apply(heap: &Heap<Power>, change: Change) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| change(&mut *root.write(tx)?, tx))
}

/// Makes a heap, prepares it, and cuts the power everywhere in `change`; returns the fences of the transaction.
fn cut(prepare: Change, change: Change) -> u64 {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let fences = Cell::new(0);
    with_and_without_checksums(|| fences.set(cut_one(prepare, change)));
    fences.get()
}

fn cut_one(prepare: Change, change: Change) -> u64 {
    let simulated = Simulated::new(Delays::PCM);
    let heap = Heap::<Power>::create_in(file(), Path::new("simulated"), options(&simulated), |tx| {
        let (tree, hash) = (PBTreeMap::new(tx)?, PHashMap::new(tx)?);
        Ok(Root { tree, hash, names: PBTreeMap::new(tx)?, list: PList::new() })
    })
    .unwrap();
    apply(&heap, prepare).unwrap();
    let before = state(&heap);
    let fences = simulated.counts().fences;
    simulated.record();
    apply(&heap, change).unwrap();
    let (points, fences) = (simulated.take_points(), simulated.counts().fences - fences);
    let after = state(&heap);
    assert!(!points.is_empty() && before != after);
    drop(heap);
    let (mut seed, mut seen) = (88_172_645_463_325_252, [false; 2]);
    for (number, point) in points.iter().enumerate() {
        for image in images(point, &mut seed, 16, 8) {
            let image_file = file();
            image_file.write_all_at(&image, 0).unwrap();
            let opened = options(&Simulated::new(Delays::PCM));
            let mut heap = Heap::<Power>::open_in(image_file, Path::new("image"), opened).unwrap();
            let now = state(&heap);
            let found = heap.check().unwrap();
            assert!(found.problems.is_empty() && found.unreachable == 0, "point {number}: {found:?}");
            assert!(
                now == before || now == after,
                "point {number}: {now:?} is neither {before:?} nor {after:?}"
            );
            seen[usize::from(now == after)] = true;
            // It can be used, and everything in it given back.
            apply(&heap, |root, tx| {
                root.tree.insert(tx, 1000, 1)?;
                root.hash.insert(tx, 1000, 1)?;
                root.tree.retain(tx, |_, _| false)?;
                root.hash.clear(tx)?;
                root.names.clear(tx)?;
                root.list.clear();
                Ok(())
            })
            .unwrap();
            let found = heap.check().unwrap();
            assert!(found.problems.is_empty() && found.unreachable == 0, "point {number}, used: {found:?}");
        }
    }
    assert_eq!(seen, [true; 2], "some cuts are before the commit and some after it");
    fences
}

fn fill(root: &mut Root, tx: &Tx<'_, Power>, keys: u64) -> Result<()> {
    for key in 0..keys {
        root.tree.insert(tx, key * 10, key)?;
        root.hash.insert(tx, key * 10, key)?;
        root.names.insert(tx, PString::new(tx, &format!("name {key:03}"))?, PBox::new(tx, key)?)?;
        root.list.push_back(tx, PString::new(tx, &format!("element {key}"))?)?;
    }
    Ok(())
}

#[test]
fn small_changes_take_one_fence() {
    let prepare: Change = |root, tx| fill(root, tx, 40);
    let changes: [Change; 5] = [
        |root, tx| root.tree.insert(tx, 5, 5).map(|_| ()),
        |root, tx| root.tree.remove(tx, &70).map(|_| ()),
        |root, tx| root.hash.insert(tx, 5, 5).map(|_| ()),
        |root, tx| root.hash.remove(tx, &70).map(|_| ()),
        |root, tx| root.list.pop_front(tx).map(|_| ()),
    ];
    for change in changes {
        assert_eq!(cut(prepare, change), 1);
    }
}

#[test]
fn nodes_split_and_merge_as_a_whole() {
    // Fifteen entries fill the only leaf, and then 80 of them two levels.
    cut(|root, tx| fill(root, tx, 15), |root, tx| root.tree.insert(tx, 7, 7).map(|_| ()));
    // By their places, of which some are in inner nodes.
    cut(
        |root, tx| fill(root, tx, 80),
        |root, tx| {
            (0..60).try_for_each(|key| match root.tree.entry(tx, key * 15)? {
                TreeEntry::Occupied(found) => found.remove().map(drop),
                TreeEntry::Vacant(free) => free.insert(key),
            })
        },
    );
    cut(
        |root, tx| fill(root, tx, 80),
        |root, tx| {
            (0..20).try_for_each(|key| root.tree.insert(tx, key * 10 + 1, key).map(|_| ()))?;
            (20..60).try_for_each(|key| root.tree.remove(tx, &(key * 10)).map(|_| ()))
        },
    );
}

#[test]
fn hash_maps_grow_as_a_whole() {
    cut(
        |root, tx| fill(root, tx, 10),
        |root, tx| (0..60).try_for_each(|key| root.hash.insert(tx, key * 10 + 1, key).map(|_| ())),
    );
    cut(
        |root, tx| fill(root, tx, 60),
        |root, tx| (0..55).try_for_each(|key| root.hash.remove(tx, &(key * 10)).map(|_| ())),
    );
}

#[test]
fn keys_and_values_with_objects_of_their_own_come_and_go_with_them() {
    cut(
        |root, tx| fill(root, tx, 20),
        |root, tx| {
            root.names.insert(tx, PString::new(tx, "name 003")?, PBox::new(tx, 77)?)?;
            root.names.insert(tx, PString::new(tx, "another")?, PBox::new(tx, 78)?)?;
            (5..15).try_for_each(|key| root.names.remove(tx, &format!("name {key:03}")).map(|_| ()))?;
            root.list.retain(tx, |text| text.get(tx).unwrap().ends_with('7'))
        },
    );
    cut(
        |root, tx| fill(root, tx, if is_exhaustive() { 100 } else { 30 }),
        |root, tx| {
            root.names.clear(tx)?;
            root.list.clear();
            root.tree.pop_first(tx).map(|_| ())
        },
    );
}
