//! Pointers that a program keeps beyond their transaction, where the compiler cannot see it, and pointers that it forgets.

use nvlab_nvheap::{
    Brand, Error, Heap, Options, PBox, PHashMap, PVec, Persist, Result, Strong, Unreachable, Weak, compact,
};
use std::cell::RefCell;
use std::path::PathBuf;

struct Loose;
impl Brand for Loose {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Loose)]
#[repr(C)]
struct Root {
    boxed: Option<PBox<Node, Loose>>,
    other: Option<PBox<Node, Loose>>,
    shared: Option<Strong<Node, Loose>>,
    weak: Option<Weak<Node, Loose>>,
    nodes: PVec<Option<Strong<Node, Loose>>, Loose>,
    numbers: PVec<u64, Loose>,
    pair: [Option<Strong<Node, Loose>>; 2],
    pairs: Option<PBox<[Option<Strong<Node, Loose>>; 2], Loose>>,
    map: Option<PBox<Holder, Loose>>,
}

#[derive(Persist)]
#[persist(heap = Loose)]
#[repr(C)]
struct Holder {
    map: PHashMap<u64, Option<Strong<Node, Loose>>, Loose>,
}

#[derive(Persist, Default)]
#[persist(heap = Loose)]
#[repr(C)]
struct Node {
    value: u64,
    next: Option<Strong<Node, Loose>>,
}

thread_local! {
    static BOX: RefCell<Option<PBox<Node, Loose>>> = const { RefCell::new(None) };
    static SHARED: RefCell<Option<Strong<Node, Loose>>> = const { RefCell::new(None) };
    static WEAK: RefCell<Option<Weak<Node, Loose>>> = const { RefCell::new(None) };
    static VEC: RefCell<PVec<Option<Strong<Node, Loose>>, Loose>> = const { RefCell::new(PVec::new()) };
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn create() -> (tempfile::TempDir, PathBuf, Heap<Loose>) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let heap = Heap::create(&path, Options::default(), |_| Ok(Root::default())).unwrap();
    (folder, path, heap)
}

fn node(value: u64) -> Node {
    Node { value, next: None }
}

fn is_stray<T: std::fmt::Debug>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Stray { .. }))
}

/// Whole, with so many blocks, of which so many are lost.
fn checked(heap: &mut Heap<Loose>, blocks: u64, lost: u64) {
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty(), "{found:?}");
    assert_eq!((found.blocks, found.unreachable), (blocks, lost));
}

/// A transaction that is aborted keeps the pointer to its new object in a variable of the thread.
fn keep(heap: &Heap<Loose>) {
    let aborted = heap.transaction(|tx| {
        let new = PBox::new(tx, node(1))?;
        BOX.set(Some(new));
        Err::<(), _>(Error::abort("kept"))
    });
    assert!(matches!(aborted, Err(Error::Aborted(_))));
}

#[test]
fn a_pointer_of_an_aborted_transaction_is_not_stored() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    let root = heap.root().unwrap();
    keep(&heap);
    let stored = heap.transaction(|tx| {
        root.write(tx)?.boxed = BOX.take();
        Ok(())
    });
    assert!(is_stray(&stored), "{stored:?}");
    checked(&mut heap, 1, 0);
    // The field can be used as before.
    heap.transaction(|tx| {
        root.write(tx)?.boxed = Some(PBox::new(tx, node(2))?);
        Ok(())
    })
    .unwrap();
    checked(&mut heap, 2, 0);
}

#[test]
fn it_reaches_no_object_that_has_its_place_now() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    let root = heap.root().unwrap();
    for round in 0..3 {
        keep(&heap);
        // Objects of the type lie wherever the block was.
        heap.transaction(|tx| {
            for _ in 0..2000 {
                let new = Strong::new(tx, node(7))?;
                root.write(tx)?.nodes.push(tx, Some(new))?;
            }
            Ok(())
        })
        .unwrap();
        let result = heap.transaction(|tx| {
            let kept = BOX.take().unwrap();
            match round {
                0 => kept.write(tx)?.value = 8,
                1 => _ = kept.read(tx)?.value,
                _ => {
                    let mut root = root.write(tx)?;
                    root.boxed = Some(kept);
                    root.boxed.as_ref().unwrap().write(tx)?.value = 8;
                }
            }
            Ok(())
        });
        assert!(is_stray(&result), "{result:?}");
    }
    heap.transaction(|tx| {
        for node in root.read(tx)?.nodes.iter(tx) {
            assert_eq!(node?.as_ref().unwrap().read(tx)?.value, 7);
        }
        Ok(())
    })
    .unwrap();
    checked(&mut heap, 2 + 6000, 0);
}

