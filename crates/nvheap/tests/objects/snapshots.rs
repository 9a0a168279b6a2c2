//! Long reads and copies of a heap that others change meanwhile, and two heaps of one brand.

#![allow(clippy::unit_arg)] // Closures that do something and end in `Ok`.

use nvlab_nvheap::{
    Brand, Error, Handle, Heap, Inspection, Options, PBTreeMap, PBox, PHashMap, PList, PString, PVec,
    Persist, Result, Tx,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

struct Busy;
impl Brand for Busy {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Busy)]
#[repr(C)]
struct Root {
    sorted: PBTreeMap<u64, u64, Busy>,
    hashed: PHashMap<u64, u64, Busy>,
    list: PList<u64, Busy>,
    array: PVec<u64, Busy>,
    text: PString<Busy>,
    owned: Option<PBox<[u64; 100], Busy>>,
    changes: u64,
}

const ENTRIES: u64 = 20_000;

fn create(path: &Path) -> Heap<Busy> {
    let heap = Heap::create(path, Options { checksums: true, ..Options::default() }, |tx| {
        let mut list = PList::new();
        for value in 0..100 {
            list.push_back(tx, value)?;
        }
        Ok(Root {
            sorted: PBTreeMap::new(tx)?,
            hashed: PHashMap::new(tx)?,
            list,
            array: PVec::from_fn(tx, 30_000, |_| Ok(0))?,
            text: PString::new(tx, "0")?,
            owned: None,
            changes: 0,
        })
    })
    .unwrap();
    let root = heap.root().unwrap();
    for first in (0..ENTRIES).step_by(1000) {
        heap.transaction(|tx| {
            let root = root.read(tx)?;
            for key in first..first + 1000 {
                root.sorted.insert(tx, key * 2, 1)?;
                root.hashed.insert(tx, key * 2, 1)?;
            }
            Ok(())
        })
        .unwrap();
    }
    heap
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    (folder, path)
}

fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Moves an entry in both maps and something of the rest; every fiftieth time also arrays, so that blocks and pages are used again.
fn change(root: &mut Root, tx: &Tx<'_, Busy>, seed: &mut u64) -> Result<()> {
    let (from, to) = (draw(seed) % (4 * ENTRIES), draw(seed) % (4 * ENTRIES));
    for is_sorted in [true, false] {
        let (taken, is_free) = match is_sorted {
            true => (root.sorted.remove(tx, &from)?, !root.sorted.contains_key(tx, &to)?),
            false => (root.hashed.remove(tx, &from)?, !root.hashed.contains_key(tx, &to)?),
        };
        let Some(value) = taken else { continue };
        let key = if is_free { to } else { from };
        match is_sorted {
            true => root.sorted.insert(tx, key, value)?,
            false => root.hashed.insert(tx, key, value)?,
        };
    }
    let first = root.list.pop_front(tx)?.unwrap();
    root.list.push_back(tx, first)?;
    root.changes += 1;
    root.text.set(tx, &root.changes.to_string())?;
    root.owned = Some(PBox::new(tx, [root.changes; 100])?);
    if root.changes.is_multiple_of(50) {
        let changes = root.changes;
        root.array = PVec::from_fn(tx, 30_000, |_| Ok(changes))?;
    }
    Ok(())
}

/// Everything is of one moment; returns which.
fn look(root: &Root, tx: &Tx<'_, Busy>) -> Result<u64> {
    let (mut last, mut count) = (None, 0);
    for entry in root.sorted.iter(tx) {
        let (key, value) = entry?;
        assert!(last < Some(*key) && *value == 1, "{last:?}, then {}", *key);
        (last, count) = (Some(*key), count + 1);
    }
    assert_eq!(count, ENTRIES, "of {}", root.changes);
    let mut hashed = 0;
    for value in root.hashed.values(tx) {
        hashed += *value?;
    }
    assert_eq!(hashed, ENTRIES);
    let mut list = 0;
    for value in root.list.iter(tx) {
        list += *value?;
    }
    assert_eq!(list, 99 * 50);
    assert_eq!(root.text.get(tx)?, root.changes.to_string());
    if let Some(owned) = &root.owned {
        assert_eq!(*owned.read(tx)?, [root.changes; 100]);
    }
    for value in root.array.iter(tx) {
        assert_eq!(*value?, root.changes / 50 * 50);
    }
    Ok(root.changes)
}

