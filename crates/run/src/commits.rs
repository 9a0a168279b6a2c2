//! Transactions on recoverable memory: they arrive, one program runs them one after the other, or several at the same
//! time, and each ends when it is durable. Those that are ready when the log is free commit together (system 001
//! slide 10: batched commits). At the end of the run the log is truncated, so that a run pays for everything it
//! logged (slide 28).
//!
//! A commit is counted as a write: the bytes are those of its record, the latency that of the commit alone. A
//! transaction's latency counts from its arrival.

use super::arrivals::still_arriving;
use super::device::{ArrayInsides, Busy, Causes, Counters, FlashInsides, HiddenFlash, Insides};
use super::drive::{DriveError, Limit, Progress, within_time};
use super::meter::Meter;
use super::summary;
use crate::durable::clock::Activity;
use crate::durable::flash::{Array, NorFlash};
use crate::durable::host::{Device, Host};
use crate::error::RunError;
use crate::result::{DurableResult, DurableTime, Precondition, RunResult};
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{checked, failed, share_done};
use nvlab_design::{Design, Recoverable};
use nvlab_units::{Geometry, Span, Time};
use nvlab_workload::{AnyDurableWorkload, Changes, DurableWorkload, Op, Pacing, Request};
use std::collections::VecDeque;
use std::fmt::Display;

/// Transactions between two updates of the windows of the run.
const BATCH: u64 = 32;
/// Transactions between two calls of `go_on`.
const ASK_EVERY: u64 = 512;

/// Runs a workload on the log of a design.
pub(super) fn run(
    design: &Design,
    recoverable: &Recoverable,
    plan: &RunPlan,
    mut workload: AnyDurableWorkload,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let clock = std::time::Instant::now();
    let mut host = Host::new(design, recoverable, plan.seed).map_err(|error| broken(plan, error))?;
    let origin = host.clock.now();
    if let Some(flash) = host.device.flash() {
        flash.array().reset_stats();
    }
    let before = Before::of(&host);
    let closed_loop = workload.pacing() != Pacing::Open;
    let mut meter = Meter::new(origin, counters(&host), plan.requests_asked).until(plan.limit.goal);
    let mut progress = drive(&mut host, &mut workload, plan, &mut meter, on_progress)?;
    let mount = host.restart().map_err(|error| broken(plan, format_args!("the restart failed: {error}")))?;
    host.truncate().map_err(|error| broken(plan, format_args!("the last truncation failed: {error}")))?;
    progress.now = host.clock.now();
    let progress = checked(plan, Ok(progress), origin)?;
    within_time(progress.now, progress.requests).map_err(|source| failed(plan, source))?;
    verify(&*workload, &host).map_err(|why| broken(plan, why))?;
    let precision = meter.precision();
    let span = progress.now.since(origin);
    let arrivals = meter.arrivals.result(progress.requests, span.seconds());
    let (totals, series) = meter.finish(counters(&host), progress.now);
    let durable = durable(recoverable, &host, &before, progress.requests, span);
    let array = host.device.flash().map(NorFlash::array);
    let insides = insides(recoverable, &host, array.as_deref(), &before);
    let prepared = Precondition::none(&plan.state.to_string());
    let mut result = summary::summarize(design, plan, &insides, prepared, &totals, span, span);
    (result.series, result.precision) = (series, precision);
    result.wall_s = clock.elapsed().as_secs_f64();
    Ok(RunResult { closed_loop, arrivals, mount, durable: Some(durable), ..result })
}

fn broken(plan: &RunPlan, why: impl Display) -> RunError {
    RunError::Log { design: plan.design_name.clone(), why: why.to_string() }
}

