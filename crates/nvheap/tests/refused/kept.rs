//! A pointer is kept in a static, sent to another thread, kept by a closure, and what a transaction lends outlives it.
use nvlab_nvheap::{Brand, Heap, PBox, Read, Result, Strong};
use std::sync::{Mutex, mpsc};

struct Bank;
impl Brand for Bank {
    type Root = u64;
}

static KEPT: Mutex<Option<PBox<u64, Bank>>> = Mutex::new(None);

fn sent(heap: &Heap<Bank>) -> Result<()> {
    let (sender, _receiver) = mpsc::channel::<Strong<u64, Bank>>();
    heap.transaction(|tx| {
        let _ = sender.send(Strong::new(tx, 1)?);
        Ok(())
    })
}

fn closure(heap: &Heap<Bank>) -> Result<Box<dyn Fn() + Send>> {
    heap.transaction(|tx| {
        let kept = PBox::<u64, Bank>::new(tx, 1)?;
        Ok(Box::new(move || _ = &kept) as Box<dyn Fn() + Send>)
    })
}

fn lent<'h>(heap: &'h Heap<Bank>) -> Result<()> {
    let root = heap.root()?;
    let mut kept: Option<Read<'h, u64>> = None;
    heap.transaction(|tx| {
        kept = Some(root.read(tx)?);
        Ok(())
    })
}

fn main() {}
