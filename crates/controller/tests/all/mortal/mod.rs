//! A store whose program ends between two writes, as a process that is killed: nothing is undone, nothing more is done, and only
//! the bytes are left.

use nvlab_medium::Store;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// Bytes that outlive the device; the program ends when the budget of writes is used up.
#[derive(Clone, Debug)]
pub struct Mortal {
    pub bytes: Rc<RefCell<Vec<u8>>>,
    budget: Rc<Cell<u64>>,
}

impl Mortal {
    pub fn new(bytes: u64, budget: &Rc<Cell<u64>>) -> Mortal {
        Mortal { bytes: Rc::new(RefCell::new(vec![0; bytes as usize])), budget: budget.clone() }
    }
}

impl Store for Mortal {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes.borrow()[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        match self.budget.get() {
            // Not a panic: the program just ends here.
            0 => resume_unwind(Box::new(Killed)),
            left => self.budget.set(left - 1),
        }
        self.bytes.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

/// Why the program ended.
struct Killed;

/// Does something, or a part of it; returns whether it was killed.
pub fn until_killed(act: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(()) => false,
        Err(why) if why.is::<Killed>() => true,
        Err(why) => resume_unwind(why),
    }
}
