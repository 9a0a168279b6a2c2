//! From texts to runs: the user's parameters, read and checked before anything is simulated.
//!
//! 1. A mistake in a workload or a limit is reported before the first run begins.
//! 2. The key of a task names everything its result depends on, including the contents of trace and job files: a
//!    result with the same key may be reused.
//! 3. A trace is read once, however many tasks replay it, and again only if all traces together take much memory;
//!    each running task holds one copy of it. Any other workload is opened once for each task.
//!
//! | module | what |
//! |---|---|
//! | [`Named`] | a design with its overrides |
//! | [`source`] | a workload, read from its text, and one line that describes it |
//! | `length` | whether there is enough simulated time for it |
//! | [`until`] | where a run ends: `60 s`, `1e6 io`, `2 TiB`, `3 x capacity`, `2%` |
//! | [`cache`] | traces, converted once to our column file |

pub mod cache;
mod length;
mod named;
pub mod source;
pub mod until;

#[cfg(test)]
mod tests;

pub use named::Named;
pub use named::split;
pub use source::Source;
use source::{own_of, workload_key};
pub use until::Until;

use crate::error::RunError;
use crate::preparation::{Preparation, State};
use crate::prepared::Shelf;
use crate::result::{Precondition, RunResult};
use crate::run_plan::RunPlan;
use crate::theory;
use crate::watched::{Onlooker, run_watched};
use crate::{Keeping, Limit};
use nvlab_design::{Design, Ftl, Part};
use nvlab_units::quantity::display_bytes;
use nvlab_workload::{AnyBlockWorkload, Work, WorkloadError};
use source::Opened;
use std::sync::Arc;
use until::Promise;

/// What a user chooses besides the design and the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seed of the measured requests.
    pub seed: u64,
    /// Where the run ends; `None`: where the workload ends, else after one capacity.
    pub until: Option<Until>,
    /// How the device is prepared.
    pub state: Preparation,
}

impl Settings {
    /// Those of the repetition with this number, 0 for the first: another seed of what is measured and of the preparation.
    pub fn repeated(self, number: u64) -> Settings {
        Settings { seed: self.seed + number, state: self.state.repeated(number), ..self }
    }
}

/// One run, ready to begin.
#[derive(Clone, Debug)]
pub struct Task {
    /// The design.
    pub design: Design,
    /// What to run, and how far.
    pub plan: RunPlan,
    /// Names everything the result depends on.
    pub key: String,
    /// What the user should know about the workload on this design.
    pub notes: Vec<String>,
    source: Arc<Source>,
    /// The opened workload; `None` for a trace, whose replay is made from the shared columns when its run begins, so that
    /// waiting tasks hold no copy.
    work: Option<Work>,
}

impl Task {
    /// Opens a workload on a design, to see whether it fits. `design_name` is the design's name as the user wrote
    /// it, with the changes of `--set`.
    pub fn new(
        design: Design,
        design_name: String,
        source: &Arc<Source>,
        settings: Settings,
    ) -> Result<Task, WorkloadError> {
        let capacity = design.capacity_bytes();
        // A workload that asks for what the design does not serve is refused here.
        let Opened { work, about, mut notes } =
            source.open(capacity, design.ftl.kind().serves(), settings.seed)?;
        let settings = Settings { state: held(source, settings.state, capacity)?, ..settings };
        let filled = settings.state.fill_bytes(capacity);
        if settings.state.span_bytes(capacity) < capacity || settings.state.state == State::LogFull {
            // What does not fit in the part that is written is refused here, and so is a log that is not there.
            own_of(&design, source, &settings.state)?;
        }
        if settings.state.is_left(work.footprint().end, capacity) {
            notes.push(format!(
            "the workload reaches beyond the {} that the device was filled with: reads of unwritten addresses return zeros \
             without a flash access",
                display_bytes(filled)
            ));
        }
        notes.extend(effort(&design, &design_name, &work, &settings.state));
        let promise = Promise::new(settings.until, &*work, source.write_share(), work.unit(), capacity);
        if !source.is_trace() {
            length::check(&work, &promise.limit, source.text())?;
        }
        let plan = RunPlan {
            design_name,
            workload_text: source.text().to_string(),
            workload_about: format!("{about}, {}", promise.about),
            seed: settings.seed,
            state: settings.state,
            until: settings.until.map(Until::argument),
            limit: promise.limit,
            requests_asked: promise.requests,
        };
        let key = keyed(&crate::key(&design, &plan), source.hash());
        let work = (!source.is_trace()).then_some(work);
        Ok(Task { design, plan, key, notes, source: source.clone(), work })
    }

