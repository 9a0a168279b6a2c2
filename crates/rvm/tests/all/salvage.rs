//! Damaged logs that are salvaged while the power fails at every operation of that, against a plain model: the commits before the damage
//! stay, whatever else happens, and to salvage once more has the same result.

use nvlab_rvm::flash::{MemoryFlash, Shape};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::flash_disk::FlashDiskLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::log::status;
use nvlab_rvm::repair::{Salvage, salvage_log};
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Error, Log, Options, Region, Result, Rvm, Truncation};

const SEGMENT: usize = 16384;
/// The last is a large one, whose data lie on the store.
const COMMITS: usize = 11;
const STATUS: usize = status::BYTES as usize;
const LARGE: usize = STATUS + 16384;
const SMALL: usize = STATUS + 4096;
/// So many commits are made behind those that were kept.
const LATER: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    File,
    FlashDisk,
    /// Its small log is one in a file, or on sectors.
    Hybrid,
    HybridOnSectors,
    /// Its small log is full before the last commits.
    HybridFull,
}

impl Kind {
    fn threshold(self) -> usize {
        match self {
            // Of the commits together, more than the small log holds.
            Kind::HybridFull => usize::MAX,
            _ => 500,
        }
    }

    fn create(self) -> Disk {
        let disk = Disk::default();
        disk.create("data", SEGMENT);
        disk.create("log", LARGE);
        disk.create("small", SMALL);
        let (log, name) = (disk.store("log"), || "log".to_string());
        match self {
            Kind::File => drop(FileLog::create_on(log, name()).unwrap()),
            Kind::FlashDisk => drop(FlashDiskLog::create(log, name(), 7, 512).unwrap()),
            Kind::Hybrid | Kind::HybridFull => {
                let small = FileLog::create_on(disk.store("small"), "small".into()).unwrap();
                HybridLog::create(small, log, "log", self.threshold()).unwrap();
            }
            Kind::HybridOnSectors => {
                let small = FlashDiskLog::create(disk.store("small"), "small".into(), 7, 512).unwrap();
                HybridLog::create(small, log, "log", self.threshold()).unwrap();
            }
        }
        disk
    }

    fn open(self, disk: &Disk) -> Result<Box<dyn Log>> {
        let log = disk.store("log");
        Ok(match self {
            Kind::File => Box::new(FileLog::open_on(log, "log".into())?),
            Kind::FlashDisk => Box::new(FlashDiskLog::open(log, "log".into())?),
            Kind::Hybrid | Kind::HybridFull => {
                let small = FileLog::open_on(disk.store("small"), "small".into())?;
                Box::new(HybridLog::open(small, log, "log", self.threshold())?)
            }
            Kind::HybridOnSectors => {
                let small = FlashDiskLog::open(disk.store("small"), "small".into())?;
                Box::new(HybridLog::open(small, log, "log", self.threshold())?)
            }
        })
    }

    fn salvage(self, disk: &Disk) -> Result<Option<Salvage>> {
        let log = disk.store("log");
        let (log, damage): (Box<dyn Log>, _) = match self {
            Kind::File | Kind::FlashDisk => (self.open(disk)?, None),
            Kind::Hybrid | Kind::HybridFull => {
                let small = FileLog::open_on(disk.store("small"), "small".into())?;
                let (log, damage) = HybridLog::open_damaged(small, log, "log")?;
                (Box::new(log), damage)
            }
            Kind::HybridOnSectors => {
                let small = FlashDiskLog::open(disk.store("small"), "small".into())?;
                let (log, damage) = HybridLog::open_damaged(small, log, "log")?;
                (Box::new(log), damage)
            }
        };
        salvage_log(log, damage, |_| ())
    }

    fn files(self) -> &'static [&'static str] {
        if matches!(self, Kind::File | Kind::FlashDisk) { &["log"] } else { &["small", "log"] }
    }
}

fn open(log: Box<dyn Log>, disk: &Disk) -> Result<(Rvm, Region)> {
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(log, disk.clone(), options)?;
    let region = rvm.map("data", 0..SEGMENT as u64)?;
    Ok((rvm, region))
}

