//! Heaps with checksums: what becomes of them in copies and when they grow, what damage does to who uses it, and where there are none.

#![allow(clippy::unit_arg)] // Closures that do something and end in `Ok`.

use nvlab_nvheap::{
    Brand, Error, Heap, Inspection, Options, PBTreeMap, PString, PVec, Persist, Result, Strong, Tx,
    Unreachable, compact, compact_with_checksums, migrate,
};
use nvlab_rvm::Rvm;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) struct Summed;
impl Brand for Summed {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Summed)]
#[repr(C)]
pub(crate) struct Root {
    /// Of 20 pages, and of 4.
    pub(crate) large: PVec<u64, Summed>,
    pub(crate) rest: PVec<[u64; 8], Summed>,
    pub(crate) text: PString<Summed>,
    pub(crate) nodes: Option<Strong<Node, Summed>>,
    pub(crate) map: PBTreeMap<u64, u64, Summed>,
}

#[derive(Persist)]
#[persist(heap = Summed)]
#[repr(C)]
pub(crate) struct Node {
    pub(crate) number: u64,
    pub(crate) next: Option<Strong<Node, Summed>>,
}

/// One brand: tests take turns.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

pub(crate) const LOGS: usize = 4;
pub(crate) const LOG_BYTES: usize = 32 << 10;

pub(crate) fn options() -> Options {
    let (logs, log_bytes) = (LOGS as u32, LOG_BYTES as u64);
    Options { bytes_max: 16 << 20, logs, log_bytes, checksums: true, ..Options::default() }
}

pub(crate) const LARGE: usize = 160_000;
/// What an element of the large array holds, and nothing else.
pub(crate) const MARK: u64 = 0x5eed_0000_0000_0000;

pub(crate) fn make(tx: &Tx<'_, Summed>) -> Result<Root> {
    Ok(Root {
        large: PVec::from_fn(tx, LARGE, |index| Ok(MARK + index as u64))?,
        rest: PVec::from_fn(tx, 4000, |index| Ok([index as u64; 8]))?,
        text: PString::new(tx, "some text")?,
        nodes: None,
        map: PBTreeMap::new(tx)?,
    })
}

pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    (folder, path)
}

pub(crate) fn change(
    heap: &Heap<Summed>,
    change: impl Fn(&mut Root, &Tx<'_, Summed>) -> Result<()> + Send + Sync,
) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| change(&mut *root.write(tx)?, tx))
}

pub(crate) fn element(heap: &Heap<Summed>, index: usize) -> Result<u64> {
    let root = heap.root()?;
    heap.transaction(|tx| Ok(*root.read(tx)?.large.read(tx, index)?))
}

pub(crate) fn problems(path: &Path) -> Vec<String> {
    let found = Inspection::open(path).unwrap().check().unwrap();
    found.problems.iter().map(Error::to_string).collect()
}

/// Flips a bit of an element of the large array, and returns the number of the byte.
pub(crate) fn flip(path: &Path, index: usize) -> usize {
    let mut image = std::fs::read(path).unwrap();
    let word = (MARK + index as u64).to_le_bytes();
    let at = image.chunks(8).rposition(|found| found == word).unwrap() * 8;
    image[at + 2] ^= 0x10;
    std::fs::write(path, image).unwrap();
    at
}

/// Says what the damage is, and where: in its line.
pub(crate) fn assert_names(error: &Error, at: usize) {
    let said = error.to_string();
    let is_there = said.contains("checksum") && said.contains(&(at / 64 * 64).to_string());
    assert!(matches!(error, Error::Damaged { .. }) && is_there, "{said}, not at {at}");
}

#[test]
fn first_use_finds_damage_and_what_is_elsewhere_is_used() {
    let _turn = turn();
    let (_folder, path) = folder();
    drop(Heap::<Summed>::create(&path, options(), make).unwrap());
    assert!(problems(&path).is_empty());
    let at = flip(&path, 100_000);
    let found = problems(&path);
    assert!(found.len() == 1 && found[0].contains("checksum"), "{found:?}");
    let mut heap = Heap::<Summed>::open(&path, options()).unwrap();
    // Its page is refused whoever asks, by reads, by writes and with what shares it.
    for index in [100_000, 100_001] {
        assert_names(&element(&heap, index).unwrap_err(), at);
        let written = change(&heap, |root, tx| Ok(*root.large.write(tx, index)? = 1));
        assert_names(&written.unwrap_err(), at);
    }
    // To drop the array would be to forget what was in it.
    assert_names(&change(&heap, |root, _| Ok(root.large = PVec::new())).unwrap_err(), at);
    // Others work, and the check still says so.
    change(&heap, |root, tx| {
        *root.large.write(tx, 3)? = 7;
        *root.rest.write(tx, 5)? = [9; 8];
        root.text.set(tx, "other text")
    })
    .unwrap();
    assert_eq!(element(&heap, 3).unwrap(), 7);
    let found = heap.check().unwrap().problems;
    assert_eq!(found.len(), 1);
    assert_names(&found[0], at);
    assert_names(&heap.collect_cycles().unwrap_err(), at);
    drop(heap);
    assert_eq!(problems(&path).len(), 1);
    let compacted = compact(&path, Unreachable::Keep);
    assert_names(&compacted.unwrap_err(), at);
}

