//! Undo records: what a power cut may still undo.
//!
//! A write changes the store when it is accepted, because its end is known then; until no cut can come before
//! that end, the bytes it replaced are kept here. Media without payload never record anything.
//!
//! Invariant: entries are in the order the writes were accepted, and writes that touch the same bytes use
//! the same lane, so undoing them newest first restores every byte to what it was.

use crate::Store;
use nvlab_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// One write, or the part of it that one lane does without a gap.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry<T> {
    /// Address of the first byte.
    pub offset: u64,
    /// What the bytes were before.
    pub old: Box<[u8]>,
    /// When the first byte begins to change.
    pub start: Time,
    /// When the last byte is done.
    pub end: Time,
    /// What the medium needs to tear the write.
    pub how: T,
}

impl<T> Entry<T> {
    /// The address after the last byte.
    pub fn limit(&self) -> u64 {
        self.offset + self.old.len() as u64
    }

    /// Restores every byte from address `from` on; those below keep their new value.
    pub fn restore_from<S: Store>(&self, store: &mut S, from: u64) {
        let from = from.clamp(self.offset, self.limit());
        store.write(from, &self.old[(from - self.offset) as usize..]);
    }
}

/// Writes that may still be undone, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Undo<T>(VecDeque<Entry<T>>);

impl<T> Undo<T> {
    pub fn new() -> Undo<T> {
        Undo(VecDeque::new())
    }

    /// Records the current contents of `bytes` bytes at `offset`.
    pub fn remember<S: Store>(
        &mut self,
        store: &S,
        (offset, bytes): (u64, u64),
        (start, end): (Time, Time),
        how: T,
    ) {
        let mut old = vec![0; bytes as usize].into_boxed_slice();
        store.read(offset, &mut old);
        self.0.push_back(Entry { offset, old, start, end, how });
    }

    /// Drops the records that no cut can undo any more: those of writes finished by `upto`.
    pub fn settle(&mut self, upto: Time) {
        while self.0.front().is_some_and(|entry| entry.end <= upto) {
            self.0.pop_front();
        }
    }

    /// Undoes every write not done at `at`: entirely if it had not started, otherwise as `tear` decides. Removes all
    /// records.
    pub fn cut<S: Store>(&mut self, store: &mut S, at: Time, mut tear: impl FnMut(&mut S, &Entry<T>)) {
        while let Some(entry) = self.0.pop_back() {
            if entry.end <= at {
                continue;
            }
            if entry.start >= at {
                entry.restore_from(store, entry.offset);
            } else {
                tear(store, &entry);
            }
        }
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
