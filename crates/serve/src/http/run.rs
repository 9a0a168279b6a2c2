//! A run on a live page: slowed down to the wall clock, paused, at another rate, without power.
//!
//! The run publishes its state between two of its requests; pages see the last published state and never wait for it.

use super::watched::{Action, Watched};
use crate::served::{Cut, Inside, View};
use nvlab_run::watched::{Controls, Onlooker, Sight, Step};
use nvlab_units::{Span, Time};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// It shows itself this often.
const SHOWS_EVERY: Duration = Duration::from_millis(200);
/// After a page has looked, maps are shown this many times: for longer than pages take to look again.
const LOOKS: u32 = 8;
/// A wait for the wall clock that is longer shows what is waited with.
const SHORT: Duration = Duration::from_millis(20);
/// A run at full speed looks at the clock once in this many requests.
const CLOCK_EVERY: u32 = 64;
/// A request that is wanted no more than this ahead of the wall clock begins at once: waking takes longer.
const AHEAD_S: f64 = 2e-3;

/// What the pages want of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    paused: bool,
    cut: bool,
    rate: Option<f64>,
    speed: Option<f64>,
}

/// A run that live pages show and control.
pub struct WatchedRun {
    name: String,
    view: Mutex<View>,
    wishes: Mutex<Wishes>,
    changed: Condvar,
    /// Grows with every change of the wishes.
    changes: AtomicU64,
    end: Arc<AtomicBool>,
    /// How many times more the run shows its maps; set whenever a page looks.
    looks: AtomicU32,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Both are plain data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WatchedRun {
    /// A run in the time of the wall clock. It ends early as soon as `end` is true.
    pub fn new(name: &str, capacity_bytes: u64, end: Arc<AtomicBool>) -> Arc<WatchedRun> {
        let view =
            View { is_run: true, has_pause: true, capacity_bytes, speed: Some(1.0), ..View::default() };
        Arc::new(WatchedRun {
            name: name.to_string(),
            view: Mutex::new(view),
            wishes: Mutex::new(Wishes { speed: Some(1.0), ..Wishes::default() }),
            changed: Condvar::new(),
            changes: AtomicU64::new(1),
            end,
            looks: AtomicU32::new(LOOKS),
        })
    }

    /// The observer through which the run updates its pages.
    pub fn onlooker(self: &Arc<WatchedRun>) -> impl Onlooker + use<> {
        Eye {
            run: Arc::clone(self),
            seen: 0,
            wishes: Wishes::default(),
            since: None,
            shown: Instant::now(),
            calls: 0,
        }
    }

    /// The run is preparing the device; `done` is the part of that.
    pub fn prepares(&self, phase: &str, done: f64) {
        if phase != "running" {
            locked(&self.view).phase = Some((phase.to_string(), done));
        }
    }

    /// Tells pages that nothing will change any more.
    pub fn ended(&self) {
        locked(&self.view).ended = true;
    }

    fn wish(&self, wish: impl FnOnce(&mut Wishes)) {
        wish(&mut locked(&self.wishes));
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }
}

impl Watched for WatchedRun {
    fn name(&self) -> &str {
        &self.name
    }

    fn view(&self) -> View {
        self.looks.store(LOOKS, Ordering::Relaxed);
        let (mut view, wishes) = (locked(&self.view).clone(), *locked(&self.wishes));
        (view.paused, view.rate, view.speed) = (wishes.paused, wishes.rate, wishes.speed);
        view
    }

