//! Damaged records in logs that keep no mark.

use nvlab_rvm::flash::{MemoryFlash, Shape};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::Disk;
use nvlab_rvm::{Error, Log, Options, Result, Rvm, Truncation};

const BYTES: usize = 8 << 20;

/// Opens a log with one segment on a disk.
fn open(log: impl Log + 'static, disk: &Disk) -> Result<Rvm> {
    Rvm::open(log, disk.clone(), Options { truncation: Truncation::WhenFull, ..Options::default() })
}

fn disk() -> Disk {
    let disk = Disk::default();
    disk.create("data", BYTES);
    disk.create("log", status::BYTES as usize + BYTES);
    disk
}

/// Commits of so many bytes, none applied; returns where each record ends.
fn commit(rvm: Rvm, sizes: &[usize], value: u8) -> Vec<u64> {
    let mut region = rvm.map("data", 0..BYTES as u64).unwrap();
    let mut ends = Vec::new();
    for (number, bytes) in sizes.iter().enumerate() {
        let mut transaction = region.begin();
        transaction.set_range(number * 8..number * 8 + bytes).unwrap().fill(value);
        transaction.commit().unwrap();
        ends.push(rvm.statistics().live_bytes);
    }
    ends
}

/// A record is damaged, and all that were forced after it are longer than what the search for a beginning looks for.
#[test]
fn a_damaged_record_before_long_ones_is_noticed_in_logs_without_a_mark() {
    let sizes = [100, 3000, 3 << 19, 3 << 19];
    let flash = MemoryFlash::new(Shape { block_bytes: 1 << 20, blocks: 16 }, 1);
    let ends = commit(open(FlashLog::create(flash.clone(), 7, 1).unwrap(), &disk()).unwrap(), &sizes, 1);
    let at = FlashLog::open(flash.clone()).unwrap().offset(ends[0] + 500);
    flash.damage(at, 4);
    let opened = open(FlashLog::open(flash).unwrap(), &disk());
    assert!(matches!(opened, Err(Error::Damaged { .. })), "flash: {:?}", opened.map(|rvm| rvm.recovery()));

    let opened = open_damaged_file(&sizes, 1, 500, 4);
    assert!(matches!(opened, Err(Error::Damaged { .. })), "file: {:?}", opened.map(|rvm| rvm.recovery()));
}

/// Only flash ends where all bits are set: elsewhere they are data, here of a record whose length is damaged.
#[test]
fn set_bits_are_not_the_end_of_a_log_in_a_file() {
    let opened = open_damaged_file(&[100, 3 << 20, 100, 100], 0xff, 6, 1);
    assert!(matches!(opened, Err(Error::Damaged { .. })), "{:?}", opened.map(|rvm| rvm.recovery()));
}

/// Flips bits at a distance from the beginning of the second record in a log as programs wrote it that knew no mark.
fn open_damaged_file(sizes: &[usize], value: u8, at: usize, mask: u8) -> Result<Rvm> {
    let disk = disk();
    let log = FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    let ends = commit(open(log, &disk).unwrap(), sizes, value);
    disk.damage("log", |bytes| {
        [0, 4096].iter().for_each(|copy| bytes[copy + 64..copy + 76].fill(0));
        bytes[status::BYTES as usize + ends[0] as usize + at] ^= mask;
    });
    open(FileLog::open_on(disk.store("log"), "log".into()).unwrap(), &disk)
}
