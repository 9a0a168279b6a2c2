//! Transactions that the library runs itself: the rest of a destruction, and the release of handles.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::tx::{Lease, List, RawTx, any_lease, is_elsewhere};
use crate::wait::back_off;
use std::sync::Arc;

/// Retries of a transaction for a dropped handle.
const TRIES: u32 = 100;

/// A transaction in which pointers can be dropped, or a nested one. If it is left by an error or a panic, the
/// transaction is undone.
pub(crate) struct Entered<'t>(RawTx<'t>);

impl<'t> Entered<'t> {
    #[inline(always)]
    pub fn new(tx: RawTx<'t>) -> Result<Self> {
        let depth = tx.context.depth.get();
        if depth == 0 {
            tx.begin()?;
        }
        tx.context.depth.set(depth + 1);
        Ok(Entered(tx))
    }

    /// True if it is not nested.
    #[inline(always)]
    pub fn is_outermost(&self) -> bool {
        self.0.context.depth.get() == 1
    }

    /// Ends it successfully.
    #[inline(always)]
    pub fn leave(self) {
        self.0.context.depth.set(0);
        std::mem::forget(self);
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let depth = &self.0.context.depth;
        depth.set(depth.get() - 1);
        if depth.get() == 0 {
            self.0.abort();
        }
    }
}

/// Runs a transaction of the library's own until it commits or fails for good.
pub(crate) fn run_own(tx: RawTx<'_>, body: impl FnMut() -> Result<()>) -> Result<()> {
    run_often(tx, u32::MAX, body)
}

/// The same, with a maximum number of tries.
fn run_often(tx: RawTx<'_>, tries_max: u32, mut body: impl FnMut() -> Result<()>) -> Result<()> {
    let mut tries = 0;
    loop {
        let entered = Entered::new(tx)?;
        assert!(entered.is_outermost(), "a transaction of the library's own inside another");
        let done = body();
        match done.is_ok() {
            true => entered.leave(),
            false => drop(entered),
        }
        match done.and_then(|()| tx.commit().map_err(|error| *error)) {
            Err(Error::Conflict) if tries < tries_max => {
                tries += 1;
                back_off(tries);
            }
            done => return done,
        }
    }
}

/// Destroys the objects of a list, a few in each transaction.
pub(crate) fn reap(lease: Lease<'_>, log: usize, list: List) -> Result<()> {
    let tx = lease.tx();
    while !tx.is_list_empty(log, list)? {
        run_own(tx, || tx.reap(log, list).map(|_| ()))?;
    }
    Ok(())
}

/// The same, but stops at a damaged object, which stays on the list: later openings try again, and checks report it.
/// Returns true if nothing is left to be done.
pub(crate) fn reap_undamaged(lease: Lease<'_>, log: usize, list: List) -> Result<bool> {
    match reap(lease, log, list) {
        Err(Error::Damaged { .. }) => Ok(true),
        reaped => reaped.and_then(|()| lease.tx().is_list_empty(log, list)),
    }
}

/// After a transaction of this thread has committed: destroys what it left to be destroyed.
pub(crate) fn destroy_rest(lease: Lease<'_>) -> Result<()> {
    let (tx, mut is_done) = (lease.tx(), false);
    while !is_done {
        destroy_dropped(lease);
        is_done = reap_undamaged(lease, tx.context.slot, List::Dead)?;
    }
    tx.context.has_dead.set(!tx.context.dropped.borrow().is_empty());
    Ok(())
}

/// Removes a handle. Removing the last one destroys an object that has no other pointer.
pub(crate) fn drop_handle(core: &Arc<Core>, at: u64) {
    let mut handles = locked(&core.handles);
    let Some(count) = handles.get_mut(&at) else { return };
    *count -= 1;
    if *count > 0 {
        return;
    }
    handles.remove(&at);
    drop(handles);
    let Ok(lease) = any_lease(core) else { return };
    let context = lease.tx().context;
    context.dropped.borrow_mut().push(at);
    if context.depth.get() > 0 || is_elsewhere(core) {
        // After the transaction, whether it commits or not.
        context.has_dead.set(true);
    } else {
        destroy_dropped(lease);
    }
}

/// Destroys the objects whose last handle this thread has dropped. Objects held for long by other transactions wait
/// for the next transaction of this thread, or the next opening of the heap.
pub(crate) fn destroy_dropped(lease: Lease<'_>) {
    let tx = lease.tx();
    let next = || tx.context.dropped.borrow_mut().pop();
    while let Some(at) = next() {
        match tx.is_kept(at) {
            Ok(true) | Err(Error::Conflict) => {}
            _ => continue,
        }
        let unlinked = run_often(tx, TRIES, || match tx.is_kept(at)? {
            true => tx.unlink_kept(at),
            false => Ok(()),
        });
        if matches!(unlinked, Err(Error::Conflict)) {
            tx.context.dropped.borrow_mut().push(at);
            return tx.context.has_dead.set(true);
        }
        let _ = reap(lease, tx.context.slot, List::Dead);
    }
}
