//! A pointer into one heap is stored in another.
use nvlab_nvheap::{Brand, Persist, Strong};

struct A;
impl Brand for A {
    type Root = Node;
}
struct B;
impl Brand for B {
    type Root = Holder;
}

#[derive(Persist)]
#[repr(C)]
struct Node {
    value: u64,
}

#[derive(Persist)]
#[persist(heap = B)]
#[repr(C)]
struct Holder {
    node: Option<Strong<Node, A>>,
}

fn main() {}