/// Changes a state by commit `number`, and what that writes.
fn next(state: &mut [u8], number: usize) -> std::ops::Range<usize> {
    let bytes = if number % 4 == 3 { 900 } else { 100 + number * 7 };
    let at = number * 1531 % (SEGMENT - bytes);
    for (index, byte) in state[at..at + bytes].iter_mut().enumerate() {
        *byte = (number * 37 + index % 11 + 1) as u8;
    }
    at..at + bytes
}

fn commit(region: &mut Region, state: &mut [u8], number: usize) -> Result<()> {
    let range = next(state, number);
    let mut transaction = region.begin();
    transaction.write(range.start, &state[range])?;
    transaction.commit()
}

fn bytes_of(disk: &Disk, file: &str) -> Vec<u8> {
    let store = disk.store(file);
    let mut bytes = vec![0; store.len().unwrap() as usize];
    store.read(&mut bytes, 0).unwrap();
    bytes
}

/// A log of commits none of which has been applied, the states after each, and for each byte of its files the commit that wrote it.
struct Filled {
    kind: Kind,
    disk: Disk,
    states: Vec<Vec<u8>>,
    written_by: Vec<(&'static str, usize, usize)>,
}

impl Filled {
    fn new(kind: Kind) -> Filled {
        let disk = kind.create();
        let (mut state, mut states) = (vec![0; SEGMENT], vec![vec![0; SEGMENT]]);
        let (rvm, mut region) = open(kind.open(&disk).unwrap(), &disk).unwrap();
        let mut writers: Vec<Vec<usize>> =
            kind.files().iter().map(|file| vec![0; bytes_of(&disk, file).len()]).collect();
        let contents = || kind.files().iter().map(|file| bytes_of(&disk, file)).collect::<Vec<_>>();
        let mut before = contents();
        for number in 1..=COMMITS {
            commit(&mut region, &mut state, number).unwrap();
            states.push(state.clone());
            let after = contents();
            for (file, writers) in writers.iter_mut().enumerate() {
                for at in STATUS..writers.len() {
                    if before[file][at] != after[file][at] {
                        writers[at] = number;
                    }
                }
            }
            before = after;
        }
        drop((region, rvm));
        let disk = disk.copy();
        let each = kind.files().iter().zip(&writers).flat_map(|(&file, writers)| {
            writers
                .iter()
                .enumerate()
                .filter(|(_, number)| **number > 0)
                .map(move |(at, number)| (file, at, *number))
        });
        let written_by = each.collect();
        Filled { kind, disk, states, written_by }
    }

    /// The number of commits that are found when the log is opened, and that it is their state.
    fn found(&self, disk: &Disk, what: &str) -> Result<usize> {
        let log = self.kind.open(disk)?;
        let (rvm, region) = open(log, disk)?;
        let commits = rvm.recovery().commits as usize;
        assert!(*region == self.states[commits][..], "{what}: not the state after {commits} commits");
        Ok(commits)
    }

    /// That a salvaged log can be used: later commits are found.
    fn goes_on(&self, disk: &Disk, kept: usize, what: &str) {
        let mut state = self.states[kept].clone();
        for attempt in 0..2 {
            let (rvm, mut region) =
                open(self.kind.open(disk).unwrap(), disk).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(*region == state[..], "{what}, opened {attempt} times");
            for number in 0..LATER {
                commit(&mut region, &mut state, COMMITS + number + attempt).unwrap();
            }
            drop((region, rvm));
        }
        let (_rvm, region) =
            open(self.kind.open(disk).unwrap(), disk).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(*region == state[..], "{what}: later commits");
    }

