//! An open device that is idle between batches of requests: the caller decides what comes next.
//!
//! 1. Its time is simulated time. A batch begins when the one before is done, or later ([`HeldDevice::idle`]); work
//!    queued in the device by then continues in the background.
//! 2. Between two batches no request is in flight. So a closed loop in two batches is not that loop in one.
//! 3. Measurement begins when it is opened and after every power cut, as the counts of a controller do.
//!
//! It has its own loop, which records the latency of every request: runs pay nothing for that.

mod open;

pub use open::Opening;

use super::arrivals::still_wanted;
use super::device::AnyDevice;
use super::drive::{self, DriveError, Limit, Progress, Standstill};
use super::host::Host;
use super::meter::Meter;
use super::outstanding::Outstanding;
use crate::error::RunError;
use crate::result::{Precondition, RunResult};
use crate::run_plan::RunPlan;
use crate::steps::{Run, failed, finish};
use nvlab_controller::{ControllerError, RecoveryReport};
use nvlab_design::Design;
use nvlab_trace::columns::{Columns, Origin};
use nvlab_units::{Span, Time};
use nvlab_workload::{Batch, BlockWorkload, Op, Pacing, Request};
use std::time::Instant;
use xxhash_rust::xxh3::Xxh3Default;

/// A device between batches of requests.
pub struct HeldDevice {
    /// `None` after a power cut that it did not survive.
    device: Option<Box<dyn AnyDevice>>,
    design: Design,
    plan: RunPlan,
    prepared: Precondition,
    /// When it was opened: the time that its user sees counts from here.
    opened: Time,
    log: Log,
    clock: Instant,
}

/// What is measured, and what a result is named by.
struct Log {
    meter: Meter,
    /// When what is measured began.
    origin: Time,
    /// When everything asked for was done.
    now: Time,
    /// Of the requests since it was opened, and the cuts between them.
    digest: Xxh3Default,
    /// Requests since `origin`.
    requests: u64,
    closed_loop: bool,
    /// The requests of this batch, if they are kept.
    answers: Option<Columns>,
}

/// A figure of a device as it stands, which does not disturb it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Seconds since it was opened.
    pub now_s: f64,
    /// Requests since what is measured began.
    pub requests: u64,
    /// Bytes the host wrote, in whole units.
    pub host_bytes: u64,
    /// Bytes programmed, whatever the cause.
    pub programmed_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// The state of each block of its flash.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// Erases of each since it left the factory, die by die.
    pub erases: Vec<u32>,
    /// The share of live data in each; `None` if the controller does not count that.
    pub live: Option<Vec<f32>>,
}

impl HeldDevice {
    fn of(
        device: Box<dyn AnyDevice>,
        plan: RunPlan,
        design: Design,
        (prepared, ready): (Precondition, Time),
    ) -> Self {
        let mut device = device;
        device.reset_stats();
        let meter = Meter::new(ready, device.counters(), None);
        let log = Log {
            meter,
            origin: ready,
            now: ready,
            digest: Xxh3Default::new(),
            requests: 0,
            closed_loop: true,
            answers: None,
        };
        let device = Some(device);
        HeldDevice { device, design, plan, prepared, opened: ready, log, clock: Instant::now() }
    }

    /// Its design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The name of its design, with what was changed.
    pub fn name(&self) -> &str {
        &self.plan.design_name
    }

    /// True if its media keep what is written: then bytes can be read back, and a power cut can be survived.
    pub fn keeps(&self) -> bool {
        self.device.as_ref().is_none_or(|device| device.keeps())
    }

