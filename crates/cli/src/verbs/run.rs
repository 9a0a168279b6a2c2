//! `nvlab run`: one design under one workload.

use super::report::write_html;
use super::serve::http_address;
use crate::args::Run;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::runs::{self, Asked, Inputs};
use nvlab_report::{
    Assertion, AssertionDocument, Format, NameStyle, RunDocument, RunsDocument, compare_text, run_text,
    timeline,
};
use nvlab_run::engine::{Done, TaskError};
use nvlab_run::plan::Task;
use nvlab_run::result::RunResult;
use nvlab_run::{DriveError, RunError};
use nvlab_serve::http::run::WatchedRun;
use nvlab_serve::management::ManagementServer;
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn run(output: &Output, args: &Run) -> Result<(), Failure> {
    // Errors that can be found without running anything are reported first.
    let asked = Asked {
        verb: "run",
        metrics: &args.metrics,
        conditions: &args.asserts,
        designs: std::slice::from_ref(&args.design),
        simulation: &args.simulation,
    };
    let engine = runs::engine(output);
    let Inputs { conditions: asserts, designs, source } = asked.read(output, &engine)?;
    let tasks = runs::tasks(output, &designs, &source, &args.simulation, args.repeat)?;
    let tasks = tasks.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    if let (Some(address), [task]) = (&args.http, tasks.as_slice()) {
        return watch(output, args, (address, task), &asserts);
    }
    let done = runs::run_all(output, &engine, &tasks.iter().collect::<Vec<_>>(), args.simulation.force)?;
    let done = done.into_iter().collect::<Result<Vec<_>, _>>()?;
    let results: Vec<RunResult> = done.iter().map(|run| run.result.clone()).collect();
    let verdicts = check(&asserts, &results)?;
    print(output, &args.metrics, &results, &verdicts)?;
    runs::say_where(output, &done);
    if let (Format::Human, [Done { dir: Some(dir), .. }]) = (output.format, done.as_slice()) {
        output.note(format_args!("HTML report: nvlab report {}", dir.display()));
    }
    end(output, args, &results, &verdicts)
}

/// Runs a task in sight of a live page.
fn watch(
    output: &Output,
    args: &Run,
    (address, task): (&str, &Task),
    asserts: &[Assertion],
) -> Result<(), Failure> {
    let address = http_address(address, args.allow_remote)?;
    let plan = &task.plan;
    let run = WatchedRun::new(&plan.design_name, task.design.capacity_bytes(), runs::interrupted().clone());
    let door = ManagementServer::open_page(&address, run.clone())?;
    output.note(format_args!("page     {}", door.page()));
    output.note("the run starts in real time; Ctrl-C ends it early and reports what was measured so far");
    let stop = runs::interrupted();
    let ran = task.run_watched(&mut run.onlooker(), &mut |phase, done| {
        run.prepares(phase, done);
        phase == "running" || !stop.load(Ordering::Relaxed)
    });
    run.ended();
    // Pages see the end before the server is gone.
    std::thread::sleep(LAST_EVENT);
    drop(door);
    let result = match ran {
        Err(RunError::Precondition { source: DriveError::Stopped(_), .. }) => {
            return Err(Failure::Interrupted("interrupted during preconditioning".to_string()));
        }
        ran => ran.map_err(TaskError::Run)?,
    };
    let results = [result];
    let verdicts = check(asserts, &results)?;
    print(output, &args.metrics, &results, &verdicts)?;
    output.note("not stored, because the page could change the run; without --http the result is stored");
    end(output, args, &results, &verdicts)
}

/// The last event of a page is made within this time.
const LAST_EVENT: Duration = Duration::from_millis(1200);

/// Writes the files, and fails if an assertion does not hold.
fn end(
    output: &Output,
    args: &Run,
    results: &[RunResult],
    verdicts: &[AssertionDocument],
) -> Result<(), Failure> {
    if let (Some(file), [only]) = (&args.timeline, results) {
        save(file, timeline(only).to_string())?;
        output.note(format_args!("timeline: {} (open it in ui.perfetto.dev)", file.display()));
    }
    if let Some(file) = &args.simulation.html {
        write_html(output, file, results)?;
    }
    let failed: Vec<&str> = verdicts.iter().filter(|v| !v.holds).map(|v| v.text.as_str()).collect();
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(Failure::Check(failed.join("\n       "))),
    }
}

fn check(asserts: &[Assertion], results: &[RunResult]) -> Result<Vec<AssertionDocument>, Failure> {
    let mut checked = Vec::new();
    for run in results {
        for assert in asserts {
            let verdict = assert.check(run).map_err(Failure::Input)?;
            let seed = if results.len() > 1 { format!(" (seed {})", run.seed) } else { String::new() };
            checked.push(AssertionDocument { holds: verdict.holds, text: format!("{}{seed}", verdict.text) });
        }
    }
    Ok(checked)
}

fn print(
    output: &Output,
    metrics: &[String],
    results: &[RunResult],
    asserts: &[AssertionDocument],
) -> Result<(), Failure> {
    match (output.format, results) {
        (format, runs) if !metrics.is_empty() => {
            output.print(
                compare_text(&[runs.to_vec()], metrics, format, NameStyle::Whole).map_err(Failure::Input)?,
            );
        }
        (Format::Human, [only]) => output.print(run_text(only, output.style())),
        (Format::Json, [run]) => output.print(document(&RunDocument::new(run, asserts))),
        (Format::Json, runs) => output.print(document(&RunsDocument::new(runs, asserts))),
        (Format::JsonLines, runs) => {
            for run in runs {
                let asserts = if runs.len() == 1 { asserts } else { &[] };
                let line = serde_json::to_string(&RunDocument::new(run, asserts));
                output.print(line.expect("a result is plain data"));
            }
        }
        (format, _) => {
            let text = compare_text::<&str>(&[results.to_vec()], &[], format, NameStyle::Whole)
                .map_err(Failure::Input)?;
            output.print(text);
        }
    }
    for verdict in asserts.iter().filter(|verdict| verdict.holds) {
        output.note(&verdict.text);
    }
    Ok(())
}

fn document(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("a result is plain data")
}
