//! Tests of what others use of this crate, in one program.

mod in_place;
mod kept;
mod nand;
mod nor;
mod start_gap;