    /// Serves the requests of a workload until it ends or the limit is reached; with `keeps_answers` each with the time at which
    /// it was wanted (since the device was opened) and its latency. `go_on` returns false to stop: what was served until then
    /// remains.
    pub fn serve(
        &mut self,
        workload: &mut dyn BlockWorkload,
        limit: &Limit,
        keeps_answers: bool,
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Columns, RunError> {
        let Self { device, plan, log, .. } = self;
        if workload.tenants().is_some() || workload.program().is_some() {
            let why = "several concurrent workloads, jobs with rates or pauses, and think=keep are supported only by run";
            return Err(RunError::Unheld { design: plan.design_name.clone(), why });
        }
        let pass = Pass { queue: self.design.path.queue, limit, opened: self.opened };
        let device = present(device, plan)?;
        log.closed_loop &= workload.pacing() != Pacing::Open;
        log.answers = keeps_answers.then(empty);
        let served = serve(device, workload, pass, log, go_on);
        let answers = log.answers.take();
        served.map_err(|why| failed(plan, why))?;
        Ok(answers.unwrap_or_else(empty))
    }

    /// Serves one request, which carries bytes: writes `data`, or reads into `into`. Returns its latency.
    pub fn one(&mut self, request: Request, data: &[u8], into: &mut [u8]) -> Result<Span, RunError> {
        let Self { device, plan, log, .. } = self;
        let capacity = self.design.capacity_bytes();
        let Request { op, offset, bytes, .. } = request;
        if offset.checked_add(bytes as u64).is_none_or(|end| end > capacity) {
            return Err(RunError::Workload(format!(
                "a {op} of {bytes} B at {offset} ends beyond the {capacity} B of the device"
            )));
        }
        let device = present(device, plan)?;
        let carries = !data.is_empty() || !into.is_empty();
        if carries && !device.keeps() {
            return Err(RunError::NoBytes { design: plan.design_name.clone() });
        }
        let at = log.now;
        let ended = one(device, at, &request, data, into);
        let ended = ended.map_err(|why| DriveError::failed(log.requests + 1, 0, &request, at, why));
        let end = ended.map_err(|why| failed(plan, why))?;
        log.served(&request, at, end);
        log.now = end;
        let counters = device.counters();
        log.meter.batch(|| counters, 1, end);
        drive::within_time(end, log.requests).map_err(|why| failed(plan, why))?;
        Ok(end.since(at))
    }

    /// Lets time pass without a request.
    pub fn idle(&mut self, span: Span) -> Result<(), RunError> {
        present(&mut self.device, &self.plan)?;
        self.log.now += span;
        drive::within_time(self.log.now, self.log.requests).map_err(|why| failed(&self.plan, why)).map(drop)
    }

    /// The power fails now and returns: data accepted but not yet on the media is lost, operations in progress are torn.
    /// Returns what the recovery took.
    pub fn cut(&mut self) -> Result<RecoveryReport, RunError> {
        let Self { plan, log, .. } = self;
        if !present(&mut self.device, plan)?.keeps() {
            return Err(RunError::NoBytes { design: plan.design_name.clone() });
        }
        let device = self.device.take().expect("it was there a moment ago");
        let unmounted = |why| RunError::Unmounted { design: plan.design_name.clone(), why };
        let (mut device, report) = device.power_cycle(log.now).map_err(unmounted)?;
        let ready =
            drive::within_time(log.now + report.time, log.requests).map_err(|why| failed(plan, why))?;
        device.settle(ready);
        device.reset_stats();
        log.meter = Meter::new(ready, device.counters(), None);
        log.digest.update(b"cut");
        (log.now, log.origin, log.requests) = (ready, ready, 0);
        self.device = Some(device);
        Ok(report)
    }

    /// How it stands; asking changes nothing.
    pub fn standing(&mut self) -> Result<Standing, RunError> {
        let (opened, log) = (self.opened, &self.log);
        let observed = present(&mut self.device, &self.plan)?;
        let (counters, unit) = (observed.counters(), observed.unit_bytes() as u64);
        Ok(Standing {
            now_s: log.now.since(opened).seconds(),
            requests: log.requests,
            host_bytes: counters.host_units * unit,
            programmed_bytes: counters.programmed_units() * unit,
            erases: counters.erases,
        })
    }

    /// Its blocks; asking changes nothing. `None` without flash.
    pub fn blocks(&mut self) -> Result<Option<Blocks>, RunError> {
        let observed = present(&mut self.device, &self.plan)?;
        let maps = observed.maps().unwrap_or_default();
        let Some(flash) = observed.insides(Span::ZERO).flash else { return Ok(None) };
        let erases = flash.data.cells.erase_counts().to_vec();
        let held =
            maps.into_iter().find_map(|map| map.held).filter(|held| held.regions.len() == erases.len());
        let live = held
            .map(|held| held.regions.iter().map(|region| region.live as f32 / held.units as f32).collect());
        Ok(Some(Blocks { erases, live }))
    }

    /// What it measured since it was opened, or since the last power cut, as a run reports it. It first waits until the device has
    /// done everything it accepted, so its time goes on.
    pub fn result(&mut self) -> Result<RunResult, RunError> {
        let Self { device, design, plan, prepared, log, clock, .. } = self;
        let observed = present(device, plan)?;
        if log.requests == 0 {
            return Err(RunError::Nothing { design: plan.design_name.clone() });
        }
        plan.workload_about = format!("{} requests of whoever holds the device", log.requests);
        let progress = Progress { requests: log.requests, now: log.now, ..Progress::default() };
        let idle = drive::idle_at(observed, log.now, log.requests);
        log.now = log.now.max(idle.map_err(|why| failed(plan, why))?);
        let (prepared, origin, clock) = (prepared.clone(), log.origin, *clock);
        let run = Run { design, plan, prepared, origin, progress, clock };
        let result = finish(run, observed, log.meter.clone())?;
        let text = format!("{}\n{:032x}", result.key, log.digest.digest128());
        let key = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes()));
        Ok(RunResult { key, closed_loop: log.closed_loop, ..result })
    }
}

