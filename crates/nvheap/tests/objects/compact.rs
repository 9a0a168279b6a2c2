//! Heaps that are compacted: smaller, the same otherwise, and whole whenever the program is killed.

use nvlab_nvheap::{
    Brand, Compacted, Error, Heap, Inspection, Options, PBTreeMap, PList, PString, PVec, Persist, Strong,
    Unreachable, Weak, compact,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const PATH: &str = "NVLAB_NVHEAP_COMPACTED";

struct Shop;
impl Brand for Shop {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Shop)]
#[repr(C)]
struct Root {
    number: u64,
    items: PVec<Option<Strong<Item, Shop>>, Shop>,
    best: Option<Weak<Item, Shop>>,
    /// Weak, to an item that has been destroyed.
    gone: Option<Weak<Item, Shop>>,
    sorted: PBTreeMap<PString<Shop>, u64, Shop>,
    list: PList<u64, Shop>,
    filler: PVec<[u64; 128], Shop>,
}

#[derive(Persist)]
#[persist(heap = Shop)]
#[repr(C)]
struct Item {
    number: u64,
    name: PString<Shop>,
    next: Option<Strong<Item, Shop>>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

fn options() -> Options {
    Options { bytes_max: 1 << 30, logs: 2, log_bytes: 256 << 10, ..Options::default() }
}

const ITEMS: usize = 20_000;
const EVERY: usize = 50;

/// A heap that has been large, and has checksums if so.
fn create(path: &Path, filler: usize) -> Heap<Shop> {
    let heap = Heap::<Shop>::create(path, Options { checksums: filler > 0, ..options() }, |tx| {
        Ok(Root {
            number: 1,
            items: PVec::new(),
            best: None,
            gone: None,
            sorted: PBTreeMap::new(tx)?,
            list: PList::new(),
            filler: PVec::new(),
        })
    })
    .unwrap();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.items = PVec::from_fn(tx, ITEMS, |_| Ok(None))?;
        root.filler = PVec::from_fn(tx, filler, |i| Ok([i as u64; 128]))?;
        Ok(())
    })
    .unwrap();
    for first in (0..ITEMS).step_by(100) {
        heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            for number in first..first + 100 {
                let name = PString::new(tx, &format!("item number {number} of many, with a long name"))?;
                let item = Strong::new(tx, Item { number: number as u64, name, next: None })?;
                if number == EVERY {
                    root.best = Some(item.downgrade(tx)?);
                } else if number == EVERY + 1 {
                    root.gone = Some(item.downgrade(tx)?);
                }
                *root.items.write(tx, number)? = Some(item);
                root.sorted.insert(tx, PString::new(tx, &format!("{number:06}"))?, number as u64)?;
                root.list.push_back(tx, number as u64)?;
            }
            Ok(())
        })
        .unwrap();
    }
    heap.transaction(|tx| {
        root.write(tx)?.filler = PVec::new();
        Ok(())
    })
    .unwrap();
    for first in (0..ITEMS).step_by(100) {
        heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            for number in (first..first + 100).filter(|number| number % EVERY != 0) {
                *root.items.write(tx, number)? = None;
                root.sorted.remove(tx, format!("{number:06}").as_str())?;
                root.list.pop_front(tx)?;
            }
            Ok(())
        })
        .unwrap();
    }
    heap
}

/// Checks what `create` left, and changes it a little.
fn verify(path: &Path) {
    let mut heap = Heap::<Shop>::open(path, options()).unwrap();
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty(), "{found:?}");
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        for number in 0..ITEMS {
            let item = root.items.read(tx, number)?;
            assert_eq!(item.is_some(), number % EVERY == 0);
            let Some(item) = &*item else { continue };
            let item = item.read(tx)?;
            assert_eq!(item.number, number as u64);
            assert_eq!(item.name.get(tx)?, format!("item number {number} of many, with a long name"));
            let found = root.sorted.get(tx, format!("{number:06}").as_str())?;
            assert_eq!(found.map(|value| *value), Some(number as u64));
        }
        assert_eq!(root.list.len(), ITEMS / EVERY);
        let best = root.best.as_ref().unwrap().upgrade(tx)?.unwrap();
        assert_eq!(best.read(tx)?.number, EVERY as u64);
        assert!(root.gone.as_ref().unwrap().upgrade(tx)?.is_none());
        Ok(())
    })
    .unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.number += 1;
        let more = Strong::new(tx, Item { number: 0, name: PString::new(tx, "temporary")?, next: None })?;
        more.write(tx)?.next = Some(more.share(tx)?);
        root.filler.push(tx, [3; 128])?;
        let (first, last) = (root.list.pop_front(tx)?, root.list.pop_back(tx)?);
        root.list.push_front(tx, first.unwrap())?;
        root.list.push_back(tx, last.unwrap())
    })
    .unwrap();
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty(), "{found:?}");
}

