//! Runs: reused or run, several at a time, each kept as soon as it is done.

use crate::args::Simulation;
use crate::failure::Failure;
use crate::output::{Output, quoted};
use crate::progress::Progress;
use nvlab_lab::columns_out::{read_run, write_run_dir};
use nvlab_lab::design::Design;
use nvlab_lab::plan::{Settings, Source, Task};
use nvlab_lab::result::RunResult;
use nvlab_workload::WorkloadError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A design as it is named on the command line: `ssd-tlc,ftl.clean.kind=fifo`, and what `--set` adds.
#[derive(Clone, Debug)]
pub struct Named {
    /// For results: `ssd-tlc ftl.clean.kind=fifo`.
    pub name: String,
    /// What was changed of it: `ftl.clean.kind=fifo`.
    pub changes: Vec<String>,
    pub design: Design,
}

impl Named {
    pub fn load(argument: &str, sets: &[String]) -> Result<Named, Failure> {
        let (name, mut changes) = split(argument);
        changes.extend(sets.iter().cloned());
        let design = Design::load(name, &changes)?;
        let words: Vec<&str> = std::iter::once(name).chain(changes.iter().map(String::as_str)).collect();
        Ok(Named { name: words.join(" "), changes, design })
    }
}

/// The design and its changes. A comma that no `KEY=` follows belongs to the value before it.
fn split(argument: &str) -> (&str, Vec<String>) {
    let mut parts = argument.split(',');
    let name = parts.next().unwrap_or_default();
    let mut sets: Vec<String> = Vec::new();
    for part in parts {
        match sets.last_mut() {
            Some(last) if !part.contains('=') => *last = format!("{last},{part}"),
            _ => sets.push(part.trim().to_string()),
        }
    }
    (name, sets)
}

/// A recorded trace that comes with nvlab.
const TRACE: &str = "traces/pgbench-ext4.blkparse.zst";

/// What is said when a run has no workload: three commands that work as they stand.
fn examples(verb: &str, designs: &str) -> String {
    let third = match Path::new(TRACE).exists() {
        true => (format!("{TRACE} compact"), "what a database asked of its disk"),
        false => ("'hotcold hot=10/90 read=50% qd=8'".to_string(), "a tenth of the blocks gets most of it"),
    };
    let third = (if third.0.starts_with('\'') { third.0 } else { quoted(&third.0) }, third.1);
    let all = [
        ("'uniform bs=4KiB qd=32'".to_string(), "random writes of 4 KiB, 32 under way"),
        ("'zipf read=70% rate=2k/s'".to_string(), "some blocks hotter than others, 2000 a second"),
        third,
    ];
    let width = all.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
    let lines = all.map(|(text, about)| format!("  nvlab {verb} {designs} -w {text:width$}   {about}\n"));
    format!(
        "a workload is missing: what is the device to be asked for?\n\n{}\n`nvlab explain workloads` has all kinds, \
         keys and trace formats.",
        lines.concat()
    )
}

/// Reads the workload of a simulation.
pub fn workload(
    output: &Output,
    simulation: &Simulation,
    verb: &str,
    designs: &str,
) -> Result<Source, Failure> {
    let Some(text) = &simulation.workload else {
        return Err(Failure::Input(examples(verb, designs)));
    };
    let cache = output.out.join(".cache");
    let source = Source::read(text, (!simulation.no_cache).then_some(cache.as_path()))?;
    source.asides().iter().for_each(|aside| output.warn(aside));
    Ok(source)
}

/// The tasks of each of several designs, one for each of `repeat` seeds, or why a design cannot be asked this.
pub fn tasks<'a>(
    output: &Output,
    designs: &[Named],
    source: &'a Source,
    simulation: &Simulation,
    repeat: u32,
) -> Result<Vec<Result<Vec<Task<'a>>, WorkloadError>>, Failure> {
    if simulation.seed.checked_add(u64::from(repeat)).is_none() {
        return Err(Failure::Input(format!("there are not {repeat} seeds from {} on", simulation.seed)));
    }
    let mut said: Vec<String> = Vec::new();
    let mut of = |named: &Named| {
        let seeds = (0..u64::from(repeat)).map(|number| simulation.seed + number);
        let settings = |seed| Settings { seed, until: simulation.until, state: simulation.precondition };
        let task = |seed| Task::new(named.design.clone(), named.name.clone(), source, settings(seed));
        let tasks = seeds.map(task).collect::<Result<Vec<Task>, _>>()?;
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

/// A run that is done.
#[derive(Clone, Debug)]
pub struct Done {
    pub result: RunResult,
    pub dir: PathBuf,
    /// It was among the results before.
    pub reused: bool,
}

/// True once the user wants the program to end.
pub fn interrupted() -> &'static AtomicBool {
    static FLAG: AtomicBool = AtomicBool::new(false);
    &FLAG
}

/// Runs all tasks, at most `jobs` at a time, each with its own outcome, in the order of the tasks.
pub fn run_all(output: &Output, tasks: &[&Task], force: bool) -> Result<Vec<Result<Done, Failure>>, Failure> {
    let titled: Vec<(String, &Task)> = tasks.iter().map(|&task| (title(task, tasks), task)).collect();
    run_each(output, &titled, force)
}

