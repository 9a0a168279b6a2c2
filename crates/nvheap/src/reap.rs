//! Transactions that the library runs itself: the rest of a destruction, and the end of a handle.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::thread::{self, Lease};
use crate::tx::{List, RawTx};
use crate::wait::back_off;
use std::sync::Arc;

/// Ends a transaction that was left by an error or a panic.
pub(crate) struct Ended<'t>(Option<RawTx<'t>>);

impl<'t> Ended<'t> {
    pub fn new(tx: RawTx<'t>) -> Self {
        Ended(Some(tx))
    }

    /// It ends in order.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if let Some(tx) = self.0 {
            tx.context.depth.set(0);
            tx.abort();
        }
    }
}

/// Runs a transaction of the library's own until it commits or fails for good.
pub(crate) fn run_own(tx: RawTx<'_>, mut body: impl FnMut() -> Result<()>) -> Result<()> {
    let mut tries = 0;
    loop {
        tx.begin()?;
        let ended = Ended::new(tx);
        let done = body();
        match done.is_ok() {
            true => ended.disarm(),
            false => drop(ended),
        }
        match done.and_then(|()| tx.commit()) {
            Err(Error::Conflict) => {
                tries += 1;
                back_off(tries);
            }
            done => return done,
        }
    }
}

/// Destroys the objects of a list, a few in each transaction.
pub(crate) fn reap(lease: &Lease<'_>, log: usize, list: List) -> Result<()> {
    let tx = lease.tx();
    while !tx.is_list_empty(log, list)? {
        run_own(tx, || tx.reap(log, list).map(|_| ()))?;
    }
    Ok(())
}

/// One handle less. The last one destroys an object that has no other pointer.
pub(crate) fn drop_handle(core: &Arc<Core>, at: u64) {
    let mut handles = locked(&core.handles);
    let Some(count) = handles.get_mut(&at) else { return };
    *count -= 1;
    if *count > 0 {
        return;
    }
    handles.remove(&at);
    drop(handles);
    let Ok(lease) = thread::lease(core) else { return };
    let tx = lease.tx();
    let unlink = |tx: RawTx<'_>| -> Result<()> {
        match tx.is_kept(at)? {
            true => tx.unlink_kept(at),
            false => Ok(()),
        }
    };
    if tx.context.depth.get() > 0 {
        if let Err(error) = unlink(tx) {
            tx.doom(error);
        }
        return;
    }
    if !tx.is_kept(at).unwrap_or(false) {
        return;
    }
    // If it fails, the object stays on the list and is destroyed when the heap is opened next.
    for tries in 0..100 {
        if tx.begin().is_err() {
            return;
        }
        let unlinked = unlink(tx).and_then(|()| tx.commit());
        match unlinked {
            Err(Error::Conflict) => {
                tx.abort();
                back_off(tries);
            }
            Err(_) => return tx.abort(),
            Ok(()) => break,
        }
    }
    let _ = reap(&lease, tx.context.slot, List::Dead);
}
