//! What an operation costs: swaps of random elements (SPS) and TPC-B, in CPU time of the thread.
//!
//! `cargo run --release -p nvlab-nvheap --example operations -- [elements] [operations] [threads] [folder]`

use nvlab_nvheap::{Brand, Handle, Heap, Options, PVec, Persist};

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
struct Entry {
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
    entries: PVec<Entry, Bank>,
}

fn options() -> Options {
    Options { bytes_max: 1 << 30, ..Options::default() }
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
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
            *history.entries.write(tx, at)? = Entry {
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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (elements, operations, threads) = (number(1 << 20), number(2_000_000), number(1));
    let folder = arguments.next().unwrap_or("/dev/shm".into());
    let folder = tempfile::tempdir_in(folder).unwrap();

    let heap = Heap::<Swaps>::create(folder.path().join("swaps"), options(), |tx| {
        Ok(SwapRoot { elements: PVec::from_fn(tx, elements as usize, |i| Ok([i as u64; 8]))? })
    })
    .unwrap();
    let root = heap.root().unwrap();
    let ns =
        measure(threads, operations, |thread, operations| swap(&root, &heap, elements, thread, operations));
    println!("SPS    {ns:.0} CPU-ns per swap, {threads} threads");
    let sum: u64 = (0..elements)
        .map(|i| heap.transaction(|tx| Ok(root.read(tx)?.elements.read(tx, i as usize)?[0])).unwrap())
        .sum();
    assert_eq!(sum, (0..elements).sum::<u64>());
    drop((root, heap));

    let heap = Heap::<Bank>::create(folder.path().join("bank"), options(), |tx| {
        let rows = |count| PVec::from_fn(tx, count, |_| Ok(Row { balance: 0, rest: [0; 11] }));
        let entry = Entry { account: 0, teller: 0, branch: 0, number: 0, amount: 0 };
        let history = |_| Ok(History { next: 0, entries: PVec::from_fn(tx, 1 << 16, |_| Ok(entry))? });
        Ok(BankRoot {
            accounts: rows(elements as usize / 10 * 10)?,
            tellers: rows(1000)?,
            branches: rows(100)?,
            histories: PVec::from_fn(tx, 16, history)?,
        })
    })
    .unwrap();
    let root = heap.root().unwrap();
    let accounts = elements / 10 * 10;
    let ns = measure(threads, operations, |thread, operations| {
        transfer(&root, &heap, accounts, thread, operations)
    });
    println!("TPC-B  {ns:.0} CPU-ns per transaction, {threads} threads");
}
