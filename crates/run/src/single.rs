//! One design under one workload: build, precondition, drive, summarise.
//!
//! A run is a function of (design, workload, seed): the same three produce the same result, bit for bit, except
//! for the wall-clock time.

use crate::device::{AnyDevice, Carrying, NoBytes, Observed};
use crate::drive::Progress;
use crate::error::RunError;
use crate::meter::Meter;
use crate::preparation::State;
use crate::prepared::Shelf;
use crate::result::{ArrivalsResult, Precondition, RunResult};
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{
    Driven, Run, checked, driven, finish, in_whole_passes, kept_payload, mount, opened, share_done, started,
    unbuildable, unprepared,
};
use crate::{Keeping, Watch, commits, device, kept, precondition, transactions};
use nvlab_access::{Attached, MemoryWindow};
use nvlab_design::{Design, Ftl};
use nvlab_units::Time;
use nvlab_workload::{AnyMemoryWorkload, BlockWorkload, Pacing, Work};

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
        let why = "several concurrent streams, and jobs with rates or pauses, bypass the host's software";
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

fn run_transactions(
    design: &Design,
    plan: &RunPlan,
    workload: AnyMemoryWorkload,
    own: Option<AnyMemoryWorkload>,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let clock = std::time::Instant::now();
    if design.path.software.is_some() {
        let why = "loads and stores bypass the host's software";
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

#[cfg(test)]
mod tests;
