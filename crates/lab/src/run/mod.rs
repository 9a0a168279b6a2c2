//! One design under one workload: build, precondition, drive, sum up.
//!
//! A run is a function of (design, workload, seed): the same three produce the same result, bit for bit, except
//! for the wall-clock time.
//!
//! Only [`device::build()`] and the inner loop ([`DeviceUnderTest`]) depend on the kind of controller. A new kind is a file in
//! [`device`] and an arm there.

pub mod aged;
mod arrivals;
mod bounds;
mod coarse;
mod commits;
pub mod device;
pub mod drive;
mod error;
pub mod held;
mod host;
mod kept;
mod media;
pub mod meter;
pub mod outstanding;
pub mod precondition;
mod preparation;
mod program;
mod settle;
mod staged;
mod submit;
mod summary;
mod tenants;
pub mod transactions;
pub mod watched;
mod writes;

pub(crate) use coarse::why_full_size;
pub use device::BuildError;
pub use drive::{DeviceUnderTest, DriveError, Limit, Progress, Watch};
pub use error::RunError;
pub use kept::Keeping;
pub use meter::{Figure, Goal};
pub use preparation::{Preparation, State};
pub use summary::{key, summarize};

use crate::design::{Design, Ftl, Payload};
use crate::prepared::Shelf;
use crate::result::{
    ArrivalsResult, MountResult, Precondition, ProgramResult, RunResult, SoftwareResult, TenantResult,
};
use aged::AgeError;
use device::{AnyDevice, Carrying, InMemory, NoBytes, Observed};
use meter::Meter;
use nvlab_access::{Attached, MemoryWindow};
use nvlab_units::Time;
use nvlab_workload::{AnyMemoryWorkload, BlockWorkload, Pacing, Work};

/// What to run, and how far.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The design's name as the user wrote it, with the changes of `--set`.
    pub design_name: String,
    /// The workload's text.
    pub workload_text: String,
    /// One line: what the workload is, its pace, its size and its end.
    pub workload_about: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// How the device is prepared.
    pub state: Preparation,
    /// The argument of `--until`, if there is one.
    pub until: Option<String>,
    /// Where the run ends.
    pub limit: Limit,
    /// Requests the run must serve, if that is known: fewer is an error.
    pub requests_asked: Option<u64>,
}

/// What a run is doing, for a progress bar: a phase and how far it is (1 = done, where that is known).
pub type OnProgress<'a> = &'a mut dyn FnMut(&str, f64) -> bool;

/// Runs a workload on a design. `own` is a copy of it with another seed whose writes bring the device to its steady state,
/// so that it is not prepared with the same requests that are then measured; `None`: it writes nothing. With `keeping` it
/// may begin with a device that an earlier run prepared; that does not change the result.
/// Requests for blocks on a memory use it as a RAM disk; accesses to words need a memory. `on_progress` returns false to
/// stop.
pub fn run(
    design: &Design,
    plan: &RunPlan,
    work: Work,
    own: Option<Work>,
    keeping: Option<Keeping<'_>>,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    match work {
        Work::Requests(mut workload) => {
            let mut own = own.and_then(Work::requests);
            let own = own.as_mut().map(|own| &mut **own as &mut dyn BlockWorkload);
            run_requests(design, plan, &mut *workload, own, keeping, on_progress)
        }
        Work::Accesses(workload) => {
            run_transactions(design, plan, workload, own.and_then(Work::accesses), on_progress)
        }
        Work::Commits(workload) => match &design.ftl {
            Ftl::Rvm(recoverable) => commits::run(design, recoverable, plan, workload, on_progress),
            _ => Err(RunError::NotALog { design: plan.design_name.clone() }),
        },
    }
}

/// The same for requests of any workload.
pub fn run_requests(
    design: &Design,
    plan: &RunPlan,
    workload: &mut dyn BlockWorkload,
    own: Option<&mut dyn BlockWorkload>,
    keeping: Option<Keeping<'_>>,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    if design.path.software.is_some() && workload.tenants().is_some() {
        let why = "several streams at once, and jobs with rates or pauses, pass no software";
        return Err(RunError::Unstaged { design: plan.design_name.clone(), why });
    }
    let bytes = kept_payload(design, workload, &plan.state);
    let own = own.map(|own| own as &mut dyn BlockWorkload);
    let is_prepared = plan.state.state != State::Fresh;
    let seed = plan.state.device_seed(plan.seed);
    let keeping = keeping.filter(|_| is_prepared && bytes.is_none() && kept::is_kept(design));
    let Some(keeping) = keeping else {
        let device = device::any(design, seed, bytes).map_err(|why| unbuildable(plan, why))?;
        let begin = kept::Begin::default();
        return Requests { design, plan, workload, own, begin, shelf: None, on_progress }.on(device);
    };
    let keys = kept::Keys::new(design, &plan.state, keeping.workload, own.as_deref());
    keys.begin(keeping.shelf, |device, begin| {
        let own = own.map(|own| own as &mut dyn BlockWorkload);
        let device: Box<dyn AnyDevice> = match device {
            Some(device) => Box::new(Carrying::new(device)),
            None => device::any(design, seed, None).map_err(|why| unbuildable(plan, why))?,
        };
        let shelf = Some(keeping.shelf);
        Requests { design, plan, workload, own, begin, shelf, on_progress }.on(device)
    })
}

