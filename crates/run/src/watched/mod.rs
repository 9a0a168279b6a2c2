//! A run that is observed and controlled in progress: slowed down, paused, at another rate, without power.
//!
//! 1. Without intervention it is the same run: the same requests at the same simulated times, the same result.
//! 2. Its time is simulated time like that of any run. An [`Onlooker`] that waits for a wall clock does so inside its
//!    calls.
//! 3. After a power cut measurement begins anew, as do the counts of a controller.
//!
//! | module | what |
//! |---|---|
//! | `sight` | what a run shows, and what an observer can control |
//! | `tour` | a watched run in progress: measurement and power cuts |
//! | `requests` | requests for blocks |
//! | `seen` | several streams, a recorded program, requests through the host's software: an observed device |
//! | `words` | transactions of loads and stores on a memory |

mod requests;
mod seen;
mod sight;
mod tour;
mod words;

pub use sight::{Controls, Onlooker, Sight, Step};

use super::device::{self, BuildError, InMemory, Media, NoBytes};
use super::precondition;
use crate::error::RunError;
use crate::preparation::State;
use crate::result::RunResult;
use crate::run_plan::{OnProgress, RunPlan};
use crate::steps::{keeps_payload, unbuildable};
use nvlab_design::{Design, Ftl};
use nvlab_workload::{AnyMemoryWorkload, BlockWorkload, Work};

/// Runs a workload on a design in sight of an onlooker.
pub fn run_watched(
    design: &Design,
    plan: &RunPlan,
    works: (Work, Option<Work>),
    onlooker: &mut dyn Onlooker,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    let unwatched = |why| RunError::Unwatched { design: plan.design_name.clone(), why };
    let mut workload = match works.0 {
        Work::Requests(workload) => workload,
        Work::Accesses(workload) => {
            let own = works.1.and_then(Work::accesses);
            return watch_words(design, plan, (workload, own), onlooker, on_progress);
        }
        Work::Commits(_) => {
            return Err(unwatched(
                "transactions on recoverable memory have no live page: a log and its data file are not a device whose state can be shown",
            ));
        }
    };
    let mut own = works.1.and_then(Work::requests);
    let own = own.as_mut().map(|own| &mut **own as &mut dyn BlockWorkload);
    let (seed, workload) = (plan.state.device_seed(plan.seed), &mut *workload);
    let bytes = InMemory { filled: plan.state.state != State::Fresh };
    let staged = design.path.software.is_some();
    if staged && workload.tenants().is_some() {
        let why = "several concurrent streams, and jobs with rates or pauses, bypass the host's software";
        return Err(RunError::Unstaged { design: plan.design_name.clone(), why });
    }
    if staged || workload.program().is_some() || workload.tenants().is_some() {
        let keeps = keeps_payload(design) && workload.carries_payload();
        let device =
            device::any(design, seed, keeps.then_some(bytes)).map_err(|why| unbuildable(plan, why))?;
        return seen::Watched { design, plan, workload, own, onlooker, on_progress }.on(device);
    }
    // Only from media that keep bytes can a device recover, so that its power can fail.
    let (device, has_plug) = match device::any(design, seed, Some(bytes)) {
        Err(BuildError::Memory(_)) => (device::any(design, seed, None), false),
        device => (device, true),
    };
    let device = device.map_err(|why| unbuildable(plan, why))?;
    requests::Watched { design, plan, workload, own, has_plug, onlooker, on_progress }.on(device)
}

/// The same for transactions of loads and stores on a memory.
fn watch_words(
    design: &Design,
    plan: &RunPlan,
    (workload, own): (AnyMemoryWorkload, Option<AnyMemoryWorkload>),
    onlooker: &mut dyn Onlooker,
    on_progress: OnProgress<'_>,
) -> Result<RunResult, RunError> {
    if design.path.software.is_some() {
        let why = "loads and stores bypass the host's software";
        return Err(RunError::Unstaged { design: plan.design_name.clone(), why });
    }
    let mut stores = own.map(|own| precondition::stores(own, design.ftl.unit_bytes()));
    let own = stores.as_mut().map(|stores| stores as &mut dyn BlockWorkload);
    let (backing, has_plug) = backing(design, plan);
    let media: &Media<'_> = &backing;
    let watched = words::Watched { design, plan, workload, own, has_plug, onlooker, on_progress };
    match (&design.ftl, has_plug) {
        (Ftl::Envy(envy), true) => watched.on_envy(envy, media),
        (Ftl::Envy(envy), false) => watched.on_envy(envy, &NoBytes),
        (Ftl::Cached(lines), true) => watched.on_lines(lines, media),
        (Ftl::Cached(lines), false) => watched.on_lines(lines, &NoBytes),
        _ => Err(RunError::NotAMemory { design: plan.design_name.clone() }),
    }
}

/// Media that store bytes, and whether they fit in this computer's memory: only such a device can recover from a
/// power cut.
fn backing(design: &Design, plan: &RunPlan) -> (InMemory, bool) {
    let backing = InMemory { filled: plan.state.state != State::Fresh };
    let seed = plan.state.device_seed(plan.seed);
    let fits = !matches!(device::any(design, seed, Some(backing)), Err(BuildError::Memory(_)));
    (backing, fits)
}

#[cfg(test)]
mod tests;
