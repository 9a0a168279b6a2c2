//! Requests for blocks, watched.
//!
//! It has its own loop, so that runs without an observer pay nothing for it.

use super::sight::Onlooker;
use super::tour::Tour;
use crate::arrivals::still_wanted;
use crate::device::AnyDevice;
use crate::drive::{self, DriveError, Progress};
use crate::error::RunError;
use crate::host::Host;
use crate::outstanding::Outstanding;
use crate::precondition;
use crate::result::RunResult;
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{failed, in_whole_passes, keeps_payload, mount, opened};
use nvlab_design::Design;
use nvlab_units::{Span, Time};
use nvlab_workload::{Batch, BlockWorkload, Pacing, Request};
use std::ops::ControlFlow;

/// A run of requests on the device that is built for it.
pub(super) struct Watched<'a> {
    pub design: &'a Design,
    pub plan: &'a RunPlan,
    pub workload: &'a mut dyn BlockWorkload,
    pub own: Option<&'a mut dyn BlockWorkload>,
    pub has_plug: bool,
    pub onlooker: &'a mut dyn Onlooker,
    pub on_progress: OnProgress<'a>,
}

impl Watched<'_> {
    /// Prepares the device and runs the workload on it.
    pub fn on(self, mut device: Box<dyn AnyDevice>) -> Result<RunResult, RunError> {
        let Watched { design, plan, workload, own, has_plug, onlooker, on_progress } = self;
        let clock = std::time::Instant::now();
        let prepared = precondition::precondition(&mut *device, &plan.state, own, on_progress);
        let (prepared, origin) = opened(&mut *device, (design, None), prepared, plan, workload, on_progress)?;
        let mut tour = Tour::new((device, prepared, origin), plan, has_plug, onlooker, on_progress, clock);
        let last = tour.drive(workload, design.path.queue)?;
        let (result, device, progress) = tour.end(design, last)?;
        let result = in_whole_passes(result, workload.pass_bytes());
        // Media that keep bytes for the plug alone are not mounted at the end, as in a run that nobody watches.
        let keeps = keeps_payload(design) && workload.carries_payload();
        let mount = if keeps { mount(device, plan, &progress)? } else { None };
        let closed_loop = workload.pacing() != Pacing::Open;
        Ok(RunResult { client_bytes: workload.client_bytes(), closed_loop, mount, ..result })
    }
}

/// When requests arrive: as in the workload, or at another pace.
pub(super) struct Pace {
    pub closed: bool,
    /// The origin of the times of requests, in picoseconds; moves when the observer's pace ends.
    pub base: i128,
    /// When the last request was wanted, and its time in the workload.
    pub last: (Time, Time),
    pub changed: bool,
}

impl Pace {
    pub fn wanted(&mut self, request: &Request, room: Time, spacing: Option<Span>) -> Time {
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

impl Tour<'_, Box<dyn AnyDevice>> {
    /// Serves the requests until they or the limit end the run; returns when the last one is done.
    fn drive(&mut self, workload: &mut dyn BlockWorkload, queue: u32) -> Result<Time, RunError> {
        let (origin, deadline, plan) = (self.origin, self.deadline(), self.plan);
        let (pacing, closed) = (workload.pacing(), matches!(workload.pacing(), Pacing::Closed { .. }));
        let (mut host, depth) = Host::new(pacing, queue, origin);
        let mut under_way = Outstanding::new(depth, origin);
        let mut pace = Pace { closed, base: origin.ps() as i128, last: (origin, Time::ZERO), changed: false };
        let is_open = workload.pacing() == Pacing::Open;
        let (mut batch, mut last) = (Batch::new(), None);
        'run: loop {
            batch.clear();
            workload.fill(&mut batch);
            self.progress.ended = batch.is_empty();
            if self.progress.ended {
                break;
            }
            let mut served = 0;
            for (nth, request) in batch.requests().iter().enumerate() {
                let room = under_way.room_at();
                let room_in_host = if closed { host.wanted(request, room, self.progress.now) } else { room };
                let wanted = pace.wanted(request, room_in_host, self.onlooker.spacing());
                let mut begin = wanted.max(room).max(self.progress.now);
                let is_late = begin.ps() >= deadline;
                if is_late || plan.limit.is_reached(&self.progress) {
                    self.meter.arrivals.note_last(self.origin, last.take());
                    if is_late && is_open {
                        let rest = &batch.requests()[nth..];
                        let wanted = still_wanted(rest, &mut Batch::new(), workload, plan.limit.time);
                        self.meter.arrivals.leave(wanted, plan.limit.time);
                    }
                    break 'run;
                }
                match self.look(begin)? {
                    ControlFlow::Break(()) => break 'run,
                    ControlFlow::Continue(None) => {}
                    ControlFlow::Continue(Some(ready)) => {
                        under_way = Outstanding::new(depth, ready);
                        host = Host::new(pacing, queue, ready).0;
                        (begin, served, pace.last.0) = (ready, 0, ready);
                        pace.changed = !closed;
                    }
                }
                let end = self.serve(request, (wanted, begin), workload).map_err(|why| failed(plan, why))?;
                under_way.add(end);
                host.served(wanted, end);
                served += 1;
                last = is_open.then(|| (wanted.max(self.origin), end));
            }
            self.meter.arrivals.note_last(self.origin, last.take());
            self.served(served)?;
        }
        Ok(under_way.last())
    }

    fn serve(
        &mut self,
        request: &Request,
        (wanted, begin): (Time, Time),
        workload: &dyn BlockWorkload,
    ) -> Result<Time, DriveError> {
        let wanted = wanted.max(self.origin);
        let number = self.progress.requests + 1;
        let end = drive::serve(&mut **self.device(), begin, request, workload)
            .map_err(|why| DriveError::failed(number, 0, request, begin, why))?;
        self.meter.served(request, wanted, end);
        self.meter.queue_wait += begin.since(wanted);
        self.totals[request.op as usize].count_one(request.bytes, end.since(wanted));
        self.progress = Progress { now: begin, ..self.progress.after(std::slice::from_ref(request)) };
        Ok(end)
    }
}
