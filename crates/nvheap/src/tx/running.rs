//! The transactions that a thread runs, for pointers that are dropped: they find theirs by the brand of their heap.

use super::RawTx;
use super::state::Context;
use crate::core::Core;
use crate::sync::thread_local;
use std::any::TypeId;
use std::cell::Cell;
use std::ptr::null;

/// The transactions of this thread, innermost first.
struct Running {
    core: *const Core,
    context: *const Context,
    outer: *const Running,
}

thread_local! {
    static RUNNING: Cell<*const Running> = const { Cell::new(null()) };
}

/// Calls `body` as part of a transaction that pointers find when they are dropped.
#[inline(always)]
pub(crate) fn with_running<R>(raw: RawTx<'_>, body: impl FnOnce() -> R) -> R {
    struct Restore(*const Running);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNNING.with(|innermost| innermost.set(self.0));
        }
    }
    let outer = RUNNING.with(Cell::get);
    let running = Running { core: raw.core, context: raw.context, outer };
    let _restore = Restore(outer);
    RUNNING.with(|innermost| innermost.set(&running));
    body()
}

/// The running transaction of this thread on the heap of a brand.
pub(crate) fn with_current(brand: TypeId, found: impl FnOnce(RawTx<'_>)) {
    let mut at = RUNNING.with(Cell::get);
    // SAFETY: `with_running` keeps each of these, and the heap and context it borrows, until it has restored the outer one.
    while let Some(running) = unsafe { at.as_ref() } {
        // SAFETY: as above.
        let (core, context) = unsafe { (&*running.core, &*running.context) };
        if core.brand == brand {
            return found(RawTx { core, context });
        }
        at = running.outer;
    }
}
