//! Tests of what others use of this crate, in one program.

mod cache;
mod counts;
mod designs;
mod durable;
mod heap;
mod keys;
mod lines;
mod maps;
mod memory;
mod physics;
mod prepared;
mod restart;
mod scenarios;
mod wear_out;
mod zoned;
