//! What those who watch a device see, and pausing it.

use super::{Drive, Inner, Session};
use crate::served::life::Lived;
use crate::served::{Cut, Inside, View};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request that waits for the end of a pause looks this often whether the power failed.
const LOOKS_AGAIN: Duration = Duration::from_millis(50);

/// Where requests wait while a device is paused.
#[derive(Debug, Default)]
pub(super) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn closed(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drive {
    /// No request is served until [`Drive::resume`], and the device's time stands still.
    pub fn pause(&self) {
        let mut closed = self.gate.closed();
        *closed = true;
        self.paused.store(true, Ordering::Relaxed);
        self.inner().clock.pause();
    }

    /// Serves waiting requests; the device's time goes on from where it stood.
    pub fn resume(&self) {
        let mut closed = self.gate.closed();
        *closed = false;
        self.paused.store(false, Ordering::Relaxed);
        self.inner().clock.resume();
        self.gate.opened.notify_all();
    }

    /// The device, for a request: waits while it is paused.
    #[inline]
    pub(super) fn entered(&self, session: Session) -> MutexGuard<'_, Inner> {
        if self.paused.load(Ordering::Relaxed) {
            self.wait_for_the_gate(session);
        }
        self.inner()
    }

    #[cold]
    fn wait_for_the_gate(&self, session: Session) {
        let mut closed = self.gate.closed();
        while *closed && self.is_current(session) {
            let waited = self.gate.opened.wait_timeout(closed, LOOKS_AGAIN);
            closed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Operations begun since the device was opened.
    pub fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// Every cut since the device was opened, oldest first.
    pub fn cuts(&self) -> Vec<Cut> {
        self.inner().cuts.clone()
    }

    /// What was asked of it over its life.
    pub(crate) fn lived(&self) -> Lived {
        let inner = self.inner();
        let on = inner.clock.now().since(inner.origin);
        let so_far = inner.life.so_far();
        Lived { on_seconds: so_far.on_seconds.saturating_add(on.seconds() as u64), ..so_far }
    }

    /// What it looks like now.
    pub(crate) fn view(&self) -> View {
        let mut inner = self.inner();
        let now = inner.clock.now();
        let span = now.since(inner.origin);
        let (mut inside, mut counters) = Default::default();
        if let Some(device) = &mut inner.device {
            let observed = device.observed_mut();
            (inside, counters) = (Inside::of(observed, now, span), observed.counters());
        }
        View {
            capacity_bytes: self.capacity_bytes,
            now,
            totals: inner.totals.clone(),
            counters,
            inside,
            cuts: inner.cuts.clone(),
            lost: inner.lost.as_ref().map(|lost| lost.why().to_string()),
            paused: self.paused.load(Ordering::Relaxed),
            has_plug: true,
            has_pause: true,
            ..View::default()
        }
    }
}
