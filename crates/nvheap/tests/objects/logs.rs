//! Heaps on the logs of recoverable memory: power cuts and I/O errors at every operation of disk and flash, also during
//! recovery, against a model; what several threads commit is forced together.

use nvlab_nvheap::{
    Brand, Error, Heap, Options, PBTreeMap, PString, PVec, Persist, Persistence, Result, Strong, Tx,
};
use nvlab_rvm::flash::{MemoryFlash, Shape};
use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Rvm, Truncation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Logged;
impl Brand for Logged {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Logged)]
#[repr(C)]
struct Root {
    done: u64,
    balances: [i64; 8],
    text: PString<Logged>,
    notes: Option<Strong<Note, Logged>>,
    map: PBTreeMap<u64, u64, Logged>,
    counts: PVec<Count, Logged>,
}

/// Two of them share no lock.
#[derive(Persist, Default)]
#[repr(C)]
struct Count {
    count: u64,
    rest: [[u64; 16]; 10],
}

#[derive(Persist)]
#[persist(heap = Logged)]
#[repr(C)]
struct Note {
    number: u64,
    next: Option<Strong<Note, Logged>>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn options() -> Options {
    Options { bytes_max: 2 << 20, logs: 2, ..Options::default() }
}

fn root(tx: &Tx<'_, Logged>) -> Result<Root> {
    Ok(Root {
        done: 0,
        balances: [0; 8],
        text: PString::new(tx, "")?,
        notes: None,
        map: PBTreeMap::new(tx)?,
        counts: PVec::from_fn(tx, 16, |_| Ok(Count::default()))?,
    })
}

/// Operation after operation; returns the number of the one that is done.
fn step(heap: &Heap<Logged>) -> Result<u64> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.done += 1;
        let n = root.done;
        root.balances[n as usize % 8] += n as i64;
        root.balances[n as usize * 5 % 8] -= n as i64;
        root.text = PString::new(tx, &"x".repeat(n as usize % 40))?;
        match n % 5 {
            0 => root.notes = None,
            _ => {
                let next = root.notes.take();
                root.notes = Some(Strong::new(tx, Note { number: n, next })?);
            }
        }
        if root.map.remove(tx, &(n % 7))?.is_none() {
            root.map.insert(tx, n % 7, n)?;
        }
        Ok(n)
    })
}

/// What is there is what so many operations make; returns how many.
fn verify(heap: &mut Heap<Logged>) -> u64 {
    let handle = heap.root().unwrap();
    let done = heap.transaction(|tx| {
        let root = handle.read(tx)?;
        let (mut balances, mut map) = ([0; 8], std::collections::BTreeMap::new());
        for n in 1..=root.done {
            balances[n as usize % 8] += n as i64;
            balances[n as usize * 5 % 8] -= n as i64;
            if map.remove(&(n % 7)).is_none() {
                map.insert(n % 7, n);
            }
        }
        assert_eq!(root.balances, balances);
        assert_eq!(root.text.get(tx)?.len(), root.done as usize % 40);
        let found = root.map.iter(tx).map(|entry| entry.map(|(key, value)| (*key, *value)));
        assert_eq!(found.collect::<Result<Vec<_>>>()?, Vec::from_iter(map));
        let (mut notes, mut next) = (0, root.notes.as_ref().map(|note| note.share(tx)).transpose()?);
        while let Some(note) = next {
            let note = note.read(tx)?;
            assert_eq!(note.number, root.done - notes);
            notes += 1;
            next = note.next.as_ref().map(|note| note.share(tx)).transpose()?;
        }
        assert_eq!(notes, root.done % 5);
        Ok(root.done)
    });
    drop(handle);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
    done.unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    File,
    Flash,
    Hybrid,
}

/// Devices that lose power together.
struct Devices {
    kind: Kind,
    disk: Disk,
    flash: MemoryFlash,
}

const THRESHOLD: usize = 400;

impl Devices {
    fn new(kind: Kind, seed: u64) -> Devices {
        let (disk, flash) =
            (Disk::default(), MemoryFlash::new(Shape { block_bytes: 4096, blocks: 14 }, seed));
        disk.create("heap", 3 << 19);
        // Small, so that a history goes round it.
        disk.create("log", status::BYTES as usize + (24 << 10));
        match kind {
            Kind::File => drop(FileLog::create_on(disk.store("log"), "log".into()).unwrap()),
            _ => {
                let log = FlashLog::create(flash.clone(), 7, 2).unwrap();
                if kind == Kind::Hybrid {
                    HybridLog::create(log, disk.store("log"), "log", THRESHOLD).unwrap();
                }
            }
        }
        Devices { kind, disk, flash }
    }

