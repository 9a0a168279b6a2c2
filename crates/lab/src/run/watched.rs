//! A run that somebody watches and changes while it goes on: slowed down, paused, at another rate, without power.
//!
//! 1. Nobody's hand in it, it is the same run: the same requests at the same simulated times, the same result.
//! 2. Its time is simulated time like that of any run. An [`Onlooker`] that waits for a wall clock does so inside its calls.
//! 3. After a power cut what is measured begins anew, as do the counts of a controller.
//!
//! It has a loop of its own, so that runs that nobody watches pay nothing for it.

use super::device::{self, BuildError, Carrying, Device, InMemory, NoBytes, Observed, Visit};
use super::drive::{self, DriveError, Limit, Progress};
use super::meter::{Meter, Totals};
use super::outstanding::Outstanding;
use super::{
    OnProgress, Run, RunError, RunPlan, State, failed, finish, precondition, unbuildable, unprepared,
};
use crate::design::Design;
use crate::result::{Precondition, RunResult};
use nvlab_controller::{Background, Powered};
use nvlab_units::{Span, Time};
use nvlab_workload::{Batch, BlockWorkload, Pacing, Request, Work};
use std::ops::ControlFlow;

/// What a run shows to those who watch it.
pub struct Sight<'a> {
    /// The next request begins at this time of the device.
    pub at: Time,
    /// When what is measured began.
    pub origin: Time,
    /// Requests since then, by kind.
    pub totals: &'a Totals,
    /// The device.
    pub device: &'a mut dyn Observed,
    /// The part of the run that is done, if that is known; since the beginning, not since a power cut.
    pub done: f64,
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

/// Watches a run and has a say in it.
pub trait Onlooker {
    /// The device is ready; `has_plug`: its power can fail. Otherwise it is too large to keep its bytes on this machine.
    fn begins(&mut self, has_plug: bool);
    /// The next request begins; may wait.
    fn before(&mut self, sight: Sight<'_>) -> Step;
    /// The power failed after so many requests and is back; recovery took this long.
    fn cut(&mut self, at: Time, requests: u64, recovery: Span);
    /// Time between two requests, instead of the pace of the workload.
    fn spacing(&self) -> Option<Span>;
}

/// Runs block requests on a design in sight of an onlooker.
pub fn run_watched(
    design: &Design,
    plan: &RunPlan,
    works: (Work, Option<Work>),
    onlooker: &mut dyn Onlooker,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let unwatched = |why| RunError::Unwatched { design: plan.design_name.clone(), why };
    let Work::Requests(mut workload) = works.0 else {
        return Err(unwatched("a workload of transactions has no live page yet"));
    };
    if design.path.software.is_some() || workload.program().is_some() || workload.tenants().is_some() {
        return Err(unwatched(
            "a run with path.stages, a recorded program or several streams has no live page yet",
        ));
    }
    let mut own = works.1.and_then(Work::requests);
    let seed = plan.state.device_seed(plan.seed);
    let backing = InMemory { filled: plan.state.state != State::Fresh };
    // Only media that keep bytes can be recovered from.
    let has_plug = !matches!(device::build(design, seed, &backing, Fits), Err(BuildError::Memory(_)));
    let own = own.as_mut().map(|own| &mut **own as &mut dyn BlockWorkload);
    let workload = &mut *workload;
    let watched = Watched { design, plan, workload, own, has_plug, onlooker, on_progress };
    let ran = match has_plug {
        true => device::build(design, seed, &backing, watched),
        false => device::build(design, seed, &NoBytes, watched),
    };
    ran.map_err(|why| unbuildable(plan, why))?
}

/// Whether a device can be built.
struct Fits;

impl Visit for Fits {
    type Output = ();
    fn visit<D: Device>(self, _: D, _: Time) {}
}

struct Watched<'a> {
    design: &'a Design,
    plan: &'a RunPlan,
    workload: &'a mut dyn BlockWorkload,
    own: Option<&'a mut dyn BlockWorkload>,
    has_plug: bool,
    onlooker: &'a mut dyn Onlooker,
    on_progress: OnProgress<'a>,
}