fn path(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

#[test]
fn a_heap_that_was_large_becomes_small() {
    let _turn = turn();
    let (folder, path) = path("shop");
    // 256 MiB.
    let heap = create(&path, 256 << 10);
    assert!(matches!(compact(&path, Unreachable::Keep), Err(Error::Busy(_))));
    drop(heap);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = Inspection::open(&path).unwrap();
    let (check, summary) = (before.check().unwrap(), before.summary().unwrap());
    drop(before);
    let Compacted { bytes_before, bytes, blocks, dropped, .. } = compact(&path, Unreachable::Keep).unwrap();
    let after = Inspection::open(&path).unwrap();
    let (checked, compacted) = (after.check().unwrap(), after.summary().unwrap());
    drop(after);
    // With room for the checksums of 1 GiB, which are not there yet.
    let room = 64 << 20;
    assert!(
        bytes_before > room + (256 << 20) && bytes < room + (3 << 20),
        "{bytes_before} B became {bytes} B"
    );
    assert_eq!((bytes, dropped), (std::fs::metadata(&path).unwrap().len(), 0));
    assert_eq!((checked.blocks, checked.bytes, blocks), (check.blocks, check.bytes, check.blocks));
    assert_eq!((compacted.identity, compacted.checksums), (summary.identity, true));
    assert_eq!((compacted.opens, compacted.bytes_max), (summary.opens, summary.bytes_max));
    assert_eq!((compacted.live_bytes, compacted.free_pages), (summary.live_bytes, 0));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    verify(&path);
    // A circle was left in it by that.
    let lost = Inspection::open(&path).unwrap().check().unwrap();
    assert_eq!((lost.cycle_count, lost.unreachable), (1, 2));
    assert_eq!(compact(&path, Unreachable::Keep).unwrap().dropped, 0);
    assert_eq!(compact(&path, Unreachable::Drop).unwrap().dropped, 2);
    let found = Inspection::open(&path).unwrap().check().unwrap();
    assert_eq!((found.problems.len(), found.unreachable), (0, 0));
    verify(&path);
}

/// What a killed program left in the logs, and on the lists of what is to be destroyed.
#[test]
fn logs_are_replayed_and_damage_is_left_alone() {
    let _turn = turn();
    let (_folder, path) = path("shop");
    let heap = create(&path, 0);
    let root = heap.root().unwrap();
    // A weak reference from what is used to what is not.
    heap.transaction(|tx| {
        let circle = Strong::new(tx, Item { number: 9, name: PString::new(tx, "lost")?, next: None })?;
        circle.write(tx)?.next = Some(circle.share(tx)?);
        root.write(tx)?.gone = Some(circle.downgrade(tx)?);
        Ok(())
    })
    .unwrap();
    let image = std::fs::read(&path).unwrap();
    drop((root, heap));
    std::fs::write(&path, &image).unwrap();
    let replayed = Inspection::open(&path).unwrap().summary().unwrap().records;
    assert!(replayed > 0);
    // The item is kept, destroyed, for its weak reference; its name goes.
    assert_eq!(compact(&path, Unreachable::Drop).unwrap().dropped, 1);
    assert_eq!(Inspection::open(&path).unwrap().summary().unwrap().records, 0);
    verify(&path);

    let mut damaged = image.clone();
    let at = Inspection::open(&path).unwrap().root().at() as usize;
    damaged[at + 8] ^= 4;
    std::fs::write(&path, &damaged).unwrap();
    let is_damaged = !Inspection::open(&path).unwrap().check().unwrap().problems.is_empty();
    let compacted = compact(&path, Unreachable::Keep);
    assert_eq!(matches!(compacted, Err(Error::Damaged { .. })), is_damaged, "{compacted:?}");
    if is_damaged {
        assert!(std::fs::read(&path).unwrap() == damaged, "it is as it was");
    }
    let other = path.with_file_name("link");
    std::fs::hard_link(&path, &other).unwrap();
    assert!(matches!(compact(&path, Unreachable::Keep), Err(Error::Invalid(_))));
}

/// The program that is killed.
#[test]
fn program() {
    let Some(path) = std::env::var_os(PATH) else { return };
    loop {
        compact(Path::new(&path), Unreachable::Drop).unwrap();
    }
}

#[test]
fn a_killed_compaction_loses_nothing() {
    let _turn = turn();
    let (folder, path) = path("shop");
    drop(create(&path, 1000));
    let (mut seed, mut left_behind) = (1_u64, 0);
    for _ in 0..40 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "compact::program", "--nocapture"])
            .env(PATH, &path)
            .spawn()
            .unwrap();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros(10_000 + (seed >> 33) % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        left_behind += usize::from(std::fs::read_dir(folder.path()).unwrap().count() > 1);
        verify(&path);
    }
    assert!(left_behind > 5, "only {left_behind} were killed in the middle");
    compact(&path, Unreachable::Keep).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    verify(&path);
}

/// A program opens the heap while another one compacts it: what it commits is in the file that the name leads to.
#[test]
fn a_program_never_writes_to_the_file_that_was_replaced() {
    let _turn = turn();
    let (_folder, path) = path("shop");
    drop(create(&path, 0));
    let mut opened = 0;
    // Both sides go on until each has had its turn often enough, however slow the machine.
    let (compactions, openings) = (AtomicU64::new(0), AtomicU64::new(0));
    let enough = || compactions.load(Relaxed) > 10 && openings.load(Relaxed) > 10;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough() {
                match compact(&path, Unreachable::Keep) {
                    Ok(_) => _ = compactions.fetch_add(1, Relaxed),
                    Err(error) => assert!(matches!(error, Error::Busy(_)), "{error}"),
                }
            }
        });
        while !enough() {
            match Heap::<Shop>::open(&path, options()) {
                Ok(heap) => {
                    let root = heap.root().unwrap();
                    heap.transaction(|tx| {
                        root.write(tx)?.number += 1;
                        Ok(())
                    })
                    .unwrap();
                    opened += 1;
                    openings.store(opened, Relaxed);
                }
                Err(error) => assert!(matches!(error, Error::Busy(_)), "{error}"),
            }
        }
    });
    let heap = Heap::<Shop>::open(&path, options()).unwrap();
    let root = heap.root().unwrap();
    assert_eq!(heap.transaction(|tx| Ok(root.read(tx)?.number)).unwrap(), 1 + opened);
}
