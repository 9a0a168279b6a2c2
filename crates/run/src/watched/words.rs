//! Watched transactions of loads and stores on a memory: as [`crate::transactions`] runs them, observed before each.

use super::sight::Onlooker;
use super::tour::Tour;
use crate::arrivals::still_arriving;
use crate::device::{self, Backing, Carrying, Observed};
use crate::drive::{DriveError, Progress};
use crate::error::RunError;
use crate::meter::TRANSACTION;
use crate::precondition;
use crate::result::{Precondition, RunResult};
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{failed, unbuildable, unprepared};
use nvlab_access::{Attached, MemoryWindow};
use nvlab_controller::Controller;
use nvlab_design::Design;
use nvlab_units::{Span, Time};
use nvlab_workload::{Access, AccessKind, AnyMemoryWorkload, BlockWorkload, Op, Pacing};
use std::ops::ControlFlow;

/// Transactions between two updates of the windows of the run, as many as in a plain run.
const BATCH: u64 = 32;

/// A run of transactions.
pub(super) struct Watched<'a> {
    pub design: &'a Design,
    pub plan: &'a RunPlan,
    pub workload: AnyMemoryWorkload,
    pub own: Option<&'a mut dyn BlockWorkload>,
    pub has_plug: bool,
    pub onlooker: &'a mut dyn Onlooker,
    pub on_progress: OnProgress<'a>,
}

impl<'a> Watched<'a> {
    /// On eNVy, whose media are in this backing.
    pub fn on_envy<B>(self, envy: &nvlab_design::Envy, backing: &B) -> Result<RunResult, RunError>
    where
        B: Backing + ?Sized,
    {
        let Watched { design, plan, own, on_progress, .. } = self;
        let clock = std::time::Instant::now();
        let seed = plan.state.device_seed(plan.seed);
        let built = device::envy::build(design, envy, seed, backing);
        let (mut memory, _) = built.map_err(|why| unbuildable(plan, why))?;
        let mut pages = device::envy::Pages::new(&mut memory);
        let prepared = precondition::precondition(&mut pages, &plan.state, own, on_progress);
        let prepared = prepared.map_err(|source| unprepared(plan, source))?;
        Watched { own: None, on_progress, ..self }.on((memory, prepared), clock)
    }

    /// On lines in front of a page map, whose media are in this backing.
    pub fn on_lines<B>(self, lines: &nvlab_design::Cached, backing: &B) -> Result<RunResult, RunError>
    where
        B: Backing + ?Sized,
    {
        let Watched { design, plan, own, on_progress, .. } = self;
        let clock = std::time::Instant::now();
        let seed = plan.state.device_seed(plan.seed);
        let built = device::cached::build(design, lines, seed, backing);
        let (memory, _) = built.map_err(|why| unbuildable(plan, why))?;
        let mut blocks = Carrying::new(Attached::new(memory, device::link(design)));
        let prepared = precondition::precondition(&mut blocks, &plan.state, own, on_progress);
        let prepared = prepared.map_err(|source| unprepared(plan, source))?;
        let memory = blocks.into_inner().into_controller();
        Watched { own: None, on_progress, ..self }.on((memory, prepared), clock)
    }

    /// On a memory in a known state.
    fn on<M>(
        self,
        (mut memory, (prepared, ready)): (M, (Precondition, Time)),
        clock: std::time::Instant,
    ) -> Result<RunResult, RunError>
    where
        M: MemoryWindow + Observed + Controller,
    {
        let Watched { design, plan, mut workload, has_plug, onlooker, on_progress, .. } = self;
        memory.reset_stats();
        let origin = ready + plan.state.idle;
        let mut tour = Tour::new((memory, prepared, origin), plan, has_plug, onlooker, on_progress, clock);
        tour.run(&mut workload)?;
        let last = tour.progress.now;
        let (result, ..) = tour.end(design, last)?;
        Ok(RunResult { closed_loop: workload.pacing() != Pacing::Open, ..result })
    }
}

