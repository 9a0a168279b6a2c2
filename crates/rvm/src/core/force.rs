//! Forces the log: one thread writes and forces for all that wait (group commit).
//!
//! The thread that forces first waits a little for the others that are likely to commit: those that the last force
//! released and those whose records are there already. Without that, two threads would take turns, each forcing for
//! itself. It waits for at most half the usual time of a force, so a thread that stays away costs little.

use super::state::{Core, State};
use crate::Result;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Forces that take less are not worth waiting for company.
const SHORT_FORCE: Duration = Duration::from_micros(20);
/// The longest wait for company.
const GATHER_MAX: Duration = Duration::from_millis(2);

impl Core {
    /// Returns when every record before `position` is durable.
    pub(super) fn force_to<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        position: u64,
    ) -> Result<MutexGuard<'a, State>> {
        loop {
            if state.forced >= position {
                return Ok(state);
            }
            state.check()?;
            if !state.is_forcing {
                break;
            }
            state = self.wait_for_force(state);
        }
        state.is_forcing = true;
        state = self.gather(state);
        let empty = std::mem::take(&mut state.spare);
        let mut records = std::mem::replace(&mut state.spool, empty);
        let (start, end) = (state.spool_start, state.spool_start + records.len() as u64);
        state.spool_start = end;
        state.last_batch = std::mem::take(&mut state.pending);
        // A clock costs more than a force of memory.
        let is_timed = state.force_time >= SHORT_FORCE || state.statistics.forces.is_multiple_of(64);
        drop(state);

        let began = is_timed.then(Instant::now);
        let mut log = self.log();
        let result = log.append(start, &records).and_then(|()| log.force());
        drop(log);

        let mut state = self.state();
        state.is_forcing = false;
        state.expected = state.last_batch + state.pending;
        if let Some(began) = began {
            state.force_time = (state.force_time * 7 + began.elapsed()) / 8;
        }
        state.statistics.forces += 1;
        records.clear();
        state.spare = records;
        self.wake_force(&state);
        match result {
            Ok(()) => state.forced = end,
            Err(error) => {
                self.wake_space(&state);
                return Err(state.fail(error));
            }
        }
        Ok(state)
    }

    /// Waits for company, if any is expected.
    fn gather<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let expected = state.expected;
        if state.force_time < SHORT_FORCE || state.pending >= expected {
            return state;
        }
        let until = Instant::now() + (state.force_time / 2).min(GATHER_MAX);
        state.waiting.for_company += 1;
        while state.pending < expected {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.gathered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
        state.waiting.for_company -= 1;
        state
    }
}
