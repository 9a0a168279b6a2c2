//! The logs on flash and on sectors: power cuts, wear and damage.

mod harness;

use harness::{Draws, Model, Subject, run, run_every_cut};
use nvlab_rvm::flash::{MemoryFlash, PlainFile, Shape};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::flash_disk::FlashDiskLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Error, Log, Result, Store};
use std::cell::{Cell, RefCell};

const IDENTITY: u64 = 0x1234_5678_9abc_def0;
const SPARES: u32 = 2;

/// A log of four blocks of 192 B: the status has room for four values in a block.
fn shape() -> Shape {
    Shape { block_bytes: 192, blocks: 6 + 4 + SPARES }
}

struct OnFlash(MemoryFlash);

impl Subject for OnFlash {
    fn create(&self) -> Result<Box<dyn Log>> {
        Ok(Box::new(FlashLog::create(self.0.clone(), IDENTITY, SPARES)?))
    }
    fn open(&self) -> Result<Box<dyn Log>> {
        Ok(Box::new(FlashLog::open(self.0.clone())?))
    }
    fn operations(&self) -> u64 {
        self.0.operations()
    }
    fn cut_at(&self, operation: u64) {
        self.0.cut_at(operation);
    }
    fn is_off(&self) -> bool {
        self.0.is_off()
    }
    fn power_on(&self) {
        self.0.power_on();
    }
}

/// A disk that is cut at an operation and found as the power failure left it.
struct OneDisk {
    disk: RefCell<Disk>,
    seed: u64,
    cut: Cell<Option<u64>>,
}

impl OneDisk {
    fn new(bytes: u64, seed: u64) -> OneDisk {
        let disk = Disk::default();
        disk.create("log", bytes as usize);
        OneDisk { disk: RefCell::new(disk), seed, cut: Cell::new(None) }
    }
    fn store(&self) -> Box<dyn Store> {
        self.disk.borrow().store("log")
    }
    fn operations(&self) -> u64 {
        self.disk.borrow().operations()
    }
    fn cut_at(&self, operation: u64) {
        let operations = self.operations();
        self.cut.set((operation > operations).then(|| operation - operations));
        self.disk.borrow().plan(self.cut.get().map(|cut| (cut, Failure::Power)), self.seed);
    }
    fn is_off(&self) -> bool {
        self.cut.get().is_some_and(|cut| self.operations() >= cut)
    }
    /// After a cut, of this disk or with another device, the power comes back. Without one only the process has ended: what
    /// was not synced is still there.
    fn power_on(&self, after_cut: bool) {
        if after_cut {
            self.disk.replace_with(|disk| disk.restart());
        }
        self.disk.borrow().plan(None, self.seed);
        self.cut.set(None);
    }
    fn damage(&self, bit: u64) {
        self.disk.borrow().damage("log", |bytes| bytes[bit as usize / 8] ^= 1 << (bit % 8));
    }
}

/// A log of three sectors, and one more.
const DISK_BYTES: u64 = 8192 + 4 * 512;

/// A log on sectors, or through the page cache.
struct OnDisk {
    disk: OneDisk,
    is_sectors: bool,
}

impl OnDisk {
    fn sectors(seed: u64) -> OnDisk {
        OnDisk { disk: OneDisk::new(DISK_BYTES, seed), is_sectors: true }
    }
    /// The smallest log has 4 KiB.
    fn file(seed: u64) -> OnDisk {
        OnDisk { disk: OneDisk::new(8192 + 4096, seed), is_sectors: false }
    }
}

impl Subject for OnDisk {
    fn create(&self) -> Result<Box<dyn Log>> {
        let (store, name) = (self.disk.store(), "disk".into());
        Ok(match self.is_sectors {
            true => Box::new(FlashDiskLog::create(store, name, IDENTITY, 512)?),
            false => Box::new(FileLog::create_on(store, name)?),
        })
    }
    fn open(&self) -> Result<Box<dyn Log>> {
        let (store, name) = (self.disk.store(), "disk".into());
        Ok(match self.is_sectors {
            true => Box::new(FlashDiskLog::open(store, name)?),
            false => Box::new(FileLog::open_on(store, name)?),
        })
    }
    fn operations(&self) -> u64 {
        self.disk.operations()
    }
    fn cut_at(&self, operation: u64) {
        self.disk.cut_at(operation);
    }
    fn is_off(&self) -> bool {
        self.disk.is_off()
    }
    fn power_on(&self) {
        self.disk.power_on(self.is_off());
    }
}

const HYBRID_BYTES: u64 = 2 * 8192;
const THRESHOLD: usize = 100;

/// A log on flash and a disk, of which one is cut; the power is that of both.
struct OnBoth {
    flash: MemoryFlash,
    disk: OneDisk,
    is_disk_cut: bool,
}

