//! Tests of what others use of this crate, in one program.

mod array;
mod block_map;
mod cached;
mod envy;
mod found;
mod fsms;
mod hftl;
mod mortal;
mod page_map;
mod scm;
mod zoned;
