//! Pointers that a program keeps beyond their transaction, where the compiler cannot see it, and pointers that it forgets.

mod forgotten;

use nvlab_nvheap::{
    Brand, Error, Handle, Heap, Options, PBox, PHashMap, PVec, Persist, Result, Strong, Weak,
};
use std::cell::RefCell;
use std::path::PathBuf;

struct Loose;
impl Brand for Loose {
    type Root = Root;
}

type Pair = [Option<Strong<Node, Loose>>; 2];

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
    pair: Pair,
    pairs: Option<PBox<Pair, Loose>>,
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

/// 2000 more objects of the type lie wherever there was room.
fn fill(heap: &Heap<Loose>, root: &Handle<Root, Loose>) {
    heap.transaction(|tx| {
        for _ in 0..2000 {
            let new = Strong::new(tx, node(7))?;
            root.write(tx)?.nodes.push(tx, Some(new))?;
        }
        Ok(())
    })
    .unwrap();
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
fn a_stray_pointer_reaches_no_object_allocated_in_its_place() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, _, mut heap) = create();
    let root = heap.root().unwrap();
    for round in 0..3 {
        keep(&heap);
        // Objects of the type lie wherever the block was.
        fill(&heap, &root);
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
    fill(&heap, &root);
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
