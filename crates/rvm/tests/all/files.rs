//! Transactions on real files: what a program sees, before and after it opens the log again.

use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Error, Log, Options, Region, Restore, Rvm, Truncation};
use std::path::Path;
use std::sync::Mutex;

const SEGMENT: u64 = 1 << 20;

/// A folder with a log of `capacity` bytes and one segment.
fn folder(capacity: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    FileLog::create(&folder.path().join("log"), capacity).unwrap();
    SegmentFolder::new(folder.path()).create("data", SEGMENT).unwrap();
    folder
}

fn open(folder: &Path, options: Options) -> (Rvm, Region) {
    let log = FileLog::open(&folder.join("log")).unwrap();
    let rvm = Rvm::open(log, SegmentFolder::new(folder), options).unwrap();
    let region = rvm.map("data", 0..SEGMENT).unwrap();
    (rvm, region)
}

#[test]
fn committed_bytes_are_found_again_and_others_are_not() {
    let folder = folder(1 << 16);
    let (rvm, mut region) = open(folder.path(), Options::default());
    let mut transaction = region.begin();
    transaction.write(100, b"hello").unwrap();
    *transaction.get_mut::<u64>(4096).unwrap() = 7;
    transaction.commit().unwrap();
    let mut undone = region.begin();
    undone.write(100, b"HELLO").unwrap();
    assert_eq!(&undone.region(nvlab_rvm::Part::FIRST)[100..105], b"HELLO");
    undone.abort().unwrap();
    region.begin().write(100, b"dropped").unwrap();
    assert_eq!((&region[100..107], *region.get::<u64>(4096).unwrap()), (&b"hello\0\0"[..], 7));
    drop((region, rvm));
    let (rvm, region) = open(folder.path(), Options::default());
    assert_eq!((&region[100..107], *region.get::<u64>(4096).unwrap()), (&b"hello\0\0"[..], 7));
    assert_eq!((rvm.recovery().commits, rvm.recovery().log_bytes), (0, 0), "a clean stop has applied it");
}

/// A clean stop applies what is in the log, but not where the program wants that only when the log is full.
#[test]
fn a_clean_stop_leaves_nothing_to_apply_unless_that_is_wanted() {
    for (truncation, left) in [(Truncation::default(), 0), (Truncation::WhenFull, 3)] {
        let folder = folder(1 << 16);
        let options = Options { truncation, ..Options::default() };
        let (rvm, mut region) = open(folder.path(), options);
        for number in 0..3_u64 {
            let mut transaction = region.begin();
            *transaction.get_mut::<u64>(0).unwrap() += number;
            transaction.commit_no_flush().unwrap();
        }
        drop((region, rvm));
        let (rvm, region) = open(folder.path(), options);
        assert_eq!((rvm.recovery().commits, *region.get::<u64>(0).unwrap()), (left, 3));
    }
}

/// Header sizes, ranges and what they cost: the sizes of system 001 (slides 28, 29, 40).
#[test]
fn records_have_the_sizes_of_the_paper() {
    use nvlab_rvm::record::Headers;
    let sizes = [(Headers::Original, 748, 548), (Headers::Compact, 488, 144)];
    for (headers, cpp, sidney) in sizes {
        let folder = folder(1 << 16);
        let (rvm, mut region) = open(folder.path(), Options { headers, ..Options::default() });
        for (ranges, bytes, expected) in [(4, 112, cpp), (7, 0, sidney)] {
            let before = rvm.statistics().logged_bytes;
            let mut transaction = region.begin();
            for range in 0..ranges {
                // Sidney: 80 B in 7 ranges.
                let bytes = if bytes > 0 { bytes } else { 11 + usize::from(range < 3) };
                transaction.set_range(range * 1000..range * 1000 + bytes).unwrap().fill(1);
            }
            transaction.commit().unwrap();
            assert_eq!(rvm.statistics().logged_bytes - before, expected);
        }
    }
}

#[test]
fn only_what_changed_is_logged_where_asked_for() {
    let folder = folder(1 << 16);
    let (rvm, mut region) = open(folder.path(), Options { diff: true, ..Options::default() });
    let mut transaction = region.begin();
    let bytes = transaction.set_range(0..4096).unwrap();
    (bytes[10], bytes[18], bytes[2000]) = (1, 2, 3);
    transaction.commit().unwrap();
    // Bytes 10 to 18 are one run, since 7 unchanged ones cost less than a header.
    assert_eq!(rvm.statistics().logged_bytes, 8 + (8 + 9) + (8 + 1) + 2);
    drop((region, rvm));
    let (_rvm, region) = open(folder.path(), Options::default());
    assert_eq!((region[10], region[18], region[2000]), (1, 2, 3));
}

