//! Destroys unreachable objects: cycles, and objects whose pointers the program has forgotten.
//!
//! Reference counts do not find them: each object has a reference from another of them. A check finds what the root
//! does not reach; then, a few in each transaction, forgotten references are subtracted from the counts and pointers
//! that close cycles are dropped, and the ordinary destruction does the rest. Each transaction leaves counts and
//! pointers consistent, so a crash in between leaves smaller cycles, or objects on a list of those to be destroyed,
//! and the next collection or opening continues.

use crate::error::Result;
use crate::heap::Heap;
use crate::inspect::{self, Lost};
use crate::mutex::locked;
use crate::persist::Brand;
use crate::reap::{reap, run_own};
use crate::tx::{List, lease};

/// Pointers dropped in one transaction.
const CUTS: usize = 64;

impl<H: Brand> Heap<H> {
    /// Destroys the objects that keep each other alive in cycles that neither the root nor a handle reaches, those
    /// whose pointers the program has forgotten (`mem::forget`), and what only these point to; returns the number of
    /// objects and array blocks destroyed. It takes as long as a [`Heap::check`], and memory in proportion to the
    /// number of objects. The exclusive borrow excludes transactions.
    ///
    /// # Errors
    /// The first problem that a check finds: a damaged heap is left as it is.
    pub fn collect_cycles(&mut self) -> Result<u64> {
        let kept: Vec<u64> = locked(&self.core.handles).keys().copied().collect();
        let Lost { cuts, forgotten, blocks } = inspect::lost(&self.core, self.root_at(), &kept)?;
        let lease = lease(&self.core)?;
        let tx = lease.tx();
        for forgotten in forgotten.chunks(CUTS) {
            let take = |&(at, strong, weak)| tx.take_forgotten(at, strong, weak);
            run_own(tx, || forgotten.iter().try_for_each(take))?;
            reap(lease, tx.context.slot, List::Dead)?;
        }
        for cuts in cuts.chunks(CUTS) {
            run_own(tx, || cuts.iter().try_for_each(|&cut| tx.cut(cut)))?;
            reap(lease, tx.context.slot, List::Dead)?;
        }
        Ok(blocks)
    }
}
