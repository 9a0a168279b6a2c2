//! The page map held against a plain array: with and without faults, with and without power cuts.

mod device;
mod model;
mod power_cut;
