//! A heap used by one program: what it keeps, gives back and refuses.

use nvlab_nvheap::{Brand, Error, Heap, Options, PBox, PString, PVec, Pair, Persist, Strong, Weak};
use std::path::PathBuf;

struct Bank;
impl Brand for Bank {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Bank)]
#[repr(C)]
struct Root {
    first: Option<Strong<Node, Bank>>,
    boxed: Option<PBox<Node, Bank>>,
    weak: Option<Weak<Node, Bank>>,
    name: PString<Bank>,
    numbers: PVec<u64, Bank>,
    nodes: PVec<Node, Bank>,
    pair: Pair<u8, PVec<u64, Bank>>,
}

#[derive(Persist, Default)]
#[persist(heap = Bank)]
#[repr(C)]
struct Node {
    value: u32,
    next: Option<Strong<Node, Bank>>,
}

fn path(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

fn create(path: &PathBuf) -> Heap<Bank> {
    Heap::create(path, Options::default(), |_| Ok(Root::default())).unwrap()
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn what_was_committed_is_found_again() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let heap = create(&path);
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        for value in 0..1000 {
            let next = root.first.take();
            root.first = Some(Strong::new(tx, Node { value, next })?);
            root.numbers.push(tx, u64::from(value) * 3)?;
            root.nodes.push(tx, Node { value: value + 7, next: None })?;
        }
        let first = root.first.as_ref().unwrap();
        assert!(first.is_same(&first.share(tx)?));
        root.pair.0 = 3;
        root.pair.1.push(tx, 4)?;
        root.name.set(tx, "a name of more than eight bytes, ä")?;
        Ok(())
    })
    .unwrap();
    for round in 0..3 {
        let text = heap.transaction(|tx| root.read(tx)?.name.get(tx)).unwrap();
        assert_eq!(text, "a name of more than eight bytes, ä", "{round}");
    }
    drop(root);
    drop(heap);
    let heap = Heap::<Bank>::open(&path, Options::default()).unwrap();
    assert_eq!(heap.stat().replayed, 0);
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        assert_eq!((root.numbers.len(), root.nodes.len()), (1000, 1000));
        assert_eq!((root.pair.0, *root.pair.1.read(tx, 0)?), (3, 4));
        let mut at = root.first.as_ref().unwrap().share(tx)?;
        for value in (0..1000).rev() {
            assert_eq!(at.read(tx)?.value, value);
            assert_eq!(*root.numbers.read(tx, value as usize)?, u64::from(value) * 3);
            assert_eq!(root.nodes.read(tx, value as usize)?.value, value + 7);
            let next = match &at.read(tx)?.next {
                Some(next) => next.share(tx)?,
                None => break,
            };
            at = next;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_aborted_or_panicking_transaction_leaves_nothing() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let heap = create(&path);
    let root = heap.root().unwrap();
    let change = |tx: &nvlab_nvheap::Tx<'_, Bank>| {
        let mut root = root.write(tx)?;
        root.boxed = Some(PBox::new(tx, Node { value: 1, next: None })?);
        root.numbers.push(tx, 5)
    };
    let aborted = heap.transaction(|tx| {
        change(tx)?;
        Err::<(), _>(Error::abort("enough"))
    });
    assert!(matches!(aborted, Err(Error::Aborted(_))), "{aborted:?}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        heap.transaction(|tx| {
            change(tx)?;
            panic!("as the test wants") as nvlab_nvheap::Result<()>
        })
    }));
    assert!(panicked.is_err());
    let nested = heap.transaction(|tx| {
        let _ = heap.transaction(|tx| {
            change(tx)?;
            Err::<(), _>(Error::abort("inner"))
        });
        tx_is_used(tx);
        Ok(())
    });
    assert!(matches!(nested, Err(Error::Aborted(_))), "the outer one goes with the inner one: {nested:?}");
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        assert!(root.boxed.is_none() && root.numbers.is_empty());
        Ok(())
    })
    .unwrap();
    heap.transaction(change).unwrap();
    assert_eq!(heap.transaction(|tx| Ok(root.read(tx)?.numbers.len())).unwrap(), 1);
}

fn tx_is_used<H: Brand>(_: &nvlab_nvheap::Tx<'_, H>) {}

#[test]
fn a_value_is_lent_for_one_change_at_a_time() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let heap = create(&path);
    let root = heap.root().unwrap();
    let twice = heap.transaction(|tx| {
        let _first = root.write(tx)?;
        let _second = root.write(tx)?;
        Ok(())
    });
    assert!(matches!(twice, Err(Error::Borrowed)), "{twice:?}");
    heap.transaction(|tx| {
        drop(root.write(tx)?);
        let (a, b) = (root.read(tx)?, root.read(tx)?);
        assert!(a.first.is_none() && b.first.is_none());
        Ok(())
    })
    .unwrap();
}