impl Visit for Watched<'_> {
    type Output = Result<RunResult, RunError>;
    fn visit<D: Device>(self, device: D, _: Time) -> Self::Output {
        let Watched { design, plan, workload, own, has_plug, onlooker, on_progress } = self;
        let mut device = Carrying::new(device);
        let clock = std::time::Instant::now();
        let prepared = precondition::precondition(&mut device, &plan.state, own, on_progress);
        let (prepared, ready) = prepared.map_err(|source| unprepared(plan, source))?;
        let origin = precondition::prepare(&mut device, workload, ready + plan.state.idle, on_progress)
            .map_err(|source| unprepared(plan, source))?;
        device.reset_stats();
        onlooker.begins(has_plug);
        let mut tour = Tour {
            under_way: Outstanding::new(1, origin),
            meter: Meter::new(origin, device.counters(), plan.requests_asked),
            totals: Totals::default(),
            progress: Progress { now: origin, ..Progress::default() },
            origin,
            began: origin,
            requests_before: 0,
            prepared,
            limit: plan.limit,
            device: Some(device),
        };
        let progress = tour.drive(workload, design.path.queue, plan, onlooker, on_progress)?;
        if progress.requests == 0 {
            return Err(RunError::Nothing { design: plan.design_name.clone() });
        }
        let Tour { meter, prepared, origin, device, .. } = tour;
        let mut device = device.expect("a device that answered");
        let result = finish(Run { design, plan, prepared, origin, progress, clock }, &mut device, meter)?;
        let closed_loop = workload.pacing() != Pacing::Open;
        Ok(RunResult { client_bytes: workload.client_bytes(), closed_loop, ..result })
    }
}

/// A watched run on its way.
struct Tour<D> {
    device: Option<Carrying<D>>,
    under_way: Outstanding,
    meter: Meter,
    totals: Totals,
    /// Since the beginning; [`finish`] needs it since the last cut.
    progress: Progress,
    /// When what is measured began.
    origin: Time,
    /// When the run began.
    began: Time,
    /// Requests before the last cut.
    requests_before: u64,
    prepared: Precondition,
    limit: Limit,
}

/// When requests are wanted: as the workload says, or at another pace.
struct Pace {
    closed: bool,
    /// What the time of a request is counted from, in picoseconds; moves when the pace of the onlooker ends.
    base: i128,
    /// When the last request was wanted, and its time in the workload.
    last: (Time, Time),
    changed: bool,
}

impl Pace {
    fn wanted(&mut self, request: &Request, room: Time, spacing: Option<Span>) -> Time {
        let wanted = match spacing {
            Some(spacing) => {
                self.changed = true;
                self.last.0 + spacing
            }
            None if self.closed => room,
            None => {
                if std::mem::take(&mut self.changed) {
                    // It goes on from here, with the distances of the workload.
                    self.base = self.last.0.ps() as i128 - self.last.1.ps() as i128;
                }
                let ps = (self.base + request.at.ps() as i128).clamp(0, Time::MAX.ps() as i128);
                Time::from_ps(ps as u64)
            }
        };
        self.last = (wanted, request.at);
        wanted
    }
}

