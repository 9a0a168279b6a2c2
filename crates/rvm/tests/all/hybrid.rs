//! Hybrid logs whose small part is a log on a file: errors, power failures and damage.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Error, Options, Region, Result, Rvm, Truncation};

const SEGMENT: usize = 32768;
const THRESHOLD: usize = 300;

/// The small log is full before the store is: small appends go there, too.
fn fresh() -> Disk {
    fresh_with(8192)
}

/// With so many bytes for large appends.
fn fresh_with(store_bytes: usize) -> Disk {
    let disk = Disk::default();
    disk.create("data", SEGMENT);
    disk.create("small", status::BYTES as usize + 4096);
    disk.create("log", status::BYTES as usize + store_bytes);
    let small = FileLog::create_on(disk.store("small"), "small".into()).unwrap();
    HybridLog::create(small, disk.store("log"), "log", THRESHOLD).unwrap();
    disk
}

fn open(disk: &Disk) -> Result<(Rvm, Region)> {
    let small = FileLog::open_on(disk.store("small"), "small".into())?;
    let log = HybridLog::open(small, disk.store("log"), "log", THRESHOLD)?;
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(log, disk.clone(), options)?;
    let region = rvm.map("data", 0..SEGMENT as u64)?;
    Ok((rvm, region))
}

/// The states after each commit, and how many commits were acknowledged.
#[derive(Default)]
struct Model {
    states: Vec<Vec<u8>>,
    acknowledged: usize,
}

/// Commits until an error or the last.
fn run(disk: &Disk, model: &mut Model, commits: usize) -> Result<()> {
    model.states.push(vec![0; SEGMENT]);
    let (_rvm, mut region) = open(disk)?;
    for commit in 0..commits {
        let bytes = if commit % 6 == 5 { 1100 } else { 150 + commit % 30 };
        let at = commit * 5531 % (SEGMENT - bytes);
        let mut next = model.states[commit].clone();
        next[at..at + bytes].fill(commit as u8 + 1);
        let mut transaction = region.begin();
        transaction.write(at, &next[at..at + bytes])?;
        model.states.push(next);
        transaction.commit()?;
        model.acknowledged = commit + 1;
    }
    Ok(())
}

/// As [`run`], with large transactions that are written ahead as they grow: some are changed again afterwards, some undone.
fn run_ahead(disk: &Disk, model: &mut Model, commits: usize) -> Result<nvlab_rvm::Statistics> {
    model.states.push(vec![0; SEGMENT]);
    let (rvm, mut region) = open(disk)?;
    for commit in 0..commits {
        let (ranges, bytes) = [(6, 250), (1, 90), (3, 310)][commit % 3];
        let at = commit * 5531 % (SEGMENT - ranges * (bytes + 8));
        for is_undone in [commit % 4 == 2, false] {
            let mut next = model.states[commit].clone();
            let mut transaction = region.begin();
            let mut write = |transaction: &mut nvlab_rvm::Transaction<'_>, range: usize, value: usize| {
                let from = at + range * (bytes + 8);
                // What is left to the commit is sometimes small.
                let to = from + if range == 5 { 60 } else { bytes };
                next[from..to].fill(value as u8);
                transaction.write(from, &next[from..to])?;
                // What it stores last it commits at once.
                if range + 1 < ranges { transaction.write_ahead() } else { Ok(()) }
            };
            for range in 0..ranges {
                write(&mut transaction, range, 2 * commit + range + 1)?;
            }
            if commit % 6 == 3 {
                write(&mut transaction, 1, 2 * commit + 100)?;
            }
            if is_undone {
                transaction.abort()?;
                continue;
            }
            model.states.push(next);
            transaction.commit()?;
            model.acknowledged = commit + 1;
            break;
        }
    }
    Ok(rvm.statistics())
}

/// What is found is the state after some commit, not before the last one acknowledged.
fn check(disk: &Disk, model: &Model, what: &str) {
    let (_rvm, region) = open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = model.states.iter().rposition(|state| *state == region.to_vec());
    let found = found.unwrap_or_else(|| panic!("{what}: what was found is the state after no commit"));
    assert!(found >= model.acknowledged, "{what}: commit {found}, {} acknowledged", model.acknowledged);
}

/// A write or sync fails once, which marks what it should have written clean; the next program reads it from the cache and
/// recovers. The power fails at every operation of that.
#[test]
fn every_cut_of_the_recovery_of_a_hybrid_after_an_error() {
    const COMMITS: usize = 30;
    let disk = fresh();
    disk.plan(None, 0);
    run(&disk, &mut Model::default(), COMMITS).unwrap();
    let (operations, mut cuts) = (disk.operations(), 0);
    for fault in 1..=operations {
        let (disk, mut model) = (fresh(), Model::default());
        disk.plan(Some((fault, Failure::Eio)), fault);
        let _ = run(&disk, &mut model, COMMITS);
        check(&disk.copy(), &model, &format!("error at operation {fault}"));
        for cut in 1.. {
            let disk = disk.copy();
            disk.plan(Some((cut, Failure::Power)), cut * 31);
            let _ = open(&disk);
            if disk.operations() < cut {
                break;
            }
            let what = format!("error at operation {fault}, cut at {cut} of the recovery");
            check(&disk.restart(), &model, &what);
            cuts += 1;
        }
    }
    assert!(cuts > 1000, "only {cuts} cuts");
}

