//! A sync fails, which marks what it should have written clean; the next program reads that from the page cache and recovers.
//! Meanwhile clean pages are evicted, so that a second read shows what the disk has, which is older; then the power fails. What is
//! found after that is the state after some commit, not before the last one acknowledged.

use nvlab_rvm::flash::{Erased, PlainFile, Shape};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::flash::mini_log::{MiniLog, Place};
use nvlab_rvm::log::flash_disk::FlashDiskLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Error, Flash, Log, Options, Result, Rvm, Truncation};
use std::io;

const SEGMENT: usize = 8192;
const BLOCK_BYTES: u64 = 256;
const THRESHOLD: usize = 150;
const FILES: [(&str, usize); 4] = [
    ("data", SEGMENT),
    ("log", status::BYTES as usize + 8192),
    ("small", status::BYTES as usize + 4096),
    ("flash", 18 * BLOCK_BYTES as usize),
];

fn file(disk: &Disk, name: &str, creates: bool) -> Result<FileLog> {
    let open = if creates { FileLog::create_on } else { FileLog::open_on };
    open(disk.store(name), name.into())
}

fn flash(disk: &Disk, creates: bool) -> Result<FlashLog<PlainFile>> {
    let device = PlainFile::open_on(disk.store("flash"), "flash".into(), BLOCK_BYTES)?;
    if creates { FlashLog::create(device, 7, 1) } else { FlashLog::open(device) }
}

fn flash_disk(disk: &Disk, creates: bool) -> Result<FlashDiskLog> {
    let (store, name) = (disk.store("log"), "log".into());
    if creates { FlashDiskLog::create(store, name, 7, 512) } else { FlashDiskLog::open(store, name) }
}

fn hybrid<L: Log>(small: Result<L>, disk: &Disk, creates: bool) -> Result<HybridLog<L>> {
    let open = if creates { HybridLog::create } else { HybridLog::open };
    open(small?, disk.store("log"), "log", THRESHOLD)
}

/// Opens, or creates and opens, a log of some kind.
type Open = fn(&Disk, bool) -> Result<Rvm>;

fn start(log: Result<impl Log + 'static>, disk: &Disk) -> Result<Rvm> {
    Rvm::open(log?, disk.clone(), Options { truncation: Truncation::WhenFull, ..Options::default() })
}

fn fresh(open: Open) -> Disk {
    let disk = Disk::default();
    FILES.iter().for_each(|(name, bytes)| disk.create(name, *bytes));
    disk.damage("flash", |bytes| bytes.fill(0xff));
    open(&disk, true).unwrap();
    disk.restart()
}

/// The states after each commit, and how many commits were acknowledged.
struct Model {
    states: Vec<Vec<u8>>,
    acknowledged: usize,
}

/// Commits, and truncates now and then, until an error or the last.
fn run(disk: &Disk, open: Open, model: &mut Model) -> Result<()> {
    let rvm = open(disk, false)?;
    let mut region = rvm.map("data", 0..SEGMENT as u64)?;
    for commit in 0..9 {
        // Two ranges, on different sectors: a power failure may leave one of them.
        let bytes = if commit % 3 == 1 { 150 } else { 10 + 3 * commit };
        let mut next = model.states[commit].clone();
        let mut transaction = region.begin();
        for part in [0, SEGMENT / 2] {
            let at = part + commit * 1501 % (SEGMENT / 2 - bytes);
            next[at..at + bytes].fill(commit as u8 + 1);
            transaction.write(at, &next[at..at + bytes])?;
        }
        model.states.push(next);
        transaction.commit()?;
        model.acknowledged = commit + 1;
        if commit % 2 == 1 {
            rvm.truncate()?;
        }
    }
    Ok(())
}

/// What is read of the files.
fn contents(disk: &Disk) -> Vec<Vec<u8>> {
    let read = |(name, bytes): &(&str, usize)| {
        let mut into = vec![0; *bytes];
        disk.store(name).read(&mut into, 0).unwrap();
        into
    };
    FILES.iter().map(read).collect()
}

/// Whether something can be read that is neither on the disk nor to be written.
fn hides(disk: &Disk) -> bool {
    let evicted = disk.copy();
    evicted.evict_at(1);
    contents(&evicted) != contents(&disk.copy())
}

fn check(disk: &Disk, open: Open, model: &Model, what: &str) {
    let rvm = open(disk, false).unwrap_or_else(|error| panic!("{what}: {error}"));
    let region = rvm.map("data", 0..SEGMENT as u64).unwrap();
    let found = model.states.iter().rposition(|state| *state == region.to_vec());
    let found = found.unwrap_or_else(|| panic!("{what}: what was found is the state after no commit"));
    assert!(found >= model.acknowledged, "{what}: commit {found}, {} acknowledged", model.acknowledged);
}

