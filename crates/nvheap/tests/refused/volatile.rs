//! Memory of the program in a heap.
use nvlab_nvheap::Persist;

#[derive(Persist)]
#[repr(C)]
struct Node {
    name: String,
    next: Option<Box<u64>>,
    text: &'static str,
    raw: *const u8,
}

fn main() {}
