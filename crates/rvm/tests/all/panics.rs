//! A device that panics in the middle of a force: others that wait for that force, or come later, are told; they do not wait for ever,
//! and nothing that was acknowledged is lost.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::disk::Disk;
use nvlab_rvm::{Error, Options, Rvm, Store};
use std::io;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const PAGE: u64 = 4096;
const THREADS: u64 = 3;

/// The store of a log, one of whose operations panics.
#[derive(Debug)]
struct Panics {
    store: Box<dyn Store>,
    /// Operations until then.
    left: Arc<AtomicI64>,
    /// So long takes a sync.
    sync_time: Duration,
}

impl Panics {
    fn operation(&self) {
        assert_ne!(self.left.fetch_sub(1, Ordering::Relaxed), 1, "an operation that panics, as it is to");
    }
}

impl Store for Panics {
    fn len(&self) -> io::Result<u64> {
        self.store.len()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.store.read(into, offset)
    }
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.operation();
        self.store.write(data, offset)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.store.set_len(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.operation();
        std::thread::sleep(self.sync_time);
        self.store.sync()
    }
    fn start_sync(&self) -> io::Result<bool> {
        self.store.start_sync()
    }
    fn prepare_parts(&self, offset: u64, bytes: usize) -> bool {
        self.store.prepare_parts(offset, bytes)
    }
    fn file(&self) -> Option<&std::fs::File> {
        self.store.file()
    }
}

/// Threads commit until they are told that the log has failed, or panic. All of them end.
fn run(sync_time: Duration, operation: i64) {
    let what = format!("operation {operation}, syncs of {sync_time:?}");
    let disk = Disk::default();
    disk.create("log", status::BYTES as usize + (1 << 16));
    let names: Vec<String> = (0..THREADS).map(|thread| thread.to_string()).collect();
    names.iter().for_each(|name| disk.create(name, PAGE as usize));
    FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    let left = Arc::new(AtomicI64::new(0));
    let store = Panics { store: disk.store("log"), left: left.clone(), sync_time };
    let log = FileLog::open_on(Box::new(store), "log".into()).unwrap();
    // Dropped by a panic of this test, it would wait for what is found not to end.
    let rvm = ManuallyDrop::new(Rvm::open(log, disk.clone(), Options::default()).unwrap());
    let (ended, all_ended) = mpsc::channel();
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..THREADS).map(|_| AtomicU64::new(0)).collect());
    let regions: Vec<_> = names.iter().map(|name| rvm.map(name, 0..PAGE).unwrap()).collect();
    left.store(operation, Ordering::Relaxed);
    for (thread, mut region) in regions.into_iter().enumerate() {
        let (ended, acknowledged) = (ended.clone(), acknowledged.clone());
        std::thread::spawn(move || {
            let commits = AssertUnwindSafe(|| {
                for number in 1.. {
                    let mut transaction = region.begin();
                    *transaction.get_mut::<u64>(0).unwrap() = number;
                    if let Err(error) = transaction.commit() {
                        return error;
                    }
                    acknowledged[thread].store(number, Ordering::Relaxed);
                }
                unreachable!("the log never fails")
            });
            ended.send(catch_unwind(commits).ok())
        });
    }
    let mut panicked = 0;
    for _ in 0..THREADS {
        match all_ended.recv_timeout(Duration::from_secs(10)) {
            Ok(Some(error)) => {
                assert!(matches!(error, Error::Failed(_)), "{what}: {error}");
                assert!(error.to_string().contains("the thread that did it panicked"), "{what}: {error}");
            }
            Ok(None) => panicked += 1,
            Err(_) => panic!("{what}: a thread waits for ever"),
        }
    }
    assert!(panicked <= 1, "{what}: {panicked} panicked");
    assert!(matches!(rvm.flush(), Err(Error::Failed(_))), "{what}");
    drop(ManuallyDrop::into_inner(rvm));
    let log = FileLog::open_on(disk.store("log"), "log".into()).unwrap();
    let rvm = Rvm::open(log, disk.clone(), Options::default()).unwrap();
    for (name, acknowledged) in names.iter().zip(acknowledged.iter()) {
        let acknowledged = acknowledged.load(Ordering::Relaxed);
        let found = *rvm.map(name, 0..PAGE).unwrap().get::<u64>(0).unwrap();
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{what}: {found} of {acknowledged}");
    }
}

/// Others wait for the force that panics, or for company.
#[test]
fn a_panic_in_a_force_of_a_device_is_told_to_all() {
    (1..40).for_each(|operation| run(Duration::from_micros(300), operation));
}

/// The thread that forces holds all locks meanwhile. Long histories are truncated in the background, too.
#[test]
fn a_panic_in_a_force_of_memory_is_told_to_all() {
    (1..400).step_by(7).for_each(|operation| run(Duration::ZERO, operation));
}