/// What has been compared is not compared again, and what a program has changed is right.
#[test]
fn a_backup_has_checksums_of_its_moment_and_keeps_damage() {
    let _turn = turn();
    let (folder, path) = folder();
    drop(Heap::<Summed>::create(&path, options(), make).unwrap());
    let at = flip(&path, 100_000);
    let heap = Heap::<Summed>::open(&path, options()).unwrap();
    change(&heap, |root, tx| {
        (0..2000).try_for_each(|index| Ok(*root.large.write(tx, index)? = 1))?;
        root.map.insert(tx, 1, 1).map(drop)
    })
    .unwrap();
    let copy = folder.path().join("copy");
    heap.backup_to(&copy).unwrap();
    let found = problems(&copy);
    assert!(found.len() == 1 && found[0].contains("checksum"), "{found:?}");
    let copied = Heap::<Summed>::open(&copy, Options::default()).unwrap();
    assert_eq!((element(&copied, 1999).unwrap(), element(&copied, 2000).unwrap()), (1, MARK + 2000));
    assert_names(&element(&copied, 100_000).unwrap_err(), at);
}

/// Threads take and free blocks, pages and large arrays, so that pages are used again; then it is closed, or killed.
#[test]
fn what_threads_leave_is_right() {
    let _turn = turn();
    let (folder, path) = folder();
    let mut heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    let root = heap.root().unwrap();
    let killed = folder.path().join("killed");
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (heap, root) = (&heap, &root);
            scope.spawn(move || {
                for round in 0..400 {
                    let changed = heap.transaction(|tx| match thread {
                        0 => {
                            let mut root = root.write(tx)?;
                            root.rest =
                                PVec::from_fn(tx, 200 + round % 7 * 600, |index| Ok([index as u64; 8]))?;
                            if round % 50 == 0 {
                                root.nodes = None;
                            }
                            Ok(())
                        }
                        1 => {
                            let mut root = root.write(tx)?;
                            for number in 0..5 {
                                let next = root.nodes.take();
                                root.nodes = Some(Strong::new(tx, Node { number, next })?);
                            }
                            Ok(())
                        }
                        _ => {
                            let root = root.read(tx)?;
                            let at = round * 379;
                            root.large.swap(tx, at % LARGE, at * 7 % LARGE)?;
                            root.map.insert(tx, (at % 500) as u64, round as u64).map(drop)
                        }
                    });
                    changed.unwrap();
                }
            });
        }
    });
    std::fs::copy(&path, &killed).unwrap();
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty(), "{found:?}");
    drop(heap);
    assert!(problems(&path).is_empty(), "{:?}", problems(&path));
    for path in [killed, path] {
        let mut heap = Heap::<Summed>::open(&path, Options::default()).unwrap();
        (0..LARGE).step_by(1000).for_each(|index| assert!(element(&heap, index).is_ok(), "element {index}"));
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty(), "{found:?}");
    }
}

/// Places for new elements and blocks share pages with what was there when the heap was opened.
#[test]
fn what_is_changed_before_anything_is_read_is_right() {
    let _turn = turn();
    let (_folder, path) = folder();
    let node = |tx: &Tx<'_, Summed>, root: &mut Root, number| {
        let next = root.nodes.take();
        root.nodes = Some(Strong::new(tx, Node { number, next })?);
        Ok(())
    };
    let heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    change(&heap, |root, tx| {
        root.rest.reserve(tx, 1000)?;
        node(tx, root, 1)
    })
    .unwrap();
    drop(heap);
    for round in 0..4 {
        let mut heap = Heap::<Summed>::open(&path, options()).unwrap();
        change(&heap, |root, tx| {
            root.rest.push(tx, [round; 8])?;
            root.rest.push(tx, [round; 8])?;
            node(tx, root, round)
        })
        .unwrap();
        let root = heap.root().unwrap();
        let read = heap.transaction(|tx| {
            let root = root.read(tx)?;
            root.rest.iter(tx).map(|element| Ok(element?[0])).collect::<Result<Vec<_>>>()
        });
        let expected = (0..4000).chain((0..=round).flat_map(|round| [round; 2]));
        assert_eq!(read.unwrap(), expected.collect::<Vec<_>>());
        drop(root);
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty(), "{found:?}");
    }
}

/// A page in which new objects would lie is compared before: what is in it is not taken for right.
#[test]
fn damage_is_not_summed_with_what_is_put_beside_it() {
    let _turn = turn();
    let (_folder, path) = folder();
    let number = MARK + (1 << 40);
    let add = |root: &mut Root, tx: &Tx<'_, Summed>| {
        let next = root.nodes.take();
        root.nodes = Some(Strong::new(tx, Node { number, next })?);
        Ok(())
    };
    let heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    change(&heap, add).unwrap();
    drop(heap);
    let at = flip(&path, 1 << 40);
    let heap = Heap::<Summed>::open(&path, options()).unwrap();
    // More than a page holds, and none of them there: other pages are found for them.
    change(&heap, add).unwrap();
    for _ in 0..30 {
        change(&heap, |root, tx| (0..50).try_for_each(|_| add(root, tx))).unwrap();
    }
    drop(heap);
    let found = problems(&path);
    assert!(found.len() == 1 && found[0].contains("checksum"), "byte {at}: {found:?}");
}

