//! What makes small transactions durable, compared: msync of the heap's own file, and the log of recoverable memory on a file
//! and in battery-backed memory. Each thread counts in an object of its own.
//!
//! usage: logs FOLDER [TRANSACTIONS]    FOLDER: on the disk to be measured; battery-backed memory is `/dev/shm`

use nvlab_nvheap::{Brand, Error, Heap, Options, PVec, Persist, Result};
use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Log, Rvm};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

struct Counting;
impl Brand for Counting {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Counting)]
#[repr(C)]
struct Root {
    counts: PVec<Count, Counting>,
}

/// Two of them share no lock.
#[derive(Persist, Default)]
#[repr(C)]
struct Count {
    count: u64,
    rest: [[u64; 16]; 10],
}

fn root(tx: &nvlab_nvheap::Tx<'_, Counting>) -> Result<Root> {
    Ok(Root { counts: PVec::from_fn(tx, 16, |_| Ok(Count::default()))? })
}

fn options() -> Options {
    Options { bytes_max: 4 << 20, logs: 16, ..Options::default() }
}

/// Processor time of this program so far, in seconds, that of the kernel on its behalf included.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> =
        stat.rsplit(") ").next().unwrap_or("").split(' ').map(|field| field.parse().unwrap_or(0)).collect();
    fields.iter().skip(11).take(2).sum::<u64>() as f64 / 100.0
}

fn measure(name: &str, heap: &Heap<Counting>, total: u64, forces: &dyn Fn() -> u64) -> Result<()> {
    for threads in [1, 2, 8] {
        let (begun, processor, forced) = (Instant::now(), processor_time(), forces());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        let root = heap.root()?;
                        (0..total / threads).try_for_each(|_| {
                            heap.transaction(|tx| {
                                root.read(tx)?.counts.write(tx, thread as usize)?.count += 1;
                                Ok(())
                            })
                        })
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        let (elapsed, processor) = (begun.elapsed().as_secs_f64(), processor_time() - processor);
        let each = |seconds: f64| seconds * 1e6 / total as f64;
        println!(
            "{name:<22} {threads:>2} threads  {:>9.1} us  {:>7.1} us of processor  {:>6.3} forces",
            each(elapsed),
            each(processor),
            (forces() - forced) as f64 / total as f64
        );
    }
    Ok(())
}

fn on_log(name: &str, folder: &Path, log: impl Log + 'static, total: u64) -> Result<()> {
    let segments = SegmentFolder::new(folder);
    let rvm = segments.create("heap", 4 << 20).and_then(|()| Rvm::open(log, segments, Default::default()));
    let rvm = Arc::new(rvm.map_err(Error::abort)?);
    let heap = Heap::create_on(&rvm, "heap", options(), root)?;
    measure(name, &heap, total, &|| rvm.statistics().forces)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let folder =
        Path::new(arguments.get(1).ok_or_else(|| Error::abort("usage: logs FOLDER [TRANSACTIONS]"))?);
    let total = arguments.get(2).and_then(|total| total.parse().ok()).unwrap_or(8000);
    let name = format!("nvheap-logs-{}", std::process::id());
    let [disk, memory] = [folder, Path::new("/dev/shm")].map(|folder| folder.join(&name));
    for folder in [&disk, &memory] {
        std::fs::create_dir(folder).map_err(Error::abort)?;
    }
    let all = (|| {
        // A transaction is one msync, of the log's page; home follows at the end of an epoch.
        let heap = Heap::create(disk.join("own"), options(), root)?;
        measure("msync, a disk", &heap, total, &|| 0)?;
        drop(heap);
        let log = FileLog::create(&disk.join("log"), 4 << 20).map_err(Error::abort)?;
        on_log("log on a file, a disk", &disk, log, total)?;
        let log = BatteryRam::create(&memory.join("log"), 4 << 20).map_err(Error::abort)?;
        on_log("log in battery RAM", &memory, log, total * 20)?;
        let heap = Heap::create(memory.join("own"), options(), root)?;
        measure("cache lines, memory", &heap, total * 20, &|| 0)
    })();
    for folder in [&disk, &memory] {
        std::fs::remove_dir_all(folder).map_err(Error::abort)?;
    }
    all
}
