//! Transactions whose ranges nobody names: the same as explicit ones, through aborts and power failures, and harmless to
//! faults elsewhere.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::typed::{Handle, TypedHeap};
use nvlab_rvm::{Options, Part, Region, Restore, Result, Rvm, Truncation};
use std::os::unix::process::ExitStatusExt;

/// The second does not end at a page of the processor's larger sizes; both are several pages.
const SEGMENTS: [(&str, usize); 2] = [("one", 5 * 4096), ("two", 3 * 4096)];
const LOG: usize = status::BYTES as usize + 8192;

struct Rng(u64);

impl Rng {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % below
    }
}

/// How a history changes memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    Explicit,
    Implicit,
    /// Some transactions so, some so, some both.
    Mixed,
}

type Bytes = [Vec<u8>; 2];

fn fresh() -> Disk {
    let disk = Disk::default();
    disk.create("log", LOG);
    SEGMENTS.iter().for_each(|(name, bytes)| disk.create(name, *bytes));
    FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    disk
}

fn open(disk: &Disk, options: Options) -> Result<(Rvm, [Region; 2])> {
    let log = FileLog::open_on(disk.store("log"), "log".into())?;
    let rvm = Rvm::open(log, disk.clone(), options)?;
    let [one, two] = SEGMENTS.map(|(name, bytes)| rvm.map(name, 0..bytes as u64));
    Ok((rvm, [one?, two?]))
}

fn contents(regions: &[Region; 2]) -> Bytes {
    [regions[0].to_vec(), regions[1].to_vec()]
}

/// Styles make the same changes: what happens and how are drawn apart. Returns the states after each commit, which of them
/// was acknowledged last, and the error that stopped it.
fn run(
    disk: &Disk,
    seed: u64,
    steps: usize,
    style: Style,
    options: Options,
) -> (Vec<Bytes>, usize, Result<()>) {
    let mut states: Vec<Bytes> = vec![SEGMENTS.map(|(_, bytes)| vec![0; bytes])];
    let mut acknowledged = 0;
    let ended = history(disk, seed, steps, style, options, &mut states, &mut acknowledged);
    (states, acknowledged, ended)
}

fn history(
    disk: &Disk,
    seed: u64,
    steps: usize,
    style: Style,
    options: Options,
    states: &mut Vec<Bytes>,
    acknowledged: &mut usize,
) -> Result<()> {
    let (mut rng, mut how) = (Rng(seed), Rng(!seed));
    let (_rvm, mut regions) = open(disk, options)?;
    for step in 0..steps {
        let mut next = states.last().unwrap().clone();
        let [one, two] = &mut regions;
        let mut transaction = one.begin();
        let parts = [Part::FIRST, transaction.include(two)?];
        let mut implicit = [false; 2];
        for _ in 0..1 + rng.next(5) {
            let part = rng.next(2);
            let bytes = 1 + rng.next(if step % 5 == 0 { 1200 } else { 40 });
            let at = rng.next(SEGMENTS[part].1 - bytes);
            let value = rng.next(256) as u8;
            next[part][at..at + bytes].fill(value);
            implicit[part] |= match style {
                Style::Explicit => false,
                Style::Implicit => true,
                Style::Mixed => how.next(3) == 0,
            };
            if implicit[part] && how.next(4) > 0 {
                transaction.implicit(parts[part])?[at..at + bytes].fill(value);
            } else {
                if implicit[part] {
                    transaction.implicit(parts[part])?;
                }
                transaction.set_range_in(parts[part], at..at + bytes)?.fill(value);
            }
        }
        match rng.next(8) {
            0 => transaction.abort()?,
            1 => drop(transaction),
            choice => {
                states.push(next);
                if choice < 5 {
                    transaction.commit_no_flush()?;
                } else {
                    transaction.commit()?;
                    *acknowledged = states.len() - 1;
                }
            }
        }
        assert!(&contents(&regions) == states.last().unwrap(), "seed {seed} step {step} {style:?}");
    }
    Ok(())
}

