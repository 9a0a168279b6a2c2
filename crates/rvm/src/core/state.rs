//! State shared by the threads of a program: the log, the records to be written to it, and the segments.

use super::changes::Changes;
use super::options::Options;
use super::recovery_time::RecoveryTime;
use super::recovery_time::Took;
use super::statistics::Statistics;
use super::view::View;
use super::wake_ups::{Syncs, WakeUps};
use super::write_through::WriteThrough;
use crate::record::Place;
use crate::store::take_room;
use crate::{Error, Log, Result, Segments, Status, Store};
use rustix::thread::futex::{self, Timespec};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A thread that polls the end of a force sleeps after this.
const POLL_MAX: Duration = Duration::from_micros(300);

/// Shared by all handles. Lock order: `state` before `log`.
#[derive(Debug)]
pub struct Core {
    pub(super) options: Options,
    /// Held by the thread that writes or reads the log.
    pub(super) log: Mutex<Box<dyn Log>>,
    /// What a log in memory holds.
    pub(super) view: Option<View>,
    pub(super) state: Mutex<State>,
    /// [`State::forced`], for threads without the lock.
    pub(super) durable: AtomicU64,
    /// Counts ended forces; who waits for one sleeps until it changes. A thread that was released needs no lock, and all are
    /// woken by one system call: with the lock or one by one, eight threads would take as long as a force.
    pub(super) forces_ended: AtomicU32,
    /// Number of threads that sleep until a force ends, or are about to: waking nobody still costs a system call.
    pub(super) asleep: AtomicU32,
    pub(super) wake_ups: WakeUps,
    /// How many threads can run at once.
    pub(super) processors: u32,
    /// The head moved, or a truncation ended or is wanted.
    pub(super) space: Condvar,
    pub(super) segments: Box<dyn Segments>,
    /// Of the truncation under way, which alone uses it.
    pub(super) changes: Mutex<Changes>,
    pub(super) capacity: u64,
    /// [`Log::ahead_bytes_min`].
    pub(super) ahead_bytes_min: Option<usize>,
}

/// A segment in use.
#[derive(Debug)]
pub(super) struct Segment {
    pub name: String,
    pub store: Arc<dyn Store>,
    /// Bytes from the start of the file that are durable.
    pub synced_bytes: u64,
    /// A record after the head (of the next epoch) names it.
    pub is_named: bool,
    /// The last record that changes it begins here, or behind those here that name segments. Not before the head: it is yet to be
    /// applied.
    pub logged_at: Option<u64>,
    /// Ranges of the segment that regions have.
    pub mapped: Vec<Range<u64>>,
    /// Ranges that were, and no record after the position changes them: what their regions committed is yet to be applied.
    pub given_up: Vec<(Range<u64>, u64)>,
}

impl Segment {
    /// Whether a record after the head changes it.
    pub fn is_logged(&self, head: u64) -> bool {
        self.logged_at.is_some_and(|at| at >= head)
    }

    /// Takes room for a range that is about to be mapped.
    pub fn take_room(&self, range: &Range<u64>) -> Result<()> {
        self.store.file().map_or(Ok(()), |file| take_room(file, &self.name, range))
    }

    /// A region has this range no more.
    pub fn give_up(&mut self, range: Range<u64>, head: u64) {
        self.mapped.retain(|mapped| *mapped != range);
        self.given_up.retain(|(_, at)| *at >= head);
        self.given_up.extend(self.logged_at.filter(|at| *at >= head).map(|at| (range, at)));
    }

    /// Whether regions that had a part of `range` have committed what the segment itself may not have yet.
    pub fn is_behind(&self, range: &Range<u64>, head: u64) -> bool {
        self.given_up.iter().any(|(given_up, at)| *at >= head && overlap(given_up, range))
    }
}

/// Whether two ranges have a byte in common.
pub(super) fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The state of the log in memory. `head <= forced <= spool_start <= tail`.
#[derive(Debug)]
pub(super) struct State {
    pub status: Status,
    /// Records not yet written, which begin at `spool_start` and end at `tail`.
    pub spool: Vec<u8>,
    /// An empty buffer, kept for its memory.
    pub spare: Vec<u8>,
    pub spool_start: u64,
    pub forced: u64,
    /// A thread is writing and forcing.
    pub is_forcing: bool,
    /// Commits in the spool that wait for a force, and in the last force.
    pub pending: u32,
    pub last_batch: u32,
    /// The thread about to force waits for this many.
    pub expected: u32,
    /// Number of threads that wait for a force.
    pub waiting_for_force: u32,
    /// One of them will force if the company it waits for stays away.
    pub is_guarded: bool,
    /// Number of threads that wait for space: waking nobody still costs a system call.
    pub waiting_for_space: u32,
    /// Usual time of a force.
    pub force_time: Duration,
    /// Of those that take long, the syncs.
    pub syncs: Syncs,
    pub is_truncating: bool,
    /// Where the records end that a truncation in two steps has applied, and what that took.
    pub applied: Option<(u64, Took)>,
    /// The background thread has been told that it is time to.
    pub is_truncation_due: bool,
    /// The log is closed: the background thread ends.
    pub is_closing: bool,
    pub failed: Option<Arc<Error>>,
    pub segments: Vec<Segment>,
    /// Commits store to the segments themselves.
    pub write_through: Option<WriteThrough>,
    /// What they have not stored yet: the records of the last force.
    pub unstored: Vec<u8>,
    /// The most bytes that the records which name all segments take.
    pub names_bytes: u64,
    pub recovery_time: RecoveryTime,
    pub statistics: Statistics,
}

impl State {
    pub fn tail(&self) -> u64 {
        self.spool_start + self.spool.len() as u64
    }

