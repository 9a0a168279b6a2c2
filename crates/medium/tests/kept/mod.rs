//! A store that outlives its medium.

use nvlab_medium::{MemStore, Store};
use std::cell::RefCell;
use std::rc::Rc;

/// Clones are the same bytes.
#[derive(Clone, Debug)]
pub struct Kept(Rc<RefCell<MemStore>>);

impl Kept {
    pub fn new(bytes: u64) -> Kept {
        Kept(Rc::new(RefCell::new(MemStore::new(bytes))))
    }
}

impl Store for Kept {
    const KEEPS: bool = true;
    const SHOWS: bool = false;
    fn read(&self, offset: u64, into: &mut [u8]) {
        self.0.borrow().read(offset, into);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.0.borrow_mut().write(offset, data);
    }
    /// Panics: what a `RefCell` holds is not lent for so long.
    fn view(&self, _: u64, _: usize) -> &[u8] {
        unreachable!("it does not show its bytes")
    }
    fn prefetch(&self, offset: u64, bytes: usize) {
        self.0.borrow().prefetch(offset, bytes);
    }
}