    /// Bytes of memory that its devices take, about: of a recording that may be too short, those of its other bound too.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let one = crate::steps::memory_bytes(&self.design, self.work.as_ref(), &self.plan.state);
        match self.source.is_trace() && self.plan.state.state == State::Steady {
            true => 2 * one,
            false => one,
        }
    }

    /// Its workload.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Runs it. `on_progress` returns false to stop.
    pub fn run(&self, on_progress: crate::OnProgress<'_>) -> Result<RunResult, RunError> {
        self.run_with(None, on_progress)
    }

    /// The same; it may begin with a prepared device of an earlier run, and keeps its own.
    pub fn run_with(
        &self,
        shelf: Option<&Shelf>,
        on_progress: crate::OnProgress<'_>,
    ) -> Result<RunResult, RunError> {
        let (work, own) = self.works()?;
        let workload = workload_key(&self.source);
        let keeping = shelf.map(|shelf| Keeping { shelf, workload: &workload });
        crate::run(&self.design, &self.plan, work, own, keeping, on_progress).map(|result| self.named(result))
    }

    /// Runs it with an observer, who may change it: the result is then not that of the key.
    pub fn run_watched(
        &self,
        onlooker: &mut dyn Onlooker,
        on_progress: crate::OnProgress<'_>,
    ) -> Result<RunResult, RunError> {
        let ran = run_watched(&self.design, &self.plan, self.works()?, onlooker, on_progress);
        ran.map(|result| self.named(result))
    }

    /// The workload, and its copy that prepares the device.
    fn works(&self) -> Result<(Work, Option<Work>), WorkloadError> {
        let (capacity, serves) = (self.design.capacity_bytes(), self.design.ftl.kind().serves());
        let work = match &self.work {
            Some(work) => work.clone(),
            None => self.source.open(capacity, serves, self.plan.seed)?.work,
        };
        Ok((work, own_of(&self.design, &self.source, &self.plan.state)?))
    }

    fn named(&self, mut result: RunResult) -> RunResult {
        result.key = self.key.clone();
        if result.flush.count > 0 && !self.source.is_trace() {
            // The number of requests of a generator does not include its flushes.
            result.requests_asked = None;
        }
        if let Some(in_use) = self.source.in_use() {
            let state = Precondition { in_use: Some(in_use.to_string()), ..result.precondition };
            result.precondition = Precondition { about: state.line(self.design.held_bytes()), ..state };
        }
        result
    }
}

/// The requests of a workload on an open device, and their end.
pub fn batch(
    design: &Design,
    source: &Source,
    until: Option<Until>,
    seed: u64,
) -> Result<(AnyBlockWorkload, Limit), WorkloadError> {
    let capacity = design.capacity_bytes();
    let work = source.open(capacity, design.ftl.kind().serves(), seed)?.work;
    let promise = Promise::new(until, &*work, source.write_share(), work.unit(), capacity);
    let requests = work.requests().ok_or_else(|| WorkloadError::DoesNotFit {
        what: format!("workload '{}'", source.text()),
        reason: "a held device serves block requests, not transactions".to_string(),
    })?;
    Ok((requests, promise.limit))
}

/// A preparation that leaves what the workload says is in use: where the rest is trimmed, only that is filled.
fn held(source: &Source, state: Preparation, capacity: u64) -> Result<Preparation, WorkloadError> {
    let Some(in_use) = source.in_use() else { return Ok(state) };
    let refused =
        |reason: String| WorkloadError::DoesNotFit { what: format!("workload '{}'", source.text()), reason };
    let bytes = in_use.bytes(capacity).map_err(refused)?;
    if state.fill < 1.0 || state.span.is_some() {
        let reason =
            "used= and fill= or span= of --precondition both set what the device holds: keep one of them";
        return Err(refused(reason.to_string()));
    }
    match in_use.trimmed && state.state != State::Fresh {
        true => Ok(state.filling(bytes, capacity)),
        false => Ok(state),
    }
}

/// Approximate number of programs of a unit that are simulated in a second of processor time.
const PROGRAMS_PER_S: f64 = 8e6;
/// Minutes of processor time that are said beforehand.
const MINUTES_SAID: f64 = 0.5;
/// Approximate number of windows of half a capacity until they agree, for devices written at full size.
const WINDOWS: f64 = 8.0;

/// Steps that take long before measurement begins, with the reason and a faster alternative.
fn effort(design: &Design, name: &str, work: &Work, state: &Preparation) -> Option<String> {
    let Work::Requests(workload) = work else { return None };
    let medium = design.media.get(design.ftl.medium()).map(|medium| &medium.part);
    let erases = matches!(medium, Some(Part::Nand(_) | Part::Nor(_)));
    if state.state != State::Steady || !erases {
        return None;
    }
    let (raw, unit) = (design.raw_bytes() as f64, design.ftl.unit_bytes() as f64);
    // Two erases of each block, and the windows; addresses that are drawn cost as many programs as FIFO's closed form says.
    let filled = state.fill_bytes(design.capacity_bytes()) as f64;
    let times = match workload.draws() {
        Some(_) => 1.0 + theory::cleaning_cost(theory::fifo_live_share((filled / raw).clamp(0.01, 0.99))),
        None => 1.0,
    };
    let units = (2.0 * raw + WINDOWS * filled / 2.0 * (times + map_writes(design))) / unit;
    let minutes = units / PROGRAMS_PER_S / 60.0;
    if minutes < MINUTES_SAID {
        return None;
    }
    let why = match state.twin {
        true => crate::why_full_size(design, &**workload)?,
        false => "twin=no",
    };
    Some(format!(
        "{name}: reaching its steady state takes about {} of processor time, because it is written at full size: {why}. \
             Faster: --precondition full, or a smaller drive of the same proportions (nvlab design scale)",
        if minutes < 1.5 { "60 s".to_string() } else { format!("{minutes:.0} minutes") }
    ))
}

/// Programs of the map's own for each unit that the host writes, at most: one where part of the map is in flash.
fn map_writes(design: &Design) -> f64 {
    let Ftl::Page(page) = &design.ftl else { return 0.0 };
    if page.config(0).demand.is_some() { 1.0 } else { 0.0 }
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
