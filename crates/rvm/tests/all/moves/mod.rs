//! Regions that are mapped, dropped, grown and mapped again while the log is truncated in the background: their memory holds
//! what was committed, at every step, and so do the segments after a crash at any step.
//!
//! `NVLAB_RVM_CASES` sets the number of random histories.

mod model;
mod slow;

use model::{Model, PAGE, Rng, check, fresh, run};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Flush, Options, Restore, Rvm, Truncation};
use slow::Slow;
use std::path::Path;
use std::time::Duration;

const LOG: usize = status::BYTES as usize + 8192;

/// Every failure with all options, unless more are asked for.
fn cases() -> u64 {
    let wanted = std::env::var("NVLAB_RVM_CASES");
    wanted.map_or(12, |cases| cases.parse().unwrap_or_else(|_| panic!("NVLAB_RVM_CASES={cases}")))
}

fn options(seed: u64) -> Options {
    let truncation = match seed % 4 {
        0 => Truncation::WhenFull,
        share => Truncation::Background { at_percent: share as u8 * 20 },
    };
    Options { truncation, diff: seed % 2 == 1, spool_bytes_max: 600, ..Options::default() }
}

#[test]
fn memory_holds_what_was_committed_at_every_step() {
    for seed in 0..cases() {
        let (disk, mut model) = (fresh(LOG), Model::new());
        run(&disk, &mut model, seed, 250, options(seed)).unwrap();
        check(&disk.copy(), &model, options(seed), &format!("seed {seed}"));
    }
}

/// What the next program finds: after a power failure the disk, and else the cache.
fn found(disk: &Disk, failure: Failure) -> Disk {
    if failure == Failure::Power { disk.restart() } else { disk.copy() }
}

/// Power failures and errors at any operation (one for want of space leaves what was written in the cache, as a killed program
/// does). The next program goes on with what it finds, until the power fails once more.
#[test]
fn nothing_acknowledged_is_lost_at_any_step() {
    for seed in 0..cases() {
        let (disk, mut model, options) = (fresh(LOG), Model::new(), options(seed));
        let failure = [Failure::Power, Failure::Eio, Failure::Enospc][seed as usize % 3];
        let at = 1 + Rng(seed).next(900) as u64;
        disk.plan(Some((at, failure)), seed);
        let ended = run(&disk, &mut model, seed, 120, options);
        let what = format!("seed {seed}, {failure:?} at operation {at}: {ended:?}");
        check(&found(&disk, failure), &model, options, &what);
        for cut in (1..60).chain((60..400).step_by(41)) {
            let (disk, mut model) = (found(&disk, failure), model.clone());
            disk.plan(Some((cut, Failure::Power)), cut);
            let _ = run(&disk, &mut model, cut, 20, options);
            check(&disk.restart(), &model, options, &format!("{what}, cut at {cut} of the next program"));
        }
    }
}

/// A program was killed while a segment grew: its new length is in the cache only. What the next one commits there is found.
#[test]
fn a_length_that_a_killed_program_left_is_durable_before_it_is_used() {
    for seed in 0..20 {
        let disk = fresh(LOG);
        disk.plan(None, seed);
        disk.store("one").set_len(8 * PAGE as u64).unwrap();
        let open = |disk: &Disk| {
            let log = FileLog::open_on(disk.store("log"), "log".into()).unwrap();
            Rvm::open(log, disk.clone(), options(0)).unwrap_or_else(|error| panic!("seed {seed}: {error}"))
        };
        let rvm = open(&disk);
        let mut region = rvm.map("one", 0..8 * PAGE as u64).unwrap();
        let mut transaction = region.begin();
        transaction.write(7 * PAGE, b"kept").unwrap();
        transaction.commit().unwrap();
        let region = open(&disk.restart()).map("one", 0..8 * PAGE as u64).unwrap();
        assert_eq!(&region[7 * PAGE..7 * PAGE + 4], b"kept");
    }
}

/// Opens a log of 8 KiB with one segment of 16 pages.
fn open(folder: &Path, at_percent: u8) -> Rvm {
    let (log, segments) = (FileLog::create(&folder.join("log"), 8192).unwrap(), SegmentFolder::new(folder));
    segments.create("data", 16 * PAGE as u64).unwrap();
    let options = Options { truncation: Truncation::Background { at_percent }, ..Options::default() };
    Rvm::open(log, Slow(segments), options).unwrap()
}

/// The last commit of each round makes the background thread truncate: a name of 20 B and 15 records of 76 B are more than 14 %.
#[test]
fn a_region_mapped_again_has_what_was_committed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rvm = open(folder.path(), 14);
    let mut model = vec![0; 16 * PAGE];
    let mut stale = 0;
    for round in 0..250 {
        let mut region = rvm.map("data", 0..16 * PAGE as u64).unwrap();
        stale += usize::from(region[..] != model);
        for commit in 0..15 {
            let at = (round * 15 + commit) * 977 % (15 * PAGE);
            let mut transaction = region.begin();
            transaction.set_range(at..at + 60).unwrap().fill(1 + (round + commit) as u8 % 200);
            model[at..at + 60].fill(1 + (round + commit) as u8 % 200);
            transaction.commit().unwrap();
        }
        std::thread::sleep(Duration::from_micros(round as u64 % 4 * 40));
    }
    assert_eq!(stale, 0);
}

/// A region grows over a part that another one has changed and given up.
#[test]
fn a_region_that_grows_has_what_was_committed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rvm = open(folder.path(), 10);
    let mut stale = 0;
    for round in 1..=100 {
        let mut first = rvm.map("data", 0..PAGE as u64).unwrap();
        let mut second = rvm.map("data", PAGE as u64..2 * PAGE as u64).unwrap();
        let mut transaction = second.begin();
        transaction.set_range(0..900).unwrap().fill(round);
        transaction.commit().unwrap();
        drop(second);
        first.grow(2 * PAGE as u64).unwrap();
        stale += usize::from(first[PAGE..PAGE + 900] != [round; 900]);
    }
    assert_eq!(stale, 0);
}

/// Memory that was given up cannot be committed: whoever has mapped the bytes since would not see them.
#[test]
fn memory_that_is_unmapped_takes_no_commit() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let rvm = open(folder.path(), 10);
    let memory = rvm.map_raw("data", 0..PAGE as u64).unwrap();
    let mut transaction = rvm.begin_raw(Restore::Yes);
    // SAFETY: one thread uses the memory.
    unsafe {
        transaction.set_range(&memory, 0..8).unwrap();
        memory.slice_mut(0..8).fill(9);
        rvm.unmap_raw(&memory);
        let region = rvm.map("data", 0..PAGE as u64).unwrap();
        let error = rvm.commit_raw(&mut transaction, Flush::Yes).unwrap_err();
        assert!(error.to_string().contains("is no longer mapped"), "{error}");
        rvm.abort_raw(&mut transaction).unwrap();
        assert_eq!((region[0], memory.slice(0..8)[0]), (0, 0));
    }
}