/// Bytes of the small log up to the last that is not zero.
fn small_bytes(disk: &Disk) -> usize {
    let mut bytes = vec![0; status::BYTES as usize + 4096];
    disk.store("small").read(&mut bytes, 0).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// Any bit of an entry, header or data, with another behind it: what was acknowledged later is not dropped.
#[test]
fn every_flipped_bit_of_an_entry_but_the_last_is_noticed() {
    let disk = fresh();
    run(&disk, &mut Model::default(), 7).unwrap();
    let before_the_last = small_bytes(&disk);
    let disk = fresh();
    let mut model = Model::default();
    // The identity is another one, the lengths are the same.
    run(&disk, &mut model, 8).unwrap();
    assert!(small_bytes(&disk) > before_the_last + 100);
    check(&disk.copy(), &model, "nothing is damaged");
    for bit in status::BYTES as usize * 8..before_the_last * 8 {
        let damaged = disk.copy();
        damaged.damage("small", |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        match open(&damaged) {
            Err(Error::Damaged { .. }) => (),
            Err(error) => panic!("bit {bit}: {error}"),
            Ok((rvm, _)) => panic!("bit {bit}: opened with {} commits", rvm.recovery().commits),
        }
    }
}

/// Behind what was durable no record is looked for to the end of a large store, whether the small log was full or not. When it is,
/// most appends have no entry; more than 1 MiB of them is damaged.
#[test]
fn a_large_store_is_not_searched_and_damage_is_found() {
    for (commits, most, name, bytes) in [(8, 90, "small", 300..301), (3000, 280, "log", 100_000..1_400_000)] {
        let (disk, mut model) = (fresh_with(64 << 20), Model::default());
        model.states.push(vec![0; SEGMENT]);
        let (rvm, mut region) = open(&disk).unwrap();
        for commit in 0..commits {
            let mut transaction = region.begin();
            transaction.set_range(0..1000 * (commit % 2) + 100).unwrap().fill(commit as u8);
            transaction.commit().unwrap();
        }
        drop((rvm, region));
        let opened = disk.copy();
        opened.plan(None, 0);
        let (rvm, _region) = open(&opened).unwrap();
        assert_eq!(rvm.recovery().commits, commits as u64);
        assert!(opened.operations() < most, "{commits} commits: {} operations", opened.operations());
        let damaged = disk.copy();
        let at = status::BYTES as usize;
        damaged.damage(name, |all| all[at + bytes.start..at + bytes.end].fill(0));
        let opened = open(&damaged).map(|(rvm, _)| rvm.recovery());
        assert!(matches!(opened, Err(Error::Damaged { .. })), "{commits} commits: {opened:?}");
    }
}

/// Of six ranges all but the last are written ahead, in whole sectors; of three as well, and the last too where another change
/// follows. The first transaction of an epoch, of which there are four, has nothing written ahead: the name of the segment comes
/// first.
#[test]
fn all_but_the_last_range_is_written_ahead() {
    let (disk, mut model) = (fresh(), Model::default());
    let statistics = run_ahead(&disk, &mut model, 30).unwrap();
    check(&disk.copy(), &model, "nothing failed");
    let used = statistics.ahead_bytes - statistics.ahead_wasted_bytes;
    let (six, three) = (5 * 258, 2 * 318);
    let (least, most) = (6 * (six - 511) + 10 * (three - 511), 10 * (six + three) + 5 * 68 + 5 * 318);
    assert!((least..=most).contains(&used), "{statistics:?}: {least} to {most}");
    assert!(statistics.ahead_wasted_bytes > 1000, "{statistics:?}");
}

/// The power fails at every operation, and again at every operation of the recovery.
#[test]
fn every_cut_of_commits_that_are_written_ahead() {
    const COMMITS: usize = 20;
    let disk = fresh();
    disk.plan(None, 0);
    run_ahead(&disk, &mut Model::default(), COMMITS).unwrap();
    let (operations, mut cuts) = (disk.operations(), 0);
    for (first, seed) in (1..=operations).flat_map(|first| [(first, first), (first, first * 77)]) {
        let (disk, mut model) = (fresh(), Model::default());
        disk.plan(Some((first, Failure::Power)), seed);
        // Draws decide what is inline, and so how many operations there are.
        if run_ahead(&disk, &mut model, COMMITS).is_ok() {
            continue;
        }
        let found = disk.restart();
        check(&found.copy(), &model, &format!("cut at operation {first}, seed {seed}"));
        for cut in (1..).step_by(7) {
            let disk = found.copy();
            disk.plan(Some((cut, Failure::Power)), cut * 31);
            let _ = open(&disk);
            if disk.operations() < cut {
                break;
            }
            let what = format!("cut at operation {first}, seed {seed}, and at {cut} of the recovery");
            check(&disk.restart(), &model, &what);
            cuts += 1;
        }
    }
    assert!(cuts > 1000, "only {cuts} cuts");
}

/// A write or sync fails once; what was acknowledged before is found.
#[test]
fn every_error_of_commits_that_are_written_ahead() {
    let disk = fresh();
    disk.plan(None, 0);
    run_ahead(&disk, &mut Model::default(), 20).unwrap();
    for fault in 1..=disk.operations() {
        let (disk, mut model) = (fresh(), Model::default());
        disk.plan(Some((fault, Failure::Eio)), fault);
        let _ = run_ahead(&disk, &mut model, 20);
        check(&disk.copy(), &model, &format!("error at operation {fault}"));
        check(&disk.restart(), &model, &format!("error at operation {fault}, then no power"));
    }
}
