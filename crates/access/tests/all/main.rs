//! Tests of what others use of this crate, in one program.

mod common;
mod parts_of_units;
mod pieces;
mod ram_disk;
mod sector_cache;
mod stack;