/// True if a run keeps the payload of its workload: FSMS and PRAM interpret it, and the time of a mount is compared with
/// that of a block map. A page map and a memory do not use it.
fn keeps_payload(design: &Design) -> bool {
    design.route.is_some() || matches!(design.ftl, Ftl::Hftl(_) | Ftl::Blocks(_))
}

/// Where a run keeps the payload of its workload, if it does.
fn kept_payload(design: &Design, workload: &dyn BlockWorkload, state: &Preparation) -> Option<InMemory> {
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

fn unbuildable(plan: &RunPlan, why: BuildError) -> RunError {
    let (design, text) = (plan.design_name.clone(), why.to_string());
    match why {
        BuildError::Memory(_) => RunError::NoMemory { design, why: text },
        BuildError::Design(_) | BuildError::Recovery(_) => RunError::Unbuildable { design, why: text },
    }
}

fn run_transactions(
    design: &Design,
    plan: &RunPlan,
    workload: AnyMemoryWorkload,
    own: Option<AnyMemoryWorkload>,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let clock = std::time::Instant::now();
    if design.path.software.is_some() {
        let why = "loads and stores of words pass no software";
        return Err(RunError::Unstaged { design: plan.design_name.clone(), why });
    }
    let mut stores = own.map(|own| precondition::stores(own, design.ftl.unit_bytes()));
    let own = stores.as_mut().map(|stores| stores as &mut dyn BlockWorkload);
    let (state, seed) = (&plan.state, plan.state.device_seed(plan.seed));
    match &design.ftl {
        Ftl::Envy(envy) => {
            let built = device::envy::build(design, envy, seed, &NoBytes);
            let (mut memory, _) = built.map_err(|why| unbuildable(plan, why))?;
            let mut pages = device::envy::Pages::new(&mut memory);
            let prepared = precondition::precondition(&mut pages, state, own, on_progress);
            let prepared = prepared.map_err(|source| unprepared(plan, source))?;
            transactions_on(&mut memory, design, plan, workload, (prepared, clock), on_progress)
        }
        Ftl::Cached(lines) => {
            let built = device::cached::build(design, lines, seed, &NoBytes);
            let (memory, _) = built.map_err(|why| unbuildable(plan, why))?;
            let mut blocks = Attached::new(memory, device::link(design));
            let prepared = precondition::precondition(&mut blocks, state, own, on_progress);
            let prepared = prepared.map_err(|source| unprepared(plan, source))?;
            let memory = blocks.controller_mut();
            transactions_on(memory, design, plan, workload, (prepared, clock), on_progress)
        }
        _ => Err(RunError::NotAMemory { design: plan.design_name.clone() }),
    }
}

/// Transactions on a memory in a known state.
fn transactions_on(
    memory: &mut (impl MemoryWindow + Observed),
    design: &Design,
    plan: &RunPlan,
    mut workload: AnyMemoryWorkload,
    ((prepared, ready), clock): ((Precondition, Time), std::time::Instant),
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let origin = ready + plan.state.idle;
    memory.reset_stats();
    let closed_loop = workload.pacing() != Pacing::Open;
    let meter = Meter::new(origin, memory.counters(), plan.requests_asked);
    let mut meter = meter.until(plan.limit.goal);
    let go_on = &mut |progress: &Progress| on_progress("running", share_done(plan, progress, origin));
    let driven = transactions::drive(memory, &mut workload, origin, &plan.limit, &mut meter, go_on);
    let progress = checked(plan, driven, origin)?;
    let result = finish(Run { design, plan, prepared, origin, progress, clock }, memory, meter)?;
    Ok(RunResult { closed_loop, ..result })
}

/// A run on a device of any kind.
struct Requests<'a> {
    design: &'a Design,
    plan: &'a RunPlan,
    workload: &'a mut dyn BlockWorkload,
    own: Option<&'a mut dyn BlockWorkload>,
    begin: kept::Begin<'a>,
    shelf: Option<&'a Shelf>,
    on_progress: OnProgress<'a>,
}

