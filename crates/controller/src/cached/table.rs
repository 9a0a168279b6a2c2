//! Which line is in which frame: sets of tags, and what is known of each line in the cache.
//!
//! Invariants
//! 1. A line is in at most one frame, of the set that its number names.
//! 2. `dirty` counts the frames whose line is newer than what is behind the cache.

use nvlab_units::Time;
use prefetch_index::prefetch_index;

/// No line.
pub(super) const NO_LINE: u32 = u32::MAX;

/// Used since the clock hand of its set passed.
pub(super) const USED: u8 = 1;
/// Newer than what is behind the cache.
pub(super) const DIRTY: u8 = 2;
/// On its way into the cache until [`Table::ready`].
pub(super) const FILLING: u8 = 4;
/// Fetched ahead, and not used yet.
pub(super) const AHEAD: u8 = 8;

/// Tags, states and clock hands.
#[derive(Clone, Debug)]
pub(super) struct Table {
    ways: usize,
    set_mask: u32,
    /// The line in each frame, the frames of a set one after the other: 16 tags of 4 B are one line of a processor's cache.
    tags: Vec<u32>,
    states: Vec<u8>,
    /// When a line that is [`FILLING`] is in the cache.
    ready: Vec<Time>,
    /// The clock hand of each set.
    hands: Vec<u8>,
    dirty: u32,
    /// Where the search for a line to write back continues.
    sweep: usize,
}

impl Table {
    pub fn new(sets: u32, ways: u32) -> Table {
        let frames = sets as usize * ways as usize;
        Table {
            ways: ways as usize,
            set_mask: sets - 1,
            tags: vec![NO_LINE; frames],
            states: vec![0; frames],
            ready: vec![Time::ZERO; frames],
            hands: vec![0; sets as usize],
            dirty: 0,
            sweep: 0,
        }
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> u64 {
        let frame = size_of::<u32>() + size_of::<u8>() + size_of::<Time>();
        (frame * self.tags.len() + self.hands.len()) as u64
    }

    pub fn frames(&self) -> usize {
        self.tags.len()
    }
    /// Lines that are dirty.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }
    /// The line in a frame.
    pub fn line(&self, frame: usize) -> u32 {
        self.tags[frame]
    }
    #[inline]
    pub fn is(&self, frame: usize, flag: u8) -> bool {
        self.states[frame] & flag != 0
    }

    #[inline]
    fn first_of_set(&self, line: u32) -> usize {
        (line & self.set_mask) as usize * self.ways
    }

    /// The frame of a line.
    #[inline]
    pub fn find(&self, line: u32) -> Option<usize> {
        let first = self.first_of_set(line);
        let tags = &self.tags[first..first + self.ways];
        tags.iter().position(|&tag| tag == line).map(|way| first + way)
    }

    #[inline]
    pub fn prefetch(&self, line: u32) {
        let first = self.first_of_set(line);
        prefetch_index(&self.tags, first);
        prefetch_index(&self.states, first);
    }

    /// Notes a use; returns when the line is in the cache, if it is not known to be, and whether this is the first use of a
    /// line fetched ahead.
    #[inline]
    pub fn used(&mut self, frame: usize, at: Time) -> (Time, bool) {
        let state = self.states[frame];
        self.states[frame] = (state | USED) & !AHEAD;
        if state & FILLING == 0 {
            return (at, state & AHEAD != 0);
        }
        let ready = self.ready[frame];
        if ready <= at {
            self.states[frame] &= !FILLING;
        }
        (at.max(ready), state & AHEAD != 0)
    }

    /// The frame that a line takes: one that is free, else one that was not used since the hand of the set last passed.
    pub fn victim(&mut self, line: u32) -> usize {
        let first = self.first_of_set(line);
        if let Some(free) = self.tags[first..first + self.ways].iter().position(|&tag| tag == NO_LINE) {
            return first + free;
        }
        let hand = &mut self.hands[(line & self.set_mask) as usize];
        loop {
            let way = *hand as usize;
            *hand = if way + 1 == self.ways { 0 } else { *hand + 1 };
            let state = &mut self.states[first + way];
            if *state & USED == 0 {
                return first + way;
            }
            *state &= !USED;
        }
    }

    /// When what is in a frame, or on its way into it, is there.
    pub fn there_at(&self, frame: usize, at: Time) -> Time {
        if self.is(frame, FILLING) { at.max(self.ready[frame]) } else { at }
    }

    /// True if a line belongs in the set of a frame and is in no other.
    pub fn may_hold(&self, frame: usize, line: u32) -> bool {
        self.first_of_set(line) / self.ways == frame / self.ways && self.find(line).is_none()
    }

    /// A line takes a frame whose line is not dirty; it is there at `ready`.
    pub fn insert(&mut self, frame: usize, line: u32, flags: u8, ready: Time) {
        debug_assert!(!self.is(frame, DIRTY) && flags & DIRTY == 0);
        (self.tags[frame], self.states[frame], self.ready[frame]) = (line, flags, ready);
    }

    /// All of a line is replaced: nothing on its way into the frame counts any more.
    pub fn replaced(&mut self, frame: usize) {
        self.states[frame] = (self.states[frame] | USED) & !(FILLING | AHEAD);
    }

    /// True if the line of a frame became dirty by this.
    #[inline]
    pub fn dirtied(&mut self, frame: usize) -> bool {
        let was = self.is(frame, DIRTY);
        self.states[frame] |= DIRTY;
        self.dirty += !was as u32;
        !was
    }

    pub fn cleaned(&mut self, frame: usize) {
        self.dirty -= self.is(frame, DIRTY) as u32;
        self.states[frame] &= !DIRTY;
    }

    /// Empties a frame.
    pub fn drop(&mut self, frame: usize) {
        self.cleaned(frame);
        (self.tags[frame], self.states[frame]) = (NO_LINE, 0);
    }

    /// The next dirty frame after the last that was returned, in order of frames, round and round. Some frame must be dirty.
    pub fn next_dirty(&mut self) -> usize {
        debug_assert!(self.dirty > 0);
        loop {
            let frame = self.sweep;
            self.sweep = if frame + 1 == self.states.len() { 0 } else { frame + 1 };
            if self.is(frame, DIRTY) {
                return frame;
            }
        }
    }

    /// Panics if an invariant is broken.
    pub fn check(&self) {
        let dirty = self.states.iter().filter(|&&state| state & DIRTY != 0).count();
        assert_eq!(dirty, self.dirty as usize, "dirty lines");
        for (frame, &line) in self.tags.iter().enumerate() {
            if line == NO_LINE {
                assert_eq!(self.states[frame], 0, "frame {frame} is empty");
            } else {
                assert_eq!(self.find(line), Some(frame), "line {line} is in frame {frame}");
            }
        }
    }
}
