//! Virtual time, shared by the devices of one host.

use nvlab_units::{Span, Time};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The program computes, or waits for the next transaction.
    Compute,
    /// The processor compresses records.
    Compress,
    /// It decompresses them, to be applied.
    Decompress,
    /// Records and status are written to the log.
    Write,
    /// Erasing blocks of the log.
    Erase,
    /// The log is read, to be applied.
    Read,
    /// Changes are applied to the data.
    Apply,
}

const ACTIVITIES: usize = 7;
const NOT_ASIDE: u64 = u64::MAX;

#[derive(Debug)]
struct State {
    now_ps: AtomicU64,
    cut_ps: AtomicU64,
    /// What time it is for work that is done aside; [`NOT_ASIDE`] if none is.
    aside_ps: AtomicU64,
    spent_ps: [AtomicU64; ACTIVITIES],
}

/// The clock of a host, and the activities its time was spent on. Only one thread advances it.
#[derive(Clone, Debug)]
pub struct Clock(Arc<State>);

impl Default for Clock {
    fn default() -> Clock {
        Clock(Arc::new(State {
            now_ps: AtomicU64::new(0),
            cut_ps: AtomicU64::new(u64::MAX),
            aside_ps: AtomicU64::new(NOT_ASIDE),
            spent_ps: Default::default(),
        }))
    }
}

impl Clock {
    /// A clock that shows `now`.
    pub(crate) fn at(now: Time) -> Clock {
        let clock = Clock::default();
        clock.0.now_ps.store(now.ps(), Relaxed);
        clock
    }

    /// The time now.
    pub fn now(&self) -> Time {
        match self.0.aside_ps.load(Relaxed) {
            NOT_ASIDE => Time::from_ps(self.0.now_ps.load(Relaxed)),
            aside => Time::from_ps(aside),
        }
    }

    /// Does work in the background: it begins now, and only the time of its own operations passes for it. Returns
    /// when it ends. Its effects on a device must be settled only when the program reaches that time: until then a
    /// power failure may undo them.
    pub(crate) fn aside<T>(&self, work: impl FnOnce() -> T) -> (T, Time) {
        self.0.aside_ps.store(self.now().ps(), Relaxed);
        let done = work();
        (done, Time::from_ps(self.0.aside_ps.swap(NOT_ASIDE, Relaxed)))
    }

    /// Whether something is done aside now.
    pub(crate) fn is_aside(&self) -> bool {
        self.0.aside_ps.load(Relaxed) != NOT_ASIDE
    }

    /// Spends time until `end`. If the power fails before, the clock stops there and that moment is returned: what was
    /// under way is not done.
    pub fn until(&self, activity: Activity, end: Time) -> Result<(), Time> {
        if self.is_aside() {
            self.0.aside_ps.fetch_max(end.ps(), Relaxed);
            return Ok(());
        }
        let (now, cut) = (self.now(), Time::from_ps(self.0.cut_ps.load(Relaxed)));
        let reached = end.min(cut).max(now);
        self.0.spent_ps[activity as usize].fetch_add(reached.since(now).ps(), Relaxed);
        self.0.now_ps.store(reached.ps(), Relaxed);
        if end > cut { Err(cut) } else { Ok(()) }
    }

    /// Spends time until `end`, if that is not over, on something that a power failure does not spoil.
    pub(crate) fn spend_until(&self, activity: Activity, end: Time) {
        let _ = self.until(activity, end);
    }

    /// Spends time on something that a power failure does not spoil.
    pub(crate) fn spend(&self, activity: Activity, span: Span) {
        let _ = self.until(activity, self.now() + span);
    }

    /// Time spent on an activity since the beginning.
    pub(crate) fn spent(&self, activity: Activity) -> Span {
        Span::from_ps(self.0.spent_ps[activity as usize].load(Relaxed))
    }

    /// The power fails at `at`: from then on every operation fails, until it is set to [`Time::MAX`].
    pub fn cut_at(&self, at: Time) {
        self.0.cut_ps.store(at.ps(), Relaxed);
    }

    /// Fails without power.
    pub fn check(&self) -> io::Result<()> {
        match self.0.now_ps.load(Relaxed) >= self.0.cut_ps.load(Relaxed) {
            true => Err(power_failed()),
            false => Ok(()),
        }
    }
}

/// The error of an operation that the power did not last for.
pub(crate) fn power_failed() -> io::Error {
    io::Error::other("the power failed")
}
