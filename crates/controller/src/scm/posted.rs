//! Writes that a memory controller has acknowledged and not yet programmed: first in, first out, in a room of fixed size.

use nvlab_units::Time;
use std::collections::VecDeque;

/// The room of one memory controller.
#[derive(Clone, Debug)]
pub(super) struct Posted {
    /// When each write is programmed and the bytes it takes until then, oldest first.
    writes: VecDeque<(Time, u32)>,
    taken: u64,
    room: u64,
}

impl Posted {
    /// Room for so many bytes.
    pub fn new(bytes: u32) -> Posted {
        Posted { writes: VecDeque::new(), taken: 0, room: bytes as u64 }
    }

    /// When a write of `bytes` that is there at `at` has room.
    #[inline]
    pub fn room_at(&mut self, at: Time, bytes: u64) -> Time {
        let mut at = at;
        while let Some(&(end, held)) = self.writes.front()
            && (end <= at || self.taken + bytes > self.room)
        {
            at = at.max(end);
            self.taken -= held as u64;
            self.writes.pop_front();
        }
        at
    }

    /// Adds a write that is programmed at `end`.
    #[inline]
    pub fn add(&mut self, end: Time, bytes: u64) {
        self.writes.push_back((end, bytes as u32));
        self.taken += bytes;
    }
}