#[test]
fn a_small_log_takes_any_number_of_transactions_and_refuses_large_ones() {
    for truncation in [Truncation::WhenFull, Truncation::Background { at_percent: 50 }] {
        for compress in [false, true] {
            let folder = folder(8192);
            let options = Options { truncation, compress, ..Options::default() };
            let (rvm, mut region) = open(folder.path(), options);
            let mut model = vec![0; SEGMENT as usize];
            for round in 0..500_usize {
                let at = round * 7919 % (SEGMENT as usize - 700);
                let mut transaction = region.begin();
                transaction.set_range(at..at + 600).unwrap().fill(round as u8);
                model[at..at + 600].fill(round as u8);
                if round % 3 == 0 {
                    transaction.commit().unwrap()
                } else {
                    transaction.commit_no_flush().unwrap()
                }
            }
            let mut large = region.begin();
            large.write(0, b"x").unwrap();
            let error = large.set_range(5000..5000 + 8192).unwrap_err();
            assert!(matches!(error, Error::TooLarge { most, .. } if most <= 8192), "{error}");
            large.abort().unwrap();
            rvm.flush().unwrap();
            assert!(rvm.statistics().truncations > 0 && region[..] == model);
            drop((region, rvm));
            let (_rvm, region) = open(folder.path(), Options::default());
            assert!(region[..] == model);
        }
    }
}

#[test]
fn commits_of_threads_share_forces() {
    let folder = folder(1 << 20);
    let (rvm, region) = open(folder.path(), Options::default());
    let region = Mutex::new(region);
    const THREADS: usize = 4;
    const COMMITS: usize = 200;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let region = &region;
            scope.spawn(move || {
                for round in 0..COMMITS {
                    let mut region = region.lock().unwrap();
                    let mut transaction = region.begin();
                    *transaction.get_mut::<u64>((thread * COMMITS + round) * 8).unwrap() = 1 + round as u64;
                    let pending = transaction.commit_later().unwrap();
                    drop(region);
                    pending.wait().unwrap();
                }
            });
        }
    });
    let statistics = rvm.statistics();
    assert_eq!(statistics.flush_commits, (THREADS * COMMITS) as u64);
    assert!(statistics.forces < statistics.flush_commits, "{statistics:?}");
    drop((region, rvm));
    let (_rvm, region) = open(folder.path(), Options::default());
    for index in 0..THREADS * COMMITS {
        assert_eq!(*region.get::<u64>(index * 8).unwrap(), 1 + (index % COMMITS) as u64);
    }
}

#[test]
fn a_mapped_region_grows() {
    let folder = folder(1 << 16);
    let (rvm, mut region) = open(folder.path(), Options::default());
    region.begin().write(0, b"undone").unwrap();
    let mut transaction = region.begin();
    transaction.write(8, b"kept").unwrap();
    transaction.commit().unwrap();
    region.grow(2 * SEGMENT).unwrap();
    region.populate();
    let mut transaction = region.begin();
    transaction.write(SEGMENT as usize + 5, b"new").unwrap();
    transaction.commit().unwrap();
    assert_eq!((&region[8..12], region.len() as u64), (&b"kept"[..], 2 * SEGMENT));
    drop((region, rvm));
    let log = FileLog::open(&folder.path().join("log")).unwrap();
    let rvm = Rvm::open(log, SegmentFolder::new(folder.path()), Options::default()).unwrap();
    let region = rvm.map("data", 0..2 * SEGMENT).unwrap();
    assert_eq!((&region[8..12], &region[SEGMENT as usize + 5..][..3]), (&b"kept"[..], &b"new"[..]));
}

#[test]
fn one_opener_one_region_one_log() {
    let folder = folder(1 << 16);
    let (rvm, mut region) = open(folder.path(), Options::default());
    assert!(matches!(FileLog::open(&folder.path().join("log")), Err(Error::Busy(_))));
    assert!(matches!(rvm.map("data", 4096..8192), Err(Error::Invalid(_))));
    assert!(matches!(rvm.map("data", 1..8192), Err(Error::Invalid(_))));
    assert!(matches!(rvm.map("none", 0..8192), Err(Error::Io { .. })));
    assert!(region.begin().set_range(SEGMENT as usize - 1..SEGMENT as usize + 1).is_err());
    assert!(region.begin().get_mut::<u64>(4).is_err() && region.get::<u64>(SEGMENT as usize - 4).is_err());
    let mut no_restore = region.begin_with(Restore::No);
    no_restore.write(0, b"x").unwrap();
    assert!(no_restore.abort().is_err());
    // What could not be undone stays in memory, and does not become part of the next transaction.
    let mut next = region.begin();
    next.write(100, b"y").unwrap();
    next.commit().unwrap();
    assert_eq!((region[0], region[100]), (b'x', b'y'));
    drop((region, rvm));
    let (_rvm, region) = open(folder.path(), Options::default());
    assert_eq!((region[0], region[100]), (0, b'y'));
}

