//! The heap as it was at a moment: what commits overwrite after it is saved first, line by line.
//!
//! 1. It begins while no commit is in progress, so the file holds whole transactions.
//! 2. Whoever changes a line saves it before, once for each snapshot. Of two at a time, one saves and the other waits for it.
//! 3. Who reads copies what is there and then takes from the saved lines what has been saved: a change that the copy caught
//!    had been preceded by saving.
//! 4. It takes memory for what was changed since it began: at most that of the heap and a fiftieth more. Saved lines are kept
//!    in groups, so where changes are scattered it is a group of 1 KiB for a line.
//!
//! A heap has one snapshot at a time. What it has allocated serves the next one, unless it is much.

use crate::layout::LINE;
use crate::mutex::locked;
use crate::sync::{AtomicU64, Mutex, yield_now};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{self, AtomicPtr, Ordering, fence};
use std::sync::{Arc, OnceLock};

const LINE_WORDS: usize = LINE as usize / 8;
/// Lines that are kept together.
const LINES: u64 = 16;
const GROUP: u64 = LINES * LINE;
const HALF: u64 = u32::MAX as u64;
/// Groups whose places are kept together.
const GROUPS: u64 = 1024;

/// What a snapshot has allocated is kept for the next one if it is no more than this.
const KEPT_BYTES: u64 = 32 << 20;

/// Saved lines.
#[derive(Debug)]
struct Group {
    /// A bit for each line that somebody saves; 16 bits further, one for each that is saved; and in the upper half the number of
    /// the snapshot that this is about.
    state: AtomicU64,
    words: [atomic::AtomicU64; (GROUP / 8) as usize],
}

type Chunk = Box<[OnceLock<Box<Group>>]>;

#[derive(Debug)]
pub(crate) struct Snapshot {
    chunks: Box<[OnceLock<Chunk>]>,
    bytes: u64,
    /// The number of this snapshot, in the upper half, from 1.
    number: u64,
    groups: atomic::AtomicU64,
}

/// The bits of a state, if it is about a snapshot.
fn bits(state: u64, number: u64) -> u64 {
    if state & !HALF == number { state & HALF } else { 0 }
}

impl Group {
    fn new() -> Box<Group> {
        Box::new(Group { state: AtomicU64::new(0), words: [const { atomic::AtomicU64::new(0) }; _] })
    }

    /// What the state says of a snapshot.
    fn state(&self, number: u64) -> u64 {
        bits(self.state.load(Ordering::Acquire), number)
    }

    fn wait(&self, line: u64, number: u64) {
        while self.state(number) >> (LINES + line) & 1 == 0 {
            yield_now();
        }
    }

    /// Sets a bit; returns what the state said.
    fn set(&self, bit: u64, number: u64) -> u64 {
        let set = |state| Some(number | bits(state, number) | 1 << bit);
        let old = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, set);
        old.map_or(0, |state| bits(state, number))
    }

    fn save(&self, line: u64, number: u64, read: impl FnOnce() -> [u64; LINE_WORDS]) {
        if self.state(number) >> (LINES + line) & 1 == 1 {
            return;
        }
        if self.set(line, number) >> line & 1 == 1 {
            return self.wait(line, number);
        }
        let words = &self.words[line as usize * LINE_WORDS..][..LINE_WORDS];
        words.iter().zip(read()).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        self.set(LINES + line, number);
    }
}

fn lines(range: Range<u64>) -> impl Iterator<Item = u64> {
    range.start / LINE..range.end.div_ceil(LINE)
}

impl Snapshot {
    /// Of a heap of so many bytes, with no commit in progress.
    pub fn new(bytes: u64) -> Snapshot {
        let chunks = (0..bytes.div_ceil(GROUPS * GROUP)).map(|_| OnceLock::new()).collect();
        Snapshot { chunks, bytes, number: 1 << 32, groups: atomic::AtomicU64::new(0) }
    }

    /// Whether what it has allocated is to be kept.
    pub fn is_small(&self) -> bool {
        self.groups.load(Ordering::Relaxed) * GROUP <= KEPT_BYTES
    }

    /// One that has ended, for the next snapshot of a heap of so many bytes.
    pub fn again(self, bytes: u64) -> Option<Snapshot> {
        let number = self.number.checked_add(1 << 32)?;
        (self.bytes == bytes).then_some(Snapshot { number, ..self })
    }

