//! What becomes of objects to which a program has forgotten pointers.

use super::{Holder, Loose, Node, Root, TURN, checked, create, node};
use nvlab_nvheap::{Error, Heap, Options, PBox, PHashMap, PVec, Strong, Unreachable, compact};

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
            heap.transaction(|tx| {
                std::mem::forget(handle.strong(tx)?);
                Ok(())
            })
            .unwrap();
        };
        std::thread::scope(|scope| scope.spawn(forget).join().unwrap());
        let value = found.as_ref().unwrap().read(tx)?.value;
        Ok(value)
    });
    assert_eq!(value.unwrap(), 5);
}
