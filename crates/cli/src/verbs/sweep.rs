//! `nvlab sweep`: every point of a parameter space, as a table and a page.

mod cluster;

use crate::args::Sweep as Args;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::runs;
use crate::table::{Cell, Column, Table};
use nvlab_lab::sweep::file::SweepError;
use nvlab_lab::sweep::front::{Group, groups};
use nvlab_lab::sweep::scale::Scale;
use nvlab_lab::sweep::space::{Axis, RunSpec};
use nvlab_lab::sweep::table::{SCHEMA, SweepTable};
use nvlab_lab::sweep::{
    Batch, Figures, Outcome, Point, PointError, Shard, Shown, Sweep, elsewhere, fleet, outcomes, page,
};
use nvlab_report::Format;
use nvlab_run::Preparation;
use nvlab_run::engine::Engine;
use nvlab_run::metric::Metric;
use nvlab_run::plan::Until;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

pub fn sweep(output: &Output, args: &Args) -> Result<(), Failure> {
    let asked = Shown::named(&args.metrics, &args.front).map_err(Failure::Input)?;
    let (asked, front) = (asked.metrics, asked.front);
    let sweep = read(args)?;
    let points = sweep.points().map_err(Failure::Input)?;
    if points.is_empty() {
        return Err(Failure::Input(format!("{}: every point is skipped", args.file)));
    }
    let engine = runs::engine(output).and_results_in(args.from.clone());
    let mine = |at: &usize| args.shard.is_none_or(|shard| shard.takes(*at));
    let mine: Vec<&Point> = (0..points.len()).filter(mine).map(|at| &points[at]).collect();
    let (mut batch, mut places) = Batch::of(&engine, &mine, &HashMap::new(), Point::load);
    if let (false, true) = (mine.is_empty(), batch.tasks.is_empty()) {
        return Err(places.into_iter().find_map(Result::err).expect("no point has a task").into());
    }
    if args.dry_run {
        return dry_run(output, &sweep, &engine, &mine, &batch, &places);
    }
    if let Some(on) = &args.on {
        let errands = elsewhere::errands(&engine, &mine, &places, &batch, elsewhere::design_of);
        let failed = cluster::run(output, on, &errands)?;
        if !failed.is_empty() {
            (batch, places) = Batch::of(&engine, &mine, &failed, Point::load);
        }
    }
    let ran = runs::run_each(output, &engine, &batch.tasks(), &batch.titles, args.force)?;
    let outcomes = outcomes(&mine, places, &ran);
    let reused = ran.iter().filter(|ran| ran.as_ref().is_ok_and(|run: &Figures| run.reused)).count();
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.result.is_err()).collect();
    for outcome in &failed {
        let why = outcome.result.as_ref().err().map_or("", String::as_str);
        output.error(format_args!("{}: {why}", outcome.point.values.join(", ")));
    }
    match args.shard {
        Some(shard) => {
            let table = SweepTable::new(&sweep, &outcomes, &Shown::of(&sweep, &outcomes, &asked, &front));
            say_shard(output, shard, &sweep, (&outcomes, &table), points.len(), reused)?;
        }
        None => {
            output.note(format_args!("{} points, {reused} of them already done", outcomes.len()));
            show(output, args, &sweep, &outcomes, [&asked, &front])?;
        }
    }
    match failed.len() {
        0 => Ok(()),
        count => Err(Failure::Points(format!("{count} of {} points have no result", outcomes.len()))),
    }
}

fn read(args: &Args) -> Result<Sweep, Failure> {
    let wrong = |error: SweepError| match error {
        SweepError::Wrong(error) => Failure::Design((*error).into()),
        error => Failure::Input(error.to_string()),
    };
    let until = args.until.map(Until::argument);
    let mut sweep = match args.workload.clone() {
        None => Sweep::load(Path::new(&args.file)).map_err(wrong)?,
        Some(workload) => {
            let run = RunSpec {
                design: args.file.clone(),
                sets: Vec::new(),
                workload,
                state: Preparation::default(),
                until: None,
                seed: args.seed.unwrap_or(1).to_string(),
            };
            Sweep::of_params(run, &args.params).map_err(wrong)?
        }
    };
    let run = &mut sweep.space.run;
    run.sets.extend(args.set.iter().cloned());
    run.until = until.or(run.until.take());
    run.state = args.precondition.unwrap_or(run.state);
    Ok(sweep)
}

/// Prints the points, which of them are done, and an estimate of the time for the rest.
fn dry_run(
    output: &Output,
    sweep: &Sweep,
    engine: &Engine,
    points: &[&Point],
    batch: &Batch,
    places: &[Result<usize, PointError>],
) -> Result<(), Failure> {
    let done: Vec<_> = batch.tasks.iter().map(|task| engine.find(task)).collect();
    let keys = sweep.space.keys();
    let mut columns: Vec<Column> = keys.iter().map(|key| column(key, false)).collect();
    columns.push(Column::text("state", "state"));
    let row = |(point, place): (&&Point, &Result<usize, PointError>)| {
        let state = match place {
            Err(why) => why.to_string(),
            Ok(at) if done[*at].is_some() => "done".to_string(),
            Ok(_) => "to do".to_string(),
        };
        let values = keys.iter().map(|key| sweep.space.value_at(point, key).unwrap_or_default());
        values.chain([state]).map(Cell::text).collect()
    };
    let rows = points.iter().zip(places).map(row).collect();
    let table = Table { schema: "nvlab.sweep.points/1", columns, rows };
    output.table(&table);
    let known: Vec<f64> = done.iter().flatten().map(|done| done.result.wall_s).collect();
    let rest = batch.tasks.len() - known.len();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let cost = match known.is_empty() || rest == 0 {
        true => String::new(),
        false => {
            format!(
                "; the rest takes about {:.0} s of one core, estimated from those done",
                mean * rest as f64
            )
        }
    };
    output.note(format_args!("{} points, {} of them done{cost}", points.len(), known.len()));
    Ok(())
}

