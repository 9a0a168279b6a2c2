//! Zones: states and limits by the table, contents and write pointers against a plain model, through power cuts, with blocks
//! that fail, and what they cost.

mod device;
mod faults;
mod model;
mod plain;
mod power_cut;
mod states;
mod timing;
