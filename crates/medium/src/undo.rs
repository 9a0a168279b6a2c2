//! What a power cut may still take back.
//!
//! A write changes the store when it is accepted, because its end is known then; until that end lies before
//! every possible cut, the bytes it replaced are kept here. Media without payload never put anything in.
//!
//! Invariant: entries lie in the order the writes were accepted, and writes that touch the same bytes use
//! the same lane, so taking them back newest first restores every byte to what it was.

use crate::Store;
use nvlab_units::Time;
use std::collections::VecDeque;

/// One write, or the part of it that one lane did without a gap.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    /// Address of the first byte.
    pub offset: u64,
    /// What the bytes were before.
    pub old: Box<[u8]>,
    /// When the first of them began to change.
    pub start: Time,
    /// When the last of them was done.
    pub end: Time,
    /// What the medium needs to know to tear it.
    pub how: T,
}

impl<T> Entry<T> {
    /// The address after the last byte.
    pub fn limit(&self) -> u64 {
        self.offset + self.old.len() as u64
    }

    /// Takes back every byte from address `from` on; those below keep their new value.
    pub fn restore_from<S: Store>(&self, store: &mut S, from: u64) {
        let from = from.clamp(self.offset, self.limit());
        store.write(from, &self.old[(from - self.offset) as usize..]);
    }
}

/// Writes that may still be undone, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Undo<T>(VecDeque<Entry<T>>);

impl<T> Undo<T> {
    pub fn new() -> Undo<T> {
        Undo(VecDeque::new())
    }

    /// Remembers what `bytes` at `offset` hold now.
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

    /// Forgets what no cut can take back any more.
    pub fn settle(&mut self, upto: Time) {
        while self.0.front().is_some_and(|entry| entry.end <= upto) {
            self.0.pop_front();
        }
    }

    /// Takes back everything not done at `at`: entirely if it had not begun, otherwise as `tear` decides.
    /// Afterwards nothing is remembered.
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

    /// Entries remembered.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
