//! The C interface of recoverable virtual memory: the library behind `rvm.h`, `rvm_segment.h`, `rvm_statistics.h` and
//! `rds.h` in `include/rvm`, which say what each function promises and how it differs from Coda's.
//!
//! Built as `librvm.so` and `librvm.a`. Little is decided here: functions check and convert what C passes and call
//! [`nvlab_rvm`]. There is one log per process, as in the original, so the state is one static value.
//!
//! | module | what |
//! |---|---|
//! | [`types`] | records and codes, laid out as in C |
//! | `records`, `offsets`, `names` | life of records, arithmetic on offsets, names of codes |
//! | `failure` | from errors to codes, `errno` and `rvm_errmsg` |
//! | `library` | the state: settings, log, regions, transactions |
//! | `calls`, `mapping`, `transaction` | the functions of `rvm.h` |
//! | `segment` | segments that know their regions |
//! | `rds`, `trace` | the heap and its trace |
//! | `counters`, `print` | statistics |
//! | `hooks` | what Coda's own programs use besides |
//!
//! Locks, in the order in which they are taken: library, heap, regions, one transaction, list of transactions, counters.

mod calls;
mod counters;
mod failure;
mod hooks;
mod library;
mod mapping;
mod names;
mod offsets;
mod print;
mod rds;
mod records;
mod segment;
mod trace;
mod transaction;
pub mod types;
