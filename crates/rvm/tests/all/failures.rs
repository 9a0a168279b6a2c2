//! Syncs and changes of length of segments that fail: everybody is told, and nothing that is not durable is relied on.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::Disk;
use nvlab_rvm::{Error, Options, Region, Result, Rvm, Segments, Store, Truncation};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const PAGE: u64 = 4096;
/// Pages of the segment that has more than one.
const WIDE: u64 = 12;

/// A disk whose files take a while to be synced; syncs of segments and new lengths fail on demand, one page of segments cannot be
/// read, and writes to segments panic.
#[derive(Clone, Debug)]
struct Faulty {
    disk: Disk,
    sync_time: Duration,
    sync_fails: Arc<AtomicBool>,
    set_len_fails: Arc<AtomicBool>,
    write_panics: Arc<AtomicBool>,
    unreadable_page: Arc<AtomicU64>,
}

#[derive(Debug)]
struct FaultyStore {
    of: Faulty,
    store: Box<dyn Store>,
}

impl Faulty {
    fn new(sync_time: Duration) -> Faulty {
        let disk = Disk::default();
        disk.create("log", status::BYTES as usize + (1 << 20));
        ["a", "b", "c", "d"].iter().for_each(|name| disk.create(name, PAGE as usize));
        disk.create("wide", (WIDE * PAGE) as usize);
        FileLog::create_on(disk.store("log"), "log".into()).unwrap();
        Faulty { sync_time, ..Faulty::on(disk) }
    }

    fn on(disk: Disk) -> Faulty {
        Faulty {
            disk,
            sync_time: Duration::ZERO,
            sync_fails: Arc::default(),
            set_len_fails: Arc::default(),
            write_panics: Arc::default(),
            unreadable_page: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// What the log's store does not do: it is slow, and that is all.
    fn without_faults(&self) -> Faulty {
        Faulty { sync_time: self.sync_time, ..Faulty::on(self.disk.clone()) }
    }

    fn rvm(&self) -> Rvm {
        self.open(Options::default()).unwrap()
    }

    fn open(&self, options: Options) -> Result<Rvm> {
        let store = FaultyStore { of: self.without_faults(), store: self.disk.store("log") };
        Rvm::open(FileLog::open_on(Box::new(store), "log".into()).unwrap(), self.clone(), options)
    }
}

impl Segments for Faulty {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(FaultyStore { of: self.clone(), store: self.disk.open(name)? }))
    }
    fn open_named(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(FaultyStore { of: self.clone(), store: self.disk.open_named(name)? }))
    }
}

