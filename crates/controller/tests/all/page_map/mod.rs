//! The page map compared with a plain array: with and without faults, with and without power cuts.

mod absorb;
mod cache;
mod checksums;
mod damaged;
mod demand;
mod device;
mod dies;
mod discards;
mod forgetting;
mod killed;
mod model;
mod payload;
mod pieces;
mod power_cut;
mod trims;
mod twin;
mod wear;
