//! What an operation costs: swaps of random elements (SPS), TPC-B, and inserts and deletes in a B-tree and a hash table, in CPU
//! time of the thread.
//!
//! `cargo run --release -p nvlab-nvheap --example operations -- [elements] [operations] [threads] [folder] [workload,...]
//! [checksums]`; the last word gives the heaps checksums.
//!
//! Under `valgrind --tool=callgrind`, the difference between runs of 100000 and 200000 operations of one workload is 110000 of
//! them, a tenth of which are the warm-up.

mod measured;

use measured::cpu_ns;
use nvlab_nvheap::collections::Entry;
use nvlab_nvheap::{Brand, Handle, Heap, Options, PBTreeMap, PHashMap, PVec, Persist, Tx};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

struct Swaps;
impl Brand for Swaps {
    type Root = SwapRoot;
}

#[derive(Persist)]
#[persist(heap = Swaps)]
#[repr(C)]
struct SwapRoot {
    elements: PVec<[u64; 8], Swaps>,
}

struct Bank;
impl Brand for Bank {
    type Root = BankRoot;
}

#[derive(Persist)]
#[persist(heap = Bank)]
#[repr(C)]
struct BankRoot {
    accounts: PVec<Row, Bank>,
    tellers: PVec<Row, Bank>,
    branches: PVec<Row, Bank>,
    histories: PVec<History, Bank>,
}

#[derive(Persist, Clone, Copy)]
#[repr(C)]
struct Row {
    balance: i64,
    rest: [u64; 11],
}

#[derive(Persist, Clone, Copy)]
#[repr(C)]
struct Posting {
    account: u32,
    teller: u32,
    branch: u32,
    number: u32,
    amount: i64,
}

/// The history of a thread: a ring.
#[derive(Persist)]
#[persist(heap = Bank)]
#[repr(C)]
struct History {
    next: u64,
    entries: PVec<Posting, Bank>,
}

struct Sorted;
impl Brand for Sorted {
    type Root = SortedRoot;
}

#[derive(Persist)]
#[persist(heap = Sorted)]
#[repr(C)]
struct SortedRoot {
    map: PBTreeMap<u64, u64, Sorted>,
}

struct Hashed;
impl Brand for Hashed {
    type Root = HashedRoot;
}

#[derive(Persist)]
#[persist(heap = Hashed)]
#[repr(C)]
struct HashedRoot {
    map: PHashMap<u64, u64, Hashed>,
}

fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Runs `work(thread, operations)` in threads and returns CPU-ns per operation.
fn measure(threads: u64, operations: u64, work: impl Fn(u64, u64) + Sync) -> f64 {
    let total: u64 = std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    work(thread, operations / 10);
                    let before = cpu_ns();
                    work(thread, operations);
                    cpu_ns() - before
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total as f64 / (operations * threads) as f64
}

fn swap(root: &Handle<SwapRoot, Swaps>, heap: &Heap<Swaps>, elements: u64, thread: u64, operations: u64) {
    let mut state = 88_172_645_463_325_252 + thread * 77_777;
    for _ in 0..operations {
        let (a, b) = (draw(&mut state) % elements, draw(&mut state) % elements);
        heap.transaction(|tx| root.read(tx)?.elements.swap(tx, a as usize, b as usize)).unwrap();
    }
}

fn transfer(root: &Handle<BankRoot, Bank>, heap: &Heap<Bank>, accounts: u64, thread: u64, operations: u64) {
    let mut state = 88_172_645_463_325_252 + thread * 77_777;
    for number in 0..operations {
        let (random, amount) = (draw(&mut state), draw(&mut state) as i64 % 1000);
        heap.transaction(|tx| {
            let root = root.read(tx)?;
            let account = (random % accounts) as usize;
            let (teller, branch) =
                ((random >> 32) as usize % root.tellers.len(), (random >> 40) as usize % root.branches.len());
            root.accounts.prefetch(tx, account);
            let mut history = root.histories.write(tx, thread as usize)?;
            let at = history.next as usize % history.entries.len();
            history.next += 1;
            history.entries.prefetch(tx, at);
            root.branches.write(tx, branch)?.balance += amount;
            root.tellers.write(tx, teller)?.balance += amount;
            root.accounts.write(tx, account)?.balance += amount;
            *history.entries.write(tx, at)? = Posting {
                account: account as u32,
                teller: teller as u32,
                branch: branch as u32,
                number: number as u32,
                amount,
            };
            Ok(())
        })
        .unwrap();
    }
}

/// What to run.
struct Run<'a> {
    elements: u64,
    operations: u64,
    threads: u64,
    folder: &'a Path,
    checksums: bool,
}

impl Run<'_> {
    fn options(&self) -> Options {
        Options { bytes_max: 1 << 30, checksums: self.checksums, ..Options::default() }
    }
}

fn sps(run: &Run<'_>) {
    let heap = Heap::<Swaps>::create(run.folder.join("swaps"), run.options(), |tx| {
        Ok(SwapRoot { elements: PVec::from_fn(tx, run.elements as usize, |i| Ok([i as u64; 8]))? })
    })
    .unwrap();
    let root = heap.root().unwrap();
    let ns = measure(run.threads, run.operations, |thread, operations| {
        swap(&root, &heap, run.elements, thread, operations);
    });
    println!("sps    {ns:.0} CPU-ns per swap, {} threads", run.threads);
    let sum: u64 = (0..run.elements)
        .map(|i| heap.transaction(|tx| Ok(root.read(tx)?.elements.read(tx, i as usize)?[0])).unwrap())
        .sum();
    assert_eq!(sum, (0..run.elements).sum::<u64>());
}

