//! kill -9 of a real program on a real file, again and again on what it left: nothing acknowledged is missing, nothing else
//! is there, and every block and count agrees.

use crate::killed;
use nvlab_nvheap::{Brand, Error, Heap, Options, PVec, Persist, Persistence, Strong};
use nvlab_rvm::Rvm;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const THREADS: usize = 2;
const ACCOUNTS: usize = 1000;
const PATH: &str = "NVLAB_NVHEAP_KILLED";

struct Killed;
impl Brand for Killed {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Killed)]
#[repr(C)]
struct Root {
    balances: PVec<i64, Killed>,
    counters: PVec<Counter, Killed>,
}

/// Of a thread, with as many notes as its last digit says.
#[derive(Persist, Default)]
#[persist(heap = Killed)]
#[repr(C)]
struct Counter {
    count: u64,
    notes: Option<Strong<Note, Killed>>,
    /// Counters of two threads share no lock of 1 KiB.
    rest: [u64; 30],
    more: [[u64; 32]; 4],
}

#[derive(Persist)]
#[persist(heap = Killed)]
#[repr(C)]
struct Note {
    number: u64,
    next: Option<Strong<Note, Killed>>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn options() -> Options {
    Options { log_bytes: 64 << 10, ..Options::default() }
}

/// Of a file, which has checksums.
fn file_options() -> Options {
    Options { bytes_max: 64 << 20, checksums: true, ..options() }
}

/// A file, or with a log beside it a segment of recoverable memory.
fn open(path: &Path) -> Heap<Killed> {
    match path.with_file_name("log").exists() {
        true => Heap::open_on(&rvm(path.parent().unwrap()), "heap", options()).unwrap(),
        false => Heap::open(path, options()).unwrap(),
    }
}

fn rvm(folder: &Path) -> Arc<Rvm> {
    let log = FileLog::open(&folder.join("log")).unwrap();
    Arc::new(Rvm::open(log, SegmentFolder::new(folder), Default::default()).unwrap())
}

/// The program that is killed: threads move money, count their transfers, keep and drop notes, and say each number once it
/// is durable.
#[test]
fn program() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let heap = open(Path::new(&path));
    let root = heap.root().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (heap, root) = (&heap, &root);
            scope.spawn(move || {
                loop {
                    let number = heap
                        .transaction(|tx| {
                            let root = root.read(tx)?;
                            let mut counter = root.counters.write(tx, thread)?;
                            counter.count += 1;
                            let (number, amount) = (counter.count, counter.count as i64 % 97);
                            if number % 10 == 0 {
                                counter.notes = None;
                            } else {
                                let next = counter.notes.take();
                                counter.notes = Some(Strong::new(tx, Note { number, next })?);
                            }
                            for (account, change) in
                                [(number * 7919, amount), (number * 104_729 + 1, -amount)]
                            {
                                *root.balances.write(tx, account as usize % ACCOUNTS)? += change;
                            }
                            Ok(number)
                        })
                        .unwrap();
                    // One write, so that lines of two threads are not mixed.
                    std::io::stdout().write_all(format!("durable {thread} {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

fn create(path: &Path) {
    let root = |tx: &nvlab_nvheap::Tx<'_, Killed>| {
        Ok(Root {
            balances: PVec::from_fn(tx, ACCOUNTS * 4, |_| Ok(0))?,
            counters: PVec::from_fn(tx, THREADS * 8, |_| Ok(Counter::default()))?,
        })
    };
    let made = match path.with_file_name("log").exists() {
        true => Heap::<Killed>::create_on(&rvm(path.parent().unwrap()), "heap", options(), root),
        false => Heap::create(path, file_options(), root),
    };
    drop(made.unwrap());
}

/// So many times at least, and until 50 transactions were made: how many fit into a round is up to the disk.
fn kill_again_and_again(folder: &Path, rounds: u64) {
    let path = folder.join("heap");
    create(&path);
    let mut before = [0; THREADS];
    let mut round = 0;
    while round < rounds || before.iter().sum::<u64>() < 50 {
        assert!(round < 20 * rounds, "only {before:?} transactions were made");
        let mut last = [0; THREADS];
        for said in killed::run("kill::program", PATH, &path, Duration::from_millis(20 + round * 13 % 70)) {
            let (thread, number) = said.split_once(' ').unwrap();
            last[thread.parse::<usize>().unwrap()] = number.parse::<u64>().unwrap();
        }
        let mut heap = open(&path);
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.unreachable == 0, "round {round}: {found:?}");
        let root = heap.root().unwrap();
        heap.transaction(|tx| {
            let root = root.read(tx)?;
            for thread in 0..THREADS {
                let counter = root.counters.read(tx, thread)?;
                // One more may have been durable and not yet said.
                let least = last[thread].max(before[thread]);
                assert!(
                    counter.count >= least && (last[thread] == 0 || counter.count <= last[thread] + 1),
                    "round {round}: {}, {last:?}",
                    counter.count
                );
                let (mut notes, mut next) =
                    (0, counter.notes.as_ref().map(|note| note.share(tx)).transpose()?);
                while let Some(note) = next {
                    let note = note.read(tx)?;
                    assert_eq!(note.number, counter.count - notes);
                    notes += 1;
                    next = note.next.as_ref().map(|note| note.share(tx)).transpose()?;
                }
                assert_eq!(notes, counter.count % 10, "round {round}");
            }
            let sum: i64 =
                root.balances.iter(tx).map(|balance| Ok(*balance?)).sum::<nvlab_nvheap::Result<i64>>()?;
            assert_eq!(sum, 0, "round {round}");
            Ok(())
        })
        .unwrap();
        for (thread, before) in before.iter_mut().enumerate() {
            *before = heap.transaction(|tx| Ok(root.read(tx)?.counters.read(tx, thread)?.count)).unwrap();
        }
        round += 1;
    }
}

#[test]
fn a_killed_program_has_lost_nothing_it_acknowledged() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    kill_again_and_again(folder.path(), 25);
}

/// The same with msync, which is what a file on a disk gets; cache-line flushes are refused there.
#[test]
fn a_file_on_a_disk_is_synced() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    kill_again_and_again(folder.path(), 5);
    let Some(flush) = nvlab_os::Flush::detect() else { return };
    let is_in_memory =
        nvlab_os::file::is_in_memory(&std::fs::File::open(folder.path().join("heap")).unwrap());
    for persistence in [Persistence::Lines(flush), Persistence::Caches] {
        let opened = Heap::<Killed>::open(folder.path().join("heap"), Options { persistence, ..options() });
        if !is_in_memory.as_ref().unwrap() {
            assert!(matches!(opened, Err(Error::NotPersistent(_))), "{opened:?}");
        }
    }
}

/// On the log of recoverable memory, which recovers it and forces for both threads at once.
#[test]
fn a_log_brings_back_what_was_acknowledged() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    FileLog::create(&folder.path().join("log"), 256 << 10).unwrap();
    SegmentFolder::new(folder.path()).create("heap", 3 << 20).unwrap();
    kill_again_and_again(folder.path(), 12);
}
