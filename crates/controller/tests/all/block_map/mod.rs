//! Block mapping, BAST and FAST: counted by hand, compared with a plain array, and through power cuts.

mod counts;
mod damaged;
mod device;
mod model;
mod papers;
mod power_cut;