/// A range that raw memory forgets is found in debug mode.
#[test]
fn a_missed_range_is_found() {
    let folder = folder(1 << 16);
    let log = FileLog::open(&folder.path().join("log")).unwrap();
    let options = Options { find_missed_ranges: true, ..Options::default() };
    let rvm = Rvm::open(log, SegmentFolder::new(folder.path()), options).unwrap();
    let memory = rvm.map_raw("data", 0..8192).unwrap();
    let commit = |missed: Option<usize>| {
        let mut transaction = rvm.begin_raw(Restore::Yes);
        // SAFETY: one thread, one transaction.
        unsafe {
            transaction.set_range(&memory, 10..20).unwrap();
            memory.slice_mut(10..20).fill(9);
            if let Some(at) = missed {
                memory.slice_mut(at..at + 3).fill(5);
            }
            rvm.commit_raw(&mut transaction, nvlab_rvm::Flush::Yes)
        }
    };
    commit(None).unwrap();
    match commit(Some(5000)) {
        Err(Error::MissedRange { offset: 5000, bytes: 3, segment }) => assert_eq!(segment, "data"),
        other => panic!("{other:?}"),
    }
}

/// O_DIRECT, where the file system has it (tmpfs may not).
#[test]
fn logs_past_the_page_cache() {
    use nvlab_rvm::log::flash_disk::FlashDiskLog;
    use nvlab_rvm::store::{DIRECT_SECTOR_BYTES, DirectStore};
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name);
    let store = match DirectStore::create(&path("flash"), 1 << 16) {
        Ok(store) => Box::new(store),
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    drop(FlashDiskLog::create(store, "log".into(), 7, DIRECT_SECTOR_BYTES as u32).unwrap());
    drop(FileLog::create(&path("file"), 60_001).unwrap());
    through_the_log("a", folder.path(), || {
        let store = Box::new(DirectStore::open(&path("flash")).unwrap());
        FlashDiskLog::open(store, "log".into()).unwrap()
    });
    through_the_log("b", folder.path(), || FileLog::open_direct(&path("file")).unwrap());
}

/// Many small transactions, more than the log can take at once, are there when it is opened again.
fn through_the_log<L: Log + 'static>(segment: &str, folder: &Path, open: impl Fn() -> L) {
    SegmentFolder::new(folder).create(segment, SEGMENT).unwrap();
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(open(), SegmentFolder::new(folder), options).unwrap();
    let mut region = rvm.map(segment, 0..SEGMENT).unwrap();
    for round in 0..200_usize {
        let mut transaction = region.begin();
        transaction.set_range(round * 1000..round * 1000 + 700).unwrap().fill(1 + round as u8);
        transaction.commit().unwrap();
    }
    assert!(rvm.statistics().truncations > 1);
    drop((region, rvm));
    let rvm = Rvm::open(open(), SegmentFolder::new(folder), options).unwrap();
    let region = rvm.map(segment, 0..SEGMENT).unwrap();
    assert!((0..200).all(|round| region[round * 1000..][..700].iter().all(|byte| *byte == 1 + round as u8)));
}

#[test]
fn battery_ram_takes_one_fence_a_commit() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("log");
    let log = BatteryRam::create(&path, 1 << 16).unwrap();
    SegmentFolder::new(folder.path()).create("data", SEGMENT).unwrap();
    let counts = log.counts();
    assert!(log.capacity() >= 1 << 16);
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = Rvm::open(log, SegmentFolder::new(folder.path()), options).unwrap();
    let mut region = rvm.map("data", 0..SEGMENT).unwrap();
    for round in 0..40 {
        let (fences, lines) = (counts.fences(), counts.lines());
        let logged = rvm.statistics();
        let mut transaction = region.begin();
        for range in 0..4 {
            transaction.set_range(range * 4096..range * 4096 + 112).unwrap().fill(round);
        }
        transaction.commit().unwrap();
        assert_eq!(counts.fences() - fences, 1);
        let now = rvm.statistics();
        let bytes = now.logged_bytes + now.name_bytes - logged.logged_bytes - logged.name_bytes;
        let flushed = counts.lines() - lines;
        assert!(
            (bytes.div_ceil(64)..=bytes.div_ceil(64) + 1).contains(&flushed),
            "{flushed} lines for {bytes} B"
        );
    }
    drop((region, rvm));
    let rvm =
        Rvm::open(BatteryRam::open(&path).unwrap(), SegmentFolder::new(folder.path()), options).unwrap();
    assert_eq!(rvm.recovery().commits, 40);
    assert_eq!(rvm.map("data", 0..SEGMENT).unwrap()[4096], 39);
}

#[test]
fn battery_ram_is_not_believed_on_a_disk() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("log");
    assert!(matches!(BatteryRam::create(&path, 1 << 16), Err(Error::Invalid(_))));
    assert!(!path.exists());
}
