//! The synchronisation of a heap, explored: small programs of several threads are run in many orders of their accesses to what
//! they share ([shuttle]): locks, versions, epochs, leases, lists of free pages, reference counts.
//!
//! Not explored: what a processor or compiler does to accesses in other orders than the program's (every order is one of
//! them), so neither memory orderings nor `barrier` are tested here.
//!
//! Faults put in by hand, one at a time. Found: a lock taken by load and store; no check of reads at commit; none of the version after a copy;
//! none of earlier reads at a newer version; locks released before the changes are home; a commit that does not say that it is in
//! progress, or does not look at the epoch again; a checkpoint that does not wait for commits, or ends an epoch twice; pages used again
//! before it was quiet; destruction that ignores handles; a last handle that does not wait for who holds the object; a log leased by load
//! and store; closing that does not wait for threads. Missed: clocks read after the check of reads; locks released before the clock
//! is published; a commit that ends before its changes are home; pages used again in the same epoch; a block taken although its lock is
//! held; no set of taken pages; a relaxed release; no barrier at the epoch; no fence behind a copy. A commit's clock that does not
//! follow its locks: found by an earlier version of these tests; by this one missed.
//!
//! [shuttle]: https://docs.rs/shuttle

#![allow(clippy::unit_arg)] // Closures that store and end in `Ok`.

use crate::{Brand, Error, Handle, Heap, Options, PVec, Persist, Persistence, Result, Strong, Tx, Weak};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{self, yield_now};
use shuttle::{Config, Runner};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Every schedule is a function of it.
const SEED: u64 = 88_172_645_463_325_252;

struct Explored;
impl Brand for Explored {
    type Root = Root;
}

/// Nothing of it changes: what its pointers lead to does.
#[derive(Persist)]
#[persist(heap = Explored)]
#[repr(C)]
struct Root {
    numbers: [Option<Strong<Number, Explored>>; 3],
    places: [Option<Strong<Place, Explored>>; 3],
}

#[derive(Persist)]
#[repr(C)]
struct Number {
    value: u64,
    again: [u64; 3],
}

#[derive(Persist, Default)]
#[persist(heap = Explored)]
#[repr(C)]
struct Place {
    strong: Option<Strong<Number, Explored>>,
    weak: Option<Weak<Number, Explored>>,
    list: PVec<u64, Explored>,
}

impl Number {
    fn new(value: u64) -> Number {
        Number { value, again: [value; 3] }
    }

    /// What was read is of one moment.
    fn get(&self) -> u64 {
        assert_eq!(self.again, [self.value; 3], "a value in part");
        self.value
    }
}

/// Whether the heaps of a program have checksums.
static CHECKSUMS: AtomicBool = AtomicBool::new(false);

/// Runs a program of threads in many orders: random ones, some in which few threads are interrupted, and random ones on heaps with
/// checksums.
fn explore(iterations: usize, program: impl Fn() + Send + Sync + 'static) {
    // One brand: tests take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let program = Arc::new(program);
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    CHECKSUMS.store(false, Ordering::Relaxed);
    let (random, summed) = (program.clone(), program.clone());
    Runner::new(RandomScheduler::new_from_seed(SEED, iterations), config.clone()).run(move || random());
    Runner::new(PctScheduler::new_from_seed(SEED, 3, iterations), config.clone()).run(move || program());
    CHECKSUMS.store(true, Ordering::Relaxed);
    Runner::new(RandomScheduler::new_from_seed(SEED, iterations / 2), config).run(move || summed());
}

fn options(logs: u32) -> Options {
    let (persistence, identity) = (Persistence::Process, Some(7));
    let checksums = CHECKSUMS.load(Ordering::Relaxed);
    Options { persistence, bytes_max: 512 << 10, logs, log_bytes: 8 << 10, checksums, identity }
}

fn create(logs: u32) -> (Heap<Explored>, File) {
    let file = nvlab_os::file::anonymous(c"explored", false).unwrap();
    let copy = file.try_clone().unwrap();
    let heap = Heap::create_in(file, Path::new("explored"), options(logs), |tx| {
        let number = |value| Strong::new(tx, Number::new(value)).map(Some);
        let place = || Strong::new(tx, Place::default()).map(Some);
        Ok(Root { numbers: [number(0)?, number(0)?, number(0)?], places: [place()?, place()?, place()?] })
    });
    (heap.unwrap(), copy)
}

/// What a kill would leave now.
fn bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn killed(bytes: &[u8]) -> File {
    let copy = nvlab_os::file::anonymous(c"killed", false).unwrap();
    copy.write_all_at(bytes, 0).unwrap();
    copy
}

fn reopen(file: File) -> Heap<Explored> {
    Heap::open_in(file, Path::new("killed"), options(1)).unwrap()
}

type Pointer = Handle<Root, Explored>;
type Borrowed<'t> = Tx<'t, Explored>;

