//! Heaps as programs use them, look at them, and find them damaged. One program, as each takes its time to link.

mod basics;
mod checksums;
mod collections;
mod compact;
mod damage;
mod entries;
mod flips;
mod hostile;
mod inspect;
mod logs;
mod migrate;
mod non_zero;
mod places;
mod refused;
mod snapshots;
mod space;
mod strays;
mod threads;
mod tree_entries;