/// Runs `work` while a thread changes the heap all the time.
fn beside_a_writer<R>(heap: &Heap<Busy>, work: impl FnOnce(&AtomicU64) -> R) -> R {
    let (is_over, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (root, mut seed) = (heap.root().unwrap(), 88_172_645_463_325_252);
            while !is_over.load(Relaxed) {
                heap.transaction(|tx| change(&mut *root.write(tx)?, tx, &mut seed)).unwrap();
                changes.fetch_add(1, Relaxed);
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&changes)));
        is_over.store(true, Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn a_long_read_ends_beside_a_writer() {
    let (_folder, path) = folder();
    let mut heap = create(&path);
    let root = heap.root().unwrap();
    beside_a_writer(&heap, |changes| {
        let mut tries = 0;
        for _ in 0..20 {
            let before = changes.load(Relaxed);
            let seen = heap.transaction(|tx| {
                tries += 1;
                look(&*root.read(tx)?, tx)
            });
            // Not a moment before the call.
            assert!(seen.unwrap() >= before);
        }
        assert!(tries <= 20 * 6, "{tries} tries for 20 reads");
        while changes.load(Relaxed) < 200 {
            std::thread::yield_now();
        }
    });
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

/// Each has a snapshot of its own, of another moment.
#[test]
fn several_long_reads_end_beside_a_writer() {
    const READERS: usize = 3;
    const READS: usize = 15;
    let (_folder, path) = folder();
    let mut heap = create(&path);
    let root = heap.root().unwrap();
    let tries = AtomicU64::new(0);
    beside_a_writer(&heap, |changes| {
        std::thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    for _ in 0..READS {
                        let before = changes.load(Relaxed);
                        let seen = heap.transaction(|tx| {
                            tries.fetch_add(1, Relaxed);
                            let seen = look(&*root.read(tx)?, tx)?;
                            // The others begin meanwhile.
                            std::thread::sleep(std::time::Duration::from_millis(5));
                            assert_eq!(look(&*root.read(tx)?, tx)?, seen, "two moments");
                            Ok(seen)
                        });
                        assert!(seen.unwrap() >= before);
                    }
                });
            }
        });
    });
    let tries = tries.into_inner();
    assert!(tries <= (READERS * READS * 6) as u64, "{tries} tries");
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

/// The program that [`another_program_reads_a_backup_while_this_one_writes`] starts.
#[test]
fn another_program() {
    let Some(copy) = std::env::var_os("NVHEAP_TEST_COPY") else { return };
    let open = Heap::<Busy>::open(std::env::var_os("NVHEAP_TEST_HEAP").unwrap(), Options::default());
    let refused = open.expect_err("it is open").to_string();
    assert!(refused.contains("is in use") && refused.contains("backup_to"), "{refused}");
    let heap = Heap::<Busy>::open(copy, Options::default()).unwrap();
    let root = heap.root().unwrap();
    let seen = heap.transaction(|tx| look(&*root.read(tx)?, tx)).unwrap();
    println!("seen: {seen};");
}

