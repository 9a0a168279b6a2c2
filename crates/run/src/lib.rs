//! From a design and a workload to a result.
//!
//! | module | what |
//! |---|---|
//! | [`plan`] | from texts to runs: limits, workloads, the cache of traces |
//! | [`engine`] | finds stored results, runs what is missing, stores its results |
//! | `single`, `steps` | one run: build, precondition, drive, summarise ([`run()`]); its parameters are in `run_plan` |
//! | [`device`] | the devices under test, a file for each kind of controller |
//! | [`drive`], `submit`, `program` | requests, in closed and open loops, or as a program makes them |
//! | [`transactions`], `commits` | transactions on a memory, and on recoverable memory |
//! | `host`, `staged` | the host's software |
//! | [`precondition`], `preparation` | bringing a device to a known state; `settle`, `coarse`: until it is steady, with a twin |
//! | [`held`], [`watched`] | runs that are paused, changed and observed in progress |
//! | [`prepared`], `kept` | prepared devices, stored between runs |
//! | [`meter`], `summary` | counters and timers, and the result made from them |
//! | [`result`] | the result of a run; [`columns_out`]: its directory, JSON and Parquet |
//! | [`mod@metric`], [`number`] | the one table of metrics: names, units, which direction is better; numbers for users; [`stats`]: mean and 95 % interval |
//! | [`durable`] | logs of recoverable memory on simulated media |
//! | [`mod@heap`] | the cost of each layer of safety for a program with persistent objects |
//! | [`theory`] | closed forms that a simulation must agree with |
//! | [`mod@bench`] | the speed of the simulator itself |
//!
//! Only [`device::build()`] and the inner loop ([`DeviceUnderTest`]) depend on the kind of controller. A new kind is
//! a file in [`device`] and an arm there.

pub mod aged;
mod arrivals;
pub mod bench;
mod bounds;
mod coarse;
pub mod columns_out;
mod commits;
pub mod device;
pub mod drive;
pub mod durable;
pub mod engine;
mod error;
pub mod heap;
pub mod held;
mod host;
mod kept;
mod media;
pub mod meter;
pub mod metric;
pub mod number;
pub mod outstanding;
pub mod plan;
pub mod precondition;
mod preparation;
pub mod prepared;
mod program;
pub mod result;
mod run_plan;
mod settle;
mod single;
mod staged;
pub mod stats;
mod steps;
mod submit;
mod summary;
mod tenants;
pub mod theory;
pub mod transactions;
pub mod watched;
mod writes;

#[cfg(any(test, feature = "sample"))]
pub mod sample;

pub(crate) use coarse::why_full_size;
pub use device::BuildError;
pub use drive::{DeviceUnderTest, DriveError, Limit, Progress, Watch};
pub use error::RunError;
pub use kept::Keeping;
pub use meter::{Figure, Goal};
pub use preparation::{Preparation, State};
pub use run_plan::{OnProgress, RunPlan};
pub use single::{run, run_requests};
pub use summary::{key, summarize};