fn tpc_b(run: &Run<'_>) {
    let accounts = run.elements / 10 * 10;
    let heap = Heap::<Bank>::create(run.folder.join("bank"), run.options(), |tx| {
        let rows = |count| PVec::from_fn(tx, count, |_| Ok(Row { balance: 0, rest: [0; 11] }));
        let entry = Posting { account: 0, teller: 0, branch: 0, number: 0, amount: 0 };
        let history = |_| Ok(History { next: 0, entries: PVec::from_fn(tx, 1 << 16, |_| Ok(entry))? });
        Ok(BankRoot {
            accounts: rows(accounts as usize)?,
            tellers: rows(1000)?,
            branches: rows(100)?,
            histories: PVec::from_fn(tx, 16, history)?,
        })
    })
    .unwrap();
    let root = heap.root().unwrap();
    let ns = measure(run.threads, run.operations, |thread, operations| {
        transfer(&root, &heap, accounts, thread, operations);
    });
    println!("tpc-b  {ns:.0} CPU-ns per transaction, {} threads", run.threads);
}

/// Inserts a random key if it is absent and deletes it if it is present; each thread has keys of its own.
macro_rules! toggles {
    ($name:ident, $brand:ident, $root:ident, $map:ident, $called:literal) => {
        fn $name(run: &Run<'_>) {
            let make = |tx: &Tx<'_, $brand>| Ok($root { map: $map::new(tx)? });
            let heap = Heap::<$brand>::create(run.folder.join($called), run.options(), make).unwrap();
            let root = heap.root().unwrap();
            let keys = run.elements / run.threads;
            let is_there: Vec<_> = (0..run.elements).map(|key| AtomicBool::new(key % 2 == 0)).collect();
            for key in (0..run.elements).step_by(2) {
                heap.transaction(|tx| root.read(tx)?.map.insert(tx, key, key).map(drop)).unwrap();
            }
            let ns = measure(run.threads, run.operations, |thread, operations| {
                let mut state = 88_172_645_463_325_252 + thread * 77_777;
                for _ in 0..operations {
                    let key = thread * keys + draw(&mut state) % keys;
                    let is_old = is_there[key as usize].fetch_not(Relaxed);
                    let old = heap.transaction(|tx| match is_old {
                        true => root.read(tx)?.map.remove(tx, &key),
                        false => root.read(tx)?.map.insert(tx, key, key),
                    });
                    assert_eq!(old.unwrap().is_some(), is_old, "key {key}");
                }
            });
            println!("{:6} {ns:.0} CPU-ns per insert or delete, {} threads", $called, run.threads);
        }
    };
}

toggles!(b_tree, Sorted, SortedRoot, PBTreeMap, "b-tree");
toggles!(hash, Hashed, HashedRoot, PHashMap, "hash");

/// Inserts a random key if it is absent and deletes it if it is present, which the map itself says: by two lookups, or by one.
fn toggle(run: &Run<'_>) {
    for is_by_entry in [false, true] {
        let path = run.folder.join(format!("toggle-{is_by_entry}"));
        let make = |tx: &Tx<'_, Hashed>| Ok(HashedRoot { map: PHashMap::new(tx)? });
        let heap = Heap::<Hashed>::create(path, run.options(), make).unwrap();
        let root = heap.root().unwrap();
        for key in (0..run.elements).step_by(2) {
            heap.transaction(|tx| root.read(tx)?.map.insert(tx, key, key).map(drop)).unwrap();
        }
        let ns = measure(run.threads, run.operations, |thread, operations| {
            let mut state = 88_172_645_463_325_252 + thread * 77_777;
            for _ in 0..operations {
                let key = draw(&mut state) % run.elements;
                let toggled = heap.transaction(|tx| {
                    let root = root.read(tx)?;
                    if is_by_entry {
                        return match root.map.entry(tx, key)? {
                            Entry::Occupied(found) => found.remove().map(drop),
                            Entry::Vacant(free) => free.insert(key),
                        };
                    }
                    match root.map.remove(tx, &key)? {
                        Some(_) => Ok(()),
                        None => root.map.insert(tx, key, key).map(drop),
                    }
                });
                toggled.unwrap();
            }
        });
        let how = if is_by_entry { "its entry" } else { "two lookups" };
        println!("toggle {ns:.0} CPU-ns by {how}, {} threads", run.threads);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (elements, operations, threads) = (number(1 << 20), number(2_000_000), number(1));
    let folder = tempfile::tempdir_in(arguments.next().unwrap_or("/dev/shm".into())).unwrap();
    let asked = arguments.next();
    let checksums = arguments.next().is_some_and(|word| word == "checksums");
    let run = Run { elements, operations, threads, folder: folder.path(), checksums };
    let workloads: [(_, fn(&Run<'_>)); 5] =
        [("sps", sps), ("tpc-b", tpc_b), ("b-tree", b_tree), ("hash", hash), ("toggle", toggle)];
    for (name, workload) in workloads {
        if asked.as_ref().is_none_or(|asked| asked.split(',').any(|asked| asked == name)) {
            workload(&run);
        }
    }
}
