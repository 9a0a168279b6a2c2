//! `nvlab reproduce`: the claims of a paper as a table of expected and measured, and its figures as a page.

use super::fit::{Kept, failure, held_out_table, say_summary};
use crate::args::Reproduce;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::runs;
use crate::table::{Cell, Column, Table};
use nvlab_fit::held_out;
use nvlab_lab::reproduce::{self, Experiment, Judged, Measured, Verdict, judge};
use nvlab_lab::sweep::{Batch, Point};
use nvlab_report::Format;
use nvlab_run::engine::{Done, TaskError};
use nvlab_run::result::RunResult;
use serde_json::Value;
use std::path::PathBuf;

/// The name of the predictions among the experiments of `drives`.
const HELD_OUT: &str = "held-out";

pub fn reproduce(output: &Output, args: &Reproduce) -> Result<(), Failure> {
    let (predicted, only): (Vec<String>, Vec<String>) =
        args.only.iter().cloned().partition(|name| args.seed == "drives" && name == HELD_OUT);
    if predicted.is_empty() || !only.is_empty() {
        claims(output, args, &only)?;
    }
    // A document is one table: programs ask for the predictions by name.
    let is_whole = args.seed == "drives" && args.only.is_empty() && output.format == Format::Human;
    match is_whole || !predicted.is_empty() {
        true => held_out(output, args.smoke),
        false => Ok(()),
    }
}

/// Predicts each published figure of each drive from its other figures.
fn held_out(output: &Output, smoke: bool) -> Result<(), Failure> {
    let all = held_out::published().map_err(|error| Failure::Design(error.into()))?;
    let runs = Kept::new(output);
    let mut rows = Vec::new();
    for figures in &all {
        let few: &[usize] = match (smoke, figures.drive.name.as_str()) {
            (false, _) => &[],
            (true, SMOKE) => &[0],
            (true, _) => continue,
        };
        rows.extend(held_out::rows(figures, few, 1, &runs).map_err(failure)?);
    }
    output.table(&held_out_table(&rows));
    say_summary(output, &rows);
    Ok(())
}

/// The drive whose fit takes the fewest runs.
const SMOKE: &str = "sn750";

