//! Memories used in place: against a plain array, its timing by hand, and through power cuts.

#[path = "../array/mod.rs"]
mod array;
mod device;
mod model;
mod power_cut;
mod timing;