fn number(tx: &Borrowed<'_>, root: &Pointer, which: usize) -> Result<u64> {
    Ok(root.read(tx)?.numbers[which].as_ref().unwrap().read(tx)?.get())
}

fn set(tx: &Borrowed<'_>, root: &Pointer, which: usize, value: u64) -> Result<()> {
    *root.read(tx)?.numbers[which].as_ref().unwrap().write(tx)? = Number::new(value);
    Ok(())
}

/// Changes a place.
fn at(
    heap: &Heap<Explored>,
    root: &Pointer,
    which: usize,
    change: impl Fn(&mut Place, &Borrowed<'_>) -> Result<()> + Send + Sync,
) -> Result<()> {
    heap.transaction(|tx| change(&mut *root.read(tx)?.places[which].as_ref().unwrap().write(tx)?, tx))
}

fn checked(mut heap: Heap<Explored>, blocks: u64) {
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
    assert_eq!(found.blocks, blocks);
}

/// Blocks of a heap whose places are empty.
const BASE: u64 = 1 + 3 + 3;

/// Two numbers are the same in every transaction, of a running program and of one that was killed at any moment, whatever
/// checkpoints there are; and nothing that was acknowledged is missing.
#[test]
fn transactions_are_isolated_and_survive() {
    explore(250, || {
        let (heap, file) = create(4);
        let root = heap.root().unwrap();
        let acknowledged = AtomicU64::new(0);
        let copy = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..2 {
                        let value = heap.transaction(|tx| {
                            let value = number(tx, &root, 0)? + 1;
                            set(tx, &root, 0, value)?;
                            assert_eq!(number(tx, &root, 1)? + 1, value, "two moments");
                            set(tx, &root, 1, value)?;
                            Ok(value)
                        });
                        acknowledged.fetch_max(value.unwrap(), Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                heap.checkpoint().unwrap();
                let pair = |tx: &Borrowed<'_>| Ok((number(tx, &root, 1)?, number(tx, &root, 0)?));
                let (one, other) = heap.transaction(|tx| pair(tx)).unwrap();
                assert_eq!(one, other, "two moments");
            });
            let copied = scope.spawn(|| {
                for _ in 0..40 {
                    crate::sync::step();
                }
                (acknowledged.load(Ordering::Relaxed), bytes(&file))
            });
            copied.join().unwrap()
        });
        assert_eq!(heap.transaction(|tx| number(tx, &root, 0)).unwrap(), 4);
        drop(root);
        checked(heap, BASE);
        let (least, image) = copy;
        let heap = reopen(killed(&image));
        let root = heap.root().unwrap();
        let pair = heap.transaction(|tx| Ok([number(tx, &root, 0)?, number(tx, &root, 1)?])).unwrap();
        assert!(pair[0] == pair[1] && pair[0] >= least, "{pair:?} after {least}");
        drop(root);
        checked(heap, BASE);
    });
}

/// What a transaction has only read is what it was when it commits.
#[test]
fn one_of_two_that_read_the_same_commits_second() {
    explore(250, || {
        let (heap, _) = create(4);
        let root = heap.root().unwrap();
        thread::scope(|scope| {
            for which in 0..2 {
                let (heap, root) = (&heap, &root);
                scope.spawn(move || {
                    let result = heap.transaction(|tx| match number(tx, root, 0)? + number(tx, root, 1)? {
                        0 => set(tx, root, which, 1),
                        _ => Ok(()),
                    });
                    result.unwrap();
                });
            }
        });
        let sum = heap.transaction(|tx| Ok(number(tx, &root, 0)? + number(tx, &root, 1)?));
        assert_eq!(sum.unwrap(), 1);
    });
}

/// What a reader finds is of one moment, also if a commit that it has nothing to do with made it look again.
#[test]
fn a_reader_sees_one_moment() {
    explore(400, || {
        let (heap, _) = create(4);
        let root = heap.root().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| heap.transaction(|tx| set(tx, &root, 1, 1)).unwrap());
            scope.spawn(|| {
                heap.transaction(|tx| set(tx, &root, 0, 1).and_then(|()| set(tx, &root, 2, 1))).unwrap();
            });
            scope.spawn(|| {
                heap.transaction(|tx| {
                    let found = [number(tx, &root, 0)?, number(tx, &root, 1)?, number(tx, &root, 2)?];
                    assert_eq!(found[0], found[2], "two moments");
                    Ok(())
                })
                .unwrap();
            });
        });
    });
}

