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
fn commit(rvm: Rvm, sizes: &[usize]) -> Vec<u64> {
    let mut region = rvm.map("data", 0..BYTES as u64).unwrap();
    let mut ends = Vec::new();
    for (number, bytes) in sizes.iter().enumerate() {
        let mut transaction = region.begin();
        transaction.set_range(number * 8..number * 8 + bytes).unwrap().fill(1 + number as u8);
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
    let ends = commit(open(FlashLog::create(flash.clone(), 7, 1).unwrap(), &disk()).unwrap(), &sizes);
    let at = FlashLog::open(flash.clone()).unwrap().offset(ends[0] + 500);
    flash.damage(at, 4);
    let opened = open(FlashLog::open(flash).unwrap(), &disk());
    assert!(matches!(opened, Err(Error::Damaged { .. })), "flash: {:?}", opened.map(|rvm| rvm.recovery()));

    let disk = disk();
    let ends =
        commit(open(FileLog::create_on(disk.store("log"), "log".into()).unwrap(), &disk).unwrap(), &sizes);
    disk.damage("log", |bytes| {
        // As programs wrote it that knew no mark.
        [0, 4096].iter().for_each(|copy| bytes[copy + 64..copy + 76].fill(0));
        bytes[status::BYTES as usize + ends[0] as usize + 500] ^= 4;
    });
    let opened = open(FileLog::open_on(disk.store("log"), "log".into()).unwrap(), &disk);
    assert!(matches!(opened, Err(Error::Damaged { .. })), "file: {:?}", opened.map(|rvm| rvm.recovery()));
}
