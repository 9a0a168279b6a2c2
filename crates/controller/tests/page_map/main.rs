//! The page map compared with a plain array: with and without faults, with and without power cuts.

mod absorb;
#[path = "../array/mod.rs"]
mod array;
mod cache;
mod checksums;
mod damaged;
mod demand;
mod device;
mod dies;
mod discards;
mod forgetting;
#[path = "../found/mod.rs"]
mod found;
mod killed;
mod model;
#[path = "../mortal/mod.rs"]
mod mortal;
mod payload;
mod pieces;
mod power_cut;
mod trims;
mod twin;
mod wear;