fn present<'a>(
    device: &'a mut Option<Box<dyn AnyDevice>>,
    plan: &RunPlan,
) -> Result<&'a mut dyn AnyDevice, RunError> {
    let why = "it was lost in an earlier power cut";
    let lost = || RunError::Unmounted { design: plan.design_name.clone(), why: why.into() };
    Ok(device.as_mut().ok_or_else(lost)?.as_mut())
}

fn empty() -> Columns {
    Columns::new(Origin { format: "nvlab device".into(), hash: 0 })
}

/// A batch: how many requests the device takes at a time, where the batch ends, and when the device was opened.
struct Pass<'a> {
    queue: u32,
    limit: &'a Limit,
    opened: Time,
}

impl Log {
    fn served(&mut self, request: &Request, wanted: Time, end: Time) {
        self.requests += 1;
        self.meter.served(request, wanted, end);
        let Request { offset, bytes, op, fua, .. } = *request;
        let mut word = [0; 22];
        word[..8].copy_from_slice(&wanted.ps().to_le_bytes());
        word[8..16].copy_from_slice(&offset.to_le_bytes());
        word[16..20].copy_from_slice(&bytes.to_le_bytes());
        word[20..].copy_from_slice(&[op as u8, fua.into()]);
        self.digest.update(&word);
    }
}

/// Serves a workload.
fn serve(
    device: &mut dyn AnyDevice,
    workload: &mut dyn BlockWorkload,
    Pass { queue, limit, opened }: Pass<'_>,
    log: &mut Log,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(), DriveError> {
    let from = log.now;
    let (mut host, depth) = Host::new(workload.pacing(), queue, from);
    let mut under_way = Outstanding::new(depth, from);
    let mut progress = Progress { now: from, ..Progress::default() };
    let deadline = from.ps().saturating_add(limit.time.ps());
    let (mut batch, mut ask_at, mut last) = (Batch::new(), drive::ASK_EVERY, None);
    let mut still = Standstill::new(limit.is_timed());
    let is_open = workload.pacing() == Pacing::Open;
    'batches: loop {
        batch.clear();
        if workload.fill(&mut batch) == 0 {
            break;
        }
        let before = progress.requests;
        for (nth, request) in batch.requests().iter().enumerate() {
            let room = under_way.room_at();
            let wanted = host.wanted(request, room, progress.now);
            let begin = wanted.max(room).max(progress.now);
            if begin.ps() >= deadline || limit.is_reached(&progress) {
                log.meter.arrivals.note_last(log.origin, last.take());
                if begin.ps() >= deadline && is_open {
                    let rest = &batch.requests()[nth..];
                    let waiting = still_wanted(rest, &mut Batch::new(), workload, limit.time);
                    log.meter.arrivals.leave(waiting, from.since(log.origin) + limit.time);
                }
                break 'batches;
            }
            let end = drive::serve(device, begin, request, workload)
                .map_err(|why| DriveError::failed(progress.requests + 1, 0, request, begin, why))?;
            under_way.add(end);
            host.served(wanted, end);
            log.served(request, wanted, end);
            last = is_open.then_some((wanted, end));
            log.now = under_way.last();
            if let Some(answers) = &mut log.answers {
                let at = Time::from_ps(wanted.since(opened).ps());
                answers.push_answered(Request { at, volume: 0, ..*request }, end.since(wanted));
            }
            progress = Progress { now: begin, ..progress.after(std::slice::from_ref(request)) };
        }
        log.meter.arrivals.note_last(log.origin, last.take());
        log.meter.batch(|| device.counters(), progress.requests - before, progress.now);
        still.check(&progress).and_then(|()| drive::ask(go_on, &progress, &mut ask_at))?;
    }
    log.now = drive::finished(progress, under_way.last())?.now;
    Ok(())
}

/// Serves one request; returns when it is done.
fn one(
    device: &mut dyn AnyDevice,
    at: Time,
    request: &Request,
    data: &[u8],
    into: &mut [u8],
) -> Result<Time, ControllerError> {
    let Request { op, offset, bytes, fua, .. } = *request;
    let served = match op {
        Op::Read => device.read(at, offset, bytes, into)?,
        Op::Write => {
            let written = device.write(at, offset, bytes, data)?;
            if fua { device.flush(written.end)? } else { written }
        }
        Op::Trim => device.trim(at, offset, bytes)?,
        Op::Flush => device.flush(at)?,
    };
    Ok(served.end)
}

#[cfg(test)]
mod tests;
