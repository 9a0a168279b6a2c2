//! eNVy compared with a plain array of bytes: all policies and shapes, times, costs, with and without power cuts.

mod cost;
mod device;
mod model;
mod papers;
mod power_cut;
mod restart;
mod timing;
