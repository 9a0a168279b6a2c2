//! Logs of recoverable memory on simulated media: what joins `nvlab_rvm`, which knows no simulator, to media that know no
//! log.
//!
//! The library is synchronous, and a run has one thread. So there is one clock for everything: each call of the library
//! into a device lasts until the device has done the operation, and moves the clock there. What is timed is what the
//! library does, byte by byte; no formula stands for it.
//!
//! | module | what |
//! |---|---|
//! | [`clock`] | virtual time, what it was spent on, and when the power fails |
//! | [`flash`] | a NOR array as a character device |
//! | [`flash_disk`] | flash that emulates a disk: sectors |
//! | [`disk`] | a rotating disk below the host's cache |
//! | [`ram`] | memory: with a battery for logs, without time for data |
//! | [`data`] | the segment that is mapped |
//! | [`host`] | a host with recoverable memory, built from a design |

pub mod clock;
pub mod data;
pub mod disk;
pub mod flash;
pub mod flash_disk;
pub mod host;
pub mod ram;
