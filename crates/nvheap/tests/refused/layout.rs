//! A type without a fixed layout.
use nvlab_nvheap::Persist;

#[derive(Persist)]
struct Node {
    value: u64,
}

fn main() {}