    /// Damages a byte that a commit wrote, and salvages the log with a power failure at every operation. Returns how many there were; `None`: it
    /// is taken for the torn end.
    fn damage(&self, file: &str, at: usize, number: usize) -> Option<(u64, usize)> {
        let what = format!("{:?}, byte {at} of {file}, of commit {number}", self.kind);
        let damaged = self.disk.copy();
        damaged.damage(file, |bytes| bytes[at] ^= 1 << (at % 8));
        let refused = self.found(&damaged.copy(), &what);
        let salvaged = damaged.copy();
        salvaged.plan(None, 0);
        let Some(first) = self.kind.salvage(&salvaged).unwrap_or_else(|error| panic!("{what}: {error}"))
        else {
            assert!(refused.is_ok_and(|found| found + 1 >= number), "{what}: not salvaged, but refused");
            return None;
        };
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{what}: {refused:?}");
        assert_eq!(first.file, file, "{what}: {first:?}");
        let operations = salvaged.operations();
        let kept = first.commits as usize;
        assert!(kept + 1 >= number, "{what}: only {kept} commits are kept");
        assert!(first.loses_records || kept == COMMITS, "{what}: {first:?}");
        assert!(self.kind.salvage(&salvaged).unwrap().is_none(), "{what}: damaged still");
        assert_eq!(self.found(&salvaged.copy(), &what).unwrap(), kept, "{what}");
        self.goes_on(&salvaged.restart(), kept, &what);
        for cut in 1..=operations {
            let what = format!("{what}, cut at {cut} of {operations}");
            let disk = damaged.copy();
            disk.plan(Some((cut, Failure::Power)), cut * 31 + at as u64);
            self.kind.salvage(&disk).expect_err(&what);
            let disk = disk.restart();
            match self.found(&disk.copy(), &what) {
                Ok(found) => assert_eq!(found, kept, "{what}"),
                Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{what}: {error}"),
            }
            if let Some(again) = self.kind.salvage(&disk).unwrap_or_else(|error| panic!("{what}: {error}")) {
                assert_eq!(again.commits as usize, kept, "{what}");
            }
            assert_eq!(self.found(&disk.copy(), &what).unwrap(), kept, "{what}");
            self.goes_on(&disk, kept, &what);
        }
        Some((operations, kept))
    }

