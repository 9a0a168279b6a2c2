//! Syncs and changes of length of segments that fail: everybody is told, and nothing that is not durable is relied on.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::Disk;
use nvlab_rvm::{Error, Options, Region, Result, Rvm, Segments, Store};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const PAGE: u64 = 4096;

/// A disk whose files take a while to be synced; syncs of segments and new lengths fail on demand.
#[derive(Clone, Debug)]
struct Faulty {
    disk: Disk,
    sync_time: Duration,
    sync_fails: Arc<AtomicBool>,
    set_len_fails: Arc<AtomicBool>,
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
        FileLog::create_on(disk.store("log"), "log".into()).unwrap();
        Faulty { disk, sync_time, sync_fails: Arc::default(), set_len_fails: Arc::default() }
    }

    fn rvm(&self) -> Rvm {
        let store = FaultyStore {
            of: Faulty { sync_fails: Arc::default(), ..self.clone() },
            store: self.disk.store("log"),
        };
        Rvm::open(FileLog::open_on(Box::new(store), "log".into()).unwrap(), self.clone(), Options::default())
            .unwrap()
    }
}

impl Segments for Faulty {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(FaultyStore { of: self.clone(), store: self.disk.open(name)? }))
    }
}

impl Store for FaultyStore {
    fn len(&self) -> io::Result<u64> {
        self.store.len()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.store.read(into, offset)
    }
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
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