/// Prints the table and writes the files.
fn show(
    output: &Output,
    args: &Args,
    sweep: &Sweep,
    outcomes: &[Outcome],
    [asked, front]: [&[Metric]; 2],
) -> Result<(), Failure> {
    let all = Shown::of(sweep, outcomes, asked, front);
    let groups = groups(sweep, outcomes, &all.front);
    let shown = &all.metrics;
    let axes = sweep.varied();
    let scales: Vec<Scale> = axes.iter().map(|axis| sweep.space.scale(&axis.name)).collect();
    let head = |(axis, scale): (&&Axis, &Scale)| Column {
        name: scale.column.clone().into(),
        head: axis.name.clone().into(),
        right: false,
    };
    let mut columns: Vec<Column> = axes.iter().zip(&scales).map(head).collect();
    columns.extend(shown.iter().map(|metric| Column {
        name: metric.column().into(),
        head: metric.title.clone().into(),
        right: true,
    }));
    columns.push(Column::text("front", "front"));
    let rows = groups.iter().map(|group| {
        let values = axes.iter().zip(&scales).map(|(axis, scale)| {
            let text = group.value(&axis.name).unwrap_or_default();
            Cell::new(text, scale.value(text))
        });
        let metrics = shown.iter().map(|metric| match (group.shown(metric), group.mean(metric)) {
            (Some(text), Some(mean)) => Cell::new(text, mean),
            _ => Cell::new("–", Value::Null),
        });
        let front = Cell::new(if group.front { "*" } else { "" }, group.front);
        values.chain(metrics).chain([front]).collect()
    });
    let table = match sweep.is_fleet() && output.format == Format::Human {
        true => over_volumes(sweep, &groups, shown),
        false => Table { schema: SCHEMA, columns, rows: rows.collect() },
    };
    output.table(&table);
    for note in all.notes(outcomes) {
        output.note(format_args!("note: {note}"));
    }
    let files = SweepTable::new(sweep, outcomes, &all);
    let name = |ending: &str| output.out.join(format!("sweep-{}.{ending}", sweep.name));
    write_parquet(&name("parquet"), &files)?;
    let html = args.html.clone().unwrap_or_else(|| name("html"));
    let page = page::page(sweep, outcomes, &all);
    for (file, bytes) in [
        (&name("csv"), files.csv().into_bytes()),
        (&name("json"), files.json().into_bytes()),
        (&html, page.into_bytes()),
    ] {
        save(file, bytes)?;
    }
    output.note(format_args!("table: {} (.csv, .json); page: {}", name("parquet").display(), html.display()));
    Ok(())
}

/// What people see of a fleet: a few quantiles of each metric over its volumes.
fn over_volumes(sweep: &Sweep, groups: &[Group<'_>], metrics: &[Metric]) -> Table {
    let mut columns: Vec<Column> =
        fleet::others(sweep).iter().map(|axis| column(&axis.name, false)).collect();
    columns.push(column("volumes", false));
    columns.extend(metrics.iter().map(|metric| column(&metric.title, true)));
    let row = |row: fleet::Summary<'_>| {
        let cells = row.values.into_iter().zip(metrics).map(|(value, metric)| {
            Cell::or_dash(value, |value| Cell::new(metric.unit.shown(value).to_string(), value))
        });
        row.at.iter().chain([&row.share]).map(|text| Cell::text(*text)).chain(cells).collect()
    };
    let rows = fleet::summary(sweep, groups, metrics).into_iter().map(row).collect();
    Table { schema: SCHEMA, columns, rows }
}

/// Writes the table of a shard, and says what it is a part of.
fn say_shard(
    output: &Output,
    shard: Shard,
    sweep: &Sweep,
    (outcomes, table): (&[Outcome], &SweepTable),
    points: usize,
    reused: usize,
) -> Result<(), Failure> {
    let Shard { number, of } = shard;
    let file = output.out.join(format!("sweep-{}.shard-{number}-of-{of}.parquet", sweep.name));
    write_parquet(&file, table)?;
    let done = outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
    output.note(format_args!(
        "shard {number} of {of}: {done} of {points} points ({reused} were done before), stored in {}; table: {}; the same \
         command without --shard makes the whole table",
        output.out.display(),
        file.display()
    ));
    Ok(())
}

fn write_parquet(file: &Path, table: &SweepTable) -> Result<(), Failure> {
    let bytes = table.parquet().map_err(|error| Failure::machine("the table", &error))?;
    save(file, bytes)
}

fn column(name: &str, right: bool) -> Column {
    Column { name: name.to_string().into(), head: name.to_string().into(), right }
}
