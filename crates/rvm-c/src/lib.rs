//! The C interface of recoverable virtual memory: the library behind `rvm.h`, `rvm_segment.h`, `rvm_statistics.h` and
//! `rds.h` in `include/rvm`, which say what each function promises and how it differs from Coda's.
//!
//! Built as `librvm.so` and `librvm.a`. Nothing is decided here: functions check and convert what C passes and call
//! [`nvlab_rvm`]. There is one log per process, as in the original, so the state is one static value.
//!
//! | module | what |
//! |---|---|
//! | [`types`] | records and codes, laid out as in C |
//! | `records` | allocation, initialization and copies of records |
//! | `offsets` | arithmetic on offsets and pages |
//! | `names` | names of codes and modes |

mod names;
mod offsets;
mod records;
pub mod types;