    /// Bytes between head and tail.
    pub fn live_bytes(&self) -> u64 {
        self.tail() - self.status.head
    }

    /// Fails if an earlier write or force has.
    pub fn check(&self) -> Result<()> {
        match &self.failed {
            Some(cause) => Err(Error::Failed(cause.clone())),
            None => Ok(()),
        }
    }

    /// The place of the next record, and whether everything before it is durable once it is written.
    pub fn next_place(&self) -> (Place, bool) {
        (Place::new(&self.status, self.tail()), self.spool.is_empty())
    }

    /// Takes note of a segment whose length is new.
    pub fn map_through(&mut self, number: usize, name: &str, store: &dyn Store) -> Result<()> {
        if let Some(write_through) = &mut self.write_through
            && !write_through.map(number, name, store)?
        {
            self.write_through = None;
        }
        Ok(())
    }

    /// Empties the spool, and keeps its records to be stored to the segments once they are durable.
    #[inline]
    pub fn keep_to_store(&mut self) {
        if self.write_through.is_some() {
            std::mem::swap(&mut self.spool, &mut self.unstored);
        }
        self.spool.clear();
    }

    /// Stores the records of the last force to the segments.
    #[inline]
    pub fn store_through(&mut self) {
        if let Some(write_through) = &mut self.write_through
            && self.failed.is_none()
        {
            match write_through.store(&self.unstored) {
                Some(bytes) => self.statistics.applied_bytes += bytes,
                None => self.write_through = None,
            }
            self.unstored.clear();
        }
    }
}

/// What a log fails with when a thread that was about to `verb` it panicked.
pub(super) fn panicked(verb: &str) -> Error {
    Error::io(verb, &"the log")(io::Error::other("the thread that did it panicked"))
}

#[cold]
fn poisoned<'a>(locked: PoisonError<MutexGuard<'a, State>>) -> MutexGuard<'a, State> {
    let mut state = locked.into_inner();
    state.failed.get_or_insert_with(|| Arc::new(panicked("change")));
    state
}

impl Core {
    /// The state, locked. If a thread panicked with it locked, a record may be there in part, or less than was announced: then the log has
    /// failed.
    #[inline]
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(poisoned)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Box<dyn Log>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the first failure; everybody is refused from now on, and those that wait are woken to be told.
    pub(super) fn fail(&self, mut state: MutexGuard<'_, State>, error: Error) -> Error {
        state.failed.get_or_insert_with(|| Arc::new(error.clone()));
        self.wake_space(&state);
        self.wake_force(state);
        error
    }

    /// Waits until a force ends, or for so long. `None`: every record before `position` is durable, and the lock is not held.
    pub(super) fn wait_for_force<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        position: u64,
        longest: Option<Duration>,
    ) -> Option<MutexGuard<'a, State>> {
        state.waiting_for_force += 1;
        // It changes only while somebody holds the lock.
        let ended = self.forces_ended.load(Ordering::Relaxed);
        let is_crowd = state.last_batch > self.processors && state.force_time < POLL_MAX;
        drop(state);
        if !is_crowd {
            self.sleep_until_force(ended, longest);
        } else if !self.poll_force(ended, longest.unwrap_or(POLL_MAX)) && longest.is_none() {
            self.sleep_until_force(ended, None);
        }
        if self.is_durable(position) {
            return None;
        }
        let mut state = self.state();
        if self.forces_ended.load(Ordering::Relaxed) == ended {
            state.waiting_for_force -= 1;
        }
        Some(state)
    }

    /// Polls until more than `ended` forces have, and lets every other thread run meanwhile; false if it takes too long.
    fn poll_force(&self, ended: u32, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        while self.forces_ended.load(Ordering::Acquire) == ended {
            if Instant::now() > until {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Sleeps until more than `ended` forces have, or for so long. It may wake earlier.
    fn sleep_until_force(&self, ended: u32, longest: Option<Duration>) {
        let longest = longest.map(|longest| Timespec::try_from(longest).expect("a short time"));
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // An error says that it was not asleep or woke too early.
        let woken = futex::wait(&self.forces_ended, futex::Flags::PRIVATE, ended, longest.as_ref()).is_ok();
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        if woken {
            self.wake_ups.woken();
            self.watch_force(ended);
        }
    }

    /// Watches the sync under way, if `ended` forces have ended so far.
    fn watch_force(&self, ended: u32) {
        self.wake_ups.watch(|| self.forces_ended.load(Ordering::Relaxed) != ended);
    }

    /// Waits until the head moves, a truncation ends or is wanted, or the log closes.
    pub(super) fn wait_for_space<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting_for_space += 1;
        state = self.space.wait(state).unwrap_or_else(poisoned);
        state.waiting_for_space -= 1;
        state
    }

    /// Wakes those that wait for a force. `state` need not be held while they are woken, which takes long.
    pub(super) fn wake_force(&self, mut state: MutexGuard<'_, State>) {
        self.forces_ended.fetch_add(1, Ordering::SeqCst);
        state.waiting_for_force = 0;
        drop(state);
        self.wake(u32::MAX >> 1);
    }

    /// Wakes up to `count` of those that sleep until a force ends. Who is not released yet watches it for a while and sleeps again.
    pub(super) fn wake(&self, count: u32) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.wake_ups.waking();
            // Fails only for a bad address.
            let _ = futex::wake(&self.forces_ended, futex::Flags::PRIVATE, count);
        }
    }

    /// Wakes those that wait for space, and the background thread.
    pub(super) fn wake_space(&self, state: &State) {
        if state.waiting_for_space > 0 {
            self.space.notify_all();
        }
    }
}
