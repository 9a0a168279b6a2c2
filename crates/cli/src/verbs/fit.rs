//! `nvlab fit`: from figures to a design, with intervals, residuals and what contradicts.

use crate::args::Fit as Args;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::runs;
use crate::table::{Cell, Column, Table};
use nvlab_design::toml_reader::FileError;
use nvlab_fit::figures::Figures;
use nvlab_fit::figures::amount::Unit;
use nvlab_fit::fit::answer::answer;
use nvlab_fit::fit::page;
use nvlab_fit::fit::{Answer, Ended, FitError, Pair, Residual, Runs};
use nvlab_fit::held_out::{self, Row};
use nvlab_report::Format;
use nvlab_run::engine::{Done, Engine, TaskError};
use nvlab_run::number;
use nvlab_run::plan::{Source, Task};
use nvlab_workload::WorkloadError;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs of a fit, with progress and kept results.
pub struct Kept<'a> {
    output: &'a Output,
    engine: Engine,
}

impl<'a> Kept<'a> {
    pub fn new(output: &'a Output) -> Kept<'a> {
        Kept { output, engine: runs::engine(output) }
    }
}

impl Runs for Kept<'_> {
    fn source(&self, text: &str) -> Result<Arc<Source>, WorkloadError> {
        self.engine.source(text)
    }

    fn run(&self, tasks: &[&Task], titles: &[String]) -> Result<Vec<Result<Done, TaskError>>, Ended> {
        runs::run_each(self.output, &self.engine, tasks, titles, false).map_err(|failure| match failure {
            Failure::Interrupted(why) => Ended::Interrupted(why),
            failure => Ended::Machine(failure.to_string()),
        })
    }
}

pub fn failure(error: FitError) -> Failure {
    match error {
        FitError::Wrong(error) => Failure::Design((*error).into()),
        FitError::Design(errors) => Failure::Design(errors),
        FitError::Impossible(_) => Failure::Input(error.to_string()),
        FitError::Run { .. } => Failure::Check(error.to_string()),
        FitError::Ended(ended) => ended_early(ended),
    }
}

pub fn ended_early(ended: Ended) -> Failure {
    match ended {
        Ended::Interrupted(why) => Failure::Interrupted(why),
        Ended::Machine(why) => Failure::Machine(why),
    }
}

pub fn fit(output: &Output, args: &Args) -> Result<(), Failure> {
    let wrong = |error: FileError| Failure::Design(error.into());
    let figures = Figures::load(&args.figures, (&args.measured, args.state)).map_err(wrong)?;
    figures.notes.iter().for_each(|note| output.note(note));
    // `-o NAME.toml` names the design; results are kept where they are without it.
    let mut output = output.clone();
    let is_design = output.out.extension().is_some_and(|ending| ending == "toml");
    let file = is_design.then(|| std::mem::replace(&mut output.out, PathBuf::from("runs")));
    let runs = Kept::new(&output);
    if args.held_out {
        let rows = held_out::rows(&figures, &[], args.seed, &runs).map_err(failure)?;
        output.table(&held_out_table(&rows));
        say_summary(&output, &rows);
        return Ok(());
    }
    let size = match args.capacity {
        None => 0,
        Some(bytes) => figures.drive.size_of(bytes).ok_or_else(|| {
            let known: Vec<String> =
                (0..figures.drive.capacities.len()).map(|at| figures.capacity(at)).collect();
            Failure::Input(format!("--capacity: the file has {}", known.join(", ")))
        })?,
    };
    let found = answer(&figures, size, args.seed, &runs).map_err(failure)?;
    match output.format {
        Format::Human => people(&output, &found, file.is_none()),
        Format::Json => output.print(format!("{:#}", found.document())),
        _ => output.table(&residuals(&found)),
    }
    found.notes.iter().for_each(|note| output.note(note));
    for doubt in &found.doubts {
        output.warn(doubt);
    }
    if let Some(file) = &args.html {
        save(file, page::page(&found, &figures.notes))?;
        output.note(format_args!("page: {}", file.display()));
    }
    if let Some(file) = file {
        write(&output, &file, &found)?;
    }
    Ok(())
}

fn write(output: &Output, file: &Path, found: &Answer) -> Result<(), Failure> {
    save(file, &found.text)?;
    output.note(format_args!("written: {}; try it: nvlab run {0} -w 'zipf read=70% qd=32'", file.display()));
    for (number, other) in found.others.iter().enumerate() {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let file = file.with_file_name(format!("{stem}-{}.toml", number + 2));
        save(&file, &other.text)?;
        output.note(format_args!("written: {}, the other design", file.display()));
    }
    Ok(())
}

fn percent(difference: f64) -> String {
    format!("{:+.1} %", difference * 100.0)
}

/// Latencies of what was measured: mean and 99th percentile, measured and simulated.
const LATENCIES: [(&str, &str); 4] =
    [("mean", "mean"), ("mean_simulated", "simulated"), ("p99", "p99"), ("p99_simulated", "simulated")];

fn latencies(residual: &Residual) -> [Cell; 4] {
    let of = |seconds: f64| Cell::new(Unit::Seconds.shown(seconds), seconds);
    match residual.latencies {
        Some(([mean, p99], [mean_simulated, p99_simulated])) => {
            [mean, mean_simulated, p99, p99_simulated].map(of)
        }
        None => std::array::from_fn(|_| Cell::text("")),
    }
}

