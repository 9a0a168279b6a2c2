//! Reopening what a program left that was killed takes work in proportion to what its log holds: neither to the bytes of its segment
//! nor to those that the log could hold. Counted are page faults, and what is read and written of the files.

use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::{DirectStore, FileStore, SegmentFolder};
use nvlab_rvm::{Log, Options, Result, Rvm, Segments, Store, Truncation};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const MEMORY: &str = "/dev/shm";
const COMMITS: u64 = 200;

/// Calls, bytes read and bytes written.
#[derive(Clone, Debug, Default)]
struct Counts(Arc<[AtomicU64; 3]>);

impl Counts {
    fn add(&self, index: usize, bytes: usize) {
        self.0[0].fetch_add(1, Relaxed);
        self.0[index].fetch_add(bytes as u64, Relaxed);
    }
}

#[derive(Debug)]
struct Counted<S>(S, Counts);

impl<S: Store> Store for Counted<S> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.1.add(1, into.len());
        self.0.read(into, offset)
    }
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.1.add(2, data.len());
        self.0.write(data, offset)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.add(0, 1);
        self.0.sync()
    }
    fn start_sync(&self) -> io::Result<bool> {
        self.0.start_sync()
    }
    fn prepare_parts(&self, offset: u64, bytes: usize) -> bool {
        self.0.prepare_parts(offset, bytes)
    }
    fn file(&self) -> Option<&File> {
        self.0.file()
    }
}

#[derive(Debug)]
struct CountedFolder(SegmentFolder, Counts);

impl Segments for CountedFolder {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(Counted(FileStore::open(&self.0.path(name), 0)?, self.1.clone())))
    }
    fn open_named(&self, name: &str) -> Result<Box<dyn Store>> {
        self.open(name)
    }
}

/// Page faults of this thread, those of the kernel on its behalf included.
fn faults() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields = text.rsplit(") ").next().unwrap();
    fields.split(' ').nth(7).unwrap().parse().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    File,
    Direct,
    BatteryRam,
}

fn log(path: &Path, kind: Kind, counts: &Counts) -> Box<dyn Log> {
    let name = path.display().to_string();
    match kind {
        Kind::File => {
            let store = Counted(FileStore::open(path, 0).unwrap(), counts.clone());
            Box::new(FileLog::open_on(Box::new(store), name).unwrap())
        }
        Kind::Direct => {
            let store = Counted(DirectStore::open(path).unwrap(), counts.clone());
            Box::new(FileLog::open_on(Box::new(store), name).unwrap())
        }
        Kind::BatteryRam => Box::new(BatteryRam::open(path).unwrap()),
    }
}

/// Page faults, calls, bytes read and bytes written of opening a log with [`COMMITS`] commits and mapping their segment.
fn reopen(folder: &Path, kind: Kind, log_bytes: u64, segment_bytes: u64) -> [u64; 4] {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let path = folder.path().join("log");
    let segments = SegmentFolder::new(folder.path());
    segments.create("data", segment_bytes).unwrap();
    match kind {
        Kind::BatteryRam => drop(BatteryRam::create(&path, log_bytes).unwrap()),
        _ => drop(FileLog::create(&path, log_bytes).unwrap()),
    }
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let open = |counts: &Counts| {
        let segments = CountedFolder(segments.clone(), counts.clone());
        let rvm = Rvm::open(log(&path, kind, counts), segments, options).unwrap();
        let region = rvm.map("data", 0..segment_bytes).unwrap();
        (rvm, region)
    };
    let (rvm, mut region) = open(&Counts::default());
    for number in 0..COMMITS {
        let mut transaction = region.begin();
        *transaction.get_mut::<u64>(number as usize * 4096 * 2).unwrap() = number + 1;
        transaction.commit().unwrap();
    }
    // Nothing is applied, as after a kill.
    drop((rvm, region));
    let counts = Counts::default();
    let before = faults();
    let (rvm, region) = open(&counts);
    assert_eq!(*region.get::<u64>(8192).unwrap(), 2);
    let taken = faults() - before;
    assert_eq!(rvm.recovery().commits, COMMITS);
    let [calls, read, written] = [0, 1, 2].map(|index| counts.0[index].load(Relaxed));
    [taken, calls, read, written]
}

/// Whether the file system takes transfers past the page cache.
fn takes_direct(folder: &Path) -> bool {
    let folder = tempfile::tempdir_in(folder).unwrap();
    DirectStore::create(&folder.path().join("file"), 1).is_ok()
}

#[test]
fn reopening_takes_what_the_log_holds() {
    let disk = std::env::temp_dir();
    let places = [
        (disk.as_path(), Kind::File),
        (&disk, Kind::Direct),
        (Path::new(MEMORY), Kind::File),
        (Path::new(MEMORY), Kind::BatteryRam),
    ];
    for (folder, kind) in places {
        if kind == Kind::Direct && !takes_direct(folder) {
            continue;
        }
        let small = reopen(folder, kind, 1 << 20, 8 << 20);
        let large = reopen(folder, kind, 32 << 20, 256 << 20);
        println!("{kind:?} in {}: {small:?} {large:?}", folder.display());
        let what =
            format!("{kind:?} in {}: {small:?} in small files, {large:?} in large ones", folder.display());
        // Behind the last record as much is read as another may be in.
        assert!(large[0] <= small[0] + small[0] / 4 + 300, "page faults: {what}");
        assert!(large[1] <= small[1] + 4, "calls: {what}");
        assert!(large[2] <= small[2] + (2 << 20), "bytes read: {what}");
        assert_eq!(large[3], small[3], "bytes written: {what}");
    }
}