#[test]
fn what_was_taken_out_and_kept_is_not_put_back_nor_dropped_later() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.boxed = Some(PBox::new(tx, node(1))?);
        root.shared = Some(Strong::new(tx, node(2))?);
        root.nodes.push(tx, Some(Strong::new(tx, node(3))?))
    })
    .unwrap();
    // Of a transaction that is aborted: the file still has the pointers.
    let _ = heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        BOX.set(root.boxed.take());
        SHARED.set(Some(root.shared.as_ref().unwrap().share(tx)?));
        VEC.set(std::mem::take(&mut root.nodes));
        Err::<(), _>(Error::abort("kept"))
    });
    for round in 0..4 {
        let result = heap.transaction(|tx| {
            match round {
                0 => root.write(tx)?.other = BOX.take(),
                1 => drop(SHARED.take()),
                2 => root.write(tx)?.nodes = VEC.take(),
                _ => {}
            }
            Ok(())
        });
        assert_eq!(is_stray(&result), round < 3, "{round}: {result:?}");
        checked(&mut heap, 5, 0);
    }
}

#[test]
fn a_pointer_of_another_heap_of_the_brand_is_refused() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path, heap) = create();
    keep(&heap);
    drop(heap);
    let mut heap = Heap::<Loose>::open(&path, Options::default()).unwrap();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        for _ in 0..2000 {
            let new = Strong::new(tx, node(7))?;
            root.write(tx)?.nodes.push(tx, Some(new))?;
        }
        Ok(())
    })
    .unwrap();
    let read =
        heap.transaction(|tx| BOX.with_borrow(|kept| kept.as_ref().unwrap().read(tx).map(|node| node.value)));
    assert!(is_stray(&read), "{read:?}");
    let stored = heap.transaction(|tx| {
        root.write(tx)?.other = BOX.take();
        Ok(())
    });
    assert!(is_stray(&stored), "{stored:?}");
    checked(&mut heap, 2 + 2000, 0);
}

/// More of them than are freed in one transaction, each with a pointer from another that goes first.
#[test]
fn what_is_forgotten_twice_is_freed_at_once() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    heap.transaction(|tx| {
        for value in 0..500 {
            let inner = Strong::new(tx, node(value))?;
            std::mem::forget(inner.share(tx)?);
            std::mem::forget(inner.downgrade(tx)?);
            std::mem::forget(Strong::new(tx, Node { value, next: Some(inner) })?);
        }
        Ok(())
    })
    .unwrap();
    checked(&mut heap, 1001, 1000);
    assert_eq!(heap.collect_cycles().unwrap(), 1000);
    checked(&mut heap, 1, 0);
}

