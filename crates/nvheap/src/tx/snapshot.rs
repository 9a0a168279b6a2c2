//! Transactions that read from a snapshot, and copies of what was read.

use super::way::Way;
use super::{Meta, Private, RawTx};
use crate::error::{Error, Result};
use crate::wait::back_off;
use std::sync::atomic::Ordering;

impl<'t> RawTx<'t> {
    /// Called before a transaction is tried again after a conflict, with the number of tries: waits, or makes it read
    /// from a snapshot. Nothing of this happens where a transaction begins: stores there wait for the fence of the
    /// one before.
    #[cold]
    pub fn prepare_try(self, tries: u32) -> Result<()> {
        let last = if tries == 1 { Way::Current } else { self.context.way.get() };
        let way = last.next(tries, self.context.state().reads_lost);
        self.context.way.set(way);
        if way == Way::Snapshot {
            self.begin_snapshot()?;
        }
        if !self.context.is_past.get() {
            back_off(tries);
        }
        Ok(())
    }

    /// The next transaction reads from a snapshot of this moment, as long as it changes nothing. No effect if the
    /// maximum number of snapshots exists.
    pub fn begin_snapshot(self) -> Result<()> {
        let snapshot = self.core().take_snapshot()?;
        self.context.is_past.set(snapshot.is_some());
        self.context.state().snapshot = snapshot;
        Ok(())
    }

    /// Copies the words as they were when the snapshot began.
    ///
    /// # Safety
    /// As of [`RawTx::read`].
    #[inline(never)]
    pub(super) unsafe fn read_snapshot(
        self,
        (lock_at, tag): (u64, Option<u16>),
        home: u64,
        words: usize,
        into: *mut u64,
    ) -> Result<Option<Private<'t>>> {
        let slot = &self.core().slots[self.context.slot];
        if slot.runs.load(Ordering::Relaxed) & 1 == 1 {
            // Nobody need wait for what it reads.
            slot.end_run();
        }
        let mut state = self.context.state();
        let (memory, snapshot) = (&self.core().memory, state.snapshot.as_ref().expect("found by the caller"));
        if (lock_at + 16).max(home + words as u64 * 8) > snapshot.bytes() {
            // Nobody saves what was not there, so this is not of the moment.
            return Err(state.doom(Error::Conflict));
        }
        let mut meta = [0];
        if tag.is_some() {
            meta[0] = memory.word(lock_at + 8)?.load(Ordering::Relaxed);
        }
        // SAFETY: passed on.
        unsafe { memory.load(home, into, words)? };
        // Mostly nothing: the header and the value of an object are looked at together.
        let first = if tag.is_some() { lock_at + 8 } else { home };
        if snapshot.has_saved(first.min(home)..home + words as u64 * 8) {
            snapshot.restore(lock_at + 8, &mut meta);
            // SAFETY: the words are initialised, and nobody else has them.
            snapshot.restore(home, unsafe { std::slice::from_raw_parts_mut(into, words) });
        }
        if tag.is_some_and(|tag| Meta(meta[0]).tag() != tag) {
            // A handle may lead to an object that is newer.
            return Err(state.doom(Error::Conflict));
        }
        Ok(None)
    }

    /// A copy of a value that the file holds; it stays until the transaction ends.
    #[inline]
    pub fn keep_copy<T>(self, value: &T) -> &'t T {
        let place = self.context.state().arena.take(size_of::<T>().div_ceil(8)).cast::<T>();
        // SAFETY: the arena has room for the value, aligned, until the transaction ends; nobody drops or changes the copy.
        unsafe {
            std::ptr::copy_nonoverlapping(value, place, 1);
            &*place
        }
    }
}