impl Store for FaultyStore {
    fn len(&self) -> io::Result<u64> {
        self.store.len()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let unreadable = self.of.unreadable_page.load(Ordering::Relaxed);
        if (offset / PAGE..(offset + into.len() as u64).div_ceil(PAGE)).contains(&unreadable) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.store.read(into, offset)
    }
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        assert!(!self.of.write_panics.load(Ordering::Relaxed), "a write that panics, as it is to");
        self.store.write(data, offset)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.store.set_len(bytes)?;
        match self.of.set_len_fails.swap(false, Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
    fn sync(&self) -> io::Result<()> {
        std::thread::sleep(self.of.sync_time);
        match self.of.sync_fails.swap(false, Ordering::Relaxed) {
            true => Err(io::Error::from_raw_os_error(5)),
            false => self.store.sync(),
        }
    }
    fn start_sync(&self) -> io::Result<bool> {
        self.store.start_sync()
    }
    fn prepare_parts(&self, offset: u64, bytes: usize) -> bool {
        self.store.prepare_parts(offset, bytes)
    }
    /// None, so that all goes through here.
    fn file(&self) -> Option<&std::fs::File> {
        None
    }
}

/// Commits until that fails.
fn commit(mut region: Region, pause: Duration) {
    loop {
        let mut transaction = region.begin();
        transaction.write(0, b"12345678").unwrap();
        if transaction.commit().is_err() {
            return;
        }
        std::thread::sleep(pause);
    }
}

/// While one thread waits for the company of a third one that stays away, and another sleeps until the first has forced, a
/// region cannot grow.
#[test]
fn nobody_sleeps_on_when_a_region_cannot_grow() {
    for attempt in 0..30 {
        let faulty = Faulty::new(Duration::from_millis(4));
        let rvm = faulty.rvm();
        let (ended, all_ended) = mpsc::channel();
        for (name, pause) in [("a", 0), ("b", 0), ("c", 9)] {
            let (region, ended) = (rvm.map(name, 0..PAGE).unwrap(), ended.clone());
            std::thread::spawn(move || {
                commit(region, Duration::from_millis(pause));
                ended.send(name)
            });
        }
        let mut growing = rvm.map("d", 0..PAGE).unwrap();
        std::thread::sleep(Duration::from_millis(40 + attempt % 7));
        faulty.sync_fails.store(true, Ordering::Relaxed);
        growing.grow(2 * PAGE).unwrap_err();
        for _ in 0..3 {
            let told = all_ended.recv_timeout(Duration::from_secs(10));
            told.unwrap_or_else(|_| panic!("attempt {attempt}: a thread is not told"));
        }
    }
}

#[test]
fn a_failed_sync_of_a_segment_first_used_refuses_all_later_work() {
    let faulty = Faulty::new(Duration::ZERO);
    let rvm = faulty.rvm();
    faulty.sync_fails.store(true, Ordering::Relaxed);
    let results = [rvm.map("a", 0..PAGE), rvm.map("a", 0..PAGE)].map(|mapped| mapped.map(|_| ()));
    assert!(matches!(results, [Err(Error::Io { .. }), Err(Error::Failed(_))]), "{results:?}");
}

/// The file system had room for a part of the new length, which is not durable.
#[test]
fn a_length_left_by_a_failed_attempt_is_durable_before_it_is_used() {
    for (seed, is_mapped) in (0..16).flat_map(|seed| [(seed, false), (seed, true)]) {
        let faulty = Faulty::new(Duration::ZERO);
        let rvm = faulty.rvm();
        let mut region = rvm.map("a", 0..PAGE).unwrap();
        faulty.set_len_fails.store(true, Ordering::Relaxed);
        region.grow(100 * PAGE).unwrap_err();
        let mut region = if is_mapped {
            rvm.map("a", PAGE..50 * PAGE).unwrap()
        } else {
            region.grow(50 * PAGE).unwrap();
            region
        };
        let mut transaction = region.begin();
        transaction.write(40 * PAGE as usize, b"kept").unwrap();
        transaction.commit().unwrap();
        faulty.disk.plan(None, seed);
        let found = faulty.disk.restart();
        let log = FileLog::open_on(found.store("log"), "log".into()).unwrap();
        let opened = Rvm::open(log, found, Options::default());
        opened.unwrap_or_else(|error| panic!("seed {seed}, mapped {is_mapped}: {error}"));
    }
}

/// Pages near each other are read together, but what lies between them need not be readable.
#[test]
fn a_page_that_cannot_be_read_stops_only_what_changes_it() {
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    for (unreadable, recovers) in [(3, false), (3, true), (0, false), (6, true), (WIDE - 1, true)] {
        let faulty = Faulty::new(Duration::ZERO);
        let what = format!("page {unreadable}, recovers {recovers}");
        let rvm = faulty.open(options).unwrap();
        let mut region = rvm.map("wide", 0..WIDE * PAGE).unwrap();
        let mut transaction = region.begin();
        // The second of them spans two pages.
        for at in [PAGE + 100, 5 * PAGE - 4, 8 * PAGE + 7] {
            transaction.write(at as usize, b"12345678").unwrap();
        }
        transaction.commit().unwrap();
        faulty.unreadable_page.store(unreadable, Ordering::Relaxed);
        let rvm = match recovers {
            true => {
                // As if killed.
                std::mem::forget(rvm);
                faulty.open(options).unwrap_or_else(|error| panic!("{what}: {error}"))
            }
            false => rvm,
        };
        rvm.truncate().unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut expected = vec![0; (WIDE * PAGE) as usize];
        for at in [PAGE + 100, 5 * PAGE - 4, 8 * PAGE + 7] {
            expected[at as usize..][..8].copy_from_slice(b"12345678");
        }
        let mut found = vec![0; expected.len()];
        faulty.disk.restart().store("wide").read(&mut found, 0).unwrap();
        assert!(found == expected, "{what}");
        if !recovers {
            // One that is changed in part has to be read.
            let mut transaction = region.begin();
            transaction.write((unreadable * PAGE) as usize + 9, b"9").unwrap();
            transaction.commit().unwrap();
            assert!(matches!(rvm.truncate(), Err(Error::Io { .. })), "{what}");
        }
    }
}

/// [`Drop`] used to wait for ever for the truncation to end.
#[test]
fn a_panic_in_a_truncation_fails_the_log() {
    for is_in_background in [false, true] {
        let truncation = match is_in_background {
            true => Truncation::Background { at_percent: 1 },
            false => Truncation::Background { at_percent: 99 },
        };
        let faulty = Faulty::new(Duration::ZERO);
        let rvm = faulty.open(Options { truncation, ..Options::default() }).unwrap();
        let mut region = rvm.map("wide", 0..WIDE * PAGE).unwrap();
        faulty.write_panics.store(true, Ordering::Relaxed);
        let (ended, is_ended) = mpsc::channel();
        std::thread::spawn(move || {
            let mut commit = |fill: u8| {
                let mut transaction = region.begin();
                transaction.set_range(0..(WIDE * PAGE) as usize).unwrap().fill(fill);
                transaction.commit()
            };
            commit(1).unwrap();
            if !is_in_background {
                let truncated = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rvm.truncate()));
                assert!(truncated.is_err());
            }
            // The thread in the background takes a moment.
            let refused = (0..1000).find_map(|_| {
                std::thread::sleep(Duration::from_millis(5));
                commit(2).err()
            });
            let truncated = rvm.truncate();
            drop(rvm);
            ended.send((refused, truncated)).unwrap();
        });
        let what = format!("in the background: {is_in_background}");
        let told = is_ended.recv_timeout(Duration::from_secs(20));
        let (refused, truncated) = told.unwrap_or_else(|_| panic!("{what}: somebody waits for ever"));
        assert!(matches!(refused, Some(Error::Failed(_))), "{what}: {refused:?}");
        assert!(matches!(truncated, Err(Error::Failed(_))), "{what}: {truncated:?}");
        faulty.write_panics.store(false, Ordering::Relaxed);
        let rvm = faulty.rvm();
        assert!(
            rvm.map("wide", 0..WIDE * PAGE).unwrap()[..].iter().all(|byte| [1, 2].contains(byte)),
            "{what}"
        );
    }
}