#[test]
fn what_is_forgotten_is_lost_and_can_be_freed() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path, mut heap) = create();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        // One that is used goes on, with a count that is too high.
        let shared = Strong::new(tx, node(1))?;
        std::mem::forget(shared.share(tx)?);
        root.weak = Some(shared.downgrade(tx)?);
        std::mem::forget(shared.downgrade(tx)?);
        let map = PHashMap::new(tx)?;
        map.insert(tx, 5, Some(shared.share(tx)?))?;
        root.map = Some(PBox::new(tx, Holder { map })?);
        root.shared = Some(shared);
        // Others are lost, with what they point to.
        let next = Some(Strong::new(tx, node(2))?);
        std::mem::forget(PBox::new(tx, Node { value: 3, next })?);
        std::mem::forget(PVec::from_fn(tx, 3, |i| Strong::new(tx, node(i as u64)).map(Some))?);
        Ok(())
    })
    .unwrap();
    let used = heap.check().unwrap();
    assert!(used.problems.is_empty(), "{used:?}");
    assert_eq!(used.unreachable, 2 + 4, "{used:?}");
    // What the map lends of a forgotten object is as good as ever, here and in the next opening.
    let value = |heap: &Heap<Loose>| {
        let root = heap.root()?;
        heap.transaction(|tx| {
            let root = root.read(tx)?;
            let holder = root.map.as_ref().unwrap().read(tx)?;
            let found = holder.map.get(tx, &5)?.unwrap();
            let value = found.as_ref().unwrap().read(tx)?.value;
            Ok(value)
        })
    };
    assert_eq!(value(&heap).unwrap(), 1);
    drop((root, heap));
    let copy = path.with_file_name("copy");
    std::fs::copy(&path, &copy).unwrap();
    let compacted = compact(&copy, Unreachable::Drop).unwrap();
    assert_eq!((compacted.dropped, compacted.blocks), (6, used.blocks - 6));
    for path in [&copy, &path] {
        let mut heap = Heap::<Loose>::open(path, Options::default()).unwrap();
        assert_eq!(value(&heap).unwrap(), 1);
        assert_eq!(heap.collect_cycles().unwrap(), if *path == copy { 0 } else { 6 });
        checked(&mut heap, used.blocks - 6, 0);
        // The counts are right again: the last pointers free the object.
        let root = heap.root().unwrap();
        heap.transaction(|tx| {
            *root.write(tx)? = Root::default();
            Ok(())
        })
        .unwrap();
        checked(&mut heap, 1, 0);
    }
}

/// A handle keeps an object that has lost its last pointer, before the collection or in the middle of it; a `Weak` to it was
/// forgotten.
#[test]
fn what_a_handle_keeps_stays_when_its_weak_pointer_was_forgotten() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    for is_during in [false, true] {
        let (_folder, path, mut heap) = create();
        let handle = heap
            .transaction(|tx| {
                let owner = Strong::new(tx, node(1))?;
                // More than are taken in a transaction lie between the two.
                for value in 0..200 {
                    std::mem::forget(Strong::new(tx, node(value))?);
                }
                let kept = Strong::new(tx, node(77))?;
                std::mem::forget(kept.downgrade(tx)?);
                let handle = kept.handle(tx)?;
                if is_during {
                    owner.write(tx)?.next = Some(kept);
                    std::mem::forget(owner);
                }
                Ok(handle)
            })
            .unwrap();
        heap.collect_cycles().unwrap();
        assert_eq!(heap.transaction(|tx| Ok(handle.read(tx)?.value)).unwrap(), 77);
        assert_eq!(heap.check().unwrap().blocks, 2);
        drop(handle);
        checked(&mut heap, 1, 0);
        drop(heap);
        let mut heap = Heap::<Loose>::open(&path, Options::default()).unwrap();
        checked(&mut heap, 1, 0);
    }
}

/// What has the place of an object that a kept pointer led to is not changed when the pointer is dropped.
#[test]
fn a_kept_pointer_is_dropped_where_something_else_is_now() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    let root = heap.root().unwrap();
    for round in 0..3 {
        let _ = heap.transaction(|tx| {
            match round {
                0 => BOX.set(Some(PBox::new(tx, node(1))?)),
                1 => WEAK.set(Some(Strong::new(tx, node(1))?.downgrade(tx)?)),
                _ => VEC.set(PVec::from_fn(tx, 3, |_| Ok(None))?),
            }
            Err::<(), _>(Error::abort("kept"))
        });
        // An array of numbers has the block's page: `at` is in the middle of its elements.
        heap.transaction(|tx| {
            root.write(tx)?.numbers = PVec::from_fn(tx, 2000, |i| Ok(i as u64 % 3))?;
            Ok(())
        })
        .unwrap();
        let result = heap.transaction(|tx| {
            match round {
                0 => drop(BOX.take()),
                1 => drop(WEAK.take()),
                _ => drop(VEC.take()),
            }
            // Whatever is wrong was found already.
            root.read(tx)?.numbers.read(tx, 0).map(drop)
        });
        assert!(is_stray(&result), "{round}: {result:?}");
        heap.transaction(|tx| {
            let root = root.read(tx)?;
            for (i, number) in root.numbers.iter(tx).enumerate() {
                assert_eq!(*number?, i as u64 % 3);
            }
            Ok(())
        })
        .unwrap();
        checked(&mut heap, 2, 0);
    }
}

