//! Tests of what others use of this crate, in one program.

mod cmd;
mod common;
mod cut;
mod fuzz;
mod heap;
mod heap_bench;
mod lines;
mod log;
mod memory;
mod program;
mod schema;
mod serve;
mod stack;
mod states;
mod sweep;
