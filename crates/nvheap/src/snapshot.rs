//! A snapshot of the heap: lines that commits overwrite afterwards are saved first.
//!
//! 1. It begins while no commit is in progress, so the file holds whole transactions.
//! 2. A thread that changes a line saves it before, once for each snapshot. If two do so at the same time, one saves
//!    and the other waits for it, after it has finished what it has itself begun to save.
//! 3. A reader copies the current contents and then replaces the saved lines by their saved contents: any change that
//!    the copy caught was saved before.
//! 4. It takes memory for what was changed since it began: 64 B for each changed line, and eight bytes for each line
//!    of the MiB around it. So a snapshot takes at most nine eighths of the size of the heap.
//! 5. What it needs to begin, 24 B for each 64 KiB of the heap, is allocated before commits are held up.
//!
//! A heap has at most [`SNAPSHOTS`] at a time. Memory allocated for one is reused for the next, unless it is large.
//!
//! Rejected: saved lines in groups of 16, each with its own state. Where changes are scattered, a group was allocated and filled with
//! zeros for each line, and a line cost two read-modify-writes instead of one.

use crate::layout::LINE;
use crate::mutex::locked;
use crate::sync::{AtomicBool, AtomicU64, Mutex, yield_now};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{self, AtomicPtr, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Maximum number of snapshots of a heap at a time.
pub(crate) const SNAPSHOTS: usize = 4;

const LINE_WORDS: usize = LINE as usize / 8;
/// Lines whose states are kept together: of 1 MiB.
const LINES: u64 = 16384;
/// Lines that are saved together.
const BATCH: usize = 16;
/// Saved lines that are allocated together.
const SLAB: u64 = 1024;

/// Of the state of a line: the number of the snapshot that it is about is above these bits.
const PLACE_BITS: u32 = 40;
const NUMBER_MAX: u64 = u64::MAX >> PLACE_BITS;
/// Another thread is saving the line. Greater: it is saved, at this place less [`FIRST_PLACE`].
const BUSY: u64 = 1;
const FIRST_PLACE: u64 = 2;

/// Maximum memory of a snapshot that is kept for the next one.
const KEPT_BYTES: u64 = 32 << 20;

type Line = [atomic::AtomicU64; 8];

#[derive(Debug)]
pub(crate) struct Snapshot {
    states: Box<[OnceLock<Box<[AtomicU64]>>]>,
    slabs: Box<[OnceLock<Box<[Line]>>]>,
    /// Lines that are saved.
    saved: atomic::AtomicU64,
    allocated: atomic::AtomicU64,
    bytes: u64,
    /// Which snapshot this is, from 1, of those that used the same states.
    number: u64,
}

fn lines(range: Range<u64>) -> impl Iterator<Item = u64> {
    range.start / LINE..range.end.div_ceil(LINE)
}

fn none<T>(count: u64) -> Box<[OnceLock<T>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Snapshot {
    /// Of a heap of so many bytes.
    fn new(bytes: u64) -> Snapshot {
        let count = bytes.div_ceil(LINE);
        let [saved, allocated] = [0; 2].map(atomic::AtomicU64::new);
        let (states, slabs) = (none(count.div_ceil(LINES)), none(count.div_ceil(SLAB)));
        Snapshot { states, slabs, saved, allocated, bytes, number: 1 }
    }

    /// Whether what it has allocated is to be kept.
    pub fn is_small(&self) -> bool {
        self.allocated.load(Ordering::Relaxed) <= KEPT_BYTES
    }

    /// One that has ended, for the next snapshot of a heap of so many bytes.
    fn again(self, bytes: u64) -> Option<Snapshot> {
        if self.bytes != bytes || self.number == NUMBER_MAX {
            return None;
        }
        let saved = atomic::AtomicU64::new(0);
        Some(Snapshot { number: self.number + 1, saved, ..self })
    }

    /// Bytes of the heap then.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Zeros, of a type of atomics.
    fn allocate(&self, count: u64) -> Box<[AtomicU64]> {
        self.allocated.fetch_add(count * 8, Ordering::Relaxed);
        // SAFETY: zeros are atomics.
        unsafe { Box::new_zeroed_slice(count as usize).assume_init() }
    }

    fn allocate_slab(&self) -> Box<[Line]> {
        self.allocated.fetch_add(SLAB * LINE, Ordering::Relaxed);
        // SAFETY: zeros are atomics.
        unsafe { Box::new_zeroed_slice(SLAB as usize).assume_init() }
    }

    /// What a state says of this snapshot: 0, nothing is saved.
    #[inline]
    fn place(&self, state: u64) -> u64 {
        if state >> PLACE_BITS == self.number { state & ((1 << PLACE_BITS) - 1) } else { 0 }
    }

    fn slot(&self, place: u64) -> &Line {
        let index = place - FIRST_PLACE;
        let slab = self.slabs[(index / SLAB) as usize].get_or_init(|| self.allocate_slab());
        &slab[(index % SLAB) as usize]
    }

    /// Saves the lines of ranges that are about to be changed; `read` copies a line, given by its first byte.
    pub fn save(&self, ranges: impl Iterator<Item = Range<u64>>, read: impl Fn(u64) -> [u64; LINE_WORDS]) {
        let (mut batch, mut count) = ([0; BATCH], 0);
        for line in ranges.flat_map(|range| lines(range.start..range.end.min(self.bytes))) {
            // Several words of a line are changed as several ranges.
            if batch[..count].last() == Some(&line) {
                continue;
            }
            if count == BATCH {
                self.save_lines(&batch, &read);
                count = 0;
            }
            batch[count] = line;
            count += 1;
        }
        self.save_lines(&batch[..count], &read);
        // A reader that sees the change sees that it was saved.
        fence(Ordering::Release);
    }

    fn state(&self, line: u64) -> &AtomicU64 {
        let states = self.states[(line / LINES) as usize].get_or_init(|| self.allocate(LINES));
        &states[(line % LINES) as usize]
    }

    /// Saves lines, at most [`BATCH`]. Every atomic exchange waits for all stores before it, so those come first.
    #[inline]
    fn save_lines(&self, lines: &[u64], read: impl Fn(u64) -> [u64; LINE_WORDS]) {
        let number = self.number << PLACE_BITS;
        let (mut taken, mut count, mut is_other_saving) = ([None; BATCH], 0, false);
        for &line in lines {
            let state = self.state(line);
            let found = state.load(Ordering::Acquire);
            if self.place(found) >= FIRST_PLACE {
                continue;
            }
            let is_free = self.place(found) != BUSY;
            let busy = number | BUSY;
            if is_free && state.compare_exchange(found, busy, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                taken[count] = Some((line, state));
                count += 1;
            } else {
                is_other_saving = true;
            }
        }
        if count > 0 {
            let first = self.saved.fetch_add(count as u64, Ordering::Relaxed) + FIRST_PLACE;
            for (place, (line, state)) in (first..).zip(taken.iter().flatten()) {
                let words = self.slot(place).iter().zip(read(line * LINE));
                words.for_each(|(word, value)| word.store(value, Ordering::Relaxed));
                state.store(number | place, Ordering::Release);
            }
        }
        if is_other_saving {
            lines.iter().for_each(|&line| _ = self.wait(self.state(line)));
        }
    }

    /// Waits until a line that another thread is saving is saved, and returns its place; 0 if none is.
    #[inline]
    fn wait(&self, state: &AtomicU64) -> u64 {
        loop {
            match self.place(state.load(Ordering::Acquire)) {
                BUSY => yield_now(),
                place => return place,
            }
        }
    }

    /// Whether something of a range has been saved, or is being saved, since words of it were loaded.
    #[inline]
    pub fn has_saved(&self, range: Range<u64>) -> bool {
        fence(Ordering::Acquire);
        let (first, last) = (range.start / LINE, (range.end.max(range.start + 1) - 1) / LINE);
        if first / LINES != last / LINES {
            return true;
        }
        let Some(states) = self.states.get((first / LINES) as usize).and_then(OnceLock::get) else {
            return false;
        };
        let states = &states[(first % LINES) as usize..=(last % LINES) as usize];
        states.iter().any(|state| self.place(state.load(Ordering::Acquire)) != 0)
    }

    /// Puts what has been saved into a copy of the words at `at`, which has just been made.
    pub fn restore(&self, at: u64, into: &mut [u64]) {
        fence(Ordering::Acquire);
        let range = at..at + into.len() as u64 * 8;
        for line in lines(range.clone()) {
            let Some(states) = self.states.get((line / LINES) as usize).and_then(OnceLock::get) else {
                continue;
            };
            let place = self.wait(&states[(line % LINES) as usize]);
            if place < FIRST_PLACE {
                continue;
            }
            let (saved, start) = (self.slot(place), line * LINE);
            for word in (start.max(range.start)..(start + LINE).min(range.end)).step_by(8) {
                into[((word - at) / 8) as usize] =
                    saved[((word - start) / 8) as usize].load(Ordering::Relaxed);
            }
        }
    }
}

/// The snapshots of a heap: what commits look at, and what keeps them for others; and one that has ended.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    /// True if a snapshot exists: most commits read only this.
    is_any: AtomicBool,
    current: [AtomicPtr<Snapshot>; SNAPSHOTS],
    kept: Mutex<[Option<Arc<Snapshot>>; SNAPSHOTS]>,
    spare: Mutex<Option<Snapshot>>,
}

impl Snapshots {
    /// Allocates one of a heap of so many bytes.
    pub fn prepare(&self, bytes: u64) -> Arc<Snapshot> {
        let spare = locked(&self.spare).take();
        Arc::new(spare.and_then(|spare| spare.again(bytes)).unwrap_or_else(|| Snapshot::new(bytes)))
    }

    /// Begins one that has been prepared. There are fewer than there may be, and no commit is in progress.
    pub fn begin(&self, new: Arc<Snapshot>) -> Arc<Snapshot> {
        let mut kept = locked(&self.kept);
        let free = kept.iter().position(Option::is_none).expect("fewer than there may be");
        kept[free] = Some(new.clone());
        self.current[free].store(Arc::as_ptr(&new).cast_mut(), Ordering::Release);
        self.is_any.store(true, Ordering::Release);
        new
    }

    /// Whether there are as many as there may be.
    pub fn is_full(&self) -> bool {
        locked(&self.kept).iter().all(Option::is_some)
    }

    /// Ends it for commits that begin from now on. It stays until it is freed, when all others have ended.
    pub fn end(&self, snapshot: &Arc<Snapshot>) {
        let kept = locked(&self.kept);
        let is_it =
            |other: &Option<Arc<Snapshot>>| other.as_ref().is_some_and(|other| Arc::ptr_eq(other, snapshot));
        let index = kept.iter().position(is_it).expect("a snapshot that has begun");
        self.current[index].store(null_mut(), Ordering::SeqCst);
        let is_any = self.current.iter().any(|current| !current.load(Ordering::Relaxed).is_null());
        self.is_any.store(is_any, Ordering::SeqCst);
    }

    /// Frees a snapshot that has ended.
    pub fn free(&self, snapshot: Arc<Snapshot>) {
        let mut kept = locked(&self.kept);
        kept.iter_mut().for_each(|place| drop(place.take_if(|other| Arc::ptr_eq(other, &snapshot))));
        drop(kept);
        if let Some(small) = Arc::try_unwrap(snapshot).ok().filter(Snapshot::is_small) {
            *locked(&self.spare) = Some(small);
        }
    }

    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Saves what a commit is about to change.
    ///
    /// # Safety
    /// The commit is one that the end of a snapshot waits for.
    pub unsafe fn save_in_commit(
        &self,
        ranges: impl Iterator<Item = Range<u64>> + Clone,
        read: impl Fn(u64) -> [u64; LINE_WORDS],
    ) {
        for current in &self.current {
            // SAFETY: it stays until the commit has ended.
            if let Some(snapshot) = unsafe { current.load(Ordering::Acquire).as_ref() } {
                snapshot.save(ranges.clone(), &read);
            }
        }
    }

    /// Saves data that another thread is about to change.
    #[cold]
    pub fn save(&self, range: Range<u64>, read: impl Fn(u64) -> [u64; LINE_WORDS]) {
        let kept = locked(&self.kept).clone();
        kept.iter().flatten().for_each(|snapshot| snapshot.save(std::iter::once(range.clone()), &read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read is what was there, whatever has been changed since and in whatever pieces.
    #[test]
    fn what_was_there_is_read() {
        const WORDS: usize = 3 * 128 + 24;
        let mut old: Vec<u64> = (0..WORDS as u64).collect();
        let mut now = old.clone();
        let mut snapshot = Snapshot::new(WORDS as u64 * 8);
        let mut seed = 88_172_645_463_325_252_u64;
        for round in 0..900 {
            if round % 100 == 99 {
                (snapshot, old) = (snapshot.again(WORDS as u64 * 8).unwrap(), now.clone());
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % WORDS;
            let end = WORDS.min(at + 1 + (seed >> 20) as usize % 40);
            let line = |at: u64| std::array::from_fn(|word| now[at as usize / 8 + word]);
            let middle = at as u64 * 8 + (end - at) as u64 / 2 * 8;
            snapshot.save([at as u64 * 8..middle, middle..end as u64 * 8].into_iter(), line);
            now[at..end].fill(1_000_000 + round);
            let mut copy = now[at / 2..end].to_vec();
            snapshot.restore((at / 2) as u64 * 8, &mut copy);
            assert_eq!(copy, old[at / 2..end]);
        }
    }
}
