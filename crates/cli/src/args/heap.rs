//! `nvlab heap`.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Subcommand)]
pub enum HeapVerb {
    /// Count what is in it: types, pages, blocks, logs
    Stat {
        /// The heap, which no program has open
        file: PathBuf,
    },
    /// Check every block, pointer, count and value, and list objects that nothing can reach; status 1 if it is damaged
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
    },
}