/// Cuts the power at every `step`th operation. Returns how many times something was evicted that differed.
fn evict_everywhere(open: Open, name: &str, step: usize) -> u32 {
    let fresh = fresh(open);
    let mut runs = 0;
    for fault in 1.. {
        let (disk, mut model) = (fresh.copy(), Model { states: vec![vec![0; SEGMENT]], acknowledged: 0 });
        disk.plan(Some((fault, Failure::Eio)), fault);
        let ended = run(&disk, open, &mut model);
        if disk.operations() < fault {
            ended.unwrap();
            return runs;
        }
        if !hides(&disk) {
            continue;
        }
        let whole = disk.copy();
        open(&whole, false).unwrap();
        let operations = whole.operations();
        for evicted in 1..=operations {
            for cut in (evicted + 1 + fault % step as u64..operations + 3).step_by(step) {
                let disk = disk.copy();
                disk.plan(Some((cut, Failure::Power)), cut * 31);
                disk.evict_at(evicted);
                let what = format!("{name}: error at operation {fault}, eviction at {evicted}, cut at {cut}");
                match open(&disk, false) {
                    Ok(_) | Err(Error::Io { .. } | Error::Failed(_) | Error::Damaged { .. }) => (),
                    Err(error) => panic!("{what}: {error}"),
                }
                check(&disk.restart(), open, &model, &what);
                runs += 1;
            }
        }
    }
    unreachable!("a history ends");
}

#[test]
fn what_is_recovered_from_a_file_is_on_the_disk() {
    assert!(evict_everywhere(|disk, creates| start(file(disk, "log", creates), disk), "file", 1) > 1000);
    assert!(evict_everywhere(|disk, creates| start(flash_disk(disk, creates), disk), "flash disk", 1) > 1000);
}

#[test]
fn what_is_recovered_from_flash_in_a_file_is_on_the_disk() {
    assert!(evict_everywhere(|disk, creates| start(flash(disk, creates), disk), "flash", 1) > 1000);
}

#[test]
fn what_is_recovered_from_a_hybrid_is_on_its_disks() {
    let on_file: Open = |disk, creates| start(hybrid(file(disk, "small", creates), disk, creates), disk);
    assert!(evict_everywhere(on_file, "hybrid on a file", 1) > 1000);
    let on_flash: Open = |disk, creates| start(hybrid(flash(disk, creates), disk, creates), disk);
    assert!(evict_everywhere(on_flash, "hybrid on flash", 7) > 1000);
}

/// A file as flash: what it shows is replaced by what the disk has when it is to be written as a whole.
#[derive(Debug)]
struct Evicted {
    shown: Vec<u8>,
    on_disk: Vec<u8>,
    is_rewritten: bool,
    /// What was shown after each change.
    history: Vec<Vec<u8>>,
}

impl Evicted {
    fn new(shown: Vec<u8>, on_disk: Vec<u8>) -> Evicted {
        Evicted { shown, on_disk, is_rewritten: false, history: Vec::new() }
    }
}

impl Flash for Evicted {
    fn name(&self) -> String {
        "flash".into()
    }
    fn shape(&self) -> Shape {
        Shape { block_bytes: 128, blocks: 3 }
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.shown[offset as usize..][..into.len()]);
        Ok(())
    }
    fn rewrite(&mut self) -> io::Result<bool> {
        if !self.is_rewritten {
            self.shown.clone_from(&self.on_disk);
        }
        Ok(!std::mem::replace(&mut self.is_rewritten, true))
    }
    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.rewrite()?;
        self.shown[offset as usize..].iter_mut().zip(data).for_each(|(cell, new)| *cell &= new);
        self.history.push(self.shown.clone());
        Ok(())
    }
    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        self.rewrite()?;
        self.shown[block as usize * 128..][..128].fill(0xff);
        self.history.push(self.shown.clone());
        Ok(Erased::Clean)
    }
}

/// Any change of a status can be seen that is not on the disk, and is gone when the status is completed.
#[test]
fn a_status_that_is_completed_is_one_that_is_on_the_disk() {
    let (place, kind) = (Place { first: 0, data_blocks: 2 }, *b"test");
    let mut flash = Evicted::new(vec![0xff; 3 * 128], vec![0xff; 3 * 128]);
    let mut log = MiniLog::create(&mut flash, place, kind, 7, &[0; 8]).unwrap();
    let created = flash.history.len();
    (1..30).for_each(|value: u64| log.commit(&mut flash, &value.to_le_bytes()).unwrap());
    let mut completed = 0;
    for (change, states) in (created..).zip(flash.history[created - 1..].windows(2)) {
        let mut flash = Evicted::new(states[1].clone(), states[0].clone());
        let opened = MiniLog::open(&mut flash, place, kind);
        let opened = opened.unwrap_or_else(|error| panic!("change {change}: {error}"));
        let mut on_disk = Evicted::new(states[0].clone(), states[0].clone());
        if flash.is_rewritten {
            completed += 1;
            on_disk = Evicted::new(flash.shown.clone(), flash.shown.clone());
        }
        let again = MiniLog::open(&mut on_disk, place, kind);
        let again = again.unwrap_or_else(|error| panic!("change {change}, opened again: {error}"));
        assert!(!flash.is_rewritten || opened.value() == again.value(), "change {change}");
    }
    assert!(completed > 5, "{completed} were completed");
}