impl OnBoth {
    fn new(seed: u64, is_disk_cut: bool) -> OnBoth {
        let (flash, disk) = (MemoryFlash::new(shape(), seed), OneDisk::new(HYBRID_BYTES, seed));
        OnBoth { flash, disk, is_disk_cut }
    }
}

impl Subject for OnBoth {
    fn create(&self) -> Result<Box<dyn Log>> {
        let flash = FlashLog::create(self.flash.clone(), IDENTITY, SPARES)?;
        Ok(Box::new(HybridLog::create(flash, self.disk.store(), "disk", THRESHOLD)?))
    }
    fn open(&self) -> Result<Box<dyn Log>> {
        let flash = FlashLog::open(self.flash.clone())?;
        Ok(Box::new(HybridLog::open(flash, self.disk.store(), "disk", THRESHOLD)?))
    }
    fn operations(&self) -> u64 {
        if self.is_disk_cut { self.disk.operations() } else { self.flash.operations() }
    }
    fn cut_at(&self, operation: u64) {
        match self.is_disk_cut {
            true => self.disk.cut_at(operation),
            false => self.flash.cut_at(operation),
        }
    }
    fn is_off(&self) -> bool {
        self.flash.is_off() || self.disk.is_off()
    }
    fn power_on(&self) {
        self.disk.power_on(self.is_off());
        self.flash.power_on();
    }
}

/// Runs a history without cuts and returns the bytes appended.
fn fill(log: &mut dyn Log, payload_max: u64, steps: u32) -> u64 {
    let mut model = Model::new(log.status(), payload_max);
    assert!(model.drive(log, &mut Draws(1), steps));
    model.appended
}

#[test]
fn flash_is_cut_at_every_operation_and_again_in_recovery() {
    let flash = MemoryFlash::new(shape(), 1);
    let mut log = FlashLog::create(flash, IDENTITY, SPARES).unwrap();
    assert_eq!(log.capacity(), 3 * 192);
    assert!(fill(&mut log, 90, 180) > 4 * 4 * 192, "the log did not wrap");
    let runs = run_every_cut(|seed| Box::new(OnFlash(MemoryFlash::new(shape(), seed))), 5, 90, 180);
    assert!(runs > 5_000, "{runs} runs");
}

#[test]
fn flash_is_cut_anywhere_in_long_histories_while_blocks_wear_out() {
    let mut cuts_done = 0;
    for seed in 0..3_000 {
        let mut draws = Draws(seed);
        let flash = MemoryFlash::new(shape(), seed);
        // Any but the first three, which hold the table of spare blocks; a spare may be among them.
        for _ in 0..draws.below(3) {
            flash.wear_out(3 + draws.below(9) as u32);
        }
        let cuts = (draws.below(900), draws.below(12));
        let (first, second) = run(&OnFlash(flash), seed, 1 + draws.below(400), 500, cuts);
        cuts_done += u32::from(first) + u32::from(second);
    }
    assert!(cuts_done > 3_000, "{cuts_done} cuts");
}

#[test]
fn worn_out_blocks_are_retired_until_no_spare_is_left_and_nothing_is_lost() {
    let flash = MemoryFlash::new(shape(), 7);
    let mut log = FlashLog::create(flash.clone(), IDENTITY, SPARES).unwrap();
    // One of the status, one of the log.
    flash.wear_out(4);
    flash.wear_out(7);
    fill(&mut log, 90, 400);
    assert_eq!(log.spares_used(), 2);
    log.reset(0).unwrap();
    flash.wear_out(8);
    let mut model = Model::new(log.status(), 90);
    assert!(!model.drive(&mut log, &mut Draws(2), 400));
    assert!(matches!(log.force(), Err(Error::Failed(_))));
    for _ in 0..2 {
        let mut log = FlashLog::open(flash.clone()).unwrap();
        model.adopt(&mut log, "no spare left");
        let error = log.reset(0).unwrap_err().to_string();
        assert!(error.contains("worn out, and no spare is left"), "{error}");
        model.expect_reset();
    }
}

