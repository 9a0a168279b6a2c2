//! Truncation by epoch: the records so far are applied to the segments, and the head moves past them. Commits
//! continue in the next epoch. If commits store to the segments themselves ([`super::write_through`]), nothing is
//! left to apply.
//!
//! Order: the epoch is forced; its changes are written to the segments, which are synced; the head moves. After
//! a power failure anywhere in between, recovery applies the same records again, with the same result.

use super::recovery_time::Took;
use super::state::{Core, State, panicked};
use crate::scan::Windows;
use crate::{Error, Result, Store};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// A truncation. Dropped by a panic, it fails the log: what the segments have now nobody knows, and others wait for its end.
struct UnderWay<'a>(&'a Core);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_truncating = false;
        self.0.fail(state, panicked("truncate"));
    }
}

impl Core {
    /// Truncates the log to the records committed after this call.
    pub(super) fn truncate<'a>(&'a self, state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        let state = self.end_applied(state)?;
        let Some(applied) = self.apply(state)? else { return Ok(self.state()) };
        self.discard(applied)
    }

    /// Ends the truncation under way: waits for it, or, if it is one in two steps, takes the second.
    pub(super) fn end_applied<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>> {
        loop {
            state.check()?;
            state = match state.applied.take() {
                Some(applied) => {
                    drop(state);
                    self.discard(applied)?
                }
                None if state.is_truncating => self.wait_for_space(state),
                None => return Ok(state),
            };
        }
    }

    /// The first step of a truncation: every record so far is applied to the segments, durably. Returns where they end,
    /// and what it took.
    fn apply(&self, mut state: MutexGuard<'_, State>) -> Result<Option<(u64, Took)>> {
        let (head, end) = (state.status.head, state.tail());
        if end == head {
            return Ok(None);
        }
        (state.is_truncating, state.is_truncation_due) = (true, false);
        let live_bytes = state.live_bytes();
        state.recovery_time.begin(live_bytes);
        let under_way = UnderWay(self);
        let changed = state.segments.iter().filter(|segment| segment.is_logged(head));
        let changed: Vec<_> = changed.map(|segment| (segment.name.clone(), segment.store.clone())).collect();
        state.segments.iter_mut().for_each(|segment| segment.is_named = false);
        let result = self.force_to(state, end).and_then(|mut state| {
            state.store_through();
            let is_stored = state.write_through.is_some();
            drop(state);
            if is_stored { sync(&changed) } else { self.apply_epoch(end) }
        });
        std::mem::forget(under_way);
        let mut state = self.state();
        match result {
            Ok((bytes, took)) => {
                state.statistics.applied_bytes += bytes;
                Ok(Some((end, took)))
            }
            Err(error) => {
                state.is_truncating = false;
                self.wake_space(&state);
                Err(self.fail(state, error))
            }
        }
    }

    /// The second step: the head moves behind the records that were applied.
    fn discard(&self, (end, took): (u64, Took)) -> Result<MutexGuard<'_, State>> {
        let under_way = UnderWay(self);
        let moved = self.move_head(end);
        std::mem::forget(under_way);
        let mut state = self.state();
        state.is_truncating = false;
        self.wake_space(&state);
        match moved {
            Ok(()) => {
                let live_bytes = state.live_bytes();
                state.recovery_time.end(live_bytes, took);
                state.status.head = end;
                state.statistics.truncations += 1;
                Ok(state)
            }
            Err(error) => Err(self.fail(state, error)),
        }
    }

    /// [`Core::apply`], to be followed by [`Core::discard_applied`].
    pub(crate) fn apply_now(&self) -> Result<bool> {
        let state = self.end_applied(self.state())?;
        let applied = self.apply(state)?;
        self.state().applied = applied;
        Ok(applied.is_some())
    }

    /// The second step of the truncation whose first was taken, unless a commit that found no room took it.
    pub(crate) fn discard_applied(&self) -> Result<()> {
        let mut state = self.state();
        let Some(applied) = state.applied.take() else { return Ok(()) };
        drop(state);
        self.discard(applied).map(|_| ())
    }

    fn apply_epoch(&self, end: u64) -> Result<(u64, Took)> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.measure()?;
        let windows = Windows::new(&self.log, self.view.as_ref());
        let head = windows.head();
        let began = Instant::now();
        changes.apply(windows, head, end, &mut |number| Ok(self.segment(number)))?;
        let log = began.elapsed();
        let bytes = changes.finish()?;
        self.state().statistics.decompressed_bytes += changes.take_decompressed();
        Ok((bytes, Took { log, pages: began.elapsed() - log }))
    }

    /// After the segments have been synced, unless somebody else's sync of one failed meanwhile: that may have been the one that
    /// should have written these changes.
    fn move_head(&self, end: u64) -> Result<()> {
        self.state().check()?;
        self.log().truncate(end)
    }

    fn segment(&self, number: u32) -> (String, Arc<dyn Store>) {
        let state = self.state();
        let segment = &state.segments[number as usize];
        (segment.name.clone(), segment.store.clone())
    }

    /// Truncates whenever it is wanted, until the log is closed.
    pub(crate) fn truncate_in_background(&self, at_percent: u8) {
        let mut state = self.state();
        while !state.is_closing && state.failed.is_none() {
            state = match self.is_due(&state, at_percent) {
                true => match self.truncate(state) {
                    Ok(state) => state,
                    // It is recorded: whoever commits next is told.
                    Err(_) => return,
                },
                false => {
                    state.is_truncation_due = false;
                    self.wait_for_space(state)
                }
            };
        }
    }

    /// Whether the log is filled to `percent`, or would take too long to recover.
    pub(super) fn is_due(&self, state: &State, percent: u8) -> bool {
        let live_bytes = state.live_bytes();
        live_bytes > self.capacity / 100 * u64::from(percent) || state.recovery_time.is_due(live_bytes)
    }
}

/// Syncs the segments that an epoch was applied to.
fn sync(changed: &[(String, Arc<dyn Store>)]) -> Result<(u64, Took)> {
    for (name, store) in changed {
        store.sync().map_err(Error::io("sync", name))?;
    }
    Ok((0, Took::default()))
}