#[test]
fn another_program_reads_a_backup_while_this_one_writes() {
    let (folder, path) = folder();
    let heap = create(&path);
    beside_a_writer(&heap, |changes| {
        for round in 0..3 {
            let (before, copy) = (changes.load(Relaxed), folder.path().join(format!("copy-{round}")));
            heap.backup_to(&copy).unwrap();
            let after = changes.load(Relaxed) + 1;
            let mut program = std::process::Command::new(std::env::current_exe().unwrap());
            program.args(["--exact", "snapshots::another_program", "--nocapture"]);
            let output =
                program.env("NVHEAP_TEST_COPY", &copy).env("NVHEAP_TEST_HEAP", &path).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}");
            let seen = said.split_once("seen: ").and_then(|(_, rest)| rest.split_once(';')).unwrap().0;
            let seen: u64 = seen.parse().unwrap();
            assert!((before..=after).contains(&seen), "{seen} of {before} to {after}");
        }
        let changes_before = changes.load(Relaxed);
        while changes.load(Relaxed) < changes_before + 10 {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_read_that_changes_something_in_the_end_is_no_snapshot() {
    let (_folder, path) = folder();
    let heap = create(&path);
    let root = heap.root().unwrap();
    beside_a_writer(&heap, |_| {
        let mut seed = 77;
        for _ in 0..20 {
            let (before, after) = heap
                .transaction(|tx| {
                    let before = root.read(tx)?.changes;
                    let mut root = root.write(tx)?;
                    change(&mut root, tx, &mut seed)?;
                    Ok((before, root.changes))
                })
                .unwrap();
            assert_eq!(after, before + 1);
        }
    });
    assert!(heap.transaction(|tx| look(&*root.read(tx)?, tx)).unwrap() >= 20);
}

#[test]
fn a_backup_is_of_one_moment() {
    let (folder, path) = folder();
    let heap = create(&path);
    beside_a_writer(&heap, |changes| {
        for round in 0..10 {
            let before = changes.load(Relaxed);
            let copy = folder.path().join(format!("backup-{round}"));
            let bytes = heap.backup_to(&copy).unwrap();
            assert_eq!(std::fs::metadata(&copy).unwrap().len(), bytes);
            let found = Inspection::open(&copy).unwrap().check().unwrap();
            assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
            // It is a heap of the same brand, open beside the other one.
            let backup = Heap::<Busy>::open(&copy, Options::default()).unwrap();
            assert_eq!(backup.stat().replayed, 0);
            let root = backup.root().unwrap();
            let seen = backup.transaction(|tx| look(&*root.read(tx)?, tx)).unwrap();
            assert!((before..=changes.load(Relaxed) + 1).contains(&seen), "{seen}");
            backup.transaction(|tx| change(&mut *root.write(tx)?, tx, &mut 5)).unwrap();
        }
        let error = heap.backup_to(folder.path().join("backup-0")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    });
}

#[test]
fn a_backup_inside_a_transaction_is_refused() {
    let (folder, path) = folder();
    let heap = create(&path);
    let copy = folder.path().join("backup");
    let mut tries = 0;
    let backup = heap.transaction(|_| {
        tries += 1;
        // The last tries would have a snapshot, for which the backup would wait.
        if tries < 10 { Err(Error::Conflict) } else { heap.backup_to(&copy) }
    });
    assert!(matches!(backup, Err(Error::Invalid(_))), "{backup:?}");
    assert!(!copy.exists());
    heap.backup_to(&copy).unwrap();
}

/// A handle leads to an object that was made, in a file that has become longer, after the snapshot began.
#[test]
fn what_lies_behind_the_end_of_a_snapshot_is_not_read_from_it() {
    let (_folder, path) = folder();
    let heap = create(&path);
    let root = heap.root().unwrap();
    let make = |bytes: u64| {
        let mut handles: Vec<Handle<[u64; 100], Busy>> = Vec::new();
        heap.transaction(|tx| {
            root.write(tx)?.array = PVec::from_fn(tx, 4 << 20, |_| Ok(0))?;
            Ok(())
        })
        .unwrap();
        assert!(heap.stat().bytes > bytes, "{bytes}");
        let is_behind = |handle: &Handle<_, _>| {
            let at = format!("{handle:?}");
            u64::from_str_radix(at.trim_start_matches("Handle(0x").trim_end_matches(')'), 16).unwrap() > bytes
        };
        while !handles.last().is_some_and(is_behind) {
            let more = heap.transaction(|tx| {
                let new = |_| PBox::new(tx, [7; 100])?.handle(tx);
                (0..100).map(new).collect::<Result<Vec<_>>>()
            });
            handles.extend(more.unwrap());
        }
        handles.pop().unwrap()
    };
    let (mut tries, mut made, mut refused) = (0, None, 0);
    let seen = heap.transaction(|tx| {
        tries += 1;
        let _ = root.read(tx)?.changes;
        if tries < 5 {
            return Err(Error::Conflict);
        }
        let handle = made.get_or_insert_with(|| {
            let bytes = heap.stat().bytes;
            std::thread::scope(|scope| scope.spawn(|| make(bytes)).join().unwrap())
        });
        let value = handle.read(tx).inspect_err(|_| refused += 1)?;
        Ok(value[0])
    });
    assert_eq!((seen.unwrap(), refused), (7, 1));
}

#[test]
fn two_heaps_of_a_brand_are_open_at_once() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let heap = |name: &str| create(&folder.path().join(name));
    let (mut one, mut other) = (heap("one"), heap("other"));
    let (root, other_root) = (one.root().unwrap(), other.root().unwrap());
    let mut seed = 99;
    for round in 0..200 {
        let (heap, root) = if round % 3 == 0 { (&one, &root) } else { (&other, &other_root) };
        heap.transaction(|tx| change(&mut *root.write(tx)?, tx, &mut seed)).unwrap();
    }
    let changes = |heap: &Heap<Busy>, root: &nvlab_nvheap::Handle<Root, Busy>| {
        heap.transaction(|tx| look(&*root.read(tx)?, tx)).unwrap()
    };
    assert_eq!((changes(&one, &root), changes(&other, &other_root)), (67, 133));
    // A handle is one heap's.
    let mixed = one.transaction(|tx| Ok(other_root.read(tx)?.changes));
    assert!(matches!(mixed, Err(Error::Invalid(_))), "{mixed:?}");
    // A thread cannot hold pointers of both: its transactions on them are not nested. Other threads' are their own.
    let nested = one.transaction(|_| other.transaction(|tx| Ok(other_root.read(tx)?.changes)));
    assert!(matches!(nested, Err(Error::BrandInUse(_))), "{nested:?}");
    let handle = other
        .transaction(|tx| {
            let owned = other_root.write(tx)?.owned.take().unwrap();
            owned.handle(tx)
        })
        .unwrap();
    one.transaction(|tx| {
        let seen = std::thread::scope(|scope| scope.spawn(|| changes(&other, &other_root)).join().unwrap());
        assert_eq!(seen, 133);
        root.write(tx)?.changes += 0;
        // The last reference to an object of the other heap goes here.
        drop(handle.clone());
        Ok(())
    })
    .unwrap();
    one.transaction(|_| Ok(drop(handle.clone()))).unwrap();
    let last = std::sync::Mutex::new(Some(handle));
    one.transaction(|tx| {
        last.lock().unwrap().take();
        root.write(tx)?.owned = None;
        Ok(())
    })
    .unwrap();
    other.transaction(|tx| Ok(other_root.write(tx)?.changes += 0)).unwrap();
    for heap in [&mut one, &mut other] {
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
    }
}
