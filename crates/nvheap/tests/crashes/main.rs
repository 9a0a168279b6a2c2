//! Heaps whose power is cut, in a simulated cache, and whose programs are killed. One program, as each takes its time to link.

mod collect;
mod collections;
mod common;
mod kill;
mod kill_collections;
mod killed;
mod large;
mod tagged;
mod transactions;
