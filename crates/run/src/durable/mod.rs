//! Logs of recoverable memory on simulated media: the link between `nvlab_rvm`, which knows no simulator, and media
//! that know no log.
//!
//! The library is synchronous, and a run has one thread. So there is one clock for everything: each call of the
//! library into a device lasts until the device has done the operation, and advances the clock to that time. What is
//! timed is what the library does, byte by byte, not a formula for it. Rejected: *a formula for the time of a
//! commit*, which would not have shown that a flash disk costs most for small records; *a separate thread for
//! truncation*, whose time would depend on the computer.
//!
//! 1. A step of a gang programs a row, a byte of each chip; an append pays for the rows it touches. The paper counts
//!    bytes over chips: with 64 chips that is 6 us less in 477 of a C++ transaction. Page buffers make a step
//!    shorter.
//! 2. Truncation erases whole blocks only; the flash disk is charged for its share of an erase with every sector.
//! 3. A disk is behind the host's cache: a sync queues all changed sectors at once, reads cost nothing. Log and data
//!    are on different disks.
//! 4. Background work has its own clock, which begins when the host starts it; the host sees its effect when its own
//!    clock reaches that time, and a power failure before undoes it. So truncation takes two calls: one applies the
//!    records to the data, and a later one moves the head. Deferred erases are executed while the flash is idle, and
//!    any other operation suspends the one in progress.
//! 5. Programs that are ready when the log is free commit together, in the order in which they began; each computes
//!    on its own processor.
//! 6. Only the blocks of records count for the lifetime of a log: a status is erased once for thousands of
//!    truncations, and spares help only if a block fails early. A flash disk wears all its blocks evenly: no real one
//!    lasts longer.
//! 7. A run ends with a truncation. Then the balances must add up and the data must equal the memory, or there is no
//!    result.
//!
//! | module | what |
//! |---|---|
//! | [`clock`] | virtual time, its use, and the time of a power failure |
//! | [`flash`] | a NOR array as a character device |
//! | [`flash_disk`] | flash that emulates a disk: sectors |
//! | [`disk`] | a rotating disk below the host's cache |
//! | [`ram`] | memory: with a battery for logs, without time for data |
//! | [`data`] | the mapped segment |
//! | [`host`] | a host with recoverable memory, built from a design |

pub mod clock;
pub mod data;
pub mod disk;
pub mod flash;
pub mod flash_disk;
pub mod host;
pub mod ram;
