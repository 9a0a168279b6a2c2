//! What miri, the interpreter that checks Rust's rules for memory and threads, can run of a heap: `make miri`. Not part of the gate.
//!
//! Files are mapped by copying them ([`nvlab_os::Mapping`] under `cfg(miri)`), so a heap is as small as can be. Values have no gaps
//! between their fields: a heap copies gaps as the bytes they hold, which only assembly may do.

use nvlab_nvheap::{
    Brand, Error, Heap, Inspection, Options, PBTreeMap, PHashMap, PList, PString, PVec, Persist, Persistence,
    Result, Strong, Tx, Unreachable, Weak, compact, migrate,
};
use std::path::{Path, PathBuf};

struct Tiny;
impl Brand for Tiny {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Tiny)]
#[repr(C)]
struct Root {
    numbers: [u64; 4],
    first: Option<Strong<Node, Tiny>>,
    weak: Option<Weak<Node, Tiny>>,
    text: PString<Tiny>,
    list: PVec<u64, Tiny>,
}

#[derive(Persist)]
#[persist(heap = Tiny)]
#[repr(C)]
struct Node {
    value: u64,
    next: Option<Strong<Node, Tiny>>,
}

fn options() -> Options {
    Options {
        persistence: Persistence::Sync,
        bytes_max: 512 << 10,
        logs: 3,
        log_bytes: 8 << 10,
        identity: Some(7),
    }
}

/// A file of its own for each test, removed with its folder.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("nvheap-miri-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Place(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("heap")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn create(path: &Path) -> Heap<Tiny> {
    Heap::create(path, options(), |_| Ok(Root::default())).unwrap()
}

fn change(
    heap: &Heap<Tiny>,
    change: impl Fn(&mut Root, &Tx<'_, Tiny>) -> Result<()> + Send + Sync,
) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| change(&mut *root.write(tx)?, tx))
}

fn sound(heap: &mut Heap<Tiny>) {
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

#[test]
fn transactions_commit_abort_and_panic() {
    let _turn = TURN.lock();
    let place = Place::new("transactions");
    let heap = create(&place.path());
    change(&heap, |root, tx| {
        root.numbers[1] = 5;
        root.text.set(tx, "some text of several words")
    })
    .unwrap();
    let aborted = change(&heap, |root, tx| {
        root.numbers[1] = 6;
        root.text.set(tx, "another")?;
        Err(Error::abort("no"))
    });
    assert!(matches!(aborted, Err(Error::Aborted(_))));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        change(&heap, |root, _| {
            root.numbers[1] = 7;
            panic!("as the test wants it")
        })
    }));
    assert!(panicked.is_err());
    drop(heap);
    let mut heap = Heap::<Tiny>::open(place.path(), options()).unwrap();
    change(&heap, |root, tx| {
        assert_eq!((root.numbers[1], root.text.get(tx)?.as_str()), (5, "some text of several words"));
        Ok(())
    })
    .unwrap();
    sound(&mut heap);
}

#[test]
fn objects_come_and_go() {
    let _turn = TURN.lock();
    let place = Place::new("objects");
    let mut heap = create(&place.path());
    change(&heap, |root, tx| {
        for value in 0..5 {
            let next = root.first.take();
            root.first = Some(Strong::new(tx, Node { value, next })?);
        }
        root.weak = Some(root.first.as_ref().unwrap().downgrade(tx)?);
        for i in 0..40 {
            root.list.push(tx, i)?;
        }
        root.list.swap(tx, 3, 30)
    })
    .unwrap();
    let handle = {
        let root = heap.root().unwrap();
        heap.transaction(|tx| root.read(tx)?.first.as_ref().unwrap().handle(tx)).unwrap()
    };
    change(&heap, |root, tx| {
        root.first = None;
        (0..36).try_for_each(|_| root.list.pop(tx).map(|_| ()))?;
        assert!(root.weak.as_ref().unwrap().upgrade(tx)?.is_none());
        Ok(())
    })
    .unwrap();
    assert_eq!(heap.transaction(|tx| Ok(handle.read(tx)?.value)).unwrap(), 4);
    drop(handle);
    change(&heap, |root, _| {
        root.weak = None;
        Ok(())
    })
    .unwrap();
    sound(&mut heap);
}