/// Runs tasks under their titles, at most `jobs` at a time, each with its own outcome; an interruption ends all.
pub fn run_each(
    output: &Output,
    tasks: &[(String, &Task)],
    force: bool,
) -> Result<Vec<Result<Done, Failure>>, Failure> {
    // Found out before hours of simulation, not after.
    fs::create_dir_all(&output.out).map_err(|error| cannot_keep(output, &error))?;
    let width = tasks.iter().map(|(title, _)| title.chars().count()).max().unwrap_or(0);
    let progress = Progress::new(output.progress, width);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(output.jobs.min(tasks.len()).max(1)).build();
    let pool = pool.map_err(|error| Failure::Machine(format!("no threads to run on: {error}")))?;
    // In the order of the tasks, so that what is finished after an interruption is what was asked for first.
    let slots: Vec<OnceLock<Result<Done, Failure>>> = tasks.iter().map(|_| OnceLock::new()).collect();
    pool.in_place_scope_fifo(|scope| {
        for ((title, task), slot) in tasks.iter().zip(&slots) {
            let progress = &progress;
            scope.spawn_fifo(move |_| {
                let _ = slot.set(one(output, progress, task, title, force));
            });
        }
    });
    progress.end();
    let results: Vec<_> = slots.into_iter().filter_map(OnceLock::into_inner).collect();
    if results.iter().any(|result| matches!(result, Err(Failure::Interrupted(_)))) {
        let finished = results.iter().filter(|result| result.is_ok()).count();
        return Err(Failure::Interrupted(how_to_go_on(output, finished, tasks.len())));
    }
    Ok(results)
}

/// Says where the results of runs are kept.
pub fn say_where(output: &Output, done: &[Done]) {
    let reused = done.iter().filter(|run| run.reused).count();
    output.note(match (done, reused) {
        ([only], 0) => format!("kept in {}", only.dir.display()),
        ([only], _) => format!("already done: {}", only.dir.display()),
        (all, 0) => format!("{} runs, kept in {}", all.len(), output.out.display()),
        (all, reused) => {
            format!("{} runs, {reused} of them already done, kept in {}", all.len(), output.out.display())
        }
    });
}

fn how_to_go_on(output: &Output, finished: usize, asked: usize) -> String {
    let (was, are) = if finished == 1 { ("was", "is") } else { ("were", "are") };
    let rest = if asked - finished == 1 { "the other" } else { "the others" };
    match finished {
        0 => "interrupted; nothing was finished, nothing is kept".to_string(),
        _ => format!(
            "interrupted; {finished} of {asked} runs {was} finished and {are} kept in {}: the same command does only \
             {rest}",
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

fn one(output: &Output, progress: &Progress, task: &Task, title: &str, force: bool) -> Result<Done, Failure> {
    if interrupted().load(Ordering::Relaxed) {
        return Err(Failure::Interrupted(String::new()));
    }
    let kept = find(&output.out, task);
    if let (Some(done), false) = (&kept, force) {
        progress.suspend(|| output.detail(format_args!("{title}: already done, {}", done.dir.display())));
        return Ok(done.clone());
    }
    let result = {
        let mut bar = progress.begin(title);
        task.run(&mut |phase, share| {
            bar.at(phase, share);
            !interrupted().load(Ordering::Relaxed)
        })?
    };
    if let Some(before) = kept {
        let message = set_aside(&before, &result)?;
        progress.suspend(|| output.note(format_args!("{title}: {message}")));
    }
    let dir = write_run_dir(&output.out, &result).map_err(|error| cannot_keep(output, &error))?;
    progress.suspend(|| output.detail(format_args!("{title}: kept in {}", dir.display())));
    Ok(Done { result, dir, reused: false })
}

fn cannot_keep(output: &Output, error: &std::io::Error) -> Failure {
    Failure::machine(format!("results cannot be kept in {}", output.out.display()), error)
}

/// The same run among the results.
fn find(out: &Path, task: &Task) -> Option<Done> {
    let (short, long) = (format!("-{}", &task.key[..8]), format!("-{}", task.key));
    let mut dirs: Vec<PathBuf> =
        fs::read_dir(out).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    dirs.sort();
    dirs.into_iter().find_map(|dir| {
        let name = dir.file_name()?.to_str()?;
        if name.starts_with('.') || !(name.ends_with(&short) || name.ends_with(&long)) {
            return None;
        }
        let result = read_run(&dir).ok()?;
        let same = result.key == task.key && result.design.name == task.plan.design_name;
        same.then_some(Done { result, dir, reused: true })
    })
}

/// A run was done again: a result that says the same stays, another one gives up its place.
fn set_aside(before: &Done, result: &RunResult) -> Result<String, Failure> {
    let timeless = |run: &RunResult| RunResult { wall_s: 0.0, ..run.clone() };
    if timeless(&before.result) == timeless(result) {
        return Ok("run again, with the same result".to_string());
    }
    let free = (1..).map(|number| PathBuf::from(format!("{}.before-{number}", before.dir.display())));
    let aside = free.into_iter().find(|path| !path.exists()).expect("there are endless numbers");
    fs::rename(&before.dir, &aside).map_err(|error| Failure::machine(before.dir.display(), &error))?;
    Ok(format!("the result differs from the one kept before, which is now {}", aside.display()))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn changes_stand_after_commas() {
        let owned = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        assert_eq!(split("ssd-tlc"), ("ssd-tlc", vec![]));
        let (name, sets) = split("./a.toml,ftl.clean.kind=fifo, ftl.spare=20%");
        assert_eq!((name, sets), ("./a.toml", owned(&["ftl.clean.kind=fifo", "ftl.spare=20%"])));
        assert_eq!(
            split("a,media.f.read=[\"1 us\",\"2 us\"],x=1").1,
            owned(&["media.f.read=[\"1 us\",\"2 us\"]", "x=1"])
        );
    }
}
