//! Runs as shown on the command line: bars, notes, where results are stored, how to continue after an interruption.

use crate::args::Simulation;
use crate::failure::{Failure, Wrong};
use crate::output::{Output, quoted};
use crate::progress::{Bar, Progress};
use nvlab_report::Assertion;
use nvlab_run::engine::{Done, Engine, EngineError, Event, TaskError};
use nvlab_run::metric;
use nvlab_run::plan::{Named, Settings, Source, Task};
use nvlab_run::prepared::Shelf;
use nvlab_workload::WorkloadError;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A recorded trace that comes with nvlab.
const TRACE: &str = "traces/pgbench-ext4.blkparse.zst";

/// The message when a run has no workload: three commands that work as they are.
fn examples(verb: &str, designs: &str) -> String {
    let third = match Path::new(TRACE).exists() {
        true => (format!("{TRACE} compact"), "requests recorded from a database"),
        false => {
            ("'hotcold hot=10/90 read=50% qd=8'".to_string(), "10 % of the blocks get 90 % of the accesses")
        }
    };
    let third = (if third.0.starts_with('\'') { third.0 } else { quoted(&third.0) }, third.1);
    let all = [
        ("'uniform bs=4KiB qd=32'".to_string(), "random writes of 4 KiB, 32 in flight"),
        ("'zipf read=70% rate=2k/s'".to_string(), "skewed accesses, 2000 per second"),
        third,
    ];
    let width = all.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
    let lines = all.map(|(text, about)| format!("  nvlab {verb} {designs} -w {text:width$}   {about}\n"));
    format!(
        "no workload given, e.g.:\n\n{}\n`nvlab explain workloads` lists all kinds, keys and trace formats.",
        lines.concat()
    )
}

/// The engine of a verb. Unless nothing is to be cached, traces are converted once into a folder beside the results, and
/// prepared devices are kept in that of the user.
pub fn engine(output: &Output) -> Engine {
    let cache = output.cache.as_ref().map(|_| output.out.join(".cache"));
    let engine = Engine::new(Some(output.out.clone()), output.jobs, cache, interrupted().clone());
    match &output.cache {
        Some((folder, bytes_max)) => engine.and_devices_on(Shelf::new(folder.clone(), *bytes_max)),
        None => engine,
    }
}

/// The text of the workload of a simulation, if it can be one.
fn workload_text(simulation: &Simulation, verb: &str, designs: &str) -> Result<String, Failure> {
    if simulation.workload.is_empty() {
        return Err(Failure::Input(examples(verb, designs)));
    }
    let text = simulation.workload.join(" + ");
    Source::check(&text)?;
    Ok(text)
}

/// Reads a workload.
fn workload(output: &Output, engine: &Engine, text: &str) -> Result<Arc<Source>, Failure> {
    let source = engine.source(text)?;
    source.asides().iter().for_each(|aside| output.warn(aside));
    Ok(source)
}

/// The tasks of each of several designs, `repeat` with seeds and preparations of their own, or why a design cannot run the workload.
pub fn tasks(
    output: &Output,
    designs: &[Named],
    source: &Arc<Source>,
    simulation: &Simulation,
    repeat: u32,
) -> Result<Vec<Result<Vec<Task>, WorkloadError>>, Failure> {
    if simulation.seed.checked_add(u64::from(repeat)).is_none() {
        return Err(Failure::Input(format!(
            "there are fewer than {repeat} seeds from {} on",
            simulation.seed
        )));
    }
    let mut said: Vec<String> = Vec::new();
    let mut of = |named: &Named| {
        warn_of(output, named);
        let first =
            Settings { seed: simulation.seed, until: simulation.until, state: simulation.precondition };
        let task =
            |number| Task::new(named.design.clone(), named.name.clone(), source, first.repeated(number));
        let tasks = (0..u64::from(repeat)).map(task).collect::<Result<Vec<Task>, _>>()?;
        for note in tasks.iter().flat_map(|task| &task.notes) {
            if !said.contains(note) {
                output.warn(note);
                said.push(note.clone());
            }
        }
        Ok(tasks)
    };
    Ok(designs.iter().map(&mut of).collect())
}

/// What a command names: metrics, conditions, designs and a workload.
pub struct Asked<'a> {
    pub verb: &'a str,
    pub metrics: &'a [String],
    pub conditions: &'a [String],
    pub designs: &'a [String],
    pub simulation: &'a Simulation,
}

/// [`Asked`], read and checked.
pub struct Inputs {
    pub conditions: Vec<Assertion>,
    pub designs: Vec<Named>,
    pub source: Arc<Source>,
}