    /// Bytes of the heap then.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Saves the lines of bytes that are about to be changed; `read` copies a line, given by its first byte.
    pub fn save(&self, range: Range<u64>, read: impl Fn(u64) -> [u64; LINE_WORDS]) {
        let end = range.end.min(self.bytes);
        for line in lines(range.start..end) {
            let (group, line) = (line / LINES, line % LINES);
            let chunk = self.chunks[(group / GROUPS) as usize]
                .get_or_init(|| (0..GROUPS).map(|_| OnceLock::new()).collect());
            let place = chunk[(group % GROUPS) as usize].get_or_init(|| {
                self.groups.fetch_add(1, Ordering::Relaxed);
                Group::new()
            });
            place.save(line, self.number, || read((group * LINES + line) * LINE));
        }
        // A reader that sees the change sees that it was saved.
        fence(Ordering::Release);
    }

    /// Puts what has been saved into a copy of the words at `at`, which has just been made.
    pub fn restore(&self, at: u64, into: &mut [u64]) {
        fence(Ordering::Acquire);
        let range = at..at + into.len() as u64 * 8;
        let mut first = range.start / GROUP;
        while first * GROUP < range.end {
            if let Some(group) = self.group(first) {
                let part = range.start.max(first * GROUP)..range.end.min((first + 1) * GROUP);
                self.restore_part(group, first, part, at, into);
            }
            first += 1;
        }
    }

    fn group(&self, group: u64) -> Option<&Group> {
        let chunk = self.chunks.get((group / GROUPS) as usize)?.get()?;
        chunk[(group % GROUPS) as usize].get().map(|group| &**group)
    }

    fn restore_part(&self, group: &Group, number: u64, part: Range<u64>, at: u64, into: &mut [u64]) {
        let state = group.state(self.number);
        if state == 0 {
            return;
        }
        for line in lines(part.clone()).map(|line| line % LINES) {
            if state >> line & 1 == 0 {
                continue;
            }
            group.wait(line, self.number);
            let start = number * GROUP + line * LINE;
            for word in (start.max(part.start)..(start + LINE).min(part.end)).step_by(8) {
                let saved = &group.words[((word - number * GROUP) / 8) as usize];
                into[((word - at) / 8) as usize] = saved.load(Ordering::Relaxed);
            }
        }
    }
}

/// The snapshot of a heap, if there is one: what commits look at, and what keeps it for others; and one that has ended.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    current: AtomicPtr<Snapshot>,
    kept: Mutex<Option<Arc<Snapshot>>>,
    spare: Mutex<Option<Snapshot>>,
}

impl Snapshots {
    /// Begins one of a heap of so many bytes. No commit is in progress, and there is no other.
    pub fn begin(&self, bytes: u64) -> Arc<Snapshot> {
        let spare = locked(&self.spare).take().and_then(|spare| spare.again(bytes));
        let new = Arc::new(spare.unwrap_or_else(|| Snapshot::new(bytes)));
        *locked(&self.kept) = Some(new.clone());
        self.current.store(Arc::as_ptr(&new).cast_mut(), Ordering::Release);
        new
    }

    /// Ends it for commits that begin from now on. It stays until all others have ended.
    pub fn end(&self) {
        self.current.store(null_mut(), Ordering::SeqCst);
        locked(&self.kept).take();
    }

    /// Nobody needs one that has ended.
    pub fn free(&self, snapshot: Arc<Snapshot>) {
        *locked(&self.spare) = Arc::try_unwrap(snapshot).ok().filter(Snapshot::is_small);
    }

    #[inline(always)]
    pub fn is_any(&self) -> bool {
        !self.current.load(Ordering::Acquire).is_null()
    }

    /// Saves what a commit is about to change.
    ///
    /// # Safety
    /// The commit is one that the end of the snapshot waits for.
    pub unsafe fn save_in_commit(&self, range: Range<u64>, read: impl Fn(u64) -> [u64; LINE_WORDS]) {
        // SAFETY: it stays until the commit has ended.
        if let Some(snapshot) = unsafe { self.current.load(Ordering::Acquire).as_ref() } {
            snapshot.save(range, read);
        }
    }

    /// Saves what somebody else is about to change.
    #[cold]
    pub fn save(&self, range: Range<u64>, read: impl Fn(u64) -> [u64; LINE_WORDS]) {
        let kept = locked(&self.kept).clone();
        kept.into_iter().for_each(|snapshot| snapshot.save(range.clone(), &read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read is what was there, whatever has been changed since and in whatever pieces.
    #[test]
    fn what_was_there_is_read() {
        const WORDS: usize = 3 * (GROUP / 8) as usize + 24;
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
            snapshot.save(at as u64 * 8..end as u64 * 8, line);
            now[at..end].fill(1_000_000 + round);
            let mut copy = now[at / 2..end].to_vec();
            snapshot.restore((at / 2) as u64 * 8, &mut copy);
            assert_eq!(copy, old[at / 2..end]);
        }
    }
}
