//! Truncation by epoch: the records up to now are applied to the segments, and the head moves behind them. Commits go on
//! meanwhile, in the next epoch.
//!
//! Order: the epoch is forced; its newest bytes are written to the segments; the segments are synced; the head moves. After
//! a power failure anywhere in between, recovery applies the same records again, with the same result.

use super::overlay::Overlay;
use super::state::{Core, State, wait};
use crate::record::{Contents, Record};
use crate::scan::scan;
use crate::{Error, Result, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

/// What an epoch changes, by number of the segment.
pub(super) type Changes = BTreeMap<u32, Overlay>;

/// Adds the changes of a record.
pub(super) fn collect(changes: &mut Changes, record: &Record<'_>) {
    if let Contents::Commit(modifications) = &record.contents {
        let listed = modifications.each(|change| {
            changes.entry(change.segment).or_default().insert(change.offset, change.data);
        });
        listed.expect("the list was read when the record was checked");
    }
}

/// Writes the changes of a segment and makes them durable. Returns their bytes.
pub(super) fn apply(name: &str, store: &dyn Store, overlay: &Overlay) -> Result<u64> {
    let has = store.len().map_err(Error::io("measure", &name))?;
    if overlay.end() > has {
        let why = format!("the log changes it up to byte {}, but it has {has}", overlay.end());
        return Err(Error::Format { what: name.to_string(), offset: has, why });
    }
    let written = overlay.write_to(store).and_then(|bytes| store.sync().map(|()| bytes));
    written.map_err(Error::io("write", &name))
}

impl Core {
    /// Truncates the log to the records committed after this call.
    pub(super) fn truncate<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        while state.is_truncating {
            state = wait(&self.space, state);
        }
        state.check()?;
        let end = state.tail();
        if end == state.status.head {
            return Ok(state);
        }
        state.is_truncating = true;
        for segment in &mut state.segments {
            (segment.is_named, segment.is_logged) = (false, false);
        }
        let result = self.force_to(state, end).and_then(|state| {
            drop(state);
            self.apply_epoch(end)
        });
        let mut state = self.state();
        state.is_truncating = false;
        self.space.notify_all();
        match result {
            Ok(bytes) => {
                state.status.head = end;
                state.statistics.truncations += 1;
                state.statistics.applied_bytes += bytes;
                Ok(state)
            }
            Err(error) => {
                self.forced.notify_all();
                Err(state.fail(error))
            }
        }
    }

    fn apply_epoch(&self, end: u64) -> Result<u64> {
        let mut changes = Changes::new();
        scan(&self.log, Some(end), |_, record| {
            collect(&mut changes, record);
            Ok(())
        })?;
        let mut bytes = 0;
        for (number, overlay) in &changes {
            let (name, store) = self.segment(*number);
            bytes += apply(&name, store.as_ref(), overlay)?;
        }
        self.log().truncate(end)?;
        Ok(bytes)
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
            state = match self.is_full(&state, at_percent) {
                true => match self.truncate(state) {
                    Ok(state) => state,
                    // It is recorded: whoever commits next is told.
                    Err(_) => return,
                },
                false => wait(&self.space, state),
            };
        }
    }

    /// Whether the log is filled to so many percent.
    pub(super) fn is_full(&self, state: &State, percent: u8) -> bool {
        state.tail() - state.status.head > self.capacity / 100 * u64::from(percent)
    }
}
