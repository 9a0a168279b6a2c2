//! The engine: finds stored results, runs what is missing, stores the new results, and can be interrupted and
//! resumed. The command line, a sweep and a worker of a cluster all call it.
//!
//! 1. The same key is the same run: a run whose result is stored is not simulated again unless forced.
//! 2. A result is stored as soon as its run is done, so that an interruption loses only the runs in progress.
//! 3. If a forced run's result differs from the stored one, the old one is renamed; nothing is lost.
//! 4. Runs whose devices do not fit in memory together are executed one after the other.
//! 5. It prints nothing: it reports [`Event`]s.

mod room;

use crate::columns_out::{read_run, run_dirs, write_run_dir};
use crate::device::memory;
use crate::error::RunError;
use crate::plan::{Source, Task};
use crate::prepared::Shelf;
use crate::result::RunResult;
use nvlab_workload::WorkloadError;
use room::Room;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use thiserror::Error;

/// Traces stay in memory between their runs as long as all but the one last used take at most this.
const TRACES_BYTES_MAX: u64 = 256 << 20;

/// Finds, runs and keeps.
#[derive(Debug)]
pub struct Engine {
    out: Option<PathBuf>,
    elsewhere: Vec<PathBuf>,
    jobs: usize,
    cache: Option<PathBuf>,
    shelf: Option<Shelf>,
    stop: Arc<AtomicBool>,
    sources: Mutex<Sources>,
}

/// Workloads by their texts, each read by whoever needs it first; `None` until then.
type Sources = HashMap<String, Arc<Mutex<Option<Arc<Source>>>>>;

/// A run that is done.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its result.
    pub result: RunResult,
    /// Where it is kept, if it is.
    pub dir: Option<PathBuf>,
    /// It was already among the results.
    pub reused: bool,
}

