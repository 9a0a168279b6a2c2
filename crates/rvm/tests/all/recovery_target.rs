//! Truncation begins when recovery of what the log holds would take longer than it may: under power failures at every operation, and
//! under steady commits on a segment that is slow.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Options, Result, Rvm, Segments, Store, Truncation};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;

fn options(recovery_target: Duration) -> Options {
    Options { truncation: Truncation::Background { at_percent: 99 }, recovery_target, ..Options::default() }
}

fn fresh(log_bytes: usize, pages: usize) -> Disk {
    let disk = Disk::default();
    disk.create("log", status::BYTES as usize + log_bytes);
    disk.create("data", pages * PAGE);
    FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    disk
}

fn open(disk: &Disk, segments: impl Segments + 'static, options: Options) -> Result<Rvm> {
    Rvm::open(FileLog::open_on(disk.store("log"), "log".into())?, segments, options)
}

/// Few enough that none are measured, which would find them cheaper than a drive's ([`Options::recovery_target`]).
const PAGES: usize = 31;
const COMMITS: u64 = 60;
/// A truncation in the background takes less.
const WAIT: Duration = Duration::from_millis(20);

/// The byte that a commit puts on four pages, and where.
fn places(number: u64) -> impl Iterator<Item = usize> {
    (0..4).map(move |index| ((number * 4 + index) * 7 % PAGES as u64) as usize * PAGE + number as usize)
}

/// Commits one after the other; returns how many were acknowledged, and the truncations.
fn run(disk: &Disk) -> (u64, Result<u64>) {
    let mut acknowledged = 0;
    let mut commit = || {
        let rvm = open(disk, disk.clone(), options(Duration::ZERO))?;
        let mut region = rvm.map("data", 0..(PAGES * PAGE) as u64)?;
        for number in 1..=COMMITS {
            let mut transaction = region.begin();
            for at in places(number) {
                transaction.write(at, &[number as u8])?;
            }
            transaction.commit()?;
            acknowledged = number;
            // Ten commits change all pages: it is time to truncate.
            let began = Instant::now();
            let before = rvm.statistics().truncations;
            while number % 10 == 0 && rvm.statistics().truncations == before && began.elapsed() < WAIT {
                // It fails if the truncation has.
                rvm.flush()?;
                std::thread::yield_now();
            }
        }
        Ok(rvm.statistics().truncations)
    };
    let result = commit();
    (acknowledged, result)
}

/// How many commits are there, none of them in part.
fn found(disk: &Disk, what: &str) -> u64 {
    let rvm =
        open(disk, disk.clone(), options(Duration::MAX)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let region = rvm.map("data", 0..(PAGES * PAGE) as u64).unwrap();
    let is_there = |number: &u64| places(*number).all(|at| region[at] == *number as u8);
    let count = (1..=COMMITS).take_while(is_there).count() as u64;
    let others = (count + 1..=COMMITS).flat_map(places).filter(|at| region[*at] != 0).count();
    assert_eq!(others, 0, "{what}: {count} commits and parts of others");
    count
}

#[test]
fn every_cut_with_truncations_that_the_target_begins() {
    let (mut cuts, mut truncations) = (0, 0);
    for luck in 0..3 {
        for cut in 1.. {
            let disk = fresh(1 << 15, PAGES);
            if luck > 0 {
                disk.take_parts();
            }
            disk.plan(Some((cut, Failure::Power)), cut * 10 + luck);
            let (acknowledged, result) = run(&disk);
            let what = format!("cut at operation {cut}, luck {luck}");
            let count = found(&disk.restart(), &what);
            assert!((acknowledged..=acknowledged + 1).contains(&count), "{what}: {count} of {acknowledged}");
            if let Ok(count) = result {
                truncations += count;
                if disk.operations() < cut {
                    break;
                }
            }
            cuts += 1;
        }
    }
    assert!(cuts > 450 && truncations >= 9, "{cuts} cuts, {truncations} truncations at the end");
}

/// So long takes each write to a segment.
const WRITE: Duration = Duration::from_micros(200);

/// Segments that are slow, and count the writes.
#[derive(Debug)]
struct Slow(Disk, Arc<AtomicU64>);

#[derive(Debug)]
struct SlowStore(Box<dyn Store>, Arc<AtomicU64>);

impl Segments for Slow {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(SlowStore(self.0.open(name)?, self.1.clone())))
    }
    fn open_named(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(SlowStore(self.0.open_named(name)?, self.1.clone())))
    }
}

impl Store for SlowStore {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read(into, offset)
    }
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.1.fetch_add(1, Relaxed);
        std::thread::sleep(WRITE);
        self.0.write(data, offset)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
    fn start_sync(&self) -> io::Result<bool> {
        self.0.start_sync()
    }
    fn prepare_parts(&self, offset: u64, bytes: usize) -> bool {
        self.0.prepare_parts(offset, bytes)
    }
    fn file(&self) -> Option<&File> {
        self.0.file()
    }
}

/// Each commit changes another page, none beside one that was changed shortly before, and takes five times as long as writing it. The log
/// never holds more than can be recovered in the target, and much of that: the disk is copied as a kill would leave it, and
/// recovered from there. The first few truncations find out what a page takes.
#[test]
fn the_log_holds_what_can_be_recovered_in_time_under_steady_commits() {
    const PAGES: u64 = 4096;
    let target = Duration::from_millis(60);
    let pages_max = (target.as_micros() / WRITE.as_micros()) as u64;
    let disk = fresh(4 << 20, PAGES as usize);
    let rvm = open(&disk, Slow(disk.clone(), Arc::default()), options(target)).unwrap();
    let mut region = rvm.map("data", 0..PAGES * PAGE as u64).unwrap();
    let (mut highest, mut most) = (Duration::ZERO, 0);
    for number in 0..1500_u64 {
        let mut transaction = region.begin();
        let page = number * 2 % PAGES;
        transaction.write(page as usize * PAGE + 8, &number.to_le_bytes()).unwrap();
        transaction.commit().unwrap();
        std::thread::sleep(WRITE * 5);
        if number < 700 {
            continue;
        }
        highest = highest.max(rvm.statistics().recovery_time);
        if number % 16 == 0 {
            let killed = disk.copy();
            let writes = Arc::new(AtomicU64::new(0));
            let again = open(
                &killed,
                Slow(killed.clone(), writes.clone()),
                Options { truncation: Truncation::WhenFull, ..options(target) },
            );
            drop(again.unwrap());
            most = most.max(writes.load(Relaxed));
        }
    }
    let statistics = rvm.statistics();
    println!(
        "{highest:?} of {target:?}, {most} pages of {pages_max}, {} truncations",
        statistics.truncations
    );
    assert!(highest <= target * 5 / 4, "{highest:?} of {target:?}");
    assert!(highest >= target / 3, "{highest:?} of {target:?}");
    assert!(most <= pages_max * 5 / 4, "{most} pages of {pages_max}");
    assert!(statistics.truncations >= 5, "{} truncations", statistics.truncations);
}
