//! What a run shows, and what an observer can control.

use crate::device::Observed;
use crate::meter::Totals;
use nvlab_units::{Span, Time};

/// What a run shows to those who watch it.
pub struct Sight<'a> {
    /// The next request, or transaction, begins at this time of the device.
    pub at: Time,
    /// When what is measured began.
    pub origin: Time,
    /// Requests since then, by kind.
    pub totals: &'a Totals,
    /// The device.
    pub device: &'a mut dyn Observed,
    /// Progress of the run, if known; from the beginning, not from the last power cut.
    pub done: f64,
    /// Requests per second by which the host's queue grows, in an open loop whose arrivals are seen here; 0: it does
    /// not grow.
    pub queue_growth: f64,
}

/// What happens to the device before the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Go,
    /// Its power fails and comes back.
    Cut,
    /// The run ends here.
    End,
}

/// Controls of a run, besides pausing, slowing down and ending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controls {
    /// The power can fail ([`Step::Cut`]).
    pub plug: bool,
    /// Its requests can have another rate ([`Onlooker::spacing`]).
    pub rate: bool,
}

/// Watches a run and has a say in it.
pub trait Onlooker {
    /// The device is ready, and this much can be done to the run.
    fn begins(&mut self, controls: Controls);
    /// The next request, or transaction, begins; may wait.
    fn before(&mut self, sight: Sight<'_>) -> Step;
    /// Requests served when the power failed; it has returned, and recovery took this long.
    fn cut(&mut self, at: Time, requests: u64, recovery: Span);
    /// Time between two requests, or transactions, instead of the pace of the workload.
    fn spacing(&self) -> Option<Span>;
}
