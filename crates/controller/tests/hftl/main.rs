//! hFTL compared with a plain array, with and without faults, with and without power cuts; its costs.

#[path = "../array/mod.rs"]
mod array;
mod cost;
mod damaged;
mod device;
#[path = "../found/mod.rs"]
mod found;
mod model;
mod papers;
mod power_cut;