impl Asked<'_> {
    /// Reads all of it, or says all that is wrong. A trace is read only if nothing is.
    pub fn read(&self, output: &Output, engine: &Engine) -> Result<Inputs, Failure> {
        fn all<T>(found: Vec<Option<T>>) -> Option<Vec<T>> {
            found.into_iter().collect()
        }
        let (mut wrong, input) = (Wrong::default(), Failure::Input);
        let metrics = self.metrics.iter().map(|name| wrong.take(metric::find(name).map_err(input)));
        let metrics = metrics.collect();
        let conditions = self.conditions.iter();
        let conditions = conditions.map(|text| wrong.take(Assertion::parse(text).map_err(input))).collect();
        let designs = self.designs.iter();
        let designs = designs.map(|text| wrong.take(Named::load(text, &self.simulation.set))).collect();
        let checked = all(metrics).and(all(conditions)).zip(all(designs));
        let shown: Vec<String> = self.designs.iter().map(|text| quoted(text)).collect();
        let text = wrong.take(workload_text(self.simulation, self.verb, &shown.join(" ")));
        let (Some((conditions, designs)), Some(text)) = (checked, text) else { return Err(wrong.into()) };
        Ok(Inputs { conditions, designs, source: workload(output, engine, &text)? })
    }
}

/// Warns of values of a design that are hardly meant.
pub fn warn_of(output: &Output, named: &Named) {
    named.doubts().iter().for_each(|what| output.warn(format_args!("{}: {what}", named.name)));
}

/// Becomes true when the user wants the program to end.
pub fn interrupted() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(Arc::default)
}

/// Runs all tasks and returns the outcome of each, in their order.
pub fn run_all(
    output: &Output,
    engine: &Engine,
    tasks: &[&Task],
    force: bool,
) -> Result<Vec<Result<Done, TaskError>>, Failure> {
    let titles: Vec<String> = tasks.iter().map(|task| title(task, tasks)).collect();
    run_each(output, engine, tasks, &titles, force)
}

/// Runs tasks under their titles and returns the outcome of each; an interruption ends all.
pub fn run_each<Made: From<Done> + Send + Sync>(
    output: &Output,
    engine: &Engine,
    tasks: &[&Task],
    titles: &[String],
    force: bool,
) -> Result<Vec<Result<Made, TaskError>>, Failure> {
    let width = titles.iter().map(|title| title.chars().count()).max().unwrap_or(0);
    let progress = Progress::new(output.progress, width, output.progress_lines);
    let bars: Mutex<HashMap<usize, Bar>> = Mutex::default();
    let observer = |number: usize, event: Event<'_>| {
        let title = &titles[number];
        let mut bars = bars.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Began => drop(bars.insert(number, progress.begin(title))),
            Event::At(phase, share) => {
                bars.get_mut(&number).into_iter().for_each(|bar| bar.at(phase, share));
            }
            Event::Ended => drop(bars.remove(&number)),
            Event::Found(dir) => {
                progress.suspend(|| output.detail(format_args!("{title}: already done, {}", dir.display())))
            }
            Event::Same => {
                progress.suspend(|| output.note(format_args!("{title}: run again, with the same result")));
            }
            Event::SetAside(dir) => progress.suspend(|| {
                output.note(format_args!(
                    "{title}: the result differs from the stored one, which was moved to {}",
                    dir.display()
                ));
            }),
            Event::Kept(dir) => {
                progress.suspend(|| output.detail(format_args!("{title}: stored in {}", dir.display())));
            }
        }
    };
    let ran = engine.run(tasks, force, &observer);
    progress.end();
    let trouble = engine.shelf().and_then(Shelf::trouble);
    trouble.iter().for_each(|trouble| output.warn(trouble));
    ran.map_err(|error| match error {
        EngineError::Stopped { finished, asked } => {
            let is_part_kept = engine.shelf().is_some_and(Shelf::has_part);
            Failure::Interrupted(how_to_go_on(output, finished, asked, is_part_kept))
        }
        error => Failure::Machine(error.to_string()),
    })
}

/// Prints where the results of runs are kept.
pub fn say_where(output: &Output, done: &[Done]) {
    let reused = done.iter().filter(|run| run.reused).count();
    let place = |run: &Done| run.dir.as_ref().unwrap_or(&output.out).display().to_string();
    output.note(match (done, reused) {
        ([only], 0) => format!("stored in {}", place(only)),
        ([only], _) => format!("already done: {}", place(only)),
        (all, 0) => format!("{} runs, stored in {}", all.len(), output.out.display()),
        (all, reused) => {
            format!("{} runs, {reused} of them already done, stored in {}", all.len(), output.out.display())
        }
    });
}

fn how_to_go_on(output: &Output, finished: usize, asked: usize, is_part_kept: bool) -> String {
    let (was, are) = if finished == 1 { ("was", "is") } else { ("were", "are") };
    let rest = if asked - finished == 1 { "the other" } else { "the others" };
    match finished {
        0 if is_part_kept => {
            "interrupted; no run was finished, but preconditioning so far is cached: the same command continues from there"
                .to_string()
        }
        0 => "interrupted; no run was finished, nothing is stored".to_string(),
        _ => format!(
            "interrupted; {finished} of {asked} runs {was} finished and {are} stored in {}: the same command runs only {rest}",
            output.out.display()
        ),
    }
}

/// The name of a task beside its bar.
fn title(task: &Task, tasks: &[&Task]) -> String {
    let same = tasks.iter().filter(|other| other.plan.design_name == task.plan.design_name).count();
    match same {
        1 => task.plan.design_name.clone(),
        _ => format!("{}, seed {}", task.plan.design_name, task.plan.seed),
    }
}