    /// Damages every `step`th byte.
    fn check(&self, step: usize) {
        let (mut cuts, mut whole, mut damages) = (0, 0, 0);
        for &(file, at, number) in self.written_by.iter().step_by(step) {
            if let Some((operations, kept)) = self.damage(file, at, number) {
                (cuts, damages) = (cuts + operations, damages + 1);
                whole += usize::from(kept == COMMITS);
            }
        }
        assert!(damages > 10 && cuts > 200, "{:?}: {damages} damages, {cuts} cuts", self.kind);
        // Only what a hybrid says of its records can be lost without a record.
        let is_hybrid = self.kind.files().len() == 2;
        assert!(whole == 0 || is_hybrid, "{:?}: {whole}", self.kind);
    }
}

#[test]
fn logs_in_files_are_salvaged_whenever_the_power_fails() {
    Filled::new(Kind::File).check(127);
    Filled::new(Kind::FlashDisk).check(127);
}

#[test]
fn hybrid_logs_are_salvaged_whenever_the_power_fails() {
    Filled::new(Kind::Hybrid).check(127);
    Filled::new(Kind::HybridOnSectors).check(151);
}

/// Most of its commits have no entry in the small log.
#[test]
fn a_hybrid_log_whose_small_part_is_full_is_salvaged_whenever_the_power_fails() {
    Filled::new(Kind::HybridFull).check(127);
}

/// Every byte of the entry of a large append: it can be damaged without a record being lost.
#[test]
fn a_hybrid_log_loses_no_record_with_what_it_says_of_a_large_one() {
    let filled = Filled::new(Kind::Hybrid);
    let mut whole = 0;
    let small = filled.written_by.iter().filter(|(file, _, number)| *file == "small" && *number == 3);
    for &(file, at, number) in small {
        whole += usize::from(filled.damage(file, at, number).is_some_and(|(_, kept)| kept == COMMITS));
    }
    assert!(whole >= 12, "{whole}");
}

/// All behind the third entry is zeros, before what the small log says was durable: later entries do not begin there, or opening it
/// would miss them.
#[test]
fn later_entries_begin_behind_what_a_small_log_says_was_durable() {
    const BYTES: usize = 3 << 20;
    let disk = Disk::default();
    disk.create("data", SEGMENT);
    ["log", "small"].iter().for_each(|name| disk.create(name, STATUS + BYTES));
    let small = || FileLog::open_on(disk.store("small"), "small".into()).unwrap();
    FileLog::create_on(disk.store("small"), "small".into()).unwrap();
    HybridLog::create(small(), disk.store("log"), "log", usize::MAX).unwrap();
    let reopen = || {
        HybridLog::open(small(), disk.store("log"), "log", usize::MAX).map(|log| open(Box::new(log), &disk))
    };
    let commits = |count: usize, bytes: usize| {
        let (_rvm, mut region) = reopen().unwrap().unwrap();
        for number in 1..=count {
            let mut transaction = region.begin();
            transaction.set_range(0..bytes).unwrap().fill(number as u8);
            transaction.commit().unwrap();
        }
    };
    commits(130, SEGMENT);
    disk.damage("small", |bytes| bytes[STATUS + 3 * (SEGMENT + 100)..].fill(0));
    assert!(matches!(reopen(), Err(Error::Damaged { .. })));
    let (log, damage) = HybridLog::open_damaged(small(), disk.store("log"), "log").unwrap();
    let kept = salvage_log(Box::new(log), damage, |_| ()).unwrap().unwrap().commits;
    assert_eq!(kept, 3);
    commits(5, 100);
    let (rvm, region) = reopen().unwrap().unwrap();
    assert_eq!((rvm.recovery().commits, region[0], region[100]), (5, 5, 3));
}

fn flash(flash: &MemoryFlash) -> Result<Box<dyn Log>> {
    Ok(Box::new(FlashLog::open(flash.clone())?))
}

/// Flash is programmed in pieces, which a power failure tears.
#[test]
fn logs_on_flash_are_salvaged_whenever_the_power_fails() {
    let disk = Disk::default();
    disk.create("data", SEGMENT);
    let device = MemoryFlash::new(Shape { block_bytes: 4096, blocks: 12 }, 3);
    FlashLog::create(device.clone(), 7, 1).unwrap();
    let (mut state, mut states) = (vec![0; SEGMENT], vec![vec![0; SEGMENT]]);
    let (rvm, mut region) = open(flash(&device).unwrap(), &disk).unwrap();
    let mut ends = Vec::new();
    for number in 1..=COMMITS {
        commit(&mut region, &mut state, number).unwrap();
        states.push(state.clone());
        ends.push(rvm.statistics().live_bytes);
    }
    drop((region, rvm));
    let log = FlashLog::open(device.copy()).unwrap();
    let head = log.status().head;
    for (number, end) in ends.iter().enumerate().skip(1) {
        let what = format!("commit {number}");
        let at = log.offset(head + end - 50);
        let damaged = || {
            let device = device.copy();
            device.damage(at, 4);
            device
        };
        let found = |device: &MemoryFlash, what: &str| {
            let disk = disk.copy();
            let (rvm, region) = open(flash(device)?, &disk)?;
            let commits = rvm.recovery().commits as usize;
            assert!(*region == states[commits][..], "{what}: not the state after {commits} commits");
            Ok::<usize, Error>(commits)
        };
        let salvaged = damaged();
        let before = salvaged.operations();
        let result = salvage_log(flash(&salvaged).unwrap(), None, |_| ()).unwrap();
        let operations = salvaged.operations() - before;
        if number + 1 == COMMITS {
            assert!(result.is_none(), "the last one may be torn");
            continue;
        }
        assert_eq!(result.unwrap().commits as usize, number, "{what}");
        assert_eq!(found(&salvaged.copy(), &what).unwrap(), number);
        assert!(operations > 3);
        for cut in 1..=operations {
            let what = format!("{what}, cut at {cut} of {operations}");
            let device = damaged();
            device.cut_at(device.operations() + cut);
            let _ = flash(&device).and_then(|log| salvage_log(log, None, |_| ()));
            device.power_on();
            match found(&device.copy(), &what) {
                Ok(found) => assert_eq!(found, number, "{what}"),
                Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{what}: {error}"),
            }
            if let Some(again) = salvage_log(flash(&device).unwrap(), None, |_| ()).unwrap() {
                assert_eq!(again.commits as usize, number, "{what}");
            }
            assert_eq!(found(&device, &what).unwrap(), number, "{what}");
        }
    }
}
