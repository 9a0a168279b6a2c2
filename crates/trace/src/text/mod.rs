//! Texts, line by line: blocks of lines, the fields of a line, which format they are of, and how lines are parsed on every core.

pub(crate) mod detect;
pub(crate) mod fields;
pub(crate) mod lines;
pub(crate) mod parse;
mod windows;
pub(crate) mod writer;