fn residuals(found: &Answer) -> Table {
    let mut columns = vec![
        Column::text("figure", "figure"),
        Column::number("stated", "stated"),
        Column::number("simulated", "simulated"),
        Column::number("difference", "difference"),
        Column::text("within", "within"),
        Column::text("interval", "drives that fit do"),
    ];
    let has_latencies = found.residuals.iter().any(|residual| residual.latencies.is_some());
    if has_latencies {
        columns.extend(LATENCIES.map(|(name, head)| Column::number(name, head)));
    }
    columns.extend((2..).zip(&found.others).map(|(number, _)| Column {
        name: format!("simulated_{number}").into(),
        head: "the other".into(),
        right: true,
    }));
    let row = |(at, residual): (usize, &Residual)| {
        let of = |value: f64| Cell::new(residual.unit.shown(value), value);
        let (low, high) = residual.interval;
        let mut row = vec![
            Cell::text(&residual.name),
            of(residual.stated),
            of(residual.simulated),
            Cell::new(percent(residual.difference()), residual.difference()),
            Cell::new(
                format!(
                    "{} {}",
                    if residual.is_within() { "yes" } else { "NO" },
                    number::share(residual.tolerance)
                ),
                residual.is_within(),
            ),
            Cell::new(residual.unit.between(residual.interval), json!([low, high])),
        ];
        if has_latencies {
            row.extend(latencies(residual));
        }
        row.extend(found.others.iter().map(|other| of(other.simulated[at])));
        row
    };
    let rows = found.residuals.iter().enumerate().map(row).collect();
    Table { schema: "nvlab.fit/1", columns, rows }
}

fn numbers(found: &Answer) -> Table {
    let columns = vec![
        Column::text("number", "number"),
        Column::number("value", "value"),
        Column::text("interval", "drives that fit"),
        Column::text("usual", "usual"),
        Column::text("key", "key"),
    ];
    let row = |number: &nvlab_fit::fit::Number| {
        let [value, interval, usual] = &number.shown;
        let interval = if number.is_prior_only { "prior only: no figure depends on it" } else { interval };
        [number.name, value, interval, usual, number.key].map(Cell::text).to_vec()
    };
    Table { schema: "nvlab.fit/1", columns, rows: found.numbers.iter().map(row).collect() }
}

/// Jobs that are no figures: reads and writes of each.
fn compared(found: &Answer) -> Table {
    let columns = vec![
        Column::text("job", "job"),
        Column::text("kind", ""),
        Column::number("measured", "measured"),
        Column::number("simulated", "simulated"),
        Column::number("difference", "difference"),
        Column::text("latencies", "mean, p99"),
        Column::text("latencies_simulated", "simulated"),
    ];
    let row = |name: &str, pair: &Pair| {
        let mut row = vec![Cell::text(name)];
        row.extend(pair.cells().iter().map(Cell::text));
        row
    };
    let rows = found.compared.iter().flat_map(|job| job.pairs().map(|pair| row(&job.name, &pair)));
    Table { schema: "nvlab.fit/1", columns, rows: rows.collect() }
}

fn people(output: &Output, found: &Answer, with_design: bool) {
    output.table(&residuals(found));
    output.print("");
    output.table(&numbers(found));
    if !found.compared.is_empty() {
        output.print("\nnot fitted, but run with the design:");
        output.table(&compared(found));
    }
    for other in &found.others {
        output.print(format_args!("\nAnother design explains the figures as well: {}", other.differs));
    }
    for next in &found.next {
        output.print(format_args!(
            "{}measure next: {}: drives that fit do {}; it narrows {}",
            if next == &found.next[0] { "\n" } else { "" },
            next.what,
            next.unit.between(next.between),
            next.number
        ));
    }
    if with_design {
        output.print(format_args!("\n{}", found.text));
    }
    let within = found.residuals.iter().filter(|residual| residual.is_within()).count();
    output.note(format_args!(
        "{} of {} figures within their tolerance; {} runs",
        within,
        found.residuals.len(),
        found.runs
    ));
}

/// The table of what is predicted of each figure from the others.
pub fn held_out_table(rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("drive", "drive"),
        Column::text("figure", "figure"),
        Column::number("stated", "stated"),
        Column::number("predicted", "predicted"),
        Column::number("difference", "difference"),
        Column::text("interval", "interval"),
        Column::for_programs("source"),
    ];
    let row = |row: &Row| {
        let (low, high) = row.interval;
        vec![
            Cell::text(&row.drive),
            Cell::text(&row.figure),
            Cell::new(row.unit.shown(row.stated), row.stated),
            Cell::new(row.unit.shown(row.predicted), row.predicted),
            Cell::new(percent(row.difference()), row.difference()),
            Cell::new(row.unit.between(row.interval), json!([low, high])),
            Cell::text(&row.source),
        ]
    };
    Table { schema: "nvlab.held-out/1", columns, rows: rows.iter().map(row).collect() }
}

/// Says how well the figures were predicted.
pub fn say_summary(output: &Output, rows: &[Row]) {
    let (median, near) = held_out::summary(rows);
    let covered = rows.iter().filter(|row| row.is_covered()).count();
    output.note(format_args!(
        "{} figures, each predicted from the others: median error {}, {} within 25 %; {covered} stated values inside the interval",
        rows.len(),
        number::share(median),
        number::share(near)
    ));
}
