//! Which log a thread writes to.
//!
//! A thread that uses a heap for the first time leases a log and keeps it until it ends or the heap is closed, so that a
//! transaction finds everything it needs without an atomic instruction.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::sync::thread_local;
use crate::tx::{Context, RawTx};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The log of a thread.
struct Leased {
    id: u64,
    core: Weak<Core>,
    context: Rc<Context>,
}

thread_local! {
    static LEASED: RefCell<Vec<Leased>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Leased {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            self.context.give_back(&core);
            core.slots[self.context.slot].is_leased.store(false, Ordering::Release);
        }
    }
}

/// A thread's use of its log.
pub(crate) struct Lease<'c> {
    core: &'c Core,
    context: Rc<Context>,
}

impl Lease<'_> {
    #[inline]
    pub fn tx(&self) -> RawTx<'_> {
        RawTx { core: self.core, context: &self.context }
    }
}

/// This thread's log of a heap.
#[inline]
pub(crate) fn lease(core: &Arc<Core>) -> Result<Lease<'_>> {
    let mine = LEASED.with(|leased| {
        let leased = leased.borrow();
        let mine = leased.iter().find(|leased| leased.id == core.id);
        mine.map(|mine| mine.context.clone())
    });
    match mine {
        Some(context) => Ok(Lease { core, context }),
        None => new_lease(core),
    }
}

#[cold]
fn new_lease(core: &Arc<Core>) -> Result<Lease<'_>> {
    LEASED.with(|leased| {
        let mut leased = leased.borrow_mut();
        leased.retain(|leased| leased.core.strong_count() > 0);
        let free = core.slots.iter().position(|slot| !slot.is_leased.swap(true, Ordering::AcqRel));
        let slot = free.ok_or(Error::TooManyThreads { logs: core.slots.len() as u32 })?;
        let context = Rc::new(Context::new(slot));
        leased.push(Leased { id: core.id, core: Arc::downgrade(core), context: context.clone() });
        Ok(Lease { core, context })
    })
}

/// The heap is being closed by this thread.
pub(crate) fn end_lease(core: &Core) {
    let mine = LEASED.try_with(|leased| {
        let mut leased = leased.borrow_mut();
        leased.iter().position(|leased| leased.id == core.id).map(|index| leased.swap_remove(index))
    });
    drop(mine);
}
