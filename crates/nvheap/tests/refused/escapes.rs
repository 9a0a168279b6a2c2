//! A pointer leaves its transaction, as its result and in a variable.
use nvlab_nvheap::{Brand, Heap, PBox, Result};

struct Bank;
impl Brand for Bank {
    type Root = u64;
}

fn result(heap: &Heap<Bank>) -> Result<PBox<u64, Bank>> {
    heap.transaction(|tx| PBox::new(tx, 1))
}

fn variable(heap: &Heap<Bank>) -> Result<()> {
    let mut kept = None;
    heap.transaction(|tx| {
        kept = Some(PBox::new(tx, 1)?);
        Ok(())
    })
}

fn main() {}