/// When transactions arrive: as in the workload, or at another pace.
struct Arrivals {
    open: bool,
    /// The origin of the times of the workload; moves when the observer's pace ends.
    base: Time,
    /// When the last transaction arrived.
    last: Time,
    changed: bool,
}

impl Arrivals {
    /// When the transaction that the workload has at `at` arrives; the processor is free at `now`.
    fn wanted(&mut self, at: Time, now: Time, spacing: Option<Span>) -> Time {
        let wanted = match spacing {
            Some(spacing) => {
                self.changed = true;
                self.last + spacing
            }
            None if !self.open => now,
            None => {
                if std::mem::take(&mut self.changed) {
                    // It goes on from here: this one arrives as soon as the last one has ended.
                    self.base = Time::from_ps(now.ps().saturating_sub(at.ps()));
                }
                self.base + Span::from_ps(at.ps())
            }
        };
        self.last = wanted;
        wanted
    }
}

impl<M: MemoryWindow + Observed + Controller> Tour<'_, M> {
    /// Runs the transactions until they or the limit end the run.
    fn run(&mut self, workload: &mut AnyMemoryWorkload) -> Result<(), RunError> {
        let (deadline, plan) = (self.deadline(), self.plan);
        let open = workload.pacing() == Pacing::Open;
        let mut arrivals = Arrivals { open, base: self.origin, last: self.origin, changed: false };
        let (mut accesses, mut bytes, mut uncounted) = (Vec::new(), Vec::new(), 0);
        loop {
            let Some(arrival) = workload.next(&mut accesses) else {
                self.progress.ended = true;
                return Ok(());
            };
            let mut wanted = arrivals.wanted(arrival, self.progress.now, self.onlooker.spacing());
            let mut now = wanted.max(self.progress.now);
            if now.ps() >= deadline || plan.limit.is_reached(&self.progress) {
                if arrivals.open && now.ps() >= deadline {
                    let next = || workload.next(&mut accesses);
                    let waiting = still_arriving(arrival, plan.limit.time, next);
                    self.meter.arrivals.leave(waiting, plan.limit.time);
                }
                return Ok(());
            }
            match self.look(now)? {
                ControlFlow::Break(()) => return Ok(()),
                ControlFlow::Continue(None) => {}
                ControlFlow::Continue(Some(ready)) => {
                    (wanted, now, arrivals.last, uncounted) = (ready, ready, ready, 0);
                    arrivals.changed = open;
                }
            }
            for access in &accesses {
                now = self.access(access, now, &mut bytes).map_err(|why| failed(plan, why))?;
            }
            self.meter.transaction(now.since(wanted));
            if arrivals.open {
                self.meter.arrivals.note(wanted.since(self.origin), now.since(wanted));
            }
            self.totals[TRANSACTION].count_one(0, now.since(wanted));
            self.progress = Progress { requests: self.progress.requests + 1, now, ..self.progress };
            uncounted += 1;
            if uncounted == BATCH {
                self.served(uncounted)?;
                uncounted = 0;
            }
        }
    }

    /// One load or store at `now`; returns its end. Zeros are stored if the media keep bytes.
    fn access(&mut self, access: &Access, now: Time, bytes: &mut Vec<u8>) -> Result<Time, DriveError> {
        let (length, offset, number) = (access.bytes as u32, access.offset, self.progress.requests);
        let memory = self.device();
        if M::KEEPS {
            bytes.clear();
            bytes.resize(length as usize, 0);
            memory.settle(now);
        }
        let (op, served) = match access.kind {
            AccessKind::Load => (Op::Read, memory.load(now, offset, length, bytes)),
            AccessKind::Store => (Op::Write, memory.store(now, offset, length, bytes)),
        };
        let failed = |source| DriveError::Failed { number, op, bytes: length, offset, at: now, source };
        let end = served.map_err(failed)?.end;
        self.meter.access(access, end.since(now));
        self.totals[op as usize].count_one(length, end.since(now));
        self.progress.bytes += length as u64;
        self.progress.written_bytes += if op == Op::Write { length as u64 } else { 0 };
        Ok(end)
    }
}
