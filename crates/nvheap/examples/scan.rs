//! How long a read of a whole map takes beside threads that change it, and what it costs them, in CPU time. What any company costs them,
//! as caches and memory are shared, is seen beside scans of another heap.
//!
//! `cargo run --release -p nvlab-nvheap --example scan -- [entries] [writers] [pause of a writer, us]`

mod measured;

use measured::cpu_ns;
use nvlab_nvheap::{Brand, Handle, Heap, Options, PBTreeMap, Persist};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

struct Sorted;
impl Brand for Sorted {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Sorted)]
#[repr(C)]
struct Root {
    map: PBTreeMap<u64, u64, Sorted>,
}

fn scan(heap: &Heap<Sorted>, root: &Handle<Root, Sorted>, tries: &AtomicU64) -> u64 {
    let sum = heap.transaction(|tx| {
        tries.fetch_add(1, Relaxed);
        let (root, mut sum) = (root.read(tx)?, 0_u64);
        for entry in root.map.iter(tx) {
            let (key, value) = entry?;
            sum = sum.wrapping_add(*key ^ *value);
        }
        Ok(sum)
    });
    sum.unwrap()
}

/// Scans a heap for a while, or only waits; returns the CPU time of a scan, tries of each, and CPU-ns of a change.
fn measure(
    heap: &Heap<Sorted>,
    entries: u64,
    writers: u64,
    pause: u64,
    scanned: Option<&Heap<Sorted>>,
) -> (Duration, f64, f64) {
    let (is_over, tries) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..writers {
            let is_over = &is_over;
            threads.push(scope.spawn(move || {
                let (root, mut state, mut changes) =
                    (heap.root().unwrap(), 88_172_645_463_325_252 + writer, 0);
                let began = cpu_ns();
                while !is_over.load(Relaxed) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let key = state % (2 * entries);
                    let toggle = heap.transaction(|tx| {
                        let root = root.read(tx)?;
                        if root.map.remove(tx, &key)?.is_none() {
                            root.map.insert(tx, key, key)?;
                        }
                        Ok(())
                    });
                    toggle.unwrap();
                    changes += 1;
                    if pause > 0 {
                        std::thread::sleep(Duration::from_micros(pause));
                    }
                }
                (cpu_ns() - began) as f64 / f64::from(changes)
            }));
        }
        let (began, mut times) = (Instant::now(), Vec::new());
        while began.elapsed() < Duration::from_millis(400) {
            let Some(scanned) = scanned else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            let began = cpu_ns();
            std::hint::black_box(scan(scanned, &scanned.root().unwrap(), &tries));
            times.push(Duration::from_nanos(cpu_ns() - began));
        }
        is_over.store(true, Relaxed);
        let change =
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<f64>() / writers.max(1) as f64;
        times.sort();
        let tries = tries.load(Relaxed) as f64 / times.len().max(1) as f64;
        (times.get(times.len() / 2).copied().unwrap_or_default(), tries, change)
    })
}

fn make(entries: u64) -> Heap<Sorted> {
    let path = std::path::PathBuf::from(format!("/dev/shm/nvheap-scan-{}", std::process::id()));
    let heap = Heap::create(&path, Options::default(), |tx| Ok(Root { map: PBTreeMap::new(tx)? })).unwrap();
    std::fs::remove_file(&path).unwrap();
    let root = heap.root().unwrap();
    for first in (0..entries).step_by(1000) {
        let fill = heap.transaction(|tx| {
            let root = root.read(tx)?;
            (first..entries.min(first + 1000)).try_for_each(|key| root.map.insert(tx, key * 2, key).map(drop))
        });
        fill.unwrap();
    }
    drop(root);
    heap
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (entries, writers, pause) = (argument(0, 100_000), argument(1, 1), argument(2, 0));
    let (heap, other) = (make(entries), make(entries));
    println!("{entries} entries, {writers} writers that pause {pause} us");
    let mut turns: Vec<[f64; 6]> = Vec::new();
    for _ in 0..15 {
        let (alone, ..) = measure(&heap, entries, 0, 0, Some(&heap));
        let (_, _, change) = measure(&heap, entries, writers, pause, None);
        let (beside, tries, slower) = measure(&heap, entries, writers, pause, Some(&heap));
        let (_, _, company) = measure(&heap, entries, writers, pause, Some(&other));
        turns.push([alone.as_secs_f64() * 1e3, beside.as_secs_f64() * 1e3, tries, change, slower, company]);
    }
    let median = |of: &dyn Fn(&[f64; 6]) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let [alone, beside, tries, change, slower, company] =
        [0, 1, 2, 3, 4, 5].map(|index| median(&|turn| turn[index]));
    let more = |than: usize| (median(&|turn| turn[4] / turn[than]) - 1.0) * 100.0;
    println!(
        "medians of {} turns: a scan takes {alone:.1} ms alone, {beside:.1} ms beside writers ({:.2} x, {tries:.1} tries);\n\
         a change {change:.0} ns alone, {company:.0} beside scans of another heap, {slower:.0} beside scans of its own: \
         {:+.0} % and {:+.0} %",
        turns.len(),
        median(&|turn| turn[1] / turn[0]),
        more(3),
        more(5)
    );
}
