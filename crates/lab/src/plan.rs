//! From texts to runs: what a user asks for, read and checked before anything is simulated.
//!
//! 1. What is wrong with a workload or a limit is said before the first run begins.
//! 2. The key of a task names everything its result depends on, the content of trace and job files included:
//!    a result with the same key may be reused.
//! 3. A trace is read once, however many tasks replay it; each running task holds one copy of it.
//!
//! | module | what |
//! |---|---|
//! | [`source`] | a workload, read from its text, with what it says about itself |
//! | [`until`] | where a run ends: `60 s`, `1e6 io`, `2 TiB`, `3 x capacity` |
//! | [`cache`] | traces, converted once to our column file |

pub mod cache;
pub mod source;
pub mod until;

#[cfg(test)]
mod tests;

pub use source::Source;
pub use until::Until;

use crate::design::{Design, Ftl};
use crate::result::RunResult;
use crate::run::{self, RunError, RunPlan, State};
use nvlab_workload::WorkloadError;
use source::OnMemory;
use until::Promise;

/// What a user settles besides the design and the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seed of every random choice.
    pub seed: u64,
    /// Where the run ends; `None`: where the workload ends, else after one capacity.
    pub until: Option<Until>,
    /// State of the device before the run.
    pub state: State,
}

/// One run, ready to begin.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The design.
    pub design: Design,
    /// What to run, and how far.
    pub plan: RunPlan,
    /// Names everything the result depends on.
    pub key: String,
    /// What the user should know about the workload on this design.
    pub notes: Vec<String>,
    source: &'a Source,
}

impl<'a> Task<'a> {
    /// Opens a workload on a design, to see whether it fits. `design_name` is the design's name as the user gave
    /// it, with what `--set` changed.
    pub fn new(
        design: Design,
        design_name: String,
        source: &'a Source,
        settings: Settings,
    ) -> Result<Task<'a>, WorkloadError> {
        let capacity = design.capacity_bytes();
        let memory = matches!(design.ftl, Ftl::Envy(_));
        let transactions =
            source.open_transactions(capacity, settings.seed, settings.seed).filter(|_| memory);
        let (about, notes, promise) = match transactions {
            Some(opened) => {
                let opened = opened?;
                let promise = Promise::of_transactions(settings.until, &opened.workload, capacity);
                (opened.about, Vec::new(), promise)
            }
            // Transactions on a block device are refused here.
            None => {
                let opened = source.open(capacity, settings.seed)?;
                let promise = Promise::of_requests(settings.until, source, &opened.workload, capacity);
                (opened.about, opened.notes, promise)
            }
        };
        let plan = RunPlan {
            design_name,
            workload_text: source.text().to_string(),
            workload_about: format!("{about}, {}", promise.about),
            seed: settings.seed,
            state: settings.state,
            precondition_with_workload: source.may_precondition(),
            until: settings.until.map(Until::argument),
            limit: promise.limit,
            requests_asked: promise.requests,
        };
        let key = keyed(&run::key(&design, &plan), source.hash());
        Ok(Task { design, plan, key, notes, source })
    }

    /// Runs it. `on_progress` returns false to stop.
    pub fn run(&self, on_progress: run::OnProgress<'_>) -> Result<RunResult, RunError> {
        let capacity_bytes = self.design.capacity_bytes();
        let seed = self.plan.seed;
        let mut result = match self.source.open_transactions(capacity_bytes, seed, seed ^ run::OWN_SEED) {
            Some(opened) => {
                let OnMemory { workload, own, .. } = opened.unwrap_or_else(reopened);
                run::run_transactions(&self.design, &self.plan, workload, own, on_progress)?
            }
            None => {
                let open = |seed| self.source.open(capacity_bytes, seed).unwrap_or_else(reopened);
                let make = |seed| open(seed).workload;
                run::run(&self.design, &self.plan, make, on_progress)?
            }
        };
        result.key = self.key.clone();
        if result.flush.count > 0 && !self.source.is_trace() {
            // A generator promises reads, writes and trims; its flushes come on top.
            result.requests_asked = None;
        }
        Ok(result)
    }
}

fn reopened<T>(error: WorkloadError) -> T {
    panic!("it was opened before, with another seed: {error}")
}

/// The key of a run whose workload has a file: its content is part of what the result depends on.
fn keyed(key: &str, hash: Option<u64>) -> String {
    match hash {
        None => key.to_string(),
        Some(hash) => {
            format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{key}\n{hash:016x}").as_bytes()))
        }
    }
}
