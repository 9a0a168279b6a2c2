//! Assigns logs to threads.
//!
//! A thread that uses a heap for the first time leases a log and keeps it until it ends or the heap is closed, so
//! that a transaction needs no atomic instruction to find its state.

use super::{Context, RawTx};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::sync::thread_local;
use nvlab_os::afresh;
use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::ptr::{eq, from_ref, null};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The log of a thread.
struct Leased {
    // It keeps the address from being that of another heap.
    core: Weak<Core>,
    /// Leases have its address.
    context: Rc<Context>,
}

thread_local! {
    static LEASED: RefCell<Vec<Leased>> = const { RefCell::new(Vec::new()) };
    /// One of them, or null: that of the heap that the thread used last.
    static LAST: Cell<*const Context> = const { Cell::new(null()) };
}

impl Drop for Leased {
    fn drop(&mut self) {
        let _ = LAST.try_with(|last| last.set(null()));
        if let Some(core) = self.core.upgrade() {
            self.context.give_back(&core);
            core.slots[self.context.slot].is_leased.store(false, Ordering::Release);
        }
    }
}

/// A thread's use of its log.
#[derive(Clone, Copy)]
pub(crate) struct Lease<'c> {
    context: &'c Context,
}

impl<'c> Lease<'c> {
    /// # Safety
    /// The context is one of `LEASED` for the heap. It is there as long as the heap is borrowed: only a thread that ends, or that
    /// closes the heap, takes it away.
    #[inline(always)]
    unsafe fn new(_: &'c Core, context: *const Context) -> Self {
        // SAFETY: the caller answers for it.
        Lease { context: unsafe { &*context } }
    }

    /// The same for another try of a transaction.
    #[inline(always)]
    pub fn afresh(self) -> Self {
        Lease { context: afresh(self.context) }
    }

    #[inline(always)]
    pub fn tx(self) -> RawTx<'c> {
        RawTx { context: self.context }
    }
}

/// This thread's log of a heap.
#[inline(always)]
pub(crate) fn lease(core: &Arc<Core>) -> Result<Lease<'_>> {
    let last = LAST.with(Cell::get);
    // SAFETY: whoever takes it out of `LEASED` resets the pointer.
    if unsafe { last.as_ref() }.is_some_and(|last| eq(last.core, Arc::as_ptr(core))) {
        // SAFETY: as above.
        return Ok(unsafe { Lease::new(core, last) });
    }
    find_lease(core)
}

#[cold]
fn find_lease(core: &Arc<Core>) -> Result<Lease<'_>> {
    if is_elsewhere(core) {
        return Err(Error::BrandInUse(core.brand_name));
    }
    let lease = any_lease(core)?;
    // Whoever finds it here is not asked again: no other heap of the brand has a transaction until this one has another lease.
    LAST.with(|last| last.set(lease.context));
    Ok(lease)
}

/// True if this thread runs a transaction on another heap of the brand. A pointer dropped there is taken for one of
/// that heap.
pub(crate) fn is_elsewhere(core: &Arc<Core>) -> bool {
    let is_it = |leased: &Leased| {
        // SAFETY: a lease borrows the heap as long as its transaction runs.
        leased.context.depth.get() > 0
            && !eq(leased.context.core, Arc::as_ptr(core))
            && unsafe { (*leased.context.core).brand } == core.brand
    };
    LEASED.with(|leased| leased.borrow().iter().any(is_it))
}

/// Whether this thread runs a transaction on a heap.
pub(crate) fn is_inside(core: &Core) -> bool {
    let is_it = |leased: &Leased| eq(leased.context.core, core) && leased.context.depth.get() > 0;
    LEASED.with(|leased| leased.borrow().iter().any(is_it))
}

/// This thread's log of a heap, whatever it is doing.
pub(crate) fn any_lease(core: &Arc<Core>) -> Result<Lease<'_>> {
    let context = LEASED.with(|leased| {
        let mut leased = leased.borrow_mut();
        if let Some(mine) = leased.iter().find(|leased| eq(leased.context.core, Arc::as_ptr(core))) {
            return Ok(Rc::as_ptr(&mine.context));
        }
        leased.retain(|leased| leased.core.strong_count() > 0);
        // Logs whose lists are damaged only when there is no other.
        let take = |is_wrong| {
            (0..core.slots.len()).find(|&log| {
                core.memory.is_head_wrong(core.layout.log_head(log)) == is_wrong
                    && !core.slots[log].is_leased.swap(true, Ordering::AcqRel)
            })
        };
        let slot = take(false)
            .or_else(|| take(true))
            .ok_or(Error::TooManyThreads { logs: core.slots.len() as u32 })?;
        let context = Rc::new(Context::new(core, slot));
        let at = Rc::as_ptr(&context);
        leased.push(Leased { core: Arc::downgrade(core), context });
        Ok(at)
    })?;
    // SAFETY: it is in `LEASED`.
    Ok(unsafe { Lease::new(core, context) })
}

/// The transaction that this thread runs on a heap of a brand, for pointers that are dropped.
pub(crate) fn with_current(brand: TypeId, found: impl FnOnce(RawTx<'_>)) {
    // SAFETY: a lease borrows the heap as long as its transaction runs.
    let is_it = |at: &&Context| at.depth.get() > 0 && unsafe { (*at.core).brand } == brand;
    // SAFETY: as in `lease`.
    let last = unsafe { LAST.with(Cell::get).as_ref() }.filter(is_it).map(from_ref);
    let other = || {
        let leased = |leased: &RefCell<Vec<Leased>>| {
            leased.borrow().iter().map(|leased| &*leased.context).find(is_it).map(from_ref)
        };
        LEASED.try_with(leased).ok().flatten()
    };
    // SAFETY: as above.
    if let Some(context) = last.or_else(other).map(|context| unsafe { &*context }) {
        found(RawTx { context });
    }
}

/// The heap is being closed by this thread.
pub(crate) fn end_lease(core: &Core) {
    let mine = LEASED.try_with(|leased| {
        let mut leased = leased.borrow_mut();
        let mine = leased.iter().position(|leased| eq(leased.context.core, core));
        mine.map(|index| leased.swap_remove(index))
    });
    drop(mine);
}
