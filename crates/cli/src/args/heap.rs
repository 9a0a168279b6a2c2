//! The command line of `nvlab heap`.

use clap::{Args, Subcommand};
use nvlab_units::quantity;
use nvlab_workload::objects::Workload;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nvlab heap bench                                 four workloads, each safety layer, in /dev/shm
  nvlab heap bench --workload sps --threads 1,2    one workload, with one thread and with two
  nvlab heap bench --read-ns 0 --write-ns 500      emulate the delays of another memory";

#[derive(Subcommand)]
pub enum HeapVerb {
    /// Print statistics of a heap: types, pages, blocks, logs
    Stat {
        /// Heap file; no program may have it open
        file: PathBuf,
    },
    /// Check every block, pointer, count, value and checksum, and list unreachable objects; exits with status 1 if
    /// the heap is damaged
    Check {
        /// Heap file; no program may have it open
        file: PathBuf,
    },
    /// Print the root and the objects reachable from it
    Dump {
        /// Heap file; no program may have it open
        file: PathBuf,
        /// Follow chains of at most N pointers
        #[arg(long, value_name = "N", default_value_t = 4)]
        depth: u32,
        /// Print the first N elements of each array, list and map
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Shrink the file to its live data; offsets of objects change
    Compact {
        /// Heap file; no program may have it open
        file: PathBuf,
        /// Drop unreachable objects, without running the program's Drop code
        #[arg(long)]
        drop_unreachable: bool,
        /// Add checksums to a heap that has none, permanently
        #[arg(long)]
        checksums: bool,
    },
    /// Measure what each safety layer of a heap costs on this machine
    #[command(after_help = EXAMPLES)]
    Bench(HeapBench),
}

#[derive(Args)]
pub struct HeapBench {
    /// Workloads: sps, b-tree, hash, six-degrees [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = workload)]
    pub workload: Vec<Workload>,
    /// Number of array elements, keys or nodes (rounded down to a power of two for nodes)
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = count)]
    pub elements: u64,
    /// Maximum operations per thread and run
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = count)]
    pub operations: u64,
    /// Maximum duration of a run
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub seconds: f64,
    /// Thread counts; one run with each
    #[arg(long, default_value = "1", value_name = "N,...", value_delimiter = ',')]
    pub threads: Vec<u64>,
    /// Folder for the heap files during the runs; on a disk they are made durable by msync
    #[arg(long, default_value = "/dev/shm", value_name = "DIR")]
    pub dir: PathBuf,
    /// Delay per cache line of an opened object, in nanoseconds (67: PCM of system 004, slide 9)
    #[arg(long, default_value_t = 67, value_name = "NS")]
    pub read_ns: u64,
    /// Delay per cache line written to memory, in nanoseconds (215: as above)
    #[arg(long, default_value_t = 215, value_name = "NS")]
    pub write_ns: u64,
}

fn workload(text: &str) -> Result<Workload, String> {
    let found = Workload::ALL.into_iter().find(|workload| workload.name() == text);
    found.ok_or_else(|| format!("write {}", Workload::ALL.map(Workload::name).join(", ")))
}

fn count(text: &str) -> Result<u64, String> {
    quantity::count(text).map_err(|error| error.to_string())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "write a number of seconds from 0.001 to 3600".to_string())
}
