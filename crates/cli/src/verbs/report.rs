//! `nvlab report`: results as one self-contained HTML file.

use crate::args::Report;
use crate::failure::Failure;
use crate::output::Output;
use nvlab_lab::columns_out::read_run;
use nvlab_lab::report::{html, schema};
use nvlab_lab::result::RunResult;
use std::path::Path;
use std::process::{Command, Stdio};

pub fn report(output: &Output, args: &Report) -> Result<(), Failure> {
    if args.schema {
        output.print(schema());
        return Ok(());
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
    std::fs::write(file, html(results, &title)).map_err(|error| Failure::machine(file.display(), &error))?;
    output.note(format_args!("report: {}", file.display()));
    Ok(())
}
