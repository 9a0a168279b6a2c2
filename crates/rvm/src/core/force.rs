//! Forces the log: one thread writes and forces for all that wait (group commit).
//!
//! The thread that would force first waits briefly for others that are likely to commit: those that the last force
//! released and those whose records are already appended. Without that, two threads would take turns, each forcing
//! for itself. It waits for at most half the usual time of a force, so a thread that stays away costs little. The
//! thread that arrives last forces: waking the waiting one would take a good part of the time of a force on a fast
//! disk. For the same reason threads that a force releases return without the lock, which they could only take one
//! after the other.
//!
//! Between write and sync, as many of the waiting threads are woken as there are other processors, and poll for the
//! end of the sync, if a sync takes about as long as waking an idle processor ([`super::wake_ups`]): on a fast drive
//! it does. If more threads commit than there are processors, the waiting ones poll instead and yield to each other:
//! eight that go to sleep and are woken take longer than the force itself. No processor is idle then, and a commit
//! takes about twice the processor time.

use super::state::{Core, State, panicked};
use crate::Result;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Forces that take less are not worth waiting for company.
const SHORT_FORCE: Duration = Duration::from_micros(20);
/// Forces that take less, those of memory, are over before another thread has done anything with the lock.
const MEMORY_FORCE: Duration = Duration::from_micros(2);
/// The longest that a force waits for others to join it.
const GATHER_MAX: Duration = Duration::from_millis(2);

/// A force. Dropped by a panic, it fails the log: nobody knows what of the records is in it, and others wait for its end.
struct UnderWay<'a> {
    core: &'a Core,
    state: Option<MutexGuard<'a, State>>,
}

impl<'a> UnderWay<'a> {
    /// The state, locked from now on.
    #[inline]
    fn state(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| self.core.state())
    }

    /// Marks its end; returns the state, locked.
    #[inline]
    fn end(mut self) -> MutexGuard<'a, State> {
        let state = self.state.take();
        let core = self.core;
        std::mem::forget(self);
        state.unwrap_or_else(|| core.state())
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.state.take().unwrap_or_else(|| self.core.state());
        state.is_forcing = false;
        self.core.fail(state, panicked("force"));
    }
}

impl Core {
    /// Returns when every record before `position` is durable.
    pub(super) fn force_to<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        position: u64,
    ) -> Result<MutexGuard<'a, State>> {
        Ok(self.wait_or_force(state, position)?.unwrap_or_else(|| self.state()))
    }

    /// As [`Core::force_to`]; `None` if the lock was not needed any more.
    pub(super) fn wait_or_force<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        position: u64,
    ) -> Result<Option<MutexGuard<'a, State>>> {
        let mut until = None;
        loop {
            if state.forced >= position {
                return Ok(Some(state));
            }
            if let Err(error) = state.check() {
                // If this thread watched the time for the others, nobody does now.
                state.is_guarded = false;
                self.wake_force(state);
                return Err(error);
            }
            let left = match state.is_forcing {
                true => None,
                false if state.is_complete() => return self.force(state),
                // One of those that wait for company watches the time; the others can sleep.
                false if until.is_none() && state.is_guarded => None,
                false => {
                    state.is_guarded = true;
                    let now = Instant::now();
                    let left = until.get_or_insert(now + state.gather_time()).saturating_duration_since(now);
                    if left.is_zero() {
                        return self.force(state);
                    }
                    Some(left)
                }
            };
            match self.wait_for_force(state, position, left) {
                Some(locked) => state = locked,
                None => return Ok(None),
            }
        }
    }

    /// Writes and forces every record so far.
    pub(super) fn force<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<Option<MutexGuard<'a, State>>> {
        state.is_guarded = false;
        state.last_batch = std::mem::take(&mut state.pending);
        // A clock costs more than a force of memory. Where the log is known to lie there, its time stays zero.
        let is_timed = self.view.is_none()
            && (state.force_time >= SHORT_FORCE || state.statistics.forces.is_multiple_of(64));
        let began = is_timed.then(Instant::now);
        let (state, result) = match state.is_memory() {
            true => self.force_memory(state),
            false => self.force_device(state),
        };
        self.end_force(state, began, result)
    }

    /// Of a log in memory: to release the lock meanwhile would take longer. Whatever can be done before the fence is: the
    /// processor runs on behind it for some hundreds of instructions, which had better be those of the next transaction.
    fn force_memory<'a>(&'a self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Result<()>) {
        let mut under_way = UnderWay { core: self, state: Some(state) };
        let state = under_way.state();
        state.store_through();
        let mut log = self.log();
        let appended = log.append(state.spool_start, &state.spool);
        state.spool_start = state.tail();
        state.keep_to_store();
        let result = appended.and_then(|()| log.force());
        state.statistics.ahead_wasted_bytes = log.ahead_wasted_bytes();
        drop(log);
        (under_way.end(), result)
    }

    /// Forces a log on a device while others go on committing.
    fn force_device<'a>(&'a self, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Result<()>) {
        state.is_forcing = true;
        let empty = std::mem::take(&mut state.spare);
        let mut records = std::mem::replace(&mut state.spool, empty);
        let start = state.spool_start;
        state.spool_start += records.len() as u64;
        let is_long = state.force_time >= SHORT_FORCE;
        let is_watched = is_long && self.wake_ups.is_early();
        let early = if is_watched { state.waiting_for_force.min(self.processors - 1) } else { 0 };
        drop(state);

        let mut under_way = UnderWay { core: self, state: None };
        let mut log = self.log();
        let mut began = None;
        let result = log.append(start, &records).and_then(|()| {
            if early > 0 {
                self.wake(early);
            }
            began = is_long.then(Instant::now);
            log.force()
        });
        let took = began.map(|began| began.elapsed());
        let ahead_wasted_bytes = log.ahead_wasted_bytes();
        drop(log);

        let state = under_way.state();
        state.statistics.ahead_wasted_bytes = ahead_wasted_bytes;
        if let Some(took) = took {
            state.syncs.note(took, &self.wake_ups);
        }
        state.is_forcing = false;
        records.clear();
        state.spare = records;
        (under_way.end(), result)
    }

    fn end_force<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        began: Option<Instant>,
        result: Result<()>,
    ) -> Result<Option<MutexGuard<'a, State>>> {
        state.expected = state.last_batch + state.pending;
        if let Some(began) = began {
            state.force_time = (state.force_time * 7 + began.elapsed()) / 8;
        }
        state.statistics.forces += 1;
        if let Err(error) = result {
            return Err(self.fail(state, error));
        }
        state.forced = state.spool_start;
        self.durable.store(state.forced, Ordering::Release);
        if state.waiting_for_force == 0 {
            return Ok(Some(state));
        }
        self.wake_force(state);
        Ok(None)
    }
}

impl State {
    /// Whether the log is in memory, as far as forces so far tell.
    pub(super) fn is_memory(&self) -> bool {
        self.force_time < MEMORY_FORCE
    }

    /// Whether there is nobody to wait for: all are there that are expected, or forces are short.
    fn is_complete(&self) -> bool {
        self.force_time < SHORT_FORCE || self.pending >= self.expected
    }

    /// How long a force waits for other commits to join it.
    fn gather_time(&self) -> Duration {
        (self.force_time / 2).min(GATHER_MAX)
    }
}