/// Compacting and migrating keep them, and a heap without them stays without.
#[test]
fn copies_keep_them() {
    mod v2 {
        use super::*;

        pub struct Next;
        impl Brand for Next {
            type Root = Root;
        }

        #[derive(Persist)]
        #[persist(heap = Next)]
        #[repr(C)]
        pub struct Root {
            pub large: PVec<u64, Next>,
        }
    }
    let _turn = turn();
    for checksums in [true, false] {
        let (_folder, path) = folder();
        drop(Heap::<Summed>::create(&path, Options { checksums, ..options() }, make).unwrap());
        let summary = || Inspection::open(&path).unwrap().summary().unwrap();
        assert_eq!((summary().checksums, summary().version), (checksums, 2 + u64::from(checksums)));
        compact(&path, Unreachable::Keep).unwrap();
        assert_eq!(summary().checksums, checksums);
        drop(Heap::<Summed>::open(&path, Options { checksums: !checksums, ..options() }).unwrap());
        assert_eq!(summary().checksums, checksums, "it is fixed when it is created");
        let step = migrate::<Summed, v2::Next>(|old, from, to| {
            let element = |index| Ok(*old.large.read(from, index)?);
            Ok(v2::Root { large: PVec::from_fn(to, old.large.len(), element)? })
        });
        let options = Options { checksums: false, ..options() };
        drop(step.open(&path, options).unwrap());
        assert_eq!((summary().checksums, problems(&path).len()), (checksums, 0));
        let at = flip(&path, 77_000);
        assert_eq!(problems(&path).len(), usize::from(checksums), "byte {at}");
    }
}

#[test]
fn a_heap_without_them_is_given_some() {
    let _turn = turn();
    let (_folder, path) = folder();
    let heap = Heap::<Summed>::create(&path, Options { checksums: false, ..options() }, make).unwrap();
    // What waits in the logs comes along.
    change(&heap, |root, tx| Ok(*root.large.write(tx, 5)? = 6)).unwrap();
    let image = std::fs::read(&path).unwrap();
    drop(heap);
    std::fs::write(&path, image).unwrap();
    for _ in 0..2 {
        compact_with_checksums(&path, Unreachable::Keep).unwrap();
        let found = Inspection::open(&path).unwrap().check().unwrap();
        assert!(found.checksums && found.problems.is_empty(), "{found:?}");
    }
    let heap = Heap::<Summed>::open(&path, options()).unwrap();
    let found = [5, LARGE - 1].map(|index| element(&heap, index).unwrap());
    assert_eq!(found, [6, MARK + LARGE as u64 - 1]);
    drop(heap);
    flip(&path, 100_000);
    assert_eq!(problems(&path).len(), 1);
}

#[test]
fn recoverable_memory_has_none() {
    let _turn = turn();
    let (folder, path) = folder();
    drop(Heap::<Summed>::create(&path, options(), make).unwrap());
    let log = FileLog::create(&folder.path().join("log"), 256 << 10).unwrap();
    let segments = SegmentFolder::new(folder.path());
    segments.create("new", 4 << 20).unwrap();
    let rvm = Arc::new(Rvm::open(log, segments, Default::default()).unwrap());
    let made = Heap::<Summed>::create_on(&rvm, "new", options(), make);
    assert!(matches!(&made, Err(Error::Invalid(why)) if why.contains("checksums")), "{made:?}");
    let plain = Options { checksums: false, ..options() };
    let opened = Heap::<Summed>::open_on(&rvm, "heap", plain);
    assert!(matches!(&opened, Err(Error::Format { why, .. }) if why.contains("checksums")), "{opened:?}");
}

/// A bit of the page table, or of a list of a log, is noticed like others.
#[test]
fn tables_and_lists_are_covered() {
    let _turn = turn();
    let (_folder, path) = folder();
    drop(Heap::<Summed>::create(&path, options(), make).unwrap());
    let whole = std::fs::read(&path).unwrap();
    let log = 4096 + LOG_BYTES;
    let table = 65536 + LOGS * log;
    let used: Vec<usize> = (table..table + 256 * 8).filter(|&at| whole[at] != 0).collect();
    assert!(used.len() > 3);
    let list = 65536 + log + 8;
    for (at, bit) in used.into_iter().chain([list]).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut image = whole.clone();
        image[at] ^= 1 << bit;
        std::fs::write(&path, &image).unwrap();
        let checked = Inspection::open(&path).unwrap().check();
        assert!(checked.is_err() || !checked.unwrap().problems.is_empty(), "bit {bit} of byte {at}");
    }
}