#[test]
fn every_flipped_bit_is_refused_or_leaves_a_prefix_of_the_records() {
    const SEED: u64 = 7;
    let written = || {
        let flash = MemoryFlash::new(shape(), 7);
        let mut log = FlashLog::create(flash.clone(), IDENTITY, SPARES).unwrap();
        let mut model = Model::new(log.status(), 60);
        assert!(model.drive(&mut log, &mut Draws(SEED), 70));
        (flash, model)
    };
    let (_, model) = written();
    assert!(model.records() > 3, "{} records", model.records());
    let (mut refused, mut shorter) = (0, 0);
    for bit in 0..shape().bytes() * 8 {
        let (flash, model) = written();
        flash.damage(bit / 8, 1 << (bit % 8));
        match FlashLog::open(flash) {
            Ok(mut log) => shorter += u32::from(!model.holds_prefix(&mut log, &format!("bit {bit}"))),
            Err(Error::Format { .. } | Error::Damaged { .. }) => refused += 1,
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    assert!(refused > 500 && shorter > 500, "{refused} refused, {shorter} shorter");
}

#[test]
fn foreign_contents_and_calls_out_of_order_are_refused() {
    let flash = MemoryFlash::new(shape(), 7);
    let empty = "flash in memory at byte 0: this is not a log: it does not begin with \"nvlabrvm\"";
    assert_eq!(FlashLog::open(flash.clone()).unwrap_err().to_string(), empty);
    let error = FlashLog::create(flash.clone(), IDENTITY, 5).unwrap_err().to_string();
    assert_eq!(error, "4 erase blocks for status and log: at least 5 are needed");
    let mut log = FlashLog::create(flash.clone(), IDENTITY, SPARES).unwrap();
    log.append(0, &[1; 300]).unwrap();
    for result in [
        log.append(299, &[1]),
        log.append(300, &[1; 4 * 192]),
        log.truncate(301),
        log.read(1, &mut [0; 3 * 192]),
    ] {
        assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    }
    // Block 1 of the log is that of the device behind six of status and table.
    assert_eq!(log.offset(200), 7 * 192 + 8);
    log.truncate(300).unwrap();
    log.append(300, &[2; 3 * 192]).unwrap();
    let mut log = FlashLog::open(flash).unwrap();
    assert!(matches!(log.append(300, &[1]), Err(Error::Invalid(_))), "before the reset");
    assert_eq!(log.reset(876).unwrap(), 960);
    log.append(960, &[3; 4 * 192]).unwrap();
}

#[test]
fn sectors_are_cut_at_every_operation_and_again_in_recovery() {
    let mut log = OnDisk::sectors(1).create().unwrap();
    assert_eq!(log.capacity(), 3 * 512);
    assert!(fill(log.as_mut(), 300, 150) > 4 * 4 * 512, "the log did not wrap");
    let runs = run_every_cut(|seed| Box::new(OnDisk::sectors(seed)), 12, 300, 150);
    assert!(runs > 5_000, "{runs} runs");
}

#[test]
fn logs_on_a_disk_are_cut_anywhere_in_long_histories() {
    for create in [OnDisk::sectors, OnDisk::file] {
        let mut cuts_done = 0;
        for seed in 0..1_500 {
            let mut draws = Draws(seed);
            // None at all in a quarter: the process ends, and the power fails in the recovery.
            let cuts = (draws.below(4).min(1) * draws.below(600), draws.below(24));
            let (first, second) = run(&create(seed), seed, 1 + draws.below(1200), 500, cuts);
            cuts_done += u32::from(first) + u32::from(second);
        }
        assert!(cuts_done > 1_500, "{cuts_done} cuts");
    }
}

/// Slide 37: records of 748 B on sectors of 512 B.
#[test]
fn writing_the_last_sector_again_costs_two_thirds_more_bytes() {
    let disk = OneDisk::new(8192 + (1 << 20), 1);
    let mut log = FlashDiskLog::create(disk.store(), "disk".into(), IDENTITY, 512).unwrap();
    // 128 records of 748 B end with a sector again.
    for record in 0..128 {
        log.append(record * 748, &[record as u8; 748]).unwrap();
        log.force().unwrap();
    }
    let extra = log.bytes_written() as f64 / (128. * 748.) - 1.;
    assert!((extra - 0.679).abs() < 0.0005, "{extra}");
}

#[test]
fn a_log_on_a_file_as_flash_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let shape = Shape { block_bytes: 4096, blocks: 16 };
    let mut log = FlashLog::create(PlainFile::create(&path, shape).unwrap(), IDENTITY, SPARES).unwrap();
    let mut model = Model::new(log.status(), 3000);
    let mut draws = Draws(3);
    assert!(model.drive(&mut log, &mut draws, 60));
    while model.records() < 3 {
        assert!(model.drive(&mut log, &mut draws, 1));
    }
    assert!(matches!(PlainFile::open(&path, 4096), Err(Error::Busy(_))));
    drop(log);
    let error = FlashLog::open(PlainFile::open(&path, 8192).unwrap()).unwrap_err().to_string();
    let name = path.display();
    let expected = format!("{name} at byte 16: made for erase blocks of 4096 B; the device has 8192 B");
    assert_eq!(error, expected);
    let mut log = FlashLog::open_file(&path).unwrap();
    model.adopt(&mut log, "opened again");
    assert_eq!(model.records(), 3);
    let other = folder.path().join("other");
    std::fs::write(&other, "short").unwrap();
    let error = FlashLog::open_file(&other).unwrap_err();
    assert!(matches!(error, Error::Format { offset: 0, .. }), "{error}");
}

#[test]
fn a_hybrid_is_cut_at_every_operation_of_both_devices_and_again_in_recovery() {
    let both = OnBoth::new(1, false);
    assert!(fill(both.create().unwrap().as_mut(), 300, 150) > 8192, "the log did not wrap");
    let in_flash: u64 = both.flash.wear().iter().map(|wear| wear.bytes_programmed).sum();
    assert!(in_flash > 4 * 4 * 192, "{in_flash} B in flash");
    for is_disk_cut in [false, true] {
        let runs = run_every_cut(|seed| Box::new(OnBoth::new(seed, is_disk_cut)), 6, 300, 150);
        assert!(runs > 3_000, "{runs} runs");
    }
}

#[test]
fn a_hybrid_is_cut_anywhere_in_long_histories() {
    let mut cuts_done = 0;
    for seed in 0..3_000 {
        let mut draws = Draws(seed);
        let cuts = (draws.below(700), draws.below(14));
        let both = OnBoth::new(seed, draws.below(2) == 0);
        let (first, second) = run(&both, seed, 1 + draws.below(2000), 500, cuts);
        cuts_done += u32::from(first) + u32::from(second);
    }
    assert!(cuts_done > 2_000, "{cuts_done} cuts");
}

#[test]
fn large_appends_go_to_the_disk_and_leave_a_stub_that_finds_damage() {
    let both = OnBoth::new(1, false);
    let mut log = both.create().unwrap();
    let programmed = || both.flash.wear().iter().map(|wear| wear.bytes_programmed).sum::<u64>();
    let flash = programmed();
    log.append(0, &[1; THRESHOLD - 1]).unwrap();
    log.append(99, &[2; 3000]).unwrap();
    log.force().unwrap();
    assert_eq!(programmed() - flash, 24 + 99 + 24);
    let mut on_disk = [0; 3000];
    both.disk.store().read(&mut on_disk, 8192 + 99).unwrap();
    assert_eq!(on_disk, [2; 3000]);
    // The log begins in block 6 of the flash.
    assert_eq!((log.offset(0), log.offset(99)), (6 * 192 + 24, 8192 + 99));
    drop(log);
    let mut bytes = [0; 3099];
    both.open().unwrap().read(0, &mut bytes).unwrap();
    assert!(bytes[..99] == [1; 99] && bytes[99..] == [2; 3000]);
    both.disk.damage((8192 + 2000) * 8);
    let error = both.open().unwrap_err().to_string();
    assert_eq!(error, "disk is damaged at byte 8291: the 3000 B at position 99 do not match their checksum");
    both.disk.damage((8192 + 2000) * 8);
    both.flash.damage(6 * 192 + 30, 4);
    assert!(matches!(both.open(), Err(Error::Damaged { offset: 1152, .. })));
    let other = FlashLog::create(MemoryFlash::new(shape(), 2), 77, SPARES).unwrap();
    let error = HybridLog::open(other, both.disk.store(), "disk", THRESHOLD).unwrap_err();
    assert!(matches!(error, Error::Format { offset: 20, .. }), "{error}");
}

#[test]
fn every_flipped_bit_of_a_hybrid_is_refused_or_leaves_a_prefix_of_the_records() {
    let both = OnBoth::new(1, false);
    let mut log = both.create().unwrap();
    let mut model = Model::new(log.status(), 300);
    let mut draws = Draws(4);
    assert!(model.drive(log.as_mut(), &mut draws, 40));
    while model.records() < 6 {
        assert!(model.drive(log.as_mut(), &mut draws, 1));
    }
    log.force().unwrap();
    drop(log);
    let (mut refused, mut shorter) = (0, 0);
    let mut check = |what: &str| match both.open() {
        Ok(mut log) => shorter += u32::from(!model.holds_prefix(log.as_mut(), what)),
        Err(Error::Format { .. } | Error::Damaged { .. }) => refused += 1,
        Err(error) => panic!("{what}: {error}"),
    };
    // The mini-logs complete what looks torn when they are opened; their own test flips their bits.
    for bit in 6 * 192 * 8..shape().bytes() * 8 {
        both.flash.damage(bit / 8, 1 << (bit % 8));
        check(&format!("bit {bit} of the flash"));
        both.flash.damage(bit / 8, 1 << (bit % 8));
    }
    for bit in (0..HYBRID_BYTES * 8).step_by(3) {
        both.disk.damage(bit);
        check(&format!("bit {bit} of the disk"));
        both.disk.damage(bit);
    }
    assert!(refused > 500 && shorter > 100, "{refused} refused, {shorter} shorter");
}
