//! Tools that answer a question with many runs.
//!
//! | module | what |
//! |---|---|
//! | [`sweep`] | many runs: a space of points, its table, its page |
//! | [`reproduce`] | claims of papers, compared with measurements |
//! | [`pts`] | SNIA's performance test of a design |
//! | [`image`] | real tools on an image on a simulated device |
//! | [`explain`] | short texts on every key, metric and format |

pub mod explain;
pub mod image;
pub mod pts;
pub mod reproduce;
pub mod sweep;
