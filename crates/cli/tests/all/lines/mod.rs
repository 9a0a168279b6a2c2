//! Random command lines: a grammar from the help, values for its keys, and a folder to run them in.

pub mod grammar;
pub mod scratch;
pub mod values;