    fn act(&self, action: Action) -> Result<String, String> {
        let view = locked(&self.view);
        let (has_plug, has_rate) = (view.has_plug, view.has_rate);
        let (begun, ended) = (view.now > Time::ZERO, view.ended);
        drop(view);
        match action {
            _ if ended => return Err("the run has ended".into()),
            Action::Cut if !begun => return Err("the device is still being preconditioned".into()),
            Action::Rate(_) if begun && !has_rate => {
                return Err("several streams, a recorded program or path.stages set their own rate: it cannot be changed".into());
            }
            Action::Cut if !has_rate => {
                return Err(
                    "several streams, a recorded program or path.stages do not support power cuts".into()
                );
            }
            Action::Cut if !has_plug => {
                return Err(
                    "the device's data does not fit in this machine's memory: power cuts are not supported"
                        .into(),
                );
            }
            Action::Cut => self.wish(|wishes| wishes.cut = true),
            Action::Pause => self.wish(|wishes| wishes.paused = true),
            Action::Resume => self.wish(|wishes| wishes.paused = false),
            Action::Rate(rate) => self.wish(|wishes| wishes.rate = rate),
            Action::Speed(speed) => self.wish(|wishes| wishes.speed = speed),
        }
        Ok(match action {
            Action::Cut => "power fails before the next request".into(),
            Action::Pause => "paused".into(),
            Action::Resume => "resumed".into(),
            Action::Rate(Some(rate)) => format!("{rate} requests per second of simulated time"),
            Action::Rate(None) => "the workload's own rate".into(),
            Action::Speed(Some(1.0)) => "in real time".into(),
            Action::Speed(Some(times)) => format!("{times} times real time"),
            Action::Speed(None) => "as fast as possible".into(),
        })
    }
}

/// In the thread of the run.
struct Eye {
    run: Arc<WatchedRun>,
    /// The value of `changes` that `wishes` reflects.
    seen: u64,
    wishes: Wishes,
    /// A moment on the wall clock, and of the device: its time is kept from there on.
    since: Option<(Instant, Time)>,
    shown: Instant,
    calls: u32,
}

impl Eye {
    /// Takes over changed wishes; returns true if a cut is among them.
    fn listen(&mut self) -> bool {
        let changes = self.run.changes.load(Ordering::Acquire);
        if changes == self.seen {
            return false;
        }
        let mut wishes = locked(&self.run.wishes);
        (self.seen, self.wishes) = (changes, *wishes);
        // From here on at another speed.
        self.since = None;
        std::mem::take(&mut wishes.cut)
    }

    fn show(&mut self, sight: &mut Sight<'_>) {
        self.shown = Instant::now();
        // A run that no page shows makes no maps, but when it ends.
        let looks = self.run.looks.load(Ordering::Relaxed);
        self.run.looks.store(looks.saturating_sub(1), Ordering::Relaxed);
        let watched = looks > 0 || self.run.end.load(Ordering::Relaxed);
        let inside = watched.then(|| Inside::of(sight.device, sight.at, sight.at.since(sight.origin)));
        let mut view = locked(&self.run.view);
        if let Some(inside) = inside {
            view.inside = inside;
        }
        (view.now, view.counters) = (sight.at, sight.device.counters());
        view.totals.clone_from(sight.totals);
        view.phase = Some(("running".to_string(), sight.done));
        view.queue_growth = sight.queue_growth;
    }

    /// Waits until the wishes change, or this long.
    fn wait(&self, most: Duration) {
        let wishes = locked(&self.run.wishes);
        if self.run.changes.load(Ordering::Acquire) == self.seen {
            let _ = self.run.changed.wait_timeout(wishes, most);
        }
    }

    /// How long the device is ahead of the wall clock at its time `at`.
    fn ahead(&mut self, at: Time) -> Option<Duration> {
        let speed = self.wishes.speed?;
        let (wall, then) = *self.since.get_or_insert_with(|| (Instant::now(), at));
        let due_s = at.since(then.min(at)).seconds() / speed;
        let ahead_s = due_s - wall.elapsed().as_secs_f64();
        (ahead_s > AHEAD_S).then(|| Duration::from_secs_f64(ahead_s.min(3600.0)))
    }
}

impl Onlooker for Eye {
    fn begins(&mut self, controls: Controls) {
        let mut view = locked(&self.run.view);
        (view.has_plug, view.has_rate) = (controls.plug, controls.rate);
    }

    fn before(&mut self, mut sight: Sight<'_>) -> Step {
        loop {
            if self.run.end.load(Ordering::Relaxed) {
                self.show(&mut sight);
                return Step::End;
            }
            if self.listen() {
                return Step::Cut;
            }
            if self.wishes.paused {
                self.since = None;
                self.show(&mut sight);
                self.wait(SHOWS_EVERY);
                continue;
            }
            self.calls = self.calls.wrapping_add(1);
            if self.wishes.speed.is_none() && !self.calls.is_multiple_of(CLOCK_EVERY) {
                return Step::Go;
            }
            let ahead = self.ahead(sight.at);
            if ahead.is_some_and(|ahead| ahead > SHORT) || self.shown.elapsed() >= SHOWS_EVERY {
                self.show(&mut sight);
            }
            match ahead {
                None => return Step::Go,
                Some(ahead) => self.wait(ahead.min(SHOWS_EVERY)),
            }
        }
    }

    fn cut(&mut self, at: Time, requests: u64, recovery: Span) {
        locked(&self.run.view).cuts.push(Cut { operations: requests, at, recovery });
    }

    fn spacing(&self) -> Option<Span> {
        self.wishes.rate.map(|rate| Span::from_seconds(1.0 / rate))
    }
}
