//! A pointer that is there or not, as the variant of an enum says.
use nvlab_nvheap::{Brand, Persist, Strong};

struct Bank;
impl Brand for Bank {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Bank)]
#[repr(u8)]
enum Root {
    Empty,
    Full(Strong<u64, Bank>),
}

fn main() {
    let _ = (Root::Empty, Root::Full);
}
