//! Entries of hash maps while the map changes around them.

use nvlab_nvheap::collections::Entry;
use nvlab_nvheap::{Brand, Error, Heap, Options, PHashMap, Persist, Result, Tx};
use std::collections::BTreeMap;

struct Changing;
impl Brand for Changing {
    type Root = Root;
}

type Map = PHashMap<u64, u64, Changing>;

#[derive(Persist)]
#[persist(heap = Changing)]
#[repr(C)]
struct Root {
    map: Map,
}

/// Runs `change` in a transaction on a map that has the keys below `entries`; then the map has what is wanted.
fn run(
    entries: u64,
    change: impl Fn(&Map, &Tx<'_, Changing>) -> Result<()> + Send + Sync,
    wanted: &[(u64, u64)],
) -> Result<()> {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut heap = Heap::<Changing>::create(folder.path().join("heap"), Options::default(), |tx| {
        let map = PHashMap::new(tx)?;
        (0..entries).try_for_each(|key| map.insert(tx, key, key).map(drop))?;
        Ok(Root { map })
    })
    .unwrap();
    let root = heap.root().unwrap();
    let done = heap.transaction(|tx| change(&root.read(tx)?.map, tx));
    assert_eq!(read(&heap), wanted.iter().copied().collect());
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
    done
}

/// All entries, each found by its key and counted.
fn read(heap: &Heap<Changing>) -> BTreeMap<u64, u64> {
    let root = heap.root().unwrap();
    let read = heap.transaction(|tx| {
        let map = &root.read(tx)?.map;
        let mut read = BTreeMap::new();
        for entry in map.iter(tx) {
            let (key, value) = entry?;
            assert_eq!(map.get(tx, &key)?.map(|value| *value), Some(*value));
            assert_eq!(read.insert(*key, *value), None, "a key twice");
        }
        assert_eq!(map.len(tx)?, read.len());
        Ok(read)
    });
    read.unwrap()
}

fn vacant(entry: Entry<'_, u64, u64, Changing>, value: u64) -> Result<()> {
    match entry {
        Entry::Vacant(free) => free.insert(value),
        Entry::Occupied(_) => panic!("it is there"),
    }
}

#[test]
fn others_are_inserted_before_an_entry_of_an_empty_map() {
    let other = |map: &Map, tx: &Tx<'_, Changing>| {
        let entry = map.entry(tx, 1)?;
        map.insert(tx, 2, 20)?;
        vacant(entry, 10)
    };
    run(0, other, &[(1, 10), (2, 20)]).unwrap();
    let same = |map: &Map, tx: &Tx<'_, Changing>| {
        let (entry, again) = (map.entry(tx, 1)?, map.entry(tx, 1)?);
        vacant(entry, 10)?;
        vacant(again, 11)
    };
    run(0, same, &[(1, 11)]).unwrap();
}

#[test]
fn a_map_is_cleared_before_its_entry_is_used() {
    let vacant = |map: &Map, tx: &Tx<'_, Changing>| {
        let entry = map.entry(tx, 1)?;
        map.clear(tx)?;
        vacant(entry, 10)
    };
    run(1, vacant, &[(1, 10)]).unwrap();
    for again in [false, true] {
        let occupied = |map: &Map, tx: &Tx<'_, Changing>| {
            let Entry::Occupied(entry) = map.entry(tx, 0)? else { panic!("it is there") };
            map.clear(tx)?;
            if again {
                map.insert(tx, 0, 5)?;
            }
            entry.remove().map(drop)
        };
        let removed = run(1, occupied, &[(0, 0)]);
        assert!(matches!(removed, Err(Error::Invalid(_))), "{removed:?}");
    }
}

#[test]
fn a_map_grows_before_its_entry_is_used() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut model: BTreeMap<u64, u64> = (0..500).step_by(2).map(|key| (key, 1)).collect();
    let begin = |tx: &Tx<'_, Changing>| {
        let map = PHashMap::new(tx)?;
        (0..500).step_by(2).try_for_each(|key| map.insert(tx, key, 1).map(drop))?;
        Ok(Root { map })
    };
    let heap = Heap::<Changing>::create(folder.path().join("heap"), Options::default(), begin).unwrap();
    let (root, mut borrowed) = (heap.root().unwrap(), 0);
    for key in 0..1000 {
        let old = key * 7 % 500;
        let result = heap.transaction(|tx| {
            let map = &root.read(tx)?.map;
            let entry = map.entry(tx, old)?;
            map.insert(tx, 1000 + key, key)?;
            match entry {
                Entry::Occupied(found) => found.remove().map(drop),
                Entry::Vacant(free) => free.insert(key),
            }
        });
        match result {
            // The other key is of the same bucket, or this is divided.
            Err(Error::Borrowed) => borrowed += 1,
            other => {
                other.unwrap();
                model.insert(1000 + key, key);
                if model.remove(&old).is_none() {
                    model.insert(old, key);
                }
            }
        }
    }
    assert!((1..200).contains(&borrowed), "{borrowed}");
    assert_eq!(read(&heap), model);
}

#[test]
fn a_value_is_made_from_others_of_its_bucket() {
    let change = |map: &Map, tx: &Tx<'_, Changing>| {
        let value = || Ok(*map.get(tx, &0)?.unwrap() + *map.get_or_insert_with(tx, 3, || Ok(7))?);
        *map.get_or_insert_with(tx, 9, value)? += 100;
        Ok(())
    };
    run(2, change, &[(0, 0), (1, 1), (3, 7), (9, 107)]).unwrap();
}