/// The power fails when nothing is at home but what checkpoints brought there: the logs have the rest, in the order of the commits.
#[test]
fn checkpoints_and_logs_have_every_commit() {
    explore(400, || {
        let (heap, file) = create(4);
        heap.checkpoint().unwrap();
        let root = heap.root().unwrap();
        let home = Mutex::new(vec![bytes(&file)]);
        thread::scope(|scope| {
            for thread in 0..3_usize {
                let (heap, root, home, file) = (&heap, &root, &home, &file);
                scope.spawn(move || {
                    for which in [thread % 2, (thread + 1) % 2] {
                        let add = heap.transaction(|tx| set(tx, root, which, number(tx, root, which)? + 1));
                        add.unwrap();
                        if thread > 0 {
                            heap.core.checkpoint(heap.core.epoch.load(Ordering::Relaxed)).unwrap();
                            home.lock().unwrap().push(bytes(file));
                        }
                    }
                });
            }
        });
        let now = bytes(&file);
        // The first look at memory after the last checkpoint; with the header and the logs as they are now.
        let mut home = home.into_inner().unwrap();
        let first = home.iter().position(|home| home[..4096] == now[..4096]).unwrap();
        let mut image = home.swap_remove(first);
        let layout = heap.core.layout;
        for log in 0..4 {
            let halves = layout.half(log, 0) as usize..layout.log_head(log + 1) as usize;
            image[halves.clone()].copy_from_slice(&now[halves]);
        }
        drop((root, heap));
        for image in [image, now] {
            let heap = reopen(killed(&image));
            let root = heap.root().unwrap();
            let pair = heap.transaction(|tx| Ok([number(tx, &root, 0)?, number(tx, &root, 1)?]));
            assert_eq!(pair.unwrap(), [3, 3]);
            drop(root);
            checked(heap, BASE);
        }
    });
}

/// The pages of a large block are used again by another one, since there are no others: who reads it meanwhile sees the old contents
/// or retries, and what the logs say about the old one is not replayed over the new one.
#[test]
fn pages_are_used_again_by_nobody_else() {
    explore(120, || {
        // Five of eight pages; the root, the other objects and those of the other thread take one each.
        const LONG: usize = 38_000;
        let (heap, file) = create(4);
        let root = heap.root().unwrap();
        let fill = |value: u64| {
            at(&heap, &root, 0, |place, tx| Ok(place.list = PVec::from_fn(tx, LONG, |_| Ok(value))?))
                .unwrap();
        };
        fill(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                at(&heap, &root, 0, |place, tx| Ok(*place.list.write(tx, LONG / 2)? = 1)).unwrap();
                at(&heap, &root, 0, |place, _| Ok(place.list = PVec::new())).unwrap();
                fill(2);
            });
            scope.spawn(|| {
                let number = |tx: &Borrowed<'_>| Strong::new(tx, Number::new(3)).map(Some);
                at(&heap, &root, 1, |place, tx| Ok(place.strong = number(tx)?)).unwrap();
            });
            scope.spawn(|| {
                let values = heap.transaction(|tx| elements(tx, &root)).unwrap();
                assert!(
                    values.iter().all(|&value| value == values[0] && [1, 2].contains(&value)),
                    "{values:?}"
                );
            });
        });
        let image = bytes(&file);
        drop(root);
        checked(heap, BASE + 2);
        let heap = reopen(killed(&image));
        let root = heap.root().unwrap();
        let values = heap.transaction(|tx| elements(tx, &root)).unwrap();
        assert!(values.len() > 5 && values.iter().all(|&value| value == 2), "{values:?}");
        drop(root);
        checked(heap, BASE + 2);
    });
}

/// Some elements of the list of the first place.
fn elements(tx: &Borrowed<'_>, root: &Pointer) -> Result<Vec<u64>> {
    let root = root.read(tx)?;
    let place = root.places[0].as_ref().unwrap().read(tx)?;
    (0..place.list.len()).step_by(500).map(|index| Ok(*place.list.read(tx, index)?)).collect()
}

/// Two threads that need the same size take no block twice, also where one has just freed it.
#[test]
fn small_blocks_have_one_owner() {
    explore(200, || {
        let (heap, _) = create(4);
        let root = heap.root().unwrap();
        let number = |tx: &Borrowed<'_>, value| Strong::new(tx, Number::new(value)).map(Some);
        thread::scope(|scope| {
            for which in 0..2 {
                let (heap, root) = (&heap, &root);
                scope.spawn(move || {
                    for value in 0..2 {
                        at(heap, root, which, |place, tx| Ok(place.strong = number(tx, value)?)).unwrap();
                    }
                    // Of the other thread's page.
                    at(heap, root, 1 - which, |place, _| Ok(place.strong = None)).unwrap();
                    at(heap, root, which, |place, tx| Ok(place.strong = number(tx, 9)?)).unwrap();
                });
            }
        });
        let left = heap.transaction(|tx| {
            let root = root.read(tx)?;
            let mut left = 0;
            for place in &root.places {
                if let Some(number) = &place.as_ref().unwrap().read(tx)?.strong {
                    assert_eq!(number.read(tx)?.get(), 9);
                    left += 1;
                }
            }
            Ok(left)
        });
        drop(root);
        checked(heap, BASE + left.unwrap());
    });
}

mod references;
mod snapshots;