impl Requests<'_> {
    /// Prepares the device and runs the workload on it.
    fn on(self, mut device: Box<dyn AnyDevice>) -> Result<RunResult, RunError> {
        let Requests { design, plan, workload, own, begin, shelf, on_progress } = self;
        let clock = std::time::Instant::now();
        let prepared = begin.prepared(&mut *device, &plan.state, own, on_progress);
        let (prepared, begin) = opened(&mut *device, (design, shelf), prepared, plan, workload, on_progress)?;
        let origin = started(&mut *device, workload, (design, plan), begin, on_progress)?;
        let meter = Meter::new(origin, device.counters(), plan.requests_asked);
        let mut meter = meter.until(plan.limit.goal).in_passes(workload.pass_bytes());
        let go_on = &mut |progress: &Progress| on_progress("running", share_done(plan, progress, origin));
        let watch = Watch { meter: Some(&mut meter), go_on };
        let driven = driven(&mut *device, workload, design, origin, &plan.limit, watch);
        let Driven { progress, program, software, tenants } = driven;
        let progress = checked(plan, progress, origin)?;
        let result = finish(Run { design, plan, prepared, origin, progress, clock }, &mut *device, meter)?;
        let result = in_whole_passes(result, workload.pass_bytes());
        let mount = mount(device, plan, &progress)?;
        let closed_loop = workload.pacing() != Pacing::Open;
        let client_bytes = workload.client_bytes();
        let arrivals = ArrivalsResult::of_all(&tenants).or(result.arrivals);
        Ok(RunResult { client_bytes, closed_loop, program, software, tenants, arrivals, mount, ..result })
    }
}

/// What was driven, and what is known of the program, the software or the streams that issued the requests.
struct Driven {
    progress: Result<Progress, DriveError>,
    program: Option<ProgramResult>,
    software: Option<SoftwareResult>,
    tenants: Vec<TenantResult>,
}

fn driven(
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
fn mount(
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

fn failed(plan: &RunPlan, source: DriveError) -> RunError {
    RunError::Failed { design: plan.design_name.clone(), source, asked: plan.requests_asked }
}

/// Has the workload prepare what it needs on a device that is `prepared`; returns how that was, and when what is measured begins.
fn opened(
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
fn started(
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

fn unaged(plan: &RunPlan, why: AgeError) -> RunError {
    match why {
        AgeError::Build(why) => unbuildable(plan, why),
        AgeError::Drive(source) => unprepared(plan, source),
        AgeError::Workload(why) => why.into(),
    }
}

fn unprepared(plan: &RunPlan, source: DriveError) -> RunError {
    RunError::Precondition { design: plan.design_name.clone(), kind: plan.state.state.name(), source }
}

/// Refuses a run that served less than was requested.
fn checked(plan: &RunPlan, driven: Result<Progress, DriveError>, origin: Time) -> Result<Progress, RunError> {
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
struct Run<'a> {
    design: &'a Design,
    plan: &'a RunPlan,
    prepared: Precondition,
    origin: Time,
    progress: Progress,
    clock: std::time::Instant,
}

/// Where blocks are cleaned, part of a pass does not tell the mean of whole ones, however little its own parts scatter.
fn in_whole_passes(mut result: RunResult, pass_bytes: Option<u64>) -> RunResult {
    let is_part = |pass: &u64| result.write.bytes < *pass && result.write_amplification.cleaned_blocks > 0;
    result.part_of_pass = pass_bytes.filter(is_part);
    if result.part_of_pass.is_some() {
        let of_writes =
            result.precision.iter_mut().filter(|precision| !precision.metric.starts_with("read."));
        of_writes.for_each(|precision| precision.within = None);
    }
    result
}

fn finish(run: Run<'_>, device: &mut dyn Observed, meter: Meter) -> Result<RunResult, RunError> {
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

fn share_done(plan: &RunPlan, progress: &Progress, origin: Time) -> f64 {
    let requests = plan.requests_asked.unwrap_or(plan.limit.requests).min(plan.limit.requests);
    let limit = Limit { requests, ..plan.limit };
    limit.share_done(progress).max(drive::share(progress.now.since(origin).ps(), limit.time.ps()))
}

#[cfg(test)]
mod tests;
