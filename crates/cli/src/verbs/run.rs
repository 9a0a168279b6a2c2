//! `nvlab run`: one design under one workload.

use super::report::write_html;
use crate::args::Run;
use crate::failure::Failure;
use crate::output::Output;
use crate::runs;
use nvlab_lab::engine::Done;
use nvlab_lab::plan::Named;
use nvlab_lab::report::{
    Assertion, AssertionDocument, Format, RunDocument, RunsDocument, compare_text, run_text, timeline,
};
use nvlab_lab::result::RunResult;
use serde::Serialize;

pub fn run(output: &Output, args: &Run) -> Result<(), Failure> {
    // Errors that can be found without running anything are reported first.
    let asserts = args.asserts.iter().map(|text| Assertion::parse(text)).collect::<Result<Vec<_>, _>>();
    let asserts = asserts.map_err(Failure::Input)?;
    let named = Named::load(&args.design, &args.simulation.set)?;
    let engine = runs::engine(output);
    let source = runs::workload(output, &engine, &args.simulation, "run", &args.design)?;
    let tasks = runs::tasks(output, &[named], &source, &args.simulation, args.repeat)?;
    let tasks = tasks.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    let done = runs::run_all(output, &engine, &tasks.iter().collect::<Vec<_>>(), args.simulation.force)?;
    let done = done.into_iter().collect::<Result<Vec<_>, _>>()?;
    let verdicts = check(&asserts, &done)?;
    print(output, &done, &verdicts)?;
    if let (Some(file), [only]) = (&args.timeline, done.as_slice()) {
        let written = std::fs::write(file, timeline(&only.result).to_string());
        written.map_err(|error| Failure::machine(file.display(), &error))?;
        output.note(format_args!("timeline: {} (open it in ui.perfetto.dev)", file.display()));
    }
    if let Some(file) = &args.simulation.html {
        let results: Vec<RunResult> = done.into_iter().map(|run| run.result).collect();
        write_html(output, file, &results)?;
    }
    let failed: Vec<&str> = verdicts.iter().filter(|v| !v.holds).map(|v| v.text.as_str()).collect();
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(Failure::Check(failed.join("\n       "))),
    }
}

fn check(asserts: &[Assertion], done: &[Done]) -> Result<Vec<AssertionDocument>, Failure> {
    let mut checked = Vec::new();
    for run in done {
        for assert in asserts {
            let verdict = assert.check(&run.result).map_err(Failure::Input)?;
            let seed = if done.len() > 1 { format!(" (seed {})", run.result.seed) } else { String::new() };
            checked.push(AssertionDocument { holds: verdict.holds, text: format!("{}{seed}", verdict.text) });
        }
    }
    Ok(checked)
}

fn print(output: &Output, done: &[Done], asserts: &[AssertionDocument]) -> Result<(), Failure> {
    let results: Vec<RunResult> = done.iter().map(|run| run.result.clone()).collect();
    match (output.format, results.as_slice()) {
        (Format::Human, [only]) => output.print(run_text(only, output.style())),
        (Format::Json, [run]) => output.print(document(&RunDocument { run, asserts })),
        (Format::Json, runs) => output.print(document(&RunsDocument::new(runs, asserts))),
        (Format::JsonLines, runs) => {
            for run in runs {
                let asserts = if runs.len() == 1 { asserts } else { &[] };
                let line = serde_json::to_string(&RunDocument { run, asserts });
                output.print(line.expect("a result is plain data"));
            }
        }
        (format, _) => {
            let text = compare_text::<&str>(&[results], &[], format).map_err(Failure::Input)?;
            output.print(text);
        }
    }
    for verdict in asserts.iter().filter(|verdict| verdict.holds) {
        output.note(&verdict.text);
    }
    runs::say_where(output, done);
    if let (Format::Human, [Done { dir: Some(dir), .. }]) = (output.format, done) {
        output.note(format_args!("as a page: nvlab report {}", dir.display()));
    }
    Ok(())
}

fn document(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("a result is plain data")
}
