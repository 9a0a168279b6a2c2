//! The steps of a run, and their errors.

use crate::aged::AgeError;
use crate::device::{self, AnyDevice, BuildError, InMemory, Observed};
use crate::drive::{DeviceUnderTest, DriveError, Limit, Progress, Watch};
use crate::error::RunError;
use crate::meter::Meter;
use crate::preparation::{Preparation, State};
use crate::prepared::Shelf;
use crate::result::{MountResult, Precondition, ProgramResult, RunResult, SoftwareResult, TenantResult};
use crate::run_plan::{OnProgress, RunPlan};
use crate::{bounds, drive, precondition, program, staged, summary, tenants};
use nvlab_design::{Design, Ftl, Payload};
use nvlab_units::Time;
use nvlab_workload::{BlockWorkload, Work};

/// True if a run keeps the payload of its workload: FSMS and PRAM interpret it, and the time of a mount is compared with
/// that of a block map. A page map and a memory do not use it.
pub(crate) fn keeps_payload(design: &Design) -> bool {
    design.route.is_some() || matches!(design.ftl, Ftl::Hftl(_) | Ftl::Blocks(_))
}

/// Where a run keeps the payload of its workload, if it does.
pub(crate) fn kept_payload(
    design: &Design,
    workload: &dyn BlockWorkload,
    state: &Preparation,
) -> Option<InMemory> {
    let keeps = keeps_payload(design) && workload.carries_payload();
    keeps.then_some(InMemory { filled: state.state != State::Fresh })
}

/// Bytes of memory that the device of a run takes, with what it keeps of its payload.
pub(crate) fn memory_bytes(design: &Design, work: Option<&Work>, state: &Preparation) -> u64 {
    let kept = match work {
        Some(Work::Requests(workload)) => kept_payload(design, &**workload, state),
        _ => None,
    };
    let payload = kept.map_or(Payload::Nothing, |bytes| device::Backing::payload(&bytes));
    device::memory::needed(design, payload)
}

pub(crate) fn unbuildable(plan: &RunPlan, why: BuildError) -> RunError {
    let (design, text) = (plan.design_name.clone(), why.to_string());
    match why {
        BuildError::Memory(_) => RunError::NoMemory { design, why: text },
        BuildError::Design(_) | BuildError::Recovery(_) | BuildError::Media(_) => {
            RunError::Unbuildable { design, why: text }
        }
    }
}

/// What was driven, and what is known of the program, the software or the streams that issued the requests.
pub(crate) struct Driven {
    pub(crate) progress: Result<Progress, DriveError>,
    pub(crate) program: Option<ProgramResult>,
    pub(crate) software: Option<SoftwareResult>,
    pub(crate) tenants: Vec<TenantResult>,
}

pub(crate) fn driven(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    design: &Design,
    origin: Time,
    limit: &Limit,
    watch: Watch<'_>,
) -> Driven {
    let queue = design.path.queue;
    let pass = drive::Pass { origin, queue, limit };
    let plain = |progress| (progress, None, None, Vec::new());
    let driven = match (&design.path.software, workload.program()) {
        (None, None) => match workload.tenants() {
            Some(tenants) => tenants::drive(device, tenants, origin, queue, limit, watch)
                .map(|(progress, tenants)| (progress, None, None, tenants)),
            None => drive::drive(device, workload, origin, queue, limit, watch).map(plain),
        },
        (None, Some(program)) => program::drive(device, workload, &program, pass, watch)
            .map(|(progress, program)| (progress, Some(program), None, Vec::new())),
        (Some(software), None) => staged::drive(device, workload, None, software, pass, watch)
            .map(|(progress, software)| (progress, None, Some(software), Vec::new())),
        (Some(software), Some(program)) => {
            program::drive_staged(device, workload, &program, software, pass, watch)
                .map(|((progress, software), program)| (progress, Some(program), Some(software), Vec::new()))
        }
    };
    match driven {
        Ok((progress, program, software, tenants)) => {
            Driven { progress: Ok(progress), program, software, tenants }
        }
        Err(error) => Driven { progress: Err(error), program: None, software: None, tenants: Vec::new() },
    }
}

/// The cost of a mount if the power fails at the end of a run; `None` if the media keep no bytes.
pub(crate) fn mount(
    device: Box<dyn AnyDevice>,
    plan: &RunPlan,
    progress: &Progress,
) -> Result<Option<MountResult>, RunError> {
    if !device.keeps() {
        return Ok(None);
    }
    let (_, found) = device
        .power_cycle(progress.now)
        .map_err(|why| RunError::Unmounted { design: plan.design_name.clone(), why })?;
    drive::within_time(progress.now + found.time, progress.requests)
        .map_err(|source| failed(plan, source))?;
    Ok(Some(MountResult { time_s: found.time.seconds(), nand_reads: found.nand_reads }))
}

pub(crate) fn failed(plan: &RunPlan, source: DriveError) -> RunError {
    RunError::Failed { design: plan.design_name.clone(), source, asked: plan.requests_asked }
}

/// Has the workload prepare what it needs on a device that is `prepared`; returns how that was, and when what is measured begins.
pub(crate) fn opened(
    device: &mut dyn DeviceUnderTest,
    (design, shelf): (&Design, Option<&Shelf>),
    prepared: Result<(Precondition, Time), DriveError>,
    plan: &RunPlan,
    workload: &mut dyn BlockWorkload,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), RunError> {
    let (prepared, ready) = prepared.map_err(|source| unprepared(plan, source))?;
    let prepared = bounds::with_bounds(prepared, design, &plan.state, shelf, on_progress);
    let prepared = prepared.map_err(|why| unaged(plan, why))?;
    let prepared =
        Precondition { has_file_system: prepared.has_file_system || workload.carries_payload(), ..prepared };
    let origin = precondition::prepare(device, workload, ready + plan.state.idle, on_progress)
        .map_err(|source| unprepared(plan, source))?;
    device.reset_stats();
    Ok((prepared, origin))
}

