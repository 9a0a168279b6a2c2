//! Tests of what others use of this crate, in one program.

mod lifetime;
mod logs;
mod promises;
mod reasons;