    fn rvm(&self) -> nvlab_rvm::Result<Arc<Rvm>> {
        let options = nvlab_rvm::Options { truncation: Truncation::WhenFull, ..Default::default() };
        let rvm = match self.kind {
            Kind::File => {
                let log = FileLog::open_on(self.disk.store("log"), "log".into())?;
                Rvm::open(log, self.disk.clone(), options)?
            }
            Kind::Flash => Rvm::open(FlashLog::open(self.flash.clone())?, self.disk.clone(), options)?,
            Kind::Hybrid => {
                let small = FlashLog::open(self.flash.clone())?;
                let log = HybridLog::open(small, self.disk.store("log"), "log", THRESHOLD)?;
                Rvm::open(log, self.disk.clone(), options)?
            }
        };
        Ok(Arc::new(rvm))
    }

    /// The power comes back.
    fn restart(&mut self) {
        self.disk = self.disk.restart();
        self.flash.power_on();
    }

    /// Does operations until `last` is done or something fails; the last one that was acknowledged. Creates the heap if that
    /// is not done.
    fn run(&self, last: u64) -> (u64, std::result::Result<(), String>) {
        let mut done = 0;
        let mut attempt = || -> std::result::Result<(), String> {
            let rvm = self.rvm().map_err(|error| error.to_string())?;
            let heap = match Heap::<Logged>::open_on(&rvm, "heap", options()) {
                Err(Error::Format { .. }) => Heap::create_on(&rvm, "heap", options(), root),
                opened => opened,
            };
            let heap = heap.map_err(|error| {
                assert!(!matches!(error, Error::Invalid(_) | Error::Full { .. }), "{error}");
                error.to_string()
            })?;
            while done < last {
                match step(&heap) {
                    Ok(n) => done = n,
                    Err(error) => {
                        // Nobody knows what is durable: no more work.
                        assert!(matches!(step(&heap), Err(Error::Failed(_))), "{error}");
                        return Err(error.to_string());
                    }
                }
            }
            Ok(())
        };
        let result = attempt();
        (done, result)
    }
}

/// Cuts the power at an operation of one device, and at another one of what follows; whether each came to pass.
fn cut(kind: Kind, on_disk: bool, first: u64, second: u64) -> [bool; 2] {
    const LAST: u64 = 90;
    let mut devices = Devices::new(kind, first * 1000 + second);
    let (mut acknowledged, mut cuts) = (0, [false; 2]);
    for (round, operation) in [first, second].into_iter().enumerate() {
        match on_disk {
            true => devices.disk.plan(Some((operation, Failure::Power)), first + second),
            false => devices.flash.cut_at(devices.flash.operations() + operation),
        }
        let (done, result) = devices.run(LAST);
        cuts[round] = result.is_err();
        acknowledged = done.max(acknowledged);
        devices.restart();
        if !cuts[round] {
            break;
        }
    }
    let rvm = devices.rvm().unwrap();
    match Heap::<Logged>::open_on(&rvm, "heap", options()) {
        Ok(mut heap) => {
            let found = verify(&mut heap);
            let what = format!("{kind:?}, disk {on_disk}, operations {first} and {second}");
            assert!((acknowledged..=acknowledged + 2).contains(&found), "{what}: {found}, {acknowledged}");
        }
        Err(error) => assert!(matches!(error, Error::Format { .. }) && acknowledged == 0, "{error}"),
    }
    cuts
}

#[test]
fn the_power_fails_at_every_operation_of_every_log() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let mut tried = 0;
    for (kind, on_disk) in
        [(Kind::File, true), (Kind::Flash, false), (Kind::Flash, true), (Kind::Hybrid, false)]
    {
        let mut first = 1;
        while cut(kind, on_disk, first, 3 + first % 40)[0] {
            tried += 1;
            first += 1 + first / 60;
        }
        // Again and again while it recovers.
        tried += (1..30).filter(|&again| cut(kind, on_disk, 60, again) == [true, true]).count();
    }
    assert!(tried > 400, "only {tried} cuts");
}

/// A write or sync that fails: the heap refuses all work until it is opened again, and what was acknowledged is there.
#[test]
fn a_failing_disk_loses_nothing_that_was_acknowledged() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    for failure in [Failure::Eio, Failure::Enospc] {
        let mut failed = 0;
        for operation in (1..600).step_by(5) {
            let mut devices = Devices::new(Kind::File, operation);
            devices.disk.plan(Some((operation, failure)), operation);
            let (done, result) = devices.run(60);
            if result.is_ok() {
                // A sync that is told that there is no room, or no such operation.
                continue;
            }
            failed += 1;
            devices.restart();
            let rvm = devices.rvm().unwrap();
            if let Ok(mut heap) = Heap::<Logged>::open_on(&rvm, "heap", options()) {
                let found = verify(&mut heap);
                assert!((done..=done + 1).contains(&found), "{failure:?} at {operation}: {found}, {done}");
            } else {
                assert_eq!(done, 0);
            }
        }
        assert!(failed >= 15, "{failed} runs failed of {failure:?}");
    }
}

