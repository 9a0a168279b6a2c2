//! The operating system and the computer, behind safe interfaces: for all crates that store real bytes.
//!
//! Nothing here knows a simulated device, its time or its media. The recoverable memory, the persistent heap and the
//! server are built on it, so that `unsafe` code for mappings, locks and flushes is written and reviewed once.
//!
//! | module | what |
//! |---|---|
//! | [`mapping`] | [`Mapping`]: a file or anonymous memory mapped for loads and stores |
//! | [`PrivateCopy`] | a part of a file in memory, copied where it is stored to |
//! | [`HugeAlloc`] | an allocator that gives the largest vectors huge pages |
//! | [`in_huge_pages`] | memory that the program is about to fill, in huge pages |
//! | [`stores`] | stores to mapped memory in known units and order: whole words, or past the caches |
//! | [`flush`] | [`Flush`]: writes cache lines back to memory (clwb, clflushopt, clflush) |
//! | [`mtd`] | raw flash as a character device: its description and erase |
//! | [`afresh`](fn@afresh) | values that the compiler must not compute in advance |
//! | [`barrier`] | a memory barrier that is free on the frequent side (membarrier) |
//! | [`mod@file`] | unnamed files in memory, holes, free space, private files |
//! | [`folder`] | [`LockedFolder`]: a folder with one owner, whose files are replaced atomically |
//! | [`faulty`] | [`FaultyFile`]: a file that fails on demand, for tests |
//! | [`WriteWatch`] | detects the first store to each page of some memory by page protection |
//! | `sigbus` | reports a mapped page that cannot be read or allocated, before the process ends |
//!
//! Errors are `std::io::Error` where the caller knows the file, [`FolderError`] where it does not.
//!
//! Durability: bytes written to a file survive a killed process at once and a crash of the machine only after
//! `sync_data`; a replaced file is old or new after either. Stores to a mapping survive like written bytes; a `Flush`
//! makes them durable only where the mapping is persistent memory.

// Miri is of the nightly compiler.
#![cfg_attr(miri, feature(core_intrinsics), allow(internal_features))]

#[cfg(not(target_os = "linux"))]
compile_error!("only Linux is supported");

mod afresh;
pub mod barrier;
pub mod faulty;
pub mod file;
pub mod flush;
pub mod folder;
mod huge_alloc;
pub mod mapping;
pub mod mtd;
mod private_copy;
mod room;
mod sigbus;
pub mod stores;
mod write_watch;

pub use afresh::{afresh, afresh_mut};
pub use faulty::FaultyFile;
pub use flush::Flush;
pub use folder::{FolderError, LockedFolder};
pub use huge_alloc::HugeAlloc;
pub use mapping::Mapping;
pub use private_copy::PrivateCopy;
pub use room::in_huge_pages;
pub use write_watch::WriteWatch;

use std::io;

/// The result of a system call that returns -1 on failure and sets `errno`.
pub fn check<T: PartialEq + From<i8>>(result: T) -> io::Result<T> {
    match result == T::from(-1) {
        true => Err(io::Error::last_os_error()),
        false => Ok(result),
    }
}
