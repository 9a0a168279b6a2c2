//! `nvlab report`: results, or a finished sweep, as one self-contained HTML file.

use crate::args::Report;
use crate::failure::{Failure, save};
use crate::output::Output;
use nvlab_lab::sweep::Finished;
use nvlab_lab::sweep::finished::table_at;
use nvlab_report::{html, schema};
use nvlab_run::columns_out::read_run;
use nvlab_run::result::RunResult;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn report(output: &Output, args: &Report) -> Result<(), Failure> {
    if args.schema {
        output.print(schema());
        return Ok(());
    }
    if let Some(sweep) = sweep_of(&args.runs)? {
        save(&args.html, sweep.page())?;
        for note in sweep.shown.notes(&sweep.outcomes) {
            output.note(format_args!("note: {note}"));
        }
        output.note(format_args!("{} points; report: {}", sweep.outcomes.len(), args.html.display()));
        return if args.open { open(&args.html) } else { Ok(()) };
    }
    let results =
        args.runs.iter().map(|path| read_run(path).map_err(|error| Failure::Input(error.to_string())));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    write_html(output, &args.html, &results)?;
    match args.open {
        true => open(&args.html),
        false => Ok(()),
    }
}

/// The finished sweep that the paths mean: one table, or the folder with one; `None` if they are runs.
fn sweep_of(paths: &[PathBuf]) -> Result<Option<Finished>, Failure> {
    let mut tables = Vec::new();
    for path in paths {
        if is_run(path) {
            continue;
        }
        match table_at(path).map_err(Failure::Input)? {
            Some(table) => tables.push(table),
            None if path.is_file() => {}
            None => {
                return Err(Failure::Input(format!(
                    "{} contains neither the result of a run (result.json) nor the table of a sweep (sweep-*.parquet)",
                    path.display()
                )));
            }
        }
    }
    match (&tables[..], paths) {
        ([], _) => Ok(None),
        ([table], [_]) => Finished::load(table).map(|(_, sweep)| Some(sweep)).map_err(Failure::Input),
        _ => {
            Err(Failure::Input("a sweep page shows one sweep: give only its folder or its table".to_string()))
        }
    }
}

fn is_run(path: &Path) -> bool {
    !path.exists() || path.join("result.json").exists()
}

/// Opens a page in the user's browser.
fn open(file: &Path) -> Result<(), Failure> {
    let opened = Command::new("xdg-open").arg(file).stdin(Stdio::null()).status();
    match opened {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Machine(format!("xdg-open {}: {status}", file.display()))),
        Err(error) => Err(Failure::machine("cannot run xdg-open", &error)),
    }
}

/// Writes a report and prints where it is.
pub fn write_html(output: &Output, file: &Path, results: &[RunResult]) -> Result<(), Failure> {
    let mut names: Vec<&str> = results.iter().map(|run| run.design.name.as_str()).collect();
    names.dedup();
    let title = match names.as_slice() {
        [] => "nvlab".to_string(),
        [one] => format!("{one} · {}", results[0].workload),
        [first, .., last] if names.len() > 4 => format!("{first} ... {last}: {} designs", names.len()),
        several => several.join(" · "),
    };
    save(file, html(results, &title))?;
    output.note(format_args!("report: {}", file.display()));
    Ok(())
}