#[test]
fn what_a_log_cannot_take_is_refused_before_it_happens() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let devices = Devices::new(Kind::File, 1);
    let rvm = devices.rvm().unwrap();
    let other = Options { persistence: Persistence::Sync, ..options() };
    assert!(matches!(Heap::<Logged>::create_on(&rvm, "heap", other, root), Err(Error::Invalid(_))));
    let mut heap = Heap::<Logged>::create_on(&rvm, "heap", options(), root).unwrap();
    assert!(
        matches!(Heap::<Logged>::open_on(&rvm, "heap", options()), Err(Error::Invalid(_))),
        "mapped twice"
    );
    step(&heap).unwrap();
    let root_of = heap.root().unwrap();
    let large = heap.transaction(|tx| {
        let mut root = root_of.write(tx)?;
        root.text = PString::new(tx, &"too large".repeat(200))?;
        (0..2500).try_for_each(|key| root.map.insert(tx, key * 1000, key).map(drop))
    });
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
    // A snapshot, which the last tries read, waits for commits that are in progress: none is.
    let mut tries = 0;
    let done = heap.transaction(|tx| {
        tries += 1;
        let done = root_of.read(tx)?.done;
        if tries < 10 { Err(Error::Conflict) } else { Ok(done) }
    });
    assert_eq!(done.unwrap(), 1);
    drop(root_of);
    // New arrays may be larger than the log, be they kept or given up.
    for keep in [false, true] {
        let array = heap.transaction(|tx| {
            PVec::<u64, Logged>::from_fn(tx, 10_000, |i| Ok(i as u64))?;
            if keep { Ok(()) } else { Err(Error::abort("not kept")) }
        });
        assert_eq!(array.is_ok(), keep, "{array:?}");
    }
    assert_eq!(step(&heap).unwrap(), 2);
    assert_eq!(verify(&mut heap), 2);
    drop((heap, rvm));
    let rvm = devices.rvm().unwrap();
    assert_eq!(rvm.recovery().commits, 0, "it was closed");
    let heap = Heap::<Logged>::open_on(&rvm, "heap", options()).unwrap();
    assert!(Heap::<Logged>::create_on(&rvm, "heap", options(), root).is_err(), "{heap:?}");
}

/// Threads that change different objects wait for the same force. On battery-backed memory nobody waits.
#[test]
fn threads_share_the_forces_of_a_file() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    for is_file in [true, false] {
        let place = if is_file { env!("CARGO_TARGET_TMPDIR") } else { "/dev/shm" };
        let folder = tempfile::tempdir_in(place).unwrap();
        SegmentFolder::new(folder.path()).create("heap", 4 << 20).unwrap();
        let (path, segments) = (folder.path().join("log"), SegmentFolder::new(folder.path()));
        let rvm = match is_file {
            true => Rvm::open(FileLog::create(&path, 1 << 20).unwrap(), segments, Default::default()),
            false => Rvm::open(BatteryRam::create(&path, 1 << 20).unwrap(), segments, Default::default()),
        };
        let rvm = Arc::new(rvm.unwrap());
        let options = Options { logs: 10, bytes_max: 4 << 20, ..Options::default() };
        let heap = Heap::<Logged>::create_on(&rvm, "heap", options.clone(), root).unwrap();
        let (before, committed) = (rvm.statistics(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (heap, committed) = (&heap, &committed);
                scope.spawn(move || {
                    let root = heap.root().unwrap();
                    for _ in 0..200 {
                        let counted = heap.transaction(|tx| {
                            root.read(tx)?.counts.write(tx, thread)?.count += 1;
                            Ok(())
                        });
                        counted.unwrap();
                        committed.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let forces = rvm.statistics().forces - before.forces;
        let committed = committed.into_inner();
        eprintln!("file {is_file}: {committed} transactions, {forces} forces");
        assert!(!is_file || forces < committed * 3 / 4, "{forces} forces for {committed} transactions");
        drop((heap, rvm));
        let rvm = match is_file {
            true => Rvm::open(
                FileLog::open(&path).unwrap(),
                SegmentFolder::new(folder.path()),
                Default::default(),
            ),
            false => Rvm::open(
                BatteryRam::open(&path).unwrap(),
                SegmentFolder::new(folder.path()),
                Default::default(),
            ),
        };
        let heap = Heap::<Logged>::open_on(&Arc::new(rvm.unwrap()), "heap", options).unwrap();
        let root = heap.root().unwrap();
        let counts = heap.transaction(|tx| {
            root.read(tx)?.counts.iter(tx).map(|count| Ok(count?.count)).collect::<Result<Vec<_>>>()
        });
        assert_eq!(counts.unwrap(), [[200; 8], [0; 8]].concat());
    }
}
