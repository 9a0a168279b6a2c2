//! Power failures and I/O errors at every operation, against a plain model: what is found after recovery is the state after
//! some commit, not earlier than the last one acknowledged, not later than the last one begun.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::record::Headers;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Error, Options, Region, Result, Rvm, Truncation};
use std::ops::Range;

const SEGMENT: usize = 8192;
/// Small, so that histories of a few commits go round it and truncate it.
const LOG: usize = status::BYTES as usize + 4096;
const SEGMENTS: [&str; 2] = ["one", "two"];

struct Rng(u64);

impl Rng {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Both segments.
type Bytes = [Vec<u8>; 2];

/// The states after each commit, and which of them may be found.
#[derive(Clone)]
struct Model {
    states: Vec<Bytes>,
    /// The last state that was acknowledged as durable.
    acknowledged: usize,
}

impl Model {
    fn new() -> Model {
        Model { states: vec![[vec![0; SEGMENT], vec![0; SEGMENT]]], acknowledged: 0 }
    }

    /// Which state this is; fails if it is none that may be found.
    fn find(&self, found: &Bytes) -> std::result::Result<usize, String> {
        match self.states.iter().rposition(|state| state == found) {
            Some(index) if index >= self.acknowledged => Ok(index),
            Some(index) => Err(format!("commit {index} was found, {} acknowledged", self.acknowledged)),
            None => Err("what was found is the state after no commit".into()),
        }
    }
}

fn fresh() -> Disk {
    let disk = Disk::default();
    disk.create("log", LOG);
    SEGMENTS.iter().for_each(|name| disk.create(name, SEGMENT));
    FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    disk
}

/// Every other history is one behind a page cache, where parts of pages are written.
fn fresh_of(seed: u64) -> Disk {
    let disk = fresh();
    (seed / 2 % 2 == 1).then(|| disk.take_parts());
    disk
}

fn open(disk: &Disk, options: Options) -> Result<(Rvm, [Region; 2])> {
    let log = FileLog::open_on(disk.store("log"), "log".into())?;
    let rvm = Rvm::open(log, disk.clone(), options)?;
    let regions = [rvm.map(SEGMENTS[0], 0..SEGMENT as u64)?, rvm.map(SEGMENTS[1], 0..SEGMENT as u64)?];
    Ok((rvm, regions))
}

fn contents(regions: &[Region; 2]) -> Bytes {
    [regions[0].to_vec(), regions[1].to_vec()]
}

/// A history of `steps` chosen by `seed`; stops at the first error.
fn run(disk: &Disk, model: &mut Model, seed: u64, steps: usize, options: Options) -> Result<()> {
    let mut rng = Rng(seed);
    let (rvm, mut regions) = open(disk, options)?;
    for step in 0..steps {
        match rng.next(12) {
            0 => rvm.truncate()?,
            1 => rvm.flush()?,
            2 => {
                regions[0].begin().write(rng.next(SEGMENT - 8), b"aborted!")?;
                continue;
            }
            choice => {
                let mut next = model.states.last().unwrap().clone();
                let [one, two] = &mut regions;
                let mut transaction = one.begin();
                let other = transaction.include(two)?;
                for _ in 0..1 + rng.next(4) {
                    let (at, bytes) =
                        (rng.next(SEGMENT - 700), 1 + rng.next(if choice == 3 { 700 } else { 60 }));
                    let (value, part) = (1 + (step * 7 + rng.next(100)) as u8 % 250, rng.next(2));
                    let which = if part == 0 { nvlab_rvm::Part::FIRST } else { other };
                    transaction.set_range_in(which, at..at + bytes)?.fill(value);
                    next[part][at..at + bytes].fill(value);
                }
                model.states.push(next);
                if choice < 6 {
                    transaction.commit_no_flush()?;
                    continue;
                }
                transaction.commit()?;
            }
        }
        model.acknowledged = model.states.len() - 1;
    }
    rvm.flush()?;
    model.acknowledged = model.states.len() - 1;
    Ok(())
}

/// Recovers and compares; then commits once more and recovers again, so that nothing from before is found later.
fn check(disk: &Disk, model: &Model, options: Options, what: &str) {
    let (rvm, mut regions) = open(disk, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut found = contents(&regions);
    model.find(&found).unwrap_or_else(|why| panic!("{what}: {why}"));
    let mut transaction = regions[0].begin();
    transaction.write(17, b"after").unwrap();
    transaction.commit().unwrap();
    found[0][17..22].copy_from_slice(b"after");
    drop((rvm, regions));
    let (_rvm, regions) = open(&disk.restart(), options).unwrap();
    assert!(contents(&regions) == found, "{what}: after one more commit");
}

fn options(seed: u64) -> Options {
    Options {
        truncation: Truncation::WhenFull,
        headers: if seed % 3 == 2 { Headers::Original } else { Headers::Compact },
        diff: seed % 2 == 1,
        compress: seed % 4 >= 2,
        spool_bytes_max: 600,
        ..Options::default()
    }
}

/// The number of operations of a history that nothing disturbs.
fn operations(seed: u64, steps: usize) -> u64 {
    let disk = fresh_of(seed);
    disk.plan(None, 0);
    run(&disk, &mut Model::new(), seed, steps, options(seed)).unwrap();
    disk.operations()
}

#[test]
fn every_cut_of_short_histories_and_of_their_recovery() {
    let (mut cuts, mut recoveries) = (0, 0);
    for seed in 0..6 {
        let options = options(seed);
        for cut in 1..=operations(seed, 14) {
            for luck in 0..2 {
                let (disk, mut model) = (fresh_of(seed), Model::new());
                disk.plan(Some((cut, Failure::Power)), seed * 1000 + cut * 10 + luck);
                let _ = run(&disk, &mut model, seed, 14, options);
                let found = disk.restart();
                let what = format!("seed {seed}, cut at operation {cut}, luck {luck}");
                check(&found.copy(), &model, options, &what);
                cuts += 1;
                for again in (1..).take_while(|again| {
                    let disk = found.copy();
                    disk.plan(Some((*again, Failure::Power)), cut + again * 77);
                    let opened = open(&disk, options);
                    let is_cut = disk.operations() >= *again;
                    drop(opened);
                    if is_cut {
                        let what = format!("{what}, again at operation {again} of the recovery");
                        check(&disk.restart(), &model, options, &what);
                    }
                    is_cut
                }) {
                    recoveries += u64::from(again > 0);
                }
            }
        }
    }
    assert!(cuts > 500 && recoveries > 2000, "{cuts} cuts, {recoveries} of them again in the recovery");
}

#[test]
fn random_cuts_of_long_histories() {
    for seed in 100..160 {
        let options = options(seed);
        let all = operations(seed, 300);
        let mut rng = Rng(seed);
        for _ in 0..4 {
            let cut = 1 + rng.next(all as usize) as u64;
            let (mut disk, mut model) = (fresh_of(seed), Model::new());
            disk.plan(Some((cut, Failure::Power)), cut);
            let _ = run(&disk, &mut model, seed, 300, options);
            disk = disk.restart();
            check(&disk, &model, options, &format!("seed {seed}, cut at operation {cut}"));
        }
    }
}

/// After an I/O error no commit is accepted; after opening again nothing acknowledged is missing.
#[test]
fn every_error_stops_the_writer_and_loses_nothing_acknowledged() {
    for failure in [Failure::Eio, Failure::Enospc] {
        for seed in 0..6 {
            let options = options(seed);
            for fault in 1..=operations(seed, 14) {
                let (disk, mut model) = (fresh_of(seed), Model::new());
                disk.plan(Some((fault, failure)), fault);
                let result = run(&disk, &mut model, seed, 14, options);
                let what = format!("seed {seed}, {failure:?} at operation {fault}: {result:?}");
                // A sync cannot run out of space, so nothing happened then.
                assert!(result.is_err() || failure == Failure::Enospc, "{what}");
                // Programs that go on without a restart see the page cache; both must do.
                check(&disk.copy(), &model, options, &what);
                check(&disk.restart(), &model, options, &what);
            }
        }
    }
}

/// A failure ends the program at each of its operations, and the next one recovers what that left; the power fails at every
/// operation of that, and what of its last writes survives is drawn with `luck` of the operation. Returns how many cuts there were.
fn cuts_of_the_recovery(seeds: Range<u64>, failure: Failure, luck: impl Fn(u64) -> u64) -> u64 {
    let mut cuts = 0;
    for seed in seeds {
        let options = options(seed);
        for fault in 1..=operations(seed, 14) {
            let (disk, mut model) = (fresh_of(seed), Model::new());
            disk.plan(Some((fault, failure)), fault);
            let _ = run(&disk, &mut model, seed, 14, options);
            for cut in 1.. {
                let disk = disk.copy();
                disk.plan(Some((cut, Failure::Power)), luck(cut));
                let _ = open(&disk, options);
                if disk.operations() < cut {
                    break;
                }
                let what =
                    format!("seed {seed}, {failure:?} at operation {fault}, cut at {cut} of the recovery");
                check(&disk.restart(), &model, options, &what);
                cuts += 1;
            }
        }
    }
    cuts
}

/// The program is killed, which leaves its last writes in the page cache; the power fails while they are recovered.
#[test]
fn every_cut_of_the_recovery_after_a_kill() {
    let cuts = cuts_of_the_recovery(0..4, Failure::Enospc, |cut| cut);
    assert!(cuts > 1000, "only {cuts} cuts");
}

/// A write or sync fails once, which marks what it should have written clean; the program ends, and the next one reads it from
/// the cache and recovers. The power fails at every operation of that.
#[test]
fn every_cut_of_the_recovery_after_an_error() {
    let cuts = cuts_of_the_recovery(0..6, Failure::Eio, |cut| cut * 31);
    assert!(cuts > 2000, "only {cuts} cuts");
}

/// A clean stop applies what is in the log. The power fails at every operation of that, and what is found is what was committed; if it
/// does not, the next program has nothing to apply.
#[test]
fn every_cut_of_a_clean_stop() {
    let options = Options { truncation: Truncation::Background { at_percent: 99 }, ..Options::default() };
    let mut cuts = 0;
    for (cut, luck) in (1..).flat_map(|cut| [(cut, 0), (cut, 1), (cut, 2)]) {
        let (disk, mut model) = (fresh(), Model::new());
        let (rvm, mut regions) = open(&disk, options).unwrap();
        for round in 0..6_usize {
            let mut next = model.states[round].clone();
            let mut transaction = regions[0].begin();
            transaction.write(round * 1000, &[1 + round as u8; 30]).unwrap();
            next[0][round * 1000..round * 1000 + 30].fill(1 + round as u8);
            transaction.commit_no_flush().unwrap();
            model.states.push(next);
        }
        rvm.flush().unwrap();
        model.acknowledged = 6;
        disk.plan(Some((cut, Failure::Power)), cut * 10 + luck);
        drop((rvm, regions));
        let is_cut = disk.operations() >= cut;
        check(&disk.restart(), &model, options, &format!("cut at operation {cut} of the stop, luck {luck}"));
        if !is_cut {
            let (rvm, regions) = open(&disk.restart(), options).unwrap();
            assert_eq!((rvm.recovery().log_bytes, contents(&regions) == model.states[6]), (0, true));
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

/// A record that survived although the one before it did not must not come back behind a later record that happens to end
/// where it begins: recovery begins a new generation.
#[test]
fn a_record_of_before_the_recovery_is_not_found_again() {
    const BYTES: usize = 600;
    // The record that names the segment comes first after recovery.
    const NAME: usize = 8 + 8 + 4;
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let mut survived = 0;
    for luck in 0..64 {
        let disk = fresh();
        let (rvm, [mut one, two]) = open(&disk, options).unwrap();
        let mut commit = |at: usize, bytes: usize, value| {
            let mut transaction = one.begin();
            transaction.set_range(at..at + bytes).unwrap().fill(value);
            transaction.commit_no_flush().unwrap();
        };
        commit(0, 8, 1);
        rvm.flush().unwrap();
        commit(1000, BYTES + NAME, 2);
        commit(3000, 8, 3);
        disk.plan(Some((1, Failure::Power)), luck);
        rvm.flush().unwrap_err();
        drop((one, two, rvm));
        let disk = disk.restart();
        let (rvm, [mut one, two]) = open(&disk, options).unwrap();
        assert_eq!(one[0], 1, "luck {luck}");
        if one[1000] == 2 {
            continue;
        }
        let mut transaction = one.begin();
        transaction.set_range(1000..1000 + BYTES).unwrap().fill(4);
        transaction.commit().unwrap();
        drop((one, two, rvm));
        let (_rvm, [one, _two]) = open(&disk.restart(), options).unwrap();
        assert_eq!((one[1000], one[3000]), (4, 0), "luck {luck}");
        survived += 1;
    }
    assert!(survived > 10, "only {survived} cuts lost the first record");
}

#[test]
fn a_failed_force_refuses_all_later_work() {
    let disk = fresh();
    let (rvm, [mut one, _two]) = open(&disk, Options::default()).unwrap();
    let mut transaction = one.begin();
    transaction.write(0, b"kept").unwrap();
    transaction.commit().unwrap();
    // The name and the record are one write; the sync follows.
    disk.plan(Some((2, Failure::Eio)), 1);
    let mut transaction = one.begin();
    transaction.write(0, b"lost").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::Io { .. })));
    let mut transaction = one.begin();
    transaction.write(0, b"more").unwrap();
    assert!(matches!(transaction.commit(), Err(Error::Failed(_))));
    for result in [rvm.flush(), rvm.truncate(), rvm.map("one", 0..4096).map(|_| ())] {
        assert!(matches!(result, Err(Error::Failed(_))), "{result:?}");
    }
}

/// A log with some acknowledged commits, none applied, and the states after them.
fn committed() -> (Disk, Model, Vec<u64>) {
    let (disk, mut model, mut ends) = (fresh(), Model::new(), Vec::new());
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let (rvm, mut regions) = open(&disk, options).unwrap();
    for round in 0..6_usize {
        let mut transaction = regions[0].begin();
        let mut next = model.states[round].clone();
        transaction.write(round * 40, &[1 + round as u8; 30]).unwrap();
        next[0][round * 40..round * 40 + 30].fill(1 + round as u8);
        transaction.commit().unwrap();
        model.states.push(next);
        ends.push(status::BYTES + rvm.statistics().live_bytes);
    }
    drop((rvm, regions));
    (disk, model, ends)
}

#[test]
fn every_flipped_bit_is_refused_or_leaves_a_prefix() {
    let (disk, model, ends) = committed();
    let (mut refused, mut prefixes) = (0, 0);
    for bit in 0..(*ends.last().unwrap() as usize + 16) * 8 {
        let damaged = disk.copy();
        damaged.damage("log", |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        match open(&damaged, Options::default()) {
            Err(Error::Damaged { offset, .. }) => {
                refused += 1;
                assert!(offset <= bit as u64 / 8 && bit as u64 / 8 < *ends.last().unwrap(), "bit {bit}");
            }
            Err(error) => panic!("bit {bit}: {error}"),
            Ok((_rvm, regions)) => {
                model.find(&contents(&regions)).unwrap_or_else(|why| panic!("bit {bit}: {why}"));
                prefixes += 1;
                // Only the last record can be taken for one that was never finished.
                let in_log = (status::BYTES..ends[4]).contains(&(bit as u64 / 8));
                assert!(!in_log, "bit {bit} of an acknowledged record went unnoticed");
            }
        }
    }
    assert!(refused > 1000 && prefixes > 100, "{refused} refused, {prefixes} prefixes");
}

/// One flipped bit in the length of a long record, with shorter ones behind it: what was acknowledged after it is not dropped.
#[test]
fn a_damaged_length_is_noticed_however_long_the_record() {
    const BYTES: usize = 8 << 20;
    let mut found = Vec::new();
    for long in [3000, 100 << 10, 900 << 10, 1100 << 10, 3 << 20] {
        let disk = Disk::default();
        disk.create("log", status::BYTES as usize + BYTES);
        disk.create("data", BYTES);
        FileLog::create_on(disk.store("log"), "log".into()).unwrap();
        let open = |disk: &Disk| {
            let log = FileLog::open_on(disk.store("log"), "log".into())?;
            Rvm::open(log, disk.clone(), Options { truncation: Truncation::WhenFull, ..Options::default() })
        };
        let rvm = open(&disk).unwrap();
        let mut region = rvm.map("data", 0..BYTES as u64).unwrap();
        let mut at = 0;
        for (number, bytes) in [100, long].into_iter().chain([40; 16]).enumerate() {
            if number == 1 {
                at = status::BYTES as usize + rvm.statistics().live_bytes as usize;
            }
            let mut transaction = region.begin();
            let range = transaction.set_range(number * 8..number * 8 + bytes).unwrap();
            range.iter_mut().enumerate().for_each(|(index, byte)| *byte = ((index * 7919) >> 3) as u8);
            transaction.commit().unwrap();
        }
        drop((region, rvm));
        for bit in 0..28 {
            let damaged = disk.copy();
            damaged.damage("log", |bytes| bytes[at + 4 + bit / 8] ^= 1 << (bit % 8));
            match open(&damaged) {
                Err(Error::Damaged { offset, .. }) => assert_eq!(offset, at as u64, "{long} B, bit {bit}"),
                Err(error) => panic!("{long} B, bit {bit}: {error}"),
                Ok(rvm) => found.push((long, bit, rvm.recovery().commits)),
            }
        }
    }
    assert_eq!(found, [], "record, bit, commits: opened as if nothing were lost");
}

#[test]
fn random_damage_never_invents_anything() {
    let (disk, model, ends) = committed();
    let mut rng = Rng(5);
    for round in 0..3000 {
        let damaged = disk.copy();
        damaged.damage("log", |bytes| {
            for _ in 0..1 + rng.next(20) {
                let at = status::BYTES as usize + rng.next((ends[5] - status::BYTES) as usize + 64);
                bytes[at] = rng.next(256) as u8;
            }
        });
        if let Ok((_rvm, regions)) = open(&damaged, Options::default()) {
            model.find(&contents(&regions)).unwrap_or_else(|why| panic!("round {round}: {why}"));
        }
    }
}