/// The workload's own check of the memory, and of the data, which truncation has made the same.
fn verify(workload: &dyn DurableWorkload, host: &Host) -> Result<(), String> {
    workload.check(host.memory())?;
    match host.data_is_current() {
        Ok(true) => Ok(()),
        Ok(false) => Err("after the last truncation, the data differs from the memory".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A transaction whose program computes, or waits for the log.
#[derive(Default)]
struct Waiting {
    changes: Changes,
    /// When it arrives in the workload, and when it was wanted.
    arrival: Time,
    wanted: Time,
    /// When its program began to compute, and when it wants to commit.
    from: Time,
    ready: Time,
}

/// The programs of a run, each on a processor of its own. They commit in the order in which they began.
struct Programs {
    /// Since when those have nothing to do that have not.
    free: VecDeque<Time>,
    waiting: VecDeque<Waiting>,
    /// To be used again.
    spare: Vec<Waiting>,
    is_over: bool,
}

impl Programs {
    fn new(workload: &AnyDurableWorkload, origin: Time) -> Programs {
        let count = match workload.pacing() {
            Pacing::Closed { depth } => depth,
            Pacing::Open | Pacing::Program => 1,
        };
        Programs {
            free: std::iter::repeat_n(origin, count as usize).collect(),
            waiting: VecDeque::new(),
            spare: Vec::new(),
            is_over: false,
        }
    }

    /// Every program that has nothing to do begins a transaction, unless the run is over.
    fn begin(
        &mut self,
        workload: &mut AnyDurableWorkload,
        limit: &Limit,
        origin: Time,
        progress: &mut Progress,
        meter: &mut Meter,
    ) {
        let open = workload.pacing() == Pacing::Open;
        let deadline = origin.ps().saturating_add(limit.time.ps());
        while !self.is_over
            && let Some(free) = self.free.pop_front()
        {
            let mut next = self.spare.pop().unwrap_or_default();
            let Some(arrival) = workload.next(&mut next.changes) else {
                (progress.ended, self.is_over) = (true, true);
                break;
            };
            let wanted = if open { origin + Span::from_ps(arrival.ps()) } else { free };
            let from = wanted.max(free);
            let begun = progress.requests + self.waiting.len() as u64;
            let is_late = from.ps() >= deadline;
            if begun >= limit.requests
                || is_late
                || progress.written_bytes >= limit.bytes.min(limit.written_bytes)
            {
                if open && is_late {
                    let waiting = still_arriving(arrival, limit.time, || workload.next(&mut next.changes));
                    meter.arrivals.leave(waiting, limit.time);
                }
                self.is_over = true;
                break;
            }
            let ready = from + next.changes.compute;
            self.waiting.push_back(Waiting { arrival, wanted, from, ready, ..next });
        }
    }

    /// How many commit together: those that are ready when the log is.
    fn batch(&self, now: Time) -> usize {
        let Some(first) = self.waiting.front() else { return 0 };
        let at = first.ready.max(now);
        self.waiting.iter().take_while(|waiting| waiting.ready <= at).count()
    }

    /// The first of them is done.
    fn done(&mut self, now: Time) -> Waiting {
        self.free.push_back(now);
        self.waiting.pop_front().expect("one of a batch")
    }
}

/// The inner loop.
fn drive(
    host: &mut Host,
    workload: &mut AnyDurableWorkload,
    plan: &RunPlan,
    meter: &mut Meter,
    on_progress: OnProgress<'_>,
) -> Result<Progress, RunError> {
    let (open, origin) = (workload.pacing() == Pacing::Open, host.clock.now());
    let mut programs = Programs::new(workload, origin);
    let mut progress = Progress { now: origin, ..Progress::default() };
    'run: loop {
        programs.begin(workload, &plan.limit, origin, &mut progress, meter);
        let batch = programs.batch(progress.now);
        if batch == 0 {
            break;
        }
        let mut bytes = Vec::with_capacity(batch);
        for (index, one) in programs.waiting.range(..batch).enumerate() {
            let logged = host.rvm().statistics().logged_bytes;
            host.commit(&one.changes, one.from, index + 1 == batch).map_err(|error| {
                let number = progress.requests + index as u64;
                broken(plan, format_args!("transaction {number} failed: {error}"))
            })?;
            bytes.push((host.rvm().statistics().logged_bytes - logged) as u32);
        }
        progress.now = host.clock.now();
        for bytes in bytes {
            let one = programs.done(progress.now);
            let commit = Request { op: Op::Write, bytes, ..Request::default() };
            meter.served(&commit, one.ready, progress.now);
            let took = progress.now.since(one.wanted);
            meter.transaction(took);
            if open {
                meter.arrivals.note(one.arrival.since(Time::ZERO), took);
            }
            programs.spare.push(one);
            progress.requests += 1;
            progress.bytes += bytes as u64;
            progress.written_bytes += bytes as u64;
            if progress.requests.is_multiple_of(BATCH) {
                meter.batch(|| counters(host), BATCH, progress.now);
                if meter.is_reached() {
                    break 'run;
                }
            }
            if progress.requests.is_multiple_of(ASK_EVERY)
                && !on_progress("running", share_done(plan, &progress, origin))
            {
                return Err(failed(plan, DriveError::Stopped(progress.requests)));
            }
        }
    }
    Ok(progress)
}

fn counters(host: &Host) -> Counters {
    let Some(flash) = host.device.flash() else { return Counters::default() };
    let stats = flash.array().stats();
    let causes = Causes { host: stats.programs, ..Causes::default() };
    Counters { host_units: stats.programs, causes, erases: stats.erases, busy: Busy::of(&stats) }
}

fn insides<'a>(
    recoverable: &Recoverable,
    host: &Host,
    array: Option<&'a Array>,
    before: &Before,
) -> Insides<'a> {
    let programs = array.map_or(0, |array| array.stats().programs);
    Insides {
        host_bytes: Some(host.rvm().statistics().logged_bytes),
        wearing: array.map(|array| recoverable.wearing(array.geometry())),
        hidden: hidden(&host.device, before.steps),
        flash: array.map(|array| FlashInsides {
            data: ArrayInsides { cells: array.cells(), stats: array.stats(), geometry: *array.geometry() },
            log: None,
        }),
        ..Insides::of(Causes { host: programs, ..Causes::default() })
    }
}

