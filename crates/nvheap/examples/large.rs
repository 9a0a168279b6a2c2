//! Heaps of gigabytes: how long a heap of a size takes to open after kill -9, what memory its program has of its own, and a heap
//! that is larger than the memory its program may use.
//!
//! ```text
//! large fill PATH BYTES      creates a heap with BYTES of objects, changes some of them and kills itself
//! large sparse PATH BYTES    the same with a file of BYTES, of which the objects take little
//! large open PATH            opens it again and says how long that and a first transaction took
//! large use PATH SECONDS     changes objects all over it for so long
//! ```

use nvlab_nvheap::{Brand, Error, Heap, Options, PVec, Persist, Result};
use std::path::Path;
use std::time::{Duration, Instant};

struct Large;
impl Brand for Large {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Large)]
#[repr(C)]
struct Root {
    /// Arrays of 1 MiB.
    arrays: PVec<PVec<u64, Large>, Large>,
    changed: u64,
}

const WORDS: usize = 1 << 17;

fn options() -> Options {
    Options { bytes_max: 16 << 30, ..Options::default() }
}

fn changes(heap: &Heap<Large>, first: u64, count: u64) -> Result<()> {
    let root = heap.root()?;
    for n in first..first + count {
        heap.transaction(|tx| {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
            let arrays = root.read(tx)?;
            let array = arrays.arrays.read(tx, mixed as usize % arrays.arrays.len())?;
            *array.write(tx, (mixed >> 20) as usize % WORDS)? = n;
            drop(arrays);
            root.write(tx)?.changed = n;
            Ok(())
        })?;
    }
    Ok(())
}

/// Memory of the program: all that is resident, that of its own, and pages it had to wait for.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).map_or("?", |rest| rest.trim()).to_string()
    };
    let faults = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let major = faults.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(9)).unwrap_or("?").to_string();
    format!("own memory {}, of the file {}, {major} page reads", of("RssAnon:"), {
        let (file, shared) = (of("RssFile:"), of("RssShmem:"));
        format!("{file} + {shared}")
    })
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let word = |i: usize| arguments.get(i).map(String::as_str).unwrap_or("");
    let number = |i: usize| word(i).parse::<u64>().map_err(|_| Error::abort("a number is missing"));
    let path = Path::new(word(2));
    match word(1) {
        "fill" | "sparse" => {
            let heap = Heap::<Large>::create(path, options(), |_| Ok(Root::default()))?;
            let root = heap.root()?;
            let arrays = if word(1) == "fill" { number(3)? >> 20 } else { 16 };
            for _ in 0..arrays {
                heap.transaction(|tx| {
                    let array = PVec::from_fn(tx, WORDS, |i| Ok(i as u64))?;
                    root.write(tx)?.arrays.push(tx, array)
                })?;
            }
            if word(1) == "sparse" {
                drop((root, heap));
                let file = std::fs::File::options().write(true).open(path);
                let lengthened = file.and_then(|file| file.set_len(number(3).unwrap_or(0)));
                lengthened.map_err(Error::abort)?;
                let heap = Heap::<Large>::open(path, options())?;
                changes(&heap, 1, 1000)?;
                return kill();
            }
            changes(&heap, 1, 1000)?;
            kill()
        }
        "open" => {
            let begun = Instant::now();
            let heap = Heap::<Large>::open(path, options())?;
            let opened = begun.elapsed();
            let changed = heap
                .transaction(|_| Ok(()))
                .and_then(|()| heap.root())
                .and_then(|root| heap.transaction(|tx| Ok(root.read(tx)?.changed)))?;
            println!(
                "{:?}, opened in {opened:?}, first transaction after {:?}",
                heap.stat(),
                begun.elapsed()
            );
            println!("the last of {changed} changes is there; {}", memory());
            Ok(())
        }
        "use" => {
            let heap = Heap::<Large>::open(path, options())?;
            let (begun, mut done) = (Instant::now(), 0);
            while begun.elapsed() < Duration::from_secs(number(3)?) {
                changes(&heap, done + 1, 100)?;
                done += 100;
                if done.is_power_of_two() || done % 20_000 == 0 {
                    println!("{done} changes; {}", memory());
                }
            }
            println!("{done} changes in all; {}", memory());
            Ok(())
        }
        _ => Err(Error::abort("usage: see the head of examples/large.rs")),
    }
}

/// As kill -9 would: nothing is closed.
fn kill() -> Result<()> {
    std::process::abort()
}