/// Lets the device rest until the first request, and runs the workload for its ramp time, unmeasured; returns when what is measured
/// begins.
pub(crate) fn started(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    (design, plan): (&Design, &RunPlan),
    begin: Time,
    on_progress: OnProgress<'_>,
) -> Result<Time, RunError> {
    let begin = begin + tenants::delay_of_all(workload);
    let limit = Limit { time: workload.ramp_time(), ..Limit::NONE };
    if limit.time.is_zero() {
        return Ok(begin);
    }
    let share = |progress: &Progress| drive::share(progress.now.since(begin).ps(), limit.time.ps());
    let go_on = &mut |progress: &Progress| on_progress("ramping up", share(progress));
    let driven = driven(device, workload, design, begin, &limit, Watch { meter: None, go_on });
    let progress = driven.progress.map_err(|source| failed(plan, source))?;
    device.reset_stats();
    Ok(progress.now)
}

pub(crate) fn unaged(plan: &RunPlan, why: AgeError) -> RunError {
    match why {
        AgeError::Build(why) => unbuildable(plan, why),
        AgeError::Drive(source) => unprepared(plan, source),
        AgeError::Workload(why) => why.into(),
    }
}

pub(crate) fn unprepared(plan: &RunPlan, source: DriveError) -> RunError {
    RunError::Precondition { design: plan.design_name.clone(), kind: plan.state.state.name(), source }
}

/// Refuses a run that served less than was requested.
pub(crate) fn checked(
    plan: &RunPlan,
    driven: Result<Progress, DriveError>,
    origin: Time,
) -> Result<Progress, RunError> {
    let name = || plan.design_name.clone();
    let progress = driven.map_err(|source| failed(plan, source))?;
    if progress.requests == 0 {
        return Err(RunError::Nothing { design: name() });
    }
    match plan.requests_asked {
        Some(asked) if progress.requests < asked => {
            return Err(RunError::Short { design: name(), served: progress.requests, asked });
        }
        _ => {}
    }
    let limit = &plan.limit;
    let short = progress.ended
        && progress.requests < limit.requests
        && progress.bytes < limit.bytes
        && progress.written_bytes < limit.written_bytes
        && progress.now.since(origin) < limit.time
        // Not exact enough at its end, it says so.
        && limit.goal.is_none();
    if let (true, Some(until)) = (short, &plan.until) {
        let (requests, simulated) = (progress.requests, progress.now.since(origin));
        return Err(RunError::Ended { design: name(), requests, simulated, until: until.clone() });
    }
    Ok(progress)
}

/// A completed run.
pub(crate) struct Run<'a> {
    pub(crate) design: &'a Design,
    pub(crate) plan: &'a RunPlan,
    pub(crate) prepared: Precondition,
    pub(crate) origin: Time,
    pub(crate) progress: Progress,
    pub(crate) clock: std::time::Instant,
}

/// Where blocks are cleaned, part of a pass does not tell the mean of whole ones, however little its own parts scatter.
pub(crate) fn in_whole_passes(mut result: RunResult, pass_bytes: Option<u64>) -> RunResult {
    let is_part = |pass: &u64| result.write.bytes < *pass && result.write_amplification.cleaned_blocks > 0;
    result.part_of_pass = pass_bytes.filter(is_part);
    if result.part_of_pass.is_some() {
        let of_writes =
            result.precision.iter_mut().filter(|precision| !precision.metric.starts_with("read."));
        of_writes.for_each(|precision| precision.within = None);
    }
    result
}

pub(crate) fn finish(run: Run<'_>, device: &mut dyn Observed, meter: Meter) -> Result<RunResult, RunError> {
    let Run { design, plan, prepared, origin, progress, clock } = run;
    // Work queued at the end belongs to the run: shares of busy time refer to the time until it is done.
    let idle = drive::idle_at(device, progress.now, progress.requests);
    let busy_span = idle.map_err(|source| failed(plan, source))?.since(origin);
    let (precision, queue_wait_s) = (meter.precision(), meter.queue_wait.seconds());
    let span = progress.now.since(origin);
    let arrivals = meter.arrivals.result(progress.requests, span.seconds());
    let commit = summary::op_result(meter.commits(), span.seconds().max(1e-12));
    let (totals, series) = meter.finish(device.counters(), progress.now);
    let mut result =
        summary::summarize(design, plan, &device.insides(busy_span), prepared, &totals, span, busy_span);
    (result.series, result.precision, result.queue_wait_s) = (series, precision, queue_wait_s);
    (result.arrivals, result.commit) = (arrivals, commit);
    result.wall_s = clock.elapsed().as_secs_f64();
    Ok(result)
}

pub(crate) fn share_done(plan: &RunPlan, progress: &Progress, origin: Time) -> f64 {
    let requests = plan.requests_asked.unwrap_or(plan.limit.requests).min(plan.limit.requests);
    let limit = Limit { requests, ..plan.limit };
    limit.share_done(progress).max(drive::share(progress.now.since(origin).ps(), limit.time.ps()))
}
