//! Values without a fixed layout, or aligned to more than objects are.
use nvlab_nvheap::Persist;

#[derive(Persist)]
#[repr(C)]
struct Node {
    number: Option<u64>,
    both: (u8, u64),
    wide: u128,
}

#[derive(Persist)]
#[repr(C, u8)]
enum Shape {
    Point,
    Circle(u64),
}

fn main() {}