impl<D: Device> Tour<D> {
    fn drive(
        &mut self,
        workload: &mut dyn BlockWorkload,
        queue: u32,
        plan: &RunPlan,
        onlooker: &mut dyn Onlooker,
        on_progress: OnProgress<'_>,
    ) -> Result<Progress, RunError> {
        let (closed, depth) = drive::in_flight(workload.pacing(), queue);
        self.under_way = Outstanding::new(depth, self.origin);
        let deadline = self.origin.ps().saturating_add(self.limit.time.ps());
        let mut pace =
            Pace { closed, base: self.origin.ps() as i128, last: (self.origin, Time::ZERO), changed: false };
        let (mut batch, mut ask_at) = (Batch::new(), drive::ASK_EVERY);
        let began = self.began;
        let go_on =
            &mut |progress: &Progress| on_progress("running", super::share_done(plan, progress, began));
        'run: loop {
            batch.clear();
            workload.fill(&mut batch);
            self.progress.ended = batch.is_empty();
            if self.progress.ended {
                break;
            }
            let mut served = 0;
            for request in batch.requests() {
                let room = self.under_way.room_at();
                let wanted = pace.wanted(request, room, onlooker.spacing());
                let mut begin = wanted.max(room).max(self.progress.now);
                if begin.ps() >= deadline || self.limit.is_reached(&self.progress) {
                    break 'run;
                }
                match self.look(begin, plan, onlooker) {
                    ControlFlow::Break(()) => break 'run,
                    ControlFlow::Continue(false) => {}
                    ControlFlow::Continue(true) => {
                        begin = self.cut(begin, depth, plan, onlooker)?;
                        served = 0;
                        pace.last.0 = begin;
                        pace.changed = !closed;
                    }
                }
                self.serve(request, (wanted, begin), workload).map_err(|why| failed(plan, why))?;
                served += 1;
            }
            let device = self.device.as_ref().expect("a device with power");
            self.meter.batch(|| device.counters(), served, self.progress.now);
            drive::ask(go_on, &self.progress, &mut ask_at).map_err(|why| failed(plan, why))?;
        }
        let requests = self.progress.requests - self.requests_before;
        let progress = Progress { requests, ..self.progress };
        drive::finished(progress, self.under_way.last()).map_err(|why| failed(plan, why))
    }

    /// Shows the run; breaks if it ends here, continues with whether the power fails.
    fn look(&mut self, at: Time, plan: &RunPlan, onlooker: &mut dyn Onlooker) -> ControlFlow<(), bool> {
        let device = self.device.as_mut().expect("a device with power");
        let done = super::share_done(plan, &Progress { now: at, ..self.progress }, self.began);
        match onlooker.before(Sight { at, origin: self.origin, totals: &self.totals, device, done }) {
            Step::Go => ControlFlow::Continue(false),
            Step::Cut => ControlFlow::Continue(true),
            Step::End => ControlFlow::Break(()),
        }
    }

    fn serve(
        &mut self,
        request: &Request,
        (wanted, begin): (Time, Time),
        workload: &dyn BlockWorkload,
    ) -> Result<(), DriveError> {
        let device = self.device.as_mut().expect("a device with power");
        let wanted = wanted.max(self.origin);
        let end = drive::serve(device, begin, request, workload)
            .map_err(|why| DriveError::failed(self.progress.requests + 1, 0, request, begin, why))?;
        self.under_way.add(end);
        self.meter.served(request, wanted, end);
        self.totals[request.op as usize].count_one(request.bytes, end.since(wanted));
        self.progress = Progress { now: begin, ..self.progress.after(std::slice::from_ref(request)) };
        Ok(())
    }

    /// The power fails at `at`; returns when the device is ready again.
    fn cut(
        &mut self,
        at: Time,
        depth: u32,
        plan: &RunPlan,
        onlooker: &mut dyn Onlooker,
    ) -> Result<Time, RunError> {
        let device = self.device.take().expect("a device with power");
        let requests = self.progress.requests;
        let (mut device, report) = device
            .power_cycle(at)
            .map_err(|why| RunError::Unmounted { design: plan.design_name.clone(), why })?;
        let ready = drive::within_time(at + report.time, requests).map_err(|why| failed(plan, why))?;
        device.settle(ready);
        device.reset_stats();
        self.under_way = Outstanding::new(depth, ready);
        self.meter = Meter::new(ready, device.counters(), None);
        (self.totals, self.origin, self.requests_before) = (Totals::default(), ready, requests);
        self.progress.now = ready;
        self.device = Some(device);
        onlooker.cut(at, requests, report.time);
        Ok(ready)
    }
}

#[cfg(test)]
mod tests;
