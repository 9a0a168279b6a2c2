//! Memories used in place: against a plain array, its timing by hand, and through power cuts.

mod device;
mod model;
mod power_cut;
mod timing;