/// The flash of a flash disk, since it had taken so many steps.
fn hidden(device: &Device, before: [u64; 2]) -> Option<HiddenFlash> {
    let Device::FlashDisk(disk) = device else { return None };
    let ([reads, programs], flash) = (disk.steps(), &disk.config().flash);
    Some(HiddenFlash {
        reads: reads - before[0],
        programs: programs - before[1],
        times: [flash.timing.read[0], flash.timing.program, flash.timing.erase],
        geometry: flash.geometry,
        rated_cycles: flash.endurance.cycles,
    })
}

/// What had been done before the run began.
struct Before {
    spent: [Span; ACTIVITIES.len()],
    written: u64,
    /// Of a flash disk, [`crate::durable::flash_disk::FlashDisk::steps`].
    steps: [u64; 2],
}

const ACTIVITIES: [Activity; 7] = [
    Activity::Compute,
    Activity::Compress,
    Activity::Decompress,
    Activity::Write,
    Activity::Erase,
    Activity::Read,
    Activity::Apply,
];

impl Before {
    fn of(host: &Host) -> Before {
        let steps = match &host.device {
            Device::FlashDisk(disk) => disk.steps(),
            _ => [0; 2],
        };
        let spent = ACTIVITIES.map(|activity| host.clock.spent(activity));
        Before { spent, written: written(host), steps }
    }
}

/// Bytes that reached the device of the log, in whatever units it writes; of flash, rows of a gang.
fn written(host: &Host) -> u64 {
    let programmed = |flash: &NorFlash| {
        let array = flash.array();
        array.stats().programs * array.geometry().page_bytes()
    };
    match &host.device {
        Device::Flash(flash) => programmed(flash),
        Device::FlashDisk(disk) => disk.written(),
        Device::Disk(disk) => disk.written(),
        Device::Ram => host.rvm().statistics().logged_bytes,
        Device::Hybrid(flash, disk) => programmed(flash) + disk.written(),
    }
}

fn durable(
    recoverable: &Recoverable,
    host: &Host,
    before: &Before,
    transactions: u64,
    span: Span,
) -> DurableResult {
    let statistics = host.rvm().statistics();
    let seconds = span.seconds().max(1e-12);
    let share = |index: usize| {
        (host.clock.spent(ACTIVITIES[index]).saturating_sub(before.spent[index])).seconds() / seconds
    };
    let per_transaction = |bytes: u64| bytes as f64 / transactions.max(1) as f64;
    let wearing = |geometry: &Geometry| recoverable.wearing(geometry).len() as u64 * geometry.block_bytes();
    let usable_bytes = match &host.device {
        Device::Flash(flash) | Device::Hybrid(flash, _) => wearing(flash.array().geometry()),
        Device::FlashDisk(disk) => wearing(&disk.config().flash.geometry),
        Device::Disk(_) | Device::Ram => recoverable.log_bytes,
    };
    DurableResult {
        log: recoverable.device.name().into(),
        log_bytes: recoverable.log_bytes,
        usable_bytes,
        range_bytes: per_transaction(statistics.range_bytes),
        record_bytes: per_transaction(statistics.logged_bytes),
        written_bytes: per_transaction(written(host) - before.written),
        ahead_bytes: per_transaction(statistics.ahead_bytes),
        ahead_wasted_bytes: per_transaction(statistics.ahead_wasted_bytes),
        fills: statistics.logged_bytes as f64 / recoverable.log_bytes as f64,
        truncations: statistics.truncations,
        applied_bytes: statistics.applied_bytes,
        time: DurableTime {
            compute: share(0),
            compress: share(1),
            decompress: share(2),
            write: share(3),
            erase: share(4),
            read: share(5),
            apply: share(6),
        },
    }
}
