//! Threads that change the same objects: sums stay what they are, in what was committed and in what each transaction sees.

use nvlab_nvheap::{Brand, Handle, Heap, Options, PVec, Persist, Result, Strong, Tx};
use std::sync::atomic::{AtomicBool, Ordering};

struct Shared;
impl Brand for Shared {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Shared)]
#[repr(C)]
struct Root {
    accounts: PVec<i64, Shared>,
    large: PVec<[i64; 8], Shared>,
    list: Option<Strong<Item, Shared>>,
}

#[derive(Persist)]
#[persist(heap = Shared)]
#[repr(C)]
struct Item {
    value: i64,
    next: Option<Strong<Item, Shared>>,
}

fn draw(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

const ACCOUNTS: usize = 16;
const LARGE: usize = 2000;

/// Moves amounts, swaps elements, and sometimes changes the list.
fn change(tx: &Tx<'_, Shared>, root: &Handle<Root, Shared>, drawn: [usize; 4], round: usize) -> Result<()> {
    let [a, b, c, d] = [drawn[0] % ACCOUNTS, drawn[1] % ACCOUNTS, drawn[2] % LARGE, drawn[3] % LARGE];
    let accounts = root.read(tx)?;
    if a != b {
        *accounts.accounts.write(tx, a)? -= 7;
        *accounts.accounts.write(tx, b)? += 7;
    }
    accounts.large.swap(tx, c, d)?;
    if c != d {
        accounts.large.write(tx, c)?[0] += 1;
        accounts.large.write(tx, d)?[0] -= 1;
    }
    if round.is_multiple_of(16) {
        drop(accounts);
        let mut root = root.write(tx)?;
        let next = root.list.take();
        root.list = match round % 64 {
            0 => None,
            _ => Some(Strong::new(tx, Item { value: round as i64, next })?),
        };
    }
    Ok(())
}

#[test]
fn every_transaction_sees_a_whole_state() {
    const ROUNDS: usize = 6_000;
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    // Small logs, so that epochs end often.
    let options = Options { log_bytes: 16 << 10, bytes_max: 256 << 20, ..Options::default() };
    let mut heap = Heap::<Shared>::create(folder.path().join("heap"), options, |tx| {
        Ok(Root {
            accounts: PVec::from_fn(tx, ACCOUNTS, |_| Ok(100))?,
            large: PVec::from_fn(tx, LARGE, |_| Ok([1; 8]))?,
            list: None,
        })
    })
    .unwrap();
    let root = heap.root().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (heap, root, stop) = (&heap, &root, &stop);
        let writers: Vec<_> = (1..4_u64)
            .map(|thread| {
                scope.spawn(move || {
                    let mut state = thread * 88_172_645_463_325_252;
                    for round in 0..ROUNDS {
                        let drawn = std::array::from_fn(|_| draw(&mut state));
                        heap.transaction(|tx| change(tx, root, drawn, round)).unwrap();
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) || seen == 0 {
                let (sum, large) = heap
                    .transaction(|tx| {
                        let root = root.read(tx)?;
                        let mut sum = 0;
                        for i in 0..ACCOUNTS {
                            sum += *root.accounts.read(tx, i)?;
                        }
                        let mut large = 0;
                        for i in (0..LARGE).rev() {
                            large += root.large.read(tx, i)?[0];
                        }
                        // What is seen inside holds too, not only what commits.
                        assert_eq!((sum, large), (100 * ACCOUNTS as i64, LARGE as i64));
                        Ok((sum, large))
                    })
                    .unwrap();
                assert_eq!((sum, large), (100 * ACCOUNTS as i64, LARGE as i64));
                seen += 1;
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

struct Counters;
impl Brand for Counters {
    type Root = PVec<u64, Counters>;
}

#[test]
fn no_increment_is_lost() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 5_000;
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let options = || Options { log_bytes: 16 << 10, ..Options::default() };
    let heap = Heap::<Counters>::create(&path, options(), |tx| PVec::from_fn(tx, 2, |_| Ok(0))).unwrap();
    let root = heap.root().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    heap.transaction(|tx| {
                        let counters = root.read(tx)?;
                        *counters.write(tx, 0)? += 1;
                        *counters.write(tx, 1)? += 2;
                        Ok(())
                    })
                    .unwrap();
                }
            });
        }
    });
    let count =
        || heap.transaction(|tx| Ok((*root.read(tx)?.read(tx, 0)?, *root.read(tx)?.read(tx, 1)?))).unwrap();
    assert_eq!(count(), (THREADS * ROUNDS, 2 * THREADS * ROUNDS));
    // As a killed program leaves it: what the logs of several threads say is replayed in the right order.
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    drop((root, heap));
    let heap = Heap::<Counters>::open(&copy, options()).unwrap();
    assert!(heap.stat().replayed > 0);
    let root = heap.root().unwrap();
    let found =
        heap.transaction(|tx| Ok((*root.read(tx)?.read(tx, 0)?, *root.read(tx)?.read(tx, 1)?))).unwrap();
    assert_eq!(found, (THREADS * ROUNDS, 2 * THREADS * ROUNDS));
}
