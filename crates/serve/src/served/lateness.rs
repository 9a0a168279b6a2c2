//! How late replies were: the error of the delays that a held reply shows.

use nvlab_units::{Histogram, Span};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How late held replies were. None was early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Replies that were held; those due at once are not counted.
    pub count: u64,
    /// Mean lateness.
    pub mean: Span,
    /// Median lateness.
    pub p50: Span,
    /// Lateness that one reply in a hundred exceeds.
    pub p99: Span,
    /// The latest reply.
    pub max: Span,
}

/// Collects them from several threads.
#[derive(Debug, Default)]
pub(super) struct Collected(Mutex<Histogram>);

impl Collected {
    fn histogram(&self) -> MutexGuard<'_, Histogram> {
        // Counts are consistent after a panic, too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reply that was due at one time is sent at another.
    pub fn add(&self, due: Instant, sent: Instant) {
        let late = sent.saturating_duration_since(due);
        self.histogram().add(Span::from_ns(late.as_nanos() as u64));
    }

    pub fn so_far(&self) -> Lateness {
        let late = self.histogram();
        match late.count() {
            0 => Lateness::default(),
            count => Lateness {
                count,
                mean: late.mean(),
                p50: late.quantile(0.5),
                p99: late.quantile(0.99),
                max: late.max(),
            },
        }
    }
}
