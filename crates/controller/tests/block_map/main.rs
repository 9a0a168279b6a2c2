//! Block mapping, BAST and FAST: counted by hand, compared with a plain array, and through power cuts.

#[path = "../array/mod.rs"]
mod array;
mod counts;
mod damaged;
mod device;
#[path = "../found/mod.rs"]
mod found;
mod model;
mod papers;
mod power_cut;
