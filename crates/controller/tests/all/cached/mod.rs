//! A cache of lines in front of a page map: against a plain array, its timing and its hits by hand, and through power cuts.

mod device;
mod hits;
mod model;
mod power_cut;
mod timing;
