//! A watched run in progress: measurement, and the device, whose power may fail.

use super::sight::{Controls, Onlooker, Sight, Step};
use crate::device::{AnyDevice, Observed};
use crate::drive::{self, Progress};
use crate::error::RunError;
use crate::meter::{Meter, Totals};
use crate::result::{Precondition, RunResult};
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{Run, failed, finish, share_done};
use nvlab_controller::{Powered, RecoveryReport};
use nvlab_design::Design;
use nvlab_units::Time;
use std::ops::ControlFlow;

/// Requirements of a tour on a device: to observe it, and to cut its power.
pub(super) trait Toured: Sized {
    fn observed(&mut self) -> &mut dyn Observed;
    fn power_cycled(self, at: Time) -> Result<(Self, RecoveryReport), String>;
}

impl Toured for Box<dyn AnyDevice> {
    fn observed(&mut self) -> &mut dyn Observed {
        &mut **self
    }
    fn power_cycled(self, at: Time) -> Result<(Self, RecoveryReport), String> {
        AnyDevice::power_cycle(self, at)
    }
}

impl<M: Observed + Powered> Toured for M {
    fn observed(&mut self) -> &mut dyn Observed {
        self
    }
    fn power_cycled(self, at: Time) -> Result<(Self, RecoveryReport), String> {
        self.power_cycle(at)
    }
}

/// A watched run on its way.
pub(super) struct Tour<'a, D> {
    device: Option<D>,
    pub plan: &'a RunPlan,
    pub onlooker: &'a mut dyn Onlooker,
    on_progress: OnProgress<'a>,
    pub meter: Meter,
    pub totals: Totals,
    /// Since the beginning; [`finish`] needs it since the last cut.
    pub progress: Progress,
    /// When what is measured began.
    pub origin: Time,
    /// When the run began.
    began: Time,
    /// Requests before the last cut.
    requests_before: u64,
    prepared: Precondition,
    clock: std::time::Instant,
    ask_at: u64,
}

impl<'a, D: Toured> Tour<'a, D> {
    /// Begins at `origin` on a prepared device.
    pub fn new(
        (mut device, prepared, origin): (D, Precondition, Time),
        plan: &'a RunPlan,
        has_plug: bool,
        onlooker: &'a mut dyn Onlooker,
        on_progress: OnProgress<'a>,
        clock: std::time::Instant,
    ) -> Tour<'a, D> {
        onlooker.begins(Controls { plug: has_plug, rate: true });
        let meter = Meter::new(origin, device.observed().counters(), plan.requests_asked);
        Tour {
            device: Some(device),
            plan,
            onlooker,
            on_progress,
            meter,
            totals: Totals::default(),
            progress: Progress { now: origin, ..Progress::default() },
            origin,
            began: origin,
            requests_before: 0,
            prepared,
            clock,
            ask_at: drive::ASK_EVERY,
        }
    }

    /// The device.
    pub fn device(&mut self) -> &mut D {
        self.device.as_mut().expect("a device with power")
    }

    /// No request begins then or later.
    pub fn deadline(&self) -> u64 {
        self.began.ps().saturating_add(self.plan.limit.time.ps())
    }

    /// So many requests were served since the last call.
    pub fn served(&mut self, requests: u64) -> Result<(), RunError> {
        let device = self.device.as_mut().expect("a device with power").observed();
        self.meter.batch(|| device.counters(), requests, self.progress.now);
        let Tour { plan, began, on_progress, .. } = self;
        let go_on = &mut |progress: &Progress| on_progress("running", share_done(plan, progress, *began));
        drive::ask(go_on, &self.progress, &mut self.ask_at).map_err(|why| failed(plan, why))
    }

    /// Shows the run as it is before the request at `at`; breaks if the run ends there. `Some`: the power failed, and the device
    /// is ready again then.
    pub fn look(&mut self, at: Time) -> Result<ControlFlow<(), Option<Time>>, RunError> {
        let device = self.device.as_mut().expect("a device with power").observed();
        let done = share_done(self.plan, &Progress { now: at, ..self.progress }, self.began);
        let served = self.progress.requests - self.requests_before;
        let sight = Sight {
            at,
            origin: self.origin,
            totals: &self.totals,
            device,
            done,
            queue_growth: self.meter.arrivals.growth(served),
        };
        match self.onlooker.before(sight) {
            Step::Go => Ok(ControlFlow::Continue(None)),
            Step::Cut => self.cut(at).map(|ready| ControlFlow::Continue(Some(ready))),
            Step::End => Ok(ControlFlow::Break(())),
        }
    }

    /// The power fails at `at`; returns when the device is ready again.
    fn cut(&mut self, at: Time) -> Result<Time, RunError> {
        let device = self.device.take().expect("a device with power");
        let requests = self.progress.requests;
        let (mut device, report) = device
            .power_cycled(at)
            .map_err(|why| RunError::Unmounted { design: self.plan.design_name.clone(), why })?;
        let ready = drive::within_time(at + report.time, requests).map_err(|why| failed(self.plan, why))?;
        let observed = device.observed();
        observed.settle(ready);
        observed.reset_stats();
        self.meter = Meter::new(ready, observed.counters(), None);
        (self.totals, self.origin, self.requests_before) = (Totals::default(), ready, requests);
        self.progress.now = ready;
        self.device = Some(device);
        self.onlooker.cut(at, requests, report.time);
        Ok(ready)
    }

    /// The result, and the device at the end of it; the last request ends at `last`.
    pub fn end(self, design: &Design, last: Time) -> Result<(RunResult, D, Progress), RunError> {
        let Tour { plan, meter, prepared, origin, device, clock, .. } = self;
        let requests = self.progress.requests - self.requests_before;
        let progress = Progress { requests, ..self.progress };
        let progress = drive::finished(progress, last).map_err(|why| failed(plan, why))?;
        if progress.requests == 0 {
            return Err(RunError::Nothing { design: plan.design_name.clone() });
        }
        let mut device = device.expect("a device that answered");
        let result =
            finish(Run { design, plan, prepared, origin, progress, clock }, device.observed(), meter)?;
        Ok((result, device, progress))
    }
}