fn options(seed: u64) -> Options {
    let truncation = Truncation::WhenFull;
    Options {
        truncation,
        diff: seed % 2 == 1,
        find_missed_ranges: seed.is_multiple_of(3),
        ..Options::default()
    }
}

/// In memory during the history and on the disk after it, with aborts.
#[test]
fn histories_are_the_same_however_ranges_are_found() {
    for seed in 0..60 {
        let [explicit, implicit, mixed] = [Style::Explicit, Style::Implicit, Style::Mixed].map(|style| {
            let disk = fresh();
            let (states, _, ended) = run(&disk, seed, 60, style, options(seed));
            ended.unwrap_or_else(|error| panic!("seed {seed} {style:?}: {error}"));
            let (_rvm, regions) = open(&disk.restart(), options(seed)).unwrap();
            assert!(states.contains(&contents(&regions)), "seed {seed} {style:?}");
            states
        });
        assert!(explicit == implicit && implicit == mixed, "seed {seed}");
    }
}

#[test]
fn every_power_failure_leaves_a_committed_state() {
    let mut cuts = 0;
    for seed in 0..4 {
        for style in [Style::Implicit, Style::Mixed] {
            let disk = fresh();
            disk.plan(None, 0);
            run(&disk, seed, 12, style, options(seed)).2.unwrap();
            for cut in 1..=disk.operations() {
                let disk = fresh();
                disk.plan(Some((cut, Failure::Power)), seed + cut);
                let (states, acknowledged, _) = run(&disk, seed, 12, style, options(seed));
                let (_rvm, regions) = open(&disk.restart(), options(seed)).unwrap();
                let found = contents(&regions);
                let index = states.iter().rposition(|state| *state == found);
                let index = index.unwrap_or_else(|| panic!("seed {seed} cut {cut} {style:?}: no state"));
                assert!(index >= acknowledged, "seed {seed} cut {cut} {style:?}: {index} < {acknowledged}");
                cuts += 1;
            }
        }
    }
    println!("{cuts} power failures");
    assert!(cuts > 100);
}

#[test]
fn only_what_differs_is_logged_and_only_touched_pages_are_looked_at() {
    let disk = fresh();
    let (rvm, mut regions) = open(&disk, Options::default()).unwrap();
    let mut transaction = regions[0].begin();
    let bytes = transaction.implicit(Part::FIRST).unwrap();
    bytes[10] = 1;
    bytes[18] = 2;
    bytes[2000..2100].fill(0);
    bytes[4095..4097].fill(3);
    transaction.commit().unwrap();
    let statistics = rvm.statistics();
    // 10 to 18 is one run, since 7 unchanged bytes cost less than a header; a run crosses the pages.
    assert_eq!((statistics.ranges, statistics.range_bytes), (2, 9 + 2));
    // Explicit transactions and growth work between implicit ones.
    regions[0].begin().write(5000, b"dropped").unwrap();
    let mut transaction = regions[0].begin();
    transaction.write(5000, b"kept").unwrap();
    transaction.commit().unwrap();
    regions[0].grow(8 * 4096).unwrap();
    let mut transaction = regions[0].begin_with(Restore::No);
    let bytes = transaction.implicit(Part::FIRST).unwrap();
    bytes[5001] = b'E';
    bytes[7 * 4096] = 9;
    transaction.commit().unwrap();
    drop((rvm, regions));
    let (_rvm, regions) = open(&disk.restart(), Options::default()).unwrap();
    assert_eq!((&regions[0][5000..5004], regions[0][10], regions[0][4096]), (&b"kEpt"[..], 1, 3));
}

