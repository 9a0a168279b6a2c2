//! Space is found again: a heap that may not grow takes as much after long use and many crashes as it did at first.

use nvlab_nvheap::{Brand, Error, Heap, Options, PBTreeMap, PVec, Persist, Result};

struct Small;
impl Brand for Small {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Small)]
#[repr(C)]
struct Root {
    done: u64,
    notes: PBTreeMap<u64, PVec<u8, Small>, Small>,
}

const KEYS: u64 = 6000;

fn options() -> Options {
    Options { bytes_max: 6 << 20, logs: 2, log_bytes: 64 << 10, ..Options::default() }
}

fn draw(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17
}

/// Inserts a note of 40 to 439 B, or removes the one that is there.
fn change(heap: &Heap<Small>) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.done += 1;
        let (key, bytes) = (draw(root.done) % KEYS, 40 + draw(root.done * 3) as usize % 400);
        if root.notes.remove(tx, &key)?.is_none() {
            let note = PVec::from_fn(tx, bytes, |i| Ok(i as u8))?;
            root.notes.insert(tx, key, note)?;
        }
        Ok(())
    })
}

/// What a killed program leaves on tmpfs is a copy of the file at that moment: nothing it knew of free blocks is in it.
#[test]
fn crashes_and_long_use_leak_no_space() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut path = folder.path().join("heap-0");
    let create = |tx: &nvlab_nvheap::Tx<'_, Small>| Ok(Root { done: 0, notes: PBTreeMap::new(tx)? });
    drop(Heap::<Small>::create(&path, options(), create).unwrap());
    for round in 1..=60 {
        let mut heap = Heap::<Small>::open(&path, options()).unwrap();
        for _ in 0..round * 337 % 900 {
            let changed = change(&heap);
            assert!(changed.is_ok(), "round {round}: {changed:?}, {:?}", heap.check());
        }
        let left = folder.path().join(format!("heap-{round}"));
        std::fs::copy(&path, &left).unwrap();
        if round % 10 == 0 {
            let found = heap.check().unwrap();
            assert!(found.problems.is_empty() && found.unreachable == 0, "round {round}: {found:?}");
        }
        drop(heap);
        std::fs::remove_file(&path).unwrap();
        path = left;
    }
    // Full is full, and says so again and again.
    let heap = Heap::<Small>::open(&path, options()).unwrap();
    let root = heap.root().unwrap();
    let mut more = 0;
    let error = loop {
        let grown = heap.transaction(|tx| {
            let note = PVec::from_fn(tx, 400, |i| Ok(i as u8))?;
            root.write(tx)?.notes.insert(tx, KEYS + more, note).map(drop)
        });
        match grown {
            Ok(()) => more += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }) && more > 500, "{error} after {more} more");
    for key in KEYS..KEYS + more {
        heap.transaction(|tx| root.write(tx)?.notes.remove(tx, &key).map(drop)).unwrap();
    }
    for key in KEYS..KEYS + more - 20 {
        let again = heap.transaction(|tx| {
            let note = PVec::from_fn(tx, 400, |i| Ok(i as u8))?;
            root.write(tx)?.notes.insert(tx, key, note).map(drop)
        });
        assert!(again.is_ok(), "{again:?} at {} of {more}", key - KEYS);
    }
}
