//! Recoverable virtual memory: transactions on mapped memory.
//!
//! A program maps parts of *segments* (files) as *regions* of its memory, changes them in transactions, and finds
//! after a crash exactly what was committed. New bytes go to a *log*; *truncation* applies them to the segments.
//! After M. Satyanarayanan et al., Lightweight Recoverable Virtual Memory (SOSP 1993), and system 001, Transactions
//! in a Flash.
//!
//! | module | what |
//! |---|---|
//! | [`Rvm`] | an open log: map, flush, truncate, statistics |
//! | [`Region`], [`Transaction`] | memory and its changes, checked by the compiler |
//! | [`heap`] | a persistent heap in a region |
//! | [`implicit`] | transactions without explicit ranges |
//! | [`log`] | storage of records: file, battery-backed memory, flash, flash disk, both |
//! | [`flash`] | devices for flash logs: a file, MTD, a model for tests |
//! | [`typed`] | a heap of typed objects that logs mutably borrowed objects |
//! | [`store`] | files as storage of logs and segments |
//! | [`record`] | the format of the records |
//! | [`inspect`] | the contents of a log, without recovering it |
//! | [`repair`] | recovers a log whose folder was copied, and keeps the readable part of a damaged one |
//! | [`RawTransaction`], [`Memory`] | the same by address, for other languages |
//!
//! Promises
//! 1. A commit with flush is durable when it returns: after a crash all of it is found. No crash leaves part of a
//!    transaction, or a later one without all earlier ones.
//! 2. Recovery is idempotent: it may be interrupted at any point and begin again. It takes time in proportion to the
//!    log.
//! 3. After a write or force has failed, no work is accepted until the log is opened again ([`Error::Failed`]).
//! 4. A transaction that does not fit in the log is refused before it changes anything ([`Error::TooLarge`]).
//! 5. Isolation is left to the program; in Rust, to the borrow checker.

mod checksum;
mod core;
mod draws;
mod error;
pub mod flash;
pub mod heap;
pub mod implicit;
pub mod inspect;
pub mod log;
pub mod record;
mod region;
pub mod repair;
mod rvm;
mod scan;
pub mod store;
pub mod typed;

pub use core::{
    Flush, Memory, Options, PAGE_BYTES, RawTransaction, Recovery, Restore, Statistics, Truncation, View,
};
pub use error::{Error, Result};
pub use flash::Flash;
pub use log::{Log, Status};
pub use region::{Part, Pending, Plain, Region, Transaction};
pub use rvm::Rvm;
pub use store::{Segments, Store};

/// The tutorial is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rvm.md")]
mod tutorial {}
