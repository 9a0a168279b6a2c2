//! A store that outlives its medium.

use nvlab_medium::Store;
use std::cell::RefCell;
use std::rc::Rc;

/// Clones are the same bytes.
#[derive(Clone, Debug)]
pub struct Kept(Rc<RefCell<Vec<u8>>>);

impl Kept {
    pub fn new(bytes: u64) -> Kept {
        Kept(Rc::new(RefCell::new(vec![0; bytes as usize])))
    }
}

impl Store for Kept {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow()[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.0.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
    }
}