/// Pointers to an object, one of which was forgotten, are made and dropped in one transaction, in place and elsewhere.
#[test]
fn pointers_to_what_was_forgotten_are_dropped_like_others() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let shared = Strong::new(tx, node(1))?;
        std::mem::forget((shared.share(tx)?, shared.downgrade(tx)?));
        root.write(tx)?.shared = Some(shared);
        Ok(())
    })
    .unwrap();
    for round in 0..5 {
        heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            let shared = root.shared.take().unwrap();
            let pair = || Ok::<_, Error>([Some(shared.share(tx)?), Some(shared.share(tx)?)]);
            match round {
                0 => drop(pair()?),
                1 => drop(PBox::new(tx, pair()?)?),
                2 => {
                    root.pair = pair()?;
                    root.pair = pair()?;
                    root.pair = [None, None];
                }
                3 => {
                    root.nodes = PVec::from_fn(tx, 9, |_| shared.share(tx).map(Some))?;
                    root.nodes.push(tx, Some(shared.share(tx)?))?;
                    drop(root.nodes.pop(tx)?);
                    root.nodes = PVec::new();
                }
                _ => {
                    root.weak = Some(shared.downgrade(tx)?);
                    root.weak = Some(shared.downgrade(tx)?);
                    root.weak = None;
                }
            }
            root.shared = Some(shared);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{round}: {error}"));
        checked(&mut heap, 2, 0);
    }
    assert_eq!(heap.collect_cycles().unwrap(), 0);
    heap.transaction(|tx| {
        root.write(tx)?.shared = None;
        Ok(())
    })
    .unwrap();
    checked(&mut heap, 1, 0);
}

/// What only a forgotten `Weak` keeps has been destroyed: what it pointed to does not lose a reference a second time.
#[test]
fn a_heap_with_forgotten_weak_pointers_is_compacted() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path, mut heap) = create();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let shared = Strong::new(tx, node(1))?;
        let watched = Strong::new(tx, Node { value: 2, next: Some(shared.share(tx)?) })?;
        std::mem::forget(watched.downgrade(tx)?);
        let mut root = root.write(tx)?;
        root.boxed = Some(PBox::new(tx, Node { value: 3, next: Some(watched) })?);
        root.shared = Some(shared);
        Ok(())
    })
    .unwrap();
    heap.transaction(|tx| {
        root.write(tx)?.boxed = None;
        Ok(())
    })
    .unwrap();
    checked(&mut heap, 3, 1);
    drop((root, heap));
    let compacted = compact(&path, Unreachable::Drop).unwrap();
    assert_eq!((compacted.dropped, compacted.blocks), (1, 2));
    let mut heap = Heap::<Loose>::open(&path, Options::default()).unwrap();
    checked(&mut heap, 2, 0);
}

/// The places of forgotten pointers are known as long as the program runs: this one is the first if the test runs alone.
#[test]
fn what_a_map_lends_is_trusted_although_another_thread_forgets_a_pointer() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, heap) = create();
    let root = heap.root().unwrap();
    let handle = heap
        .transaction(|tx| {
            let shared = Strong::new(tx, node(5))?;
            let handle = shared.handle(tx)?;
            let map = PHashMap::new(tx)?;
            map.insert(tx, 5, Some(shared))?;
            root.write(tx)?.map = Some(PBox::new(tx, Holder { map })?);
            Ok(handle)
        })
        .unwrap();
    let value = heap.transaction(|tx| {
        let root = root.read(tx)?;
        let holder = root.map.as_ref().unwrap().read(tx)?;
        let found = holder.map.get(tx, &5)?.unwrap();
        let forget = || {
            let forgotten = heap.transaction(|tx| Ok(std::mem::forget(handle.strong(tx)?)));
            forgotten.unwrap();
        };
        std::thread::scope(|scope| scope.spawn(forget).join().unwrap());
        let value = found.as_ref().unwrap().read(tx)?.value;
        Ok(value)
    });
    assert_eq!(value.unwrap(), 5);
}
