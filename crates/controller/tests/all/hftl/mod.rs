//! hFTL compared with a plain array, with and without faults, with and without power cuts; its costs.

mod cost;
mod damaged;
mod device;
mod model;
mod papers;
mod power_cut;
