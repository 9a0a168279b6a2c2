//! Tests of what others use of this crate, in one program.

mod damage;
mod eviction;
mod failures;
mod files;
mod flash_logs;
mod flash_power;
mod full;
mod heap;
mod hybrid;
mod implicit;
mod kill;
mod moves;
mod panics;
mod power;
mod ranges;
mod recovery;
mod recovery_target;
mod reopening;
mod repair;
mod salvage;
mod write_through;
