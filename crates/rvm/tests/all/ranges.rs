//! Ranges of a transaction in every order: coalesced as a plain model says, and in a time that grows little faster than their number.

use cpu_time::ThreadTime;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::Disk;
use nvlab_rvm::{Flush, Options, Restore, Rvm};
use proptest::prelude::*;
use std::time::Duration;

const BYTES: usize = 1 << 23;
/// Between the beginnings of two ranges; each has half as many bytes, so that they do not touch.
const STRIDE: usize = 16;

fn rvm(log_bytes: usize, segment_bytes: usize) -> (Disk, Rvm) {
    let disk = Disk::default();
    disk.create("log", status::BYTES as usize + log_bytes);
    disk.create("data", segment_bytes);
    let log = FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    let rvm = Rvm::open(log, disk.clone(), Options::default()).unwrap();
    (disk, rvm)
}

/// The numbers up to `count` in an order without order: `count` and the multiplier have no common divisor.
fn random(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |number| (number * 7_919 + 13) % count)
}

/// The outermost first: every other range lies between two that are there already.
fn inwards(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |number| if number % 2 == 0 { number / 2 } else { count - 1 - number / 2 })
}

/// The least processor time of three transactions that name ranges in this order: other programs do not count.
fn time(rvm: &Rvm, memory: &std::sync::Arc<nvlab_rvm::Memory>, order: &[usize]) -> Duration {
    let named = (0..3).map(|_| {
        let mut transaction = rvm.begin_raw(Restore::Yes);
        let began = ThreadTime::now();
        for &number in order {
            let at = number * STRIDE;
            // SAFETY: nobody else uses the memory.
            unsafe { transaction.set_range(memory, at..at + STRIDE / 2).unwrap() };
        }
        let took = began.elapsed();
        assert_eq!(transaction.size(), (order.len(), order.len() * STRIDE / 2));
        took
    });
    named.min().unwrap()
}

/// Eight times the ranges take at most 24 times the time: n log n takes 10 times, and a list that is moved 64 times.
#[test]
fn no_order_of_ranges_is_quadratic() {
    let (_disk, rvm) = rvm(4 * BYTES, BYTES);
    let memory = rvm.map_raw("data", 0..BYTES as u64).unwrap();
    const FEW: usize = 20_000;
    type Order = fn(usize) -> Vec<usize>;
    let orders: [(&str, Order); 4] = [
        ("ascending", |count| (0..count).collect()),
        ("descending", |count| (0..count).rev().collect()),
        ("random", |count| random(count).collect()),
        ("inwards", |count| inwards(count).collect()),
    ];
    for (name, order) in orders {
        let [few, many] = [FEW, 8 * FEW].map(|count| time(&rvm, &memory, &order(count)));
        println!("{name}: {few:?}, eight times as many {many:?}");
        assert!(many < few * 24, "{name}: {few:?}, eight times as many ranges {many:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Many ranges of a few bytes in two regions: what is left are the maximal runs of the bytes named; committed, they are
    /// found again, and undone, nothing is.
    #[test]
    fn ranges_are_coalesced_in_any_order(
        ranges in prop::collection::vec((0..2usize, 0..4000usize, 1..24usize), 1..400),
        diff in any::<bool>(), is_undone in any::<bool>(),
    ) {
        let (disk, _) = rvm(1 << 16, 8192);
        let options = Options { diff, ..Options::default() };
        let open = || Rvm::open(FileLog::open_on(disk.store("log"), "log".into()).unwrap(), disk.clone(), options);
        let rvm = open().unwrap();
        let memories = [0, 4096].map(|at| rvm.map_raw("data", at..at + 4096).unwrap());
        let mut transaction = rvm.begin_raw(Restore::Yes);
        let mut named = [[false; 4096]; 2];
        for (number, &(memory, at, bytes)) in ranges.iter().enumerate() {
            // SAFETY: nobody else uses the memory.
            unsafe {
                transaction.set_range(&memories[memory], at..at + bytes).unwrap();
                memories[memory].slice_mut(at..at + bytes).fill(1 + number as u8 % 250);
            }
            named[memory][at..at + bytes].fill(true);
        }
        let runs = named.iter().flat_map(|named| named.chunk_by(|a, b| a == b)).filter(|run| run[0]).count();
        let bytes = named.as_flattened().iter().filter(|&&named| named).count();
        prop_assert_eq!(transaction.size(), (runs, bytes));
        // SAFETY: nobody changes the memory.
        let now = || [0, 1].map(|memory| unsafe { memories[memory].slice(0..4096) }.to_vec());
        let changed = now();
        // SAFETY: as above.
        unsafe {
            match is_undone {
                true => rvm.abort_raw(&mut transaction).unwrap(),
                false => rvm.commit_raw(&mut transaction, Flush::Yes).unwrap(),
            }
        }
        let kept = if is_undone { [vec![0; 4096], vec![0; 4096]] } else { changed };
        prop_assert!(now() == kept);
        drop(rvm);
        let rvm = open().unwrap();
        let region = rvm.map("data", 0..8192).unwrap();
        prop_assert!(region[..] == kept.concat());
    }
}
