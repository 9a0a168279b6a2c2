//! Entries of sorted maps, against a plain map, while the map changes around them.

use nvlab_nvheap::collections::TreeEntry;
use nvlab_nvheap::{Brand, Error, Heap, Options, PBTreeMap, Persist, Result, Tx};
use std::collections::BTreeMap;

struct Sorted;
impl Brand for Sorted {
    type Root = Root;
}

type Map = PBTreeMap<u64, u64, Sorted>;

#[derive(Persist)]
#[persist(heap = Sorted)]
#[repr(C)]
struct Root {
    map: Map,
}

fn heap(folder: &tempfile::TempDir, keys: u64) -> Heap<Sorted> {
    Heap::create(folder.path().join("heap"), Options::default(), |tx| {
        let map = PBTreeMap::new(tx)?;
        (0..keys).try_for_each(|key| map.insert(tx, key * 2, key).map(drop))?;
        Ok(Root { map })
    })
    .unwrap()
}

fn read(heap: &Heap<Sorted>) -> BTreeMap<u64, u64> {
    let root = heap.root().unwrap();
    let read = heap.transaction(|tx| {
        let map = &root.read(tx)?.map;
        let mut read = BTreeMap::new();
        for entry in map.iter(tx) {
            let (key, value) = entry?;
            assert_eq!(map.get(tx, &key)?.map(|value| *value), Some(*value));
            assert!(read.last_key_value().is_none_or(|(last, _)| last < &*key), "out of order");
            read.insert(*key, *value);
        }
        assert_eq!(map.len(tx)?, read.len());
        Ok(read)
    });
    read.unwrap()
}

/// Inserts the key, or changes its value if that is even, or removes it.
fn toggle(map: &Map, tx: &Tx<'_, Sorted>, key: u64, value: u64) -> Result<()> {
    match map.entry(tx, key)? {
        TreeEntry::Vacant(free) => free.insert(value),
        TreeEntry::Occupied(mut found) if found.get().is_multiple_of(2) => {
            *found.get_mut() += 1;
            Ok(())
        }
        TreeEntry::Occupied(found) => found.remove().map(drop),
    }
}

fn toggle_model(model: &mut BTreeMap<u64, u64>, key: u64, value: u64) {
    match model.get_mut(&key) {
        None => drop(model.insert(key, value)),
        Some(found) if found.is_multiple_of(2) => *found += 1,
        Some(_) => drop(model.remove(&key)),
    }
}

#[test]
fn entries_do_what_a_plain_map_does() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut heap = heap(&folder, 0);
    let (mut model, mut seed) = (BTreeMap::new(), 0x9e37_79b9_u64);
    let root = heap.root().unwrap();
    for round in 0..300 {
        heap.transaction(|tx| {
            let map = &root.read(tx)?.map;
            for step in 0..30 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                // It grows to four levels, and shrinks again.
                let key = (seed >> 33) % if round < 200 { 6000 } else { 60 + (round % 7) * 50 };
                toggle(map, tx, key, round + step)?;
                toggle_model(&mut model, key, round + step);
            }
            Ok(())
        })
        .unwrap();
    }
    assert!(model.len() > 1000);
    assert_eq!(read(&heap), model);
    heap.transaction(|tx| {
        let map = &root.read(tx)?.map;
        for key in model.keys() {
            let TreeEntry::Occupied(found) = map.entry(tx, *key)? else { panic!("{key} is there") };
            assert_eq!(found.remove()?, model[key]);
        }
        map.is_empty(tx).map(|is| assert!(is))
    })
    .unwrap();
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

/// Another part of the map changes while a place is held: what was borrowed is refused, everything else is done.
#[test]
fn entries_are_used_after_the_map_has_changed_elsewhere() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut heap = heap(&folder, 300);
    let mut model = read(&heap);
    let (root, mut borrowed, mut done, mut seed) = (heap.root().unwrap(), 0, 0, 7_u64);
    for round in 0..1500 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
        let (key, other) = ((seed >> 33) % 1000, (seed >> 45) % 1000);
        let result = heap.transaction(|tx| {
            let map = &root.read(tx)?.map;
            let entry = map.entry(tx, key)?;
            for step in 0..1 + round % 9 {
                toggle(map, tx, (other + step) % 1000, round)?;
            }
            match entry {
                TreeEntry::Vacant(free) => free.insert(round),
                TreeEntry::Occupied(found) => found.remove().map(drop),
            }
        });
        match result {
            Err(Error::Borrowed) => borrowed += 1,
            other_result => {
                other_result.unwrap_or_else(|error| panic!("round {round}: {error}"));
                let was_there = model.contains_key(&key);
                for step in 0..1 + round % 9 {
                    toggle_model(&mut model, (other + step) % 1000, round);
                }
                match was_there {
                    false => drop(model.insert(key, round)),
                    true => drop(model.remove(&key)),
                }
                done += 1;
            }
        }
    }
    assert!(borrowed > 20 && done > 1000, "{borrowed} borrowed, {done} done");
    assert_eq!(read(&heap), model);
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

#[test]
fn a_map_is_cleared_before_its_entry_is_used() {
    for keys in [3, 200] {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let heap = heap(&folder, keys);
        let root = heap.root().unwrap();
        for key in (0..keys * 2).step_by(2) {
            let removed = heap.transaction(|tx| {
                let map = &root.read(tx)?.map;
                let TreeEntry::Occupied(found) = map.entry(tx, key)? else { panic!("it is there") };
                map.clear(tx)?;
                map.insert(tx, 6, 6)?;
                found.remove().map(drop)
            });
            assert!(matches!(removed, Err(Error::Invalid(_))), "{removed:?}");
        }
        assert_eq!(read(&heap).len(), keys as usize);
        heap.transaction(|tx| {
            let map = &root.read(tx)?.map;
            let TreeEntry::Vacant(free) = map.entry(tx, 5)? else { panic!("it is not there") };
            map.clear(tx)?;
            free.insert(1)
        })
        .unwrap();
        assert_eq!(read(&heap), BTreeMap::from([(5, 1)]));
    }
}

/// A thread that never counted in the map finds two entries before it counts with either.
#[test]
fn a_thread_counts_all_of_its_entries() {
    let folder = tempfile::tempdir().unwrap();
    let heap = heap(&folder, 200);
    let root = heap.root().unwrap();
    let change = |tx: &Tx<'_, Sorted>| {
        let map = &root.read(tx)?.map;
        let (first, second) = (map.entry(tx, 1)?, map.entry(tx, 301)?);
        map.insert(tx, 999, 0)?;
        for entry in [first, second] {
            let TreeEntry::Vacant(free) = entry else { panic!("odd keys are free") };
            free.insert(7)?;
        }
        map.remove(tx, &100).map(drop)
    };
    std::thread::scope(|scope| scope.spawn(|| heap.transaction(change).unwrap()).join().unwrap());
    assert_eq!(read(&heap).len(), 202);
}