fn claims(output: &Output, args: &Reproduce, only: &[String]) -> Result<(), Failure> {
    let seed = args.seed.as_str();
    let found = reproduce::find(seed, only, args.smoke);
    let experiments = found.map_err(|error| Failure::Input(error.to_string()))?;
    let points = experiments.iter().map(|experiment| {
        let wrong = |problem| Failure::Input(format!("{}: {problem}", experiment.name));
        experiment.space.points().map_err(wrong)
    });
    let points = points.collect::<Result<Vec<Vec<Point>>, Failure>>()?;
    let engine = runs::engine(output);
    // Figures share points, each is run once.
    let mut batch = Batch::default();
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (experiment, points) in experiments.iter().zip(&points) {
        let place = |point| batch.add(&engine, point, &experiment.name);
        places.push(points.iter().map(place).collect::<Result<_, _>>()?);
    }
    let outcomes = runs::run_each(output, &engine, &batch.tasks(), &batch.titles, args.force)?;
    let failed = failures(output, &batch.titles, &outcomes);
    let measured: Vec<Measured<'_>> = experiments
        .iter()
        .zip(&places)
        .map(|(experiment, places)| Measured {
            experiment,
            results: places.iter().map(|&at| outcomes[at].as_ref().ok().map(|done| &done.result)).collect(),
        })
        .collect();
    let judged: Vec<(&Experiment, Vec<Judged<'_>>)> =
        measured.iter().map(|measured| (measured.experiment, judge(measured))).collect();
    output.table(&table(&judged));
    page(output, args, &measured)?;
    verdict(output, &judged, failed, outcomes.len())
}

/// Prints which points have no result; returns how many.
fn failures(output: &Output, titles: &[String], outcomes: &[Result<Done, TaskError>]) -> usize {
    let failed =
        titles.iter().zip(outcomes).filter_map(|(title, outcome)| Some((title, outcome.as_ref().err()?)));
    failed.map(|(title, failure)| output.error(format_args!("{title}: {failure}"))).count()
}

fn table(judged: &[(&Experiment, Vec<Judged<'_>>)]) -> Table {
    let columns = vec![
        Column::text("experiment", "figure"),
        Column::text("where", "where"),
        Column::text("class", "class"),
        Column::for_programs("basis"),
        Column::number("expected", "expected"),
        Column::number("measured", "measured"),
        Column::text("band", "band"),
        Column::text("verdict", "verdict"),
        Column::text("claim", "claim"),
    ];
    let number = |value: Option<f64>| value.map_or(Value::Null, Value::from);
    let mut rows = Vec::new();
    for (experiment, judged) in judged {
        for judged in judged {
            let row = judged.row;
            let [expected, measured, band] = reproduce::page::shown(judged);
            rows.push(vec![
                Cell::text(&experiment.name),
                Cell::text(&row.place),
                Cell::text(row.class.name()),
                Cell::text(row.basis.name()),
                Cell::new(expected, number(row.expected)),
                Cell::new(measured, number(judged.measured)),
                Cell::new(band, row.band.map_or(Value::Null, |band| Value::from(band.to_vec()))),
                Cell::text(judged.shown()),
                Cell::text(&row.claim),
            ]);
        }
    }
    Table { schema: "nvlab.reproduce/1", columns, rows }
}

fn page(output: &Output, args: &Reproduce, measured: &[Measured<'_>]) -> Result<(), Failure> {
    let name = args.seed.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let size = if args.smoke { "-smoke" } else { "" };
    let file: PathBuf =
        args.html.clone().unwrap_or_else(|| output.out.join(format!("reproduce-{name}{size}.html")));
    let results: Vec<&RunResult> =
        measured.iter().flat_map(|measured| measured.results.iter().copied().flatten()).collect();
    let version = results.first().map_or(String::new(), |run| {
        format!("nvlab {}, results version {}; ", run.nvlab, run.results_version)
    });
    let about = format!("{version}{} points{}", results.len(), if args.smoke { ", smoke size" } else { "" });
    let html = reproduce::page::page(&format!("Reproduction of {name}"), &about, measured);
    save(&file, html)?;
    output.note(format_args!("figures: {}", file.display()));
    Ok(())
}

/// Prints which notes say that another number was measured; returns how many.
fn stale_notes(output: &Output, judged: &[(&Experiment, Vec<Judged<'_>>)]) -> usize {
    let all = judged.iter().flat_map(|(experiment, judged)| judged.iter().map(|one| (&experiment.name, one)));
    let stale = all.filter(|(_, one)| one.is_note_stale());
    let say = |(name, one): (&String, &Judged<'_>)| {
        let [_, measured, _] = reproduce::page::shown(one);
        output.error(format_args!(
            "{name}, {}: measured {measured}, but its note says: {}",
            one.row.claim, one.row.note
        ));
    };
    stale.map(say).count()
}

fn verdict(
    output: &Output,
    judged: &[(&Experiment, Vec<Judged<'_>>)],
    failed: usize,
    points: usize,
) -> Result<(), Failure> {
    let count =
        |verdict| judged.iter().flat_map(|(_, judged)| judged).filter(|one| one.verdict == verdict).count();
    let (differs, missing) = (count(Verdict::Differs), count(Verdict::Missing));
    output.note(reproduce::summary(judged.iter().flat_map(|(_, judged)| judged)));
    let stale = stale_notes(output, judged);
    if failed > 0 {
        return Err(Failure::Points(format!("{failed} of {points} points have no result")));
    }
    match differs + missing {
        0 if stale > 0 => Err(Failure::Check(format!("{stale} notes say that another number was measured"))),
        0 => Ok(()),
        _ => Err(Failure::Check(format!(
            "{differs} claims differ from the measurement, {missing} could not be measured"
        ))),
    }
}