/// Two threads store to every page at the same time: each page is kept once, as it was.
#[test]
fn threads_touch_the_same_pages() {
    const BYTES: usize = 64 * 4096;
    let disk = Disk::default();
    disk.create("log", 1 << 20);
    disk.create("wide", BYTES);
    FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    let log = FileLog::open_on(disk.store("log"), "log".into()).unwrap();
    let rvm = Rvm::open(log, disk.clone(), Options::default()).unwrap();
    let mut region = rvm.map("wide", 0..BYTES as u64).unwrap();
    for round in 0..50_u8 {
        let before = region.to_vec();
        let mut transaction = region.begin();
        let bytes = transaction.implicit(Part::FIRST).unwrap();
        let (even, odd): (Vec<_>, Vec<_>) =
            bytes.chunks_mut(2048).enumerate().partition(|(half, _)| half % 2 == 0);
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for halves in [even, odd] {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    halves.into_iter().for_each(|(half, bytes)| bytes.fill(half as u8 ^ round));
                });
            }
        });
        if round % 2 == 0 {
            transaction.abort().unwrap();
            assert!(region.to_vec() == before, "round {round}");
        } else {
            transaction.commit_no_flush().unwrap();
            assert!(region.iter().enumerate().all(|(at, &byte)| byte == (at / 2048) as u8 ^ round));
        }
    }
}

const CHILD: &str = "RVM_TEST_WILD_STORE";

/// A store to a wild address still ends the process with SIGSEGV, also between two touched pages; run as a child of the
/// test below.
#[test]
#[ignore = "a child of wild_stores_end_the_process"]
fn program_with_a_wild_store() {
    let Ok(kind) = std::env::var(CHILD) else { return };
    let disk = fresh();
    let (_rvm, mut regions) = open(&disk, Options::default()).unwrap();
    let mut transaction = regions[0].begin();
    transaction.implicit(Part::FIRST).unwrap()[0] = 1;
    if kind == "store" {
        // SAFETY: the fault is the purpose.
        unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
    } else {
        // A function that calls itself without end: the handler of the standard library reports it.
        #[expect(unconditional_recursion)]
        fn deeper(depth: &mut [u64; 64]) -> u64 {
            let mut next = [depth[0] + 1; 64];
            std::hint::black_box(deeper(&mut next)) + depth[1]
        }
        println!("{}", deeper(&mut [0; 64]));
    }
    std::process::exit(0);
}

#[test]
fn wild_stores_end_the_process() {
    for (kind, signal) in [("store", 11), ("overflow", 6)] {
        let program = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(program);
        child
            .args(["--exact", "implicit::program_with_a_wild_store", "--ignored", "--nocapture"])
            .env(CHILD, kind);
        let output = child.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(signal), "{kind}: {:?}\n{errors}", output.status);
        assert!(kind == "store" || errors.contains("overflowed its stack"), "{errors}");
    }
}

#[test]
fn typed_objects_are_kept_and_undone() {
    let disk = fresh();
    let (rvm, mut regions) = open(&disk, Options::default()).unwrap();
    let region = &mut regions[0];
    let mut transaction = region.begin();
    let heap = TypedHeap::create(&mut transaction).unwrap();
    let account = heap.insert(&mut transaction, [100_u64, 0]).unwrap();
    let doomed = heap.insert(&mut transaction, [7_u8; 300]).unwrap();
    transaction.commit().unwrap();
    let before = rvm.statistics().range_bytes;
    let mut transaction = region.begin();
    heap.get_mut(&mut transaction, account).unwrap()[0] -= 30;
    assert_eq!(heap.see(&transaction, account).unwrap(), &[70, 0]);
    transaction.commit().unwrap();
    // The whole object.
    assert_eq!(rvm.statistics().range_bytes - before, 16);
    let mut transaction = region.begin();
    heap.remove(&mut transaction, doomed).unwrap();
    *heap.get_mut(&mut transaction, account).unwrap() = [0, 0];
    transaction.abort().unwrap();
    assert_eq!(heap.get(region, doomed).unwrap(), &[7; 300]);
    assert!(heap.get(region, Handle::<u64>::from_offset(1 << 40)).is_err());
    drop((rvm, regions));
    let (_rvm, mut regions) = open(&disk.restart(), Options::default()).unwrap();
    let transaction = regions[0].begin();
    let heap = TypedHeap::open(&transaction).unwrap();
    assert!(heap.check(&transaction).unwrap() > 316);
    let account = Handle::<[u64; 2]>::from_offset(account.offset());
    assert_eq!(heap.see(&transaction, account).unwrap(), &[70, 0]);
}