/// What happens to a task.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Its result was already kept, in this folder.
    Found(&'a Path),
    /// Its run begins.
    Began,
    /// Its run is in a phase, of which this share is done if that is known (1 = all).
    At(&'a str, f64),
    /// Its run has ended, successfully or not.
    Ended,
    /// It was run again, with the same result.
    Same,
    /// It was run again with another result; the previous one is now in this folder.
    SetAside(&'a Path),
    /// Its result is kept in this folder.
    Kept(&'a Path),
}

/// Follows tasks: called with a task's number and what happens to it, from the thread that runs it.
pub type Observer<'a> = &'a (dyn Fn(usize, Event<'_>) + Sync);

/// Why a task has no result.
#[derive(Debug, Error)]
pub enum TaskError {
    /// Its run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Its result cannot be kept.
    #[error("cannot store results in {}: {source}", dir.display())]
    Keep {
        /// Where.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its run failed on another machine.
    #[error("{0}")]
    Elsewhere(String),
    /// The engine was stopped.
    #[error("interrupted")]
    Stopped,
}

/// Why many tasks have no results at all.
#[derive(Debug, Error)]
pub enum EngineError {
    /// Results cannot be kept.
    #[error("cannot store results in {}: {source}", dir.display())]
    Keep {
        /// Where.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No threads to run on.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// It was stopped.
    #[error("interrupted: {finished} of {asked} runs were finished")]
    Stopped {
        /// Runs whose results are kept.
        finished: usize,
        /// Runs that were asked for.
        asked: usize,
    },
}

impl Engine {
    /// Keeps results below `out`, if there is one, and runs `jobs` tasks at a time; traces are converted once into the folder
    /// `cache`. It stops as soon as `stop` is true.
    pub fn new(out: Option<PathBuf>, jobs: usize, cache: Option<PathBuf>, stop: Arc<AtomicBool>) -> Engine {
        Engine { out, elsewhere: Vec::new(), jobs, cache, shelf: None, stop, sources: Mutex::default() }
    }

    /// Also looks for results in these folders: those of shards that ran elsewhere.
    pub fn and_results_in(mut self, folders: Vec<PathBuf>) -> Engine {
        self.elsewhere = folders;
        self
    }

    /// Keeps prepared devices, and uses those kept.
    pub fn and_devices_on(mut self, shelf: Shelf) -> Engine {
        self.shelf = Some(shelf);
        self
    }

    /// Where prepared devices are kept, if they are.
    pub fn shelf(&self) -> Option<&Shelf> {
        self.shelf.as_ref()
    }

    /// The workload described by a text, read once.
    pub fn source(&self, text: &str) -> Result<Arc<Source>, WorkloadError> {
        let place = {
            let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
            sources.entry(text.to_string()).or_default().clone()
        };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &*place {
            return Ok(source.clone());
        }
        let source = Source::read(text, self.cache.as_deref())?;
        self.release_all_but(&source);
        *place = Some(source.clone());
        Ok(source)
    }

    /// Releases traces that are not being read, except one, if they take too much memory.
    fn release_all_but(&self, last: &Arc<Source>) {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let others = sources.values().filter_map(|source| source.try_lock().ok()?.clone());
        let read: Vec<Arc<Source>> = others.filter(|source| !Arc::ptr_eq(source, last)).collect();
        if read.iter().map(|source| source.held_bytes()).sum::<u64>() > TRACES_BYTES_MAX {
            read.iter().for_each(|source| source.release());
        }
    }

    /// The result of a task, if it is kept.
    pub fn find(&self, task: &Task) -> Option<Done> {
        self.out.iter().chain(&self.elsewhere).find_map(|out| find(out, task))
    }

    /// Runs tasks and returns what `Made` keeps of the outcome of each, in their order; with `force` also those whose results
    /// are kept.
    pub fn run<Made: From<Done> + Send + Sync>(
        &self,
        tasks: &[&Task],
        force: bool,
        observer: Observer<'_>,
    ) -> Result<Vec<Result<Made, TaskError>>, EngineError> {
        // Checked before hours of simulation, not after.
        if let Some(out) = &self.out {
            fs::create_dir_all(out).map_err(|source| EngineError::Keep { dir: out.clone(), source })?;
        }
        let threads = self.jobs.min(tasks.len()).max(1);
        // In the order of the tasks, so that what is finished after an interruption is what was asked for first.
        let slots: Vec<OnceLock<Result<Made, TaskError>>> = tasks.iter().map(|_| OnceLock::new()).collect();
        let (room, next) = (Room::new(memory::available()), AtomicUsize::new(0));
        // Threads of their own: one of a pool that waits for a part of its work may begin another task on top of the first, which
        // then waits for the memory that the first has taken.
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(number) else { break };
                let ran = self.one(task, force, &room, &|event| observer(number, event));
                let _ = slots[number].set(ran.map(Made::from));
            }
        };
        std::thread::scope(|scope| {
            let begin = |_| std::thread::Builder::new().spawn_scoped(scope, work).map(drop);
            (0..threads).try_for_each(begin).map_err(|error| EngineError::Threads(error.to_string()))
        })?;
        let outcomes: Vec<_> = slots.into_iter().filter_map(OnceLock::into_inner).collect();
        if outcomes.iter().any(|outcome| matches!(outcome, Err(TaskError::Stopped))) {
            let finished = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            return Err(EngineError::Stopped { finished, asked: tasks.len() });
        }
        Ok(outcomes)
    }

    fn one(
        &self,
        task: &Task,
        force: bool,
        room: &Room,
        tell: &dyn Fn(Event<'_>),
    ) -> Result<Done, TaskError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TaskError::Stopped);
        }
        let kept = self.find(task);
        if let (Some(done), false) = (&kept, force) {
            done.dir.iter().for_each(|dir| tell(Event::Found(dir)));
            return Ok(done.clone());
        }
        let taken = room.take(task.memory_bytes());
        if self.stop.load(Ordering::Relaxed) {
            return Err(TaskError::Stopped);
        }
        tell(Event::Began);
        let ran = task.run_with(self.shelf.as_ref(), &mut |phase, share| {
            tell(Event::At(phase, share));
            !self.stop.load(Ordering::Relaxed)
        });
        drop(taken);
        tell(Event::Ended);
        self.release_all_but(task.source());
        let result = ran.map_err(|error| match error.is_stopped() {
            true => TaskError::Stopped,
            false => TaskError::Run(error),
        })?;
        let Some(out) = &self.out else { return Ok(Done { result, dir: None, reused: false }) };
        let keep = |source| TaskError::Keep { dir: out.clone(), source };
        let before = kept.as_ref().and_then(|kept| Some((kept, kept.dir.as_ref()?)));
        if let Some((before, dir)) = before.filter(|(_, dir)| dir.starts_with(out)) {
            match set_aside(&before.result, dir, &result).map_err(keep)? {
                None => tell(Event::Same),
                Some(aside) => tell(Event::SetAside(&aside)),
            }
        }
        let dir = write_run_dir(out, &result).map_err(keep)?;
        tell(Event::Kept(&dir));
        Ok(Done { result, dir: Some(dir), reused: false })
    }
}

/// The same run among the results below a folder.
fn find(out: &Path, task: &Task) -> Option<Done> {
    run_dirs(out, &task.plan.design_name, &task.key).into_iter().find_map(|dir| {
        let result = read_run(&dir).ok()?;
        let same = result.key == task.key && result.design.name == task.plan.design_name;
        same.then_some(Done { result, dir: Some(dir), reused: true })
    })
}

/// Makes way for the result of a repeated run: an equal result stays, a different one is renamed to the folder returned.
fn set_aside(before: &RunResult, dir: &Path, result: &RunResult) -> io::Result<Option<PathBuf>> {
    let timeless = |run: &RunResult| RunResult { wall_s: 0.0, ..run.clone() };
    if timeless(before) == timeless(result) {
        return Ok(None);
    }
    let mut names = (1..).map(|number| PathBuf::from(format!("{}.before-{number}", dir.display())));
    let aside = names.find(|path| !path.exists()).expect("there are more numbers than folders");
    fs::rename(dir, &aside)?;
    Ok(Some(aside))
}