#[test]
fn weak_pointers_and_handles_end_with_their_objects() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let heap = create(&path);
    let root = heap.root().unwrap();
    let handle = heap
        .transaction(|tx| {
            let mut root = root.write(tx)?;
            let node = Strong::new(tx, Node { value: 9, next: None })?;
            root.weak = Some(node.downgrade(tx)?);
            let handle = node.handle(tx)?;
            root.first = Some(node);
            Ok(handle)
        })
        .unwrap();
    heap.transaction(|tx| {
        let upgraded = root.read(tx)?.weak.as_ref().unwrap().upgrade(tx)?.unwrap();
        assert_eq!(upgraded.read(tx)?.value, 9);
        root.write(tx)?.first = None;
        Ok(())
    })
    .unwrap();
    heap.transaction(|tx| {
        assert!(root.read(tx)?.weak.as_ref().unwrap().upgrade(tx)?.is_none());
        assert!(handle.strong(tx)?.is_none());
        assert_eq!(handle.read(tx)?.value, 9, "the handle keeps it");
        Ok(())
    })
    .unwrap();
    drop(handle);
    heap.transaction(|tx| {
        root.write(tx)?.weak = None;
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_heap_has_one_user_and_one_schema() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let heap = create(&path);
    assert!(matches!(Heap::<Bank>::open(&path, Options::default()), Err(Error::Busy(_))));
    // Another heap of the brand is another matter.
    drop(create(&path.with_extension("b")));
    drop(heap);
    struct Other;
    impl Brand for Other {
        type Root = u64;
    }
    let error = Heap::<Other>::open(&path, Options::default()).unwrap_err();
    assert!(matches!(error, Error::Schema { .. }), "{error}");
    drop(Heap::<Bank>::open(&path, Options::default()).unwrap());
}

/// What a killed program leaves is opened in about the time its log takes.
#[test]
fn a_large_heap_opens_in_no_time() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let heap = create(&path);
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        root.write(tx)?.numbers = PVec::from_fn(tx, (256 << 20) / 8, |i| Ok(i as u64))?;
        Ok(())
    })
    .unwrap();
    heap.checkpoint().unwrap();
    for i in 0..100 {
        heap.transaction(|tx| {
            *root.read(tx)?.numbers.write(tx, i * 1000)? = 1;
            Ok(())
        })
        .unwrap();
    }
    // Leaked as a kill would: no page is written home.
    let copy = path.with_extension("copy");
    std::fs::copy(&path, &copy).unwrap();
    drop((root, heap));
    let times = (0..5).map(|_| {
        let again = path.with_extension("again");
        std::fs::copy(&copy, &again).unwrap();
        let start = std::time::Instant::now();
        let heap = Heap::<Bank>::open(&again, Options::default()).unwrap();
        let time = start.elapsed();
        assert_eq!(heap.stat().replayed, 100);
        time
    });
    let best = times.min().unwrap();
    println!("256 MiB opened in {best:?}");
    assert!(best < std::time::Duration::from_millis(20), "{best:?}");
}

/// A full heap says so, and everything that is freed can be used again, for objects of other sizes too.
#[test]
fn a_full_heap_is_usable_again() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let (_folder, path) = path("heap");
    let options = Options { bytes_max: 1 << 20, log_bytes: 64 << 10, ..Options::default() };
    let mut heap = Heap::<Bank>::create(&path, options, |_| Ok(Root::default())).unwrap();
    let root = heap.root().unwrap();
    let fill = |heap: &Heap<Bank>| {
        for nodes in 0..1_000_000 {
            let added = heap.transaction(|tx| {
                let mut root = root.write(tx)?;
                let next = root.first.take();
                root.first = Some(Strong::new(tx, Node { value: 1, next })?);
                Ok(())
            });
            match added {
                Ok(()) => {}
                Err(Error::Full { .. }) => return nodes,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("it is never full")
    };
    let clear = |heap: &Heap<Bank>| {
        let cleared = heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            (root.first, root.numbers) = (None, PVec::new());
            Ok(())
        });
        cleared.unwrap();
    };
    let first = fill(&heap);
    // 15 pages of 48 B blocks, and one for the root's.
    assert_eq!(first, 15 * (65536 / 48));
    clear(&heap);
    // A large block needs pages in a row, which held small ones.
    heap.transaction(|tx| {
        root.write(tx)?.numbers = PVec::from_fn(tx, (600 << 10) / 8, |i| Ok(i as u64))?;
        Ok(())
    })
    .unwrap();
    clear(&heap);
    assert_eq!(fill(&heap), first);
    let found = heap.check().unwrap();
    assert_eq!((found.blocks, found.unreachable, found.problems.len()), (1 + first, 0, 0), "{found:?}");
}
