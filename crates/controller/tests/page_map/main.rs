//! The page map compared with a plain array: with and without faults, with and without power cuts.

mod absorb;
#[path = "../array/mod.rs"]
mod array;
mod cache;
mod checksums;
mod demand;
mod device;
mod dies;
mod forgetting;
mod model;
mod payload;
mod pieces;
mod power_cut;
mod trims;
mod twin;
mod wear;
