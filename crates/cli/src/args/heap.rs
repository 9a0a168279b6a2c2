//! `nvlab heap`.

use clap::{Args, Subcommand};
use nvlab_units::quantity;
use nvlab_workload::objects::Workload;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nvlab heap bench                                 four workloads on each layer of safety, in /dev/shm
  nvlab heap bench --workload sps --threads 1,2    one of them, with one thread and with two
  nvlab heap bench --read-ns 0 --write-ns 500      the delays of another memory";

#[derive(Subcommand)]
pub enum HeapVerb {
    /// Count what is in it: types, pages, blocks, logs
    Stat {
        /// The heap, which no program has open
        file: PathBuf,
    },
    /// Check every block, pointer, count, value and checksum, and list objects that nothing can reach; status 1 if it is damaged
    Check {
        /// The heap, which no program has open
        file: PathBuf,
    },
    /// Print the root and the objects it leads to
    Dump {
        /// The heap, which no program has open
        file: PathBuf,
        /// Follow so many pointers, one behind the other
        #[arg(long, value_name = "N", default_value_t = 4)]
        depth: u32,
        /// Print the first N elements of each array, list and map
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Make the file as small as what it holds; offsets of objects change
    Compact {
        /// The heap, which no program has open
        file: PathBuf,
        /// Leave out the objects that nothing can reach; no Drop of the program runs
        #[arg(long)]
        drop_unreachable: bool,
        /// Give the heap checksums, if it has none; they stay
        #[arg(long)]
        checksums: bool,
    },
    /// Measure on this machine what each layer of safety costs a program that keeps objects
    #[command(after_help = EXAMPLES)]
    Bench(HeapBench),
}

#[derive(Args)]
pub struct HeapBench {
    /// Workloads: sps, b-tree, hash, six-degrees [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = workload)]
    pub workload: Vec<Workload>,
    /// Elements of the array, keys, nodes (as many as the greatest power of two)
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = count)]
    pub elements: u64,
    /// The most operations of a thread in a run
    #[arg(long, default_value = "1000000", value_name = "N", value_parser = count)]
    pub operations: u64,
    /// The longest run
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub seconds: f64,
    /// Runs with so many threads each
    #[arg(long, default_value = "1", value_name = "N,...", value_delimiter = ',')]
    pub threads: Vec<u64>,
    /// Keep the heaps in this folder meanwhile; on a disk they are made durable by msync
    #[arg(long, default_value = "/dev/shm", value_name = "DIR")]
    pub dir: PathBuf,
    /// Charge so many nanoseconds for each line of an object that is opened (67: PCM of system 004, slide 9)
    #[arg(long, default_value_t = 67, value_name = "NS")]
    pub read_ns: u64,
    /// Charge so many nanoseconds for each line that is written to memory (215: as above)
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
