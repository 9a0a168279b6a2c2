//! Snapshots beside commits.

use super::*;
use crate::tx::lease;

/// A snapshot is of one moment, and not of one before it was asked for, whatever commits meanwhile.
#[test]
fn a_snapshot_is_of_one_moment() {
    explore(400, || {
        let (heap, _) = create(4);
        let root = heap.root().unwrap();
        let acknowledged = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..2 {
                        let value = heap.transaction(|tx| {
                            let value = number(tx, &root, 0)? + 1;
                            set(tx, &root, 0, value)?;
                            set(tx, &root, 1, value)?;
                            Ok(value)
                        });
                        acknowledged.fetch_max(value.unwrap(), Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..2 {
                    let least = acknowledged.load(Ordering::Relaxed);
                    lease(&heap.core).unwrap().tx().begin_snapshot().unwrap();
                    let pair = |tx: &Borrowed<'_>| Ok((number(tx, &root, 1)?, number(tx, &root, 0)?));
                    let (one, other) = heap.transaction(|tx| pair(tx)).unwrap();
                    assert!(one == other && one >= least, "{one} and {other} after {least}");
                }
            });
        });
        assert_eq!(heap.transaction(|tx| number(tx, &root, 0)).unwrap(), 4);
        drop(root);
        checked(heap, BASE);
    });
}

/// Four snapshots are each of one moment while a thread changes what they read; a fifth is refused until one has ended.
#[test]
fn four_snapshots_are_each_of_one_moment_and_a_fifth_is_refused() {
    const READERS: u64 = 4;
    explore(60, || {
        let (heap, _) = create(8);
        let root = heap.root().unwrap();
        let (reading, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for value in 1..=4 {
                    let both =
                        |tx: &Borrowed<'_>| set(tx, &root, 0, value).and_then(|()| set(tx, &root, 1, value));
                    heap.transaction(|tx| both(tx)).unwrap();
                    acknowledged.store(value, Ordering::Relaxed);
                }
            });
            for _ in 0..READERS {
                scope.spawn(|| {
                    let least = acknowledged.load(Ordering::Relaxed);
                    lease(&heap.core).unwrap().tx().begin_snapshot().unwrap();
                    let mut tries = 0;
                    let read = heap.transaction(|tx| {
                        tries += 1;
                        let one = number(tx, &root, 1)?;
                        reading.fetch_add(1, Ordering::Relaxed);
                        // Nobody ends before all have begun.
                        while reading.load(Ordering::Relaxed) < READERS {
                            yield_now();
                        }
                        let fifth = heap.core.take_snapshot()?;
                        let is_refused = fifth.is_none();
                        fifth.into_iter().for_each(|snapshot| heap.core.end_snapshot(snapshot));
                        reading.fetch_add(1, Ordering::Relaxed);
                        while reading.load(Ordering::Relaxed) < 2 * READERS {
                            yield_now();
                        }
                        Ok((one, number(tx, &root, 0)?, is_refused))
                    });
                    let (one, other, is_refused) = read.unwrap();
                    assert!(one == other && one >= least, "{one} and {other} after {least}");
                    assert!(is_refused && tries == 1, "{is_refused}, {tries} tries");
                });
            }
        });
        let next = heap.core.take_snapshot().unwrap().expect("all have ended");
        heap.core.end_snapshot(next);
        assert_eq!(heap.transaction(|tx| number(tx, &root, 1)).unwrap(), 4);
        drop(root);
        checked(heap, BASE);
    });
}
