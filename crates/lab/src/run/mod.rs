//! One design under one workload: build, precondition, drive, sum up.
//!
//! A run is a function of (design, workload, seed): the same three give the same result, bit for bit, except
//! for the time this computer took.

pub mod device;
pub mod drive;
pub mod meter;
pub mod precondition;
mod summary;

pub use device::{Device, build};
pub use drive::{DriveError, Limit, Progress};
pub use precondition::State;
pub use summary::key;

use crate::design::Design;
use crate::result::RunResult;
use device::Observed;
use meter::Meter;
use nvlab_units::Time;
use nvlab_workload::Workload;
use thiserror::Error;

/// What to run, and how far.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The design's name as the user gave it, with what `--set` changed.
    pub design_name: String,
    /// The workload's text.
    pub workload_text: String,
    /// One line about what the workload really is.
    pub workload_about: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// State of the device before the run.
    pub state: State,
    /// True if the workload's own writes may precondition the device (a generator, not a trace).
    pub precondition_with_workload: bool,
    /// What `--until` said, if it was given.
    pub until: Option<String>,
    /// Where the run ends.
    pub limit: Limit,
    /// Requests the run must serve, if that is known: fewer is an error.
    pub requests_asked: Option<u64>,
}

/// Why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The design cannot be built.
    #[error("design {design}: {why}")]
    Unbuildable {
        /// Its name.
        design: String,
        /// Why.
        why: String,
    },
    /// Preconditioning failed.
    #[error("{design}: while preconditioning ({kind}): {source}")]
    Precondition {
        /// The design.
        design: String,
        /// The state wanted.
        kind: &'static str,
        /// Why.
        source: DriveError,
    },
    /// The device failed a request.
    #[error("{design}: {source}{}", of(*.asked))]
    Failed {
        /// The design.
        design: String,
        /// Why.
        source: DriveError,
        /// Requests asked.
        asked: Option<u64>,
    },
    /// The workload gave fewer requests than it promised.
    #[error("{design}: {served} requests were served, {asked} were asked for")]
    Short {
        /// The design.
        design: String,
        /// Requests served.
        served: u64,
        /// Requests asked.
        asked: u64,
    },
    /// The workload ended before the limit the user set.
    #[error(
        "{design}: the workload ended after {requests} requests and {simulated}, before --until '{until}'; \
         leave --until out, or repeat the trace (loop=N)"
    )]
    Ended {
        /// The design.
        design: String,
        /// Requests served.
        requests: u64,
        /// Simulated time.
        simulated: nvlab_units::Span,
        /// What `--until` said.
        until: String,
    },
    /// No request at all.
    #[error("{design}: the workload has no requests within the limit")]
    Nothing {
        /// The design.
        design: String,
    },
}

fn of(asked: Option<u64>) -> String {
    asked.map(|asked| format!(" (of {asked} asked)")).unwrap_or_default()
}

/// What a run is doing, for a progress bar: a phase and how far it is (1 = done, where that is known).
pub type OnProgress<'a> = &'a mut dyn FnMut(&str, f64) -> bool;

/// Runs a workload on a design. `make` makes the workload for a seed. `on_progress` returns false to stop.
pub fn run<W: Workload>(
    design: &Design,
    plan: &RunPlan,
    make: impl Fn(u64) -> W,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let clock = std::time::Instant::now();
    let name = || plan.design_name.clone();
    let mut device = build(design, plan.seed).map_err(|why| RunError::Unbuildable { design: name(), why })?;
    // Another seed, so that the device is not prepared with the very requests it will be asked.
    let own = plan.precondition_with_workload.then(|| make(plan.seed ^ 0x5072_6563_6f6e_6400));
    let prepared = precondition::precondition(&mut device, plan.state, own, plan.seed, |phase, share| {
        on_progress(phase, share)
    });
    let (prepared, origin) = prepared.map_err(|source| RunError::Precondition {
        design: name(),
        kind: plan.state.name(),
        source,
    })?;
    device.controller_mut().reset_stats();
    device.reset_stats();
    let mut workload = make(plan.seed);
    let share = |progress: &Progress| share_done(plan, progress, origin);
    let mut meter = Meter::new(origin, device.counters(), plan.requests_asked, |progress: &Progress| {
        on_progress("running", share(progress))
    });
    let driven = drive::drive(&mut device, &mut workload, origin, design.path.queue, &plan.limit, &mut meter);
    let failed = |source| RunError::Failed { design: name(), source, asked: plan.requests_asked };
    let progress = driven.map_err(failed)?;
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
        && progress.now.since(origin) < limit.time;
    if let (true, Some(until)) = (short, &plan.until) {
        let (requests, simulated) = (progress.requests, progress.now.since(origin));
        return Err(RunError::Ended { design: name(), requests, simulated, until: until.clone() });
    }
    // What is queued at the end belongs to the run: shares of busy time are over the time until it is done.
    let busy_span = device.controller_mut().idle_at(progress.now).since(origin);
    let (totals, series) = meter.finish(device.counters(), progress.now);
    let mut result =
        summary::summarize(design, plan, &device, prepared, &totals, progress.now.since(origin), busy_span);
    result.series = series;
    result.wall_s = clock.elapsed().as_secs_f64();
    Ok(result)
}

fn share_done(plan: &RunPlan, progress: &Progress, origin: Time) -> f64 {
    let limit = &plan.limit;
    let of = |done: u64, all: u64| if all == u64::MAX { 0.0 } else { done as f64 / all.max(1) as f64 };
    [
        of(progress.requests, plan.requests_asked.unwrap_or(limit.requests).min(limit.requests)),
        of(progress.bytes, limit.bytes),
        of(progress.written_bytes, limit.written_bytes),
        of(progress.now.since(origin).ps(), limit.time.ps()),
    ]
    .into_iter()
    .fold(0.0, f64::max)
}
