//! Heaps in a simulated cache.

use nvlab_nvheap::{Options, Persistence, Simulated};
use std::fs::File;
use std::sync::Arc;

/// A small heap with one log of so many bytes.
pub fn options(simulated: &Arc<Simulated>, log_bytes: u64) -> Options {
    Options { persistence: Persistence::Simulated(simulated.clone()), bytes_max: 2 << 20, logs: 1, log_bytes }
}

/// A file in memory.
pub fn file() -> File {
    nvlab_os::file::anonymous(c"heap", false).unwrap()
}