#[test]
fn threads_change_the_same() {
    let _turn = TURN.lock();
    let place = Place::new("threads");
    let options = Options { persistence: Persistence::Process, ..options() };
    let mut heap = Heap::<Tiny>::create(place.path(), options, |_| Ok(Root::default())).unwrap();
    let root = heap.root().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (heap, root) = (&heap, &root);
            scope.spawn(move || {
                for value in 0..4 {
                    heap.transaction(|tx| {
                        let mut root = root.write(tx)?;
                        root.numbers[thread] += 1;
                        root.numbers[2] += 1;
                        root.first = Some(Strong::new(tx, Node { value, next: None })?);
                        Ok(())
                    })
                    .unwrap();
                    let numbers = heap.transaction(|tx| Ok(root.read(tx)?.numbers)).unwrap();
                    assert_eq!(numbers[0] + numbers[1], numbers[2]);
                }
            });
        }
    });
    assert_eq!(heap.transaction(|tx| Ok(root.read(tx)?.numbers)).unwrap(), [4, 4, 8, 0]);
    drop(root);
    sound(&mut heap);
}

#[test]
fn a_killed_program_is_replayed() {
    let _turn = TURN.lock();
    let place = Place::new("killed");
    let heap = create(&place.path());
    for i in 0..3 {
        change(&heap, |root, tx| {
            root.numbers[0] = i;
            root.first = Some(Strong::new(tx, Node { value: i, next: None })?);
            Ok(())
        })
        .unwrap();
    }
    let copy = place.0.join("copy");
    std::fs::write(&copy, std::fs::read(place.path()).unwrap()).unwrap();
    drop(heap);
    let mut heap = Heap::<Tiny>::open(&copy, options()).unwrap();
    assert!(heap.stat().replayed >= 3, "{:?}", heap.stat());
    change(&heap, |root, tx| {
        assert_eq!((root.numbers[0], root.first.as_ref().unwrap().read(tx)?.value), (2, 2));
        Ok(())
    })
    .unwrap();
    sound(&mut heap);
}

#[test]
fn a_file_is_looked_at_compacted_and_damaged() {
    let _turn = TURN.lock();
    let place = Place::new("file");
    let heap = create(&place.path());
    change(&heap, |root, tx| {
        root.first = Some(Strong::new(tx, Node { value: 9, next: None })?);
        root.text.set(tx, "text")
    })
    .unwrap();
    drop(heap);
    let found = Inspection::open(place.path()).unwrap().check().unwrap();
    assert!(found.problems.is_empty() && found.blocks == 3, "{found:?}");
    let compacted = compact(place.path(), Unreachable::Drop).unwrap();
    assert!(compacted.bytes <= compacted.bytes_before);
    let mut image = std::fs::read(place.path()).unwrap();
    drop(Heap::<Tiny>::open(place.path(), options()).unwrap());
    image[3] ^= 1;
    image[4096 + 3] ^= 1;
    std::fs::write(place.path(), &image).unwrap();
    assert!(matches!(Heap::<Tiny>::open(place.path(), options()), Err(Error::Format { .. })));
}

#[test]
fn an_older_version_is_migrated() {
    struct Old;
    impl Brand for Old {
        type Root = [u64; 3];
    }
    let _turn = TURN.lock();
    let place = Place::new("migrated");
    drop(Heap::<Old>::create(place.path(), options(), |_| Ok([1, 2, 3])).unwrap());
    let migration = migrate::<Old, Tiny>(|old, _, to| {
        let text = PString::new(to, &format!("{old:?}"))?;
        Ok(Root { numbers: [old[0], old[1], old[2], 0], text, ..Root::default() })
    });
    let mut heap = migration.open(place.path(), options()).unwrap();
    change(&heap, |root, tx| {
        assert_eq!((root.numbers, root.text.get(tx)?.as_str()), ([1, 2, 3, 0], "[1, 2, 3]"));
        Ok(())
    })
    .unwrap();
    sound(&mut heap);
}

struct Maps;
impl Brand for Maps {
    type Root = Collections;
}

#[derive(Persist)]
#[persist(heap = Maps)]
#[repr(C)]
struct Collections {
    tree: PBTreeMap<u64, u64, Maps>,
    hash: PHashMap<u64, u64, Maps>,
    list: PList<u64, Maps>,
}

#[test]
fn collections_grow_and_shrink() {
    let _turn = TURN.lock();
    let place = Place::new("collections");
    let mut heap = Heap::<Maps>::create(place.path(), options(), |tx| {
        Ok(Collections { tree: PBTreeMap::new(tx)?, hash: PHashMap::new(tx)?, list: PList::new() })
    })
    .unwrap();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        for key in 0..40 {
            root.tree.insert(tx, key * 7 % 40, key)?;
            root.hash.insert(tx, key, key)?;
            root.list.push_back(tx, key)?;
        }
        for key in (0..40).step_by(2) {
            root.tree.remove(tx, &key)?;
            root.hash.remove(tx, &key)?;
            root.list.pop_front(tx)?;
        }
        let keys = root.tree.iter(tx).map(|entry| Ok(*entry?.0)).collect::<Result<Vec<_>>>()?;
        assert_eq!(keys, (1..40).step_by(2).collect::<Vec<_>>());
        Ok(())
    })
    .unwrap();
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}
