//! `nvlab pts`: SNIA's performance test of a design.

use crate::args::Pts;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::progress::Progress;
use crate::runs;
use crate::table::{Cell, Column, Table};
use nvlab_lab::pts::{self, PtsError, PtsPlan, PtsResult, RoundsResult, Test, TestResult, page};
use nvlab_report::Format;
use nvlab_run::number;
use nvlab_run::plan::Named;
use std::sync::atomic::Ordering;

pub fn run(output: &Output, args: &Pts) -> Result<(), Failure> {
    let named = Named::load(&args.design, &args.set)?;
    runs::warn_of(output, &named);
    let plan = PtsPlan { cell: args.cell, capacities: args.saturate, seed: args.seed };
    let mut result = PtsResult {
        schema: "nvlab.pts/1",
        design: named.name.clone(),
        capacity_bytes: named.design.capacity_bytes(),
        cell_s: args.cell.seconds(),
        seed: args.seed,
        tests: Vec::new(),
    };
    let tests = args.tests.iter().map(|name| name.test()).collect::<Vec<_>>();
    let progress = Progress::new(output.progress, named.name.len(), output.progress_lines);
    for test in Test::ALL.into_iter().filter(|test| tests.contains(test)) {
        let mut bar = progress.begin(&named.name);
        let ran = pts::run(&named.design, &plan, test, &mut |text, share| {
            bar.at(text, share);
            !runs::interrupted().load(Ordering::Relaxed)
        });
        drop(bar);
        let found = ran.map_err(|error| match error {
            error if error.is_stopped() => Failure::Interrupted("interrupted; nothing is stored".to_string()),
            PtsError::Design(why) => Failure::Input(format!("design {}: {why}", named.name)),
            error => Failure::Check(error.to_string()),
        })?;
        if output.format == Format::Human {
            print(output, &named.name, &found);
        }
        result.tests.push(found);
    }
    progress.end();
    match output.format {
        Format::Human => output.note(format_args!(
            "cells of {} instead of one minute, preconditioned until steady: nvlab explain pts",
            args.cell
        )),
        Format::Json | Format::JsonLines => {
            output.print(serde_json::to_string_pretty(&result).expect("a result is plain data"));
        }
        _ => result.tests.iter().for_each(|test| print(output, &named.name, test)),
    }
    if let Some(file) = &args.html {
        save(file, page::page(&result))?;
        output.note(format_args!("written: {}", file.display()));
    }
    for test in result.tests.iter().filter(|test| !test.is_steady()) {
        output.warn(format_args!(
            "{}: NOT STEADY after 25 rounds: these are not steady-state figures",
            test.test.title()
        ));
    }
    Ok(())
}

/// One test as tables.
fn print(output: &Output, design: &str, test: &TestResult) {
    let is_human = output.format == Format::Human;
    for rounds in &test.rounds {
        if is_human {
            output.print(format_args!("{} · {design}", test.test.title()));
            output.print(format_args!("  {}\n  {}", rounds.preconditioned, page::verdict(rounds)));
        }
        let table = match (is_human, test.test) {
            (true, Test::Iops) => matrix(rounds),
            _ => list(test.test, rounds),
        };
        output.table(&table);
    }
    if !test.saturation.is_empty() {
        if is_human {
            output.print(format_args!("{} · {design}\n  purged, random writes of 4 KiB", test.test.title()));
        }
        output.table(&saturation(test, is_human));
    }
}

/// IOPS by block size and mix.
fn matrix(rounds: &RoundsResult) -> Table {
    let mut mixes: Vec<u32> = rounds.cells.iter().map(|cell| cell.read_percent).collect();
    mixes.dedup();
    let mut columns = vec![Column::text("block_bytes", "block")];
    columns.extend(mixes.iter().map(|mix| Column {
        name: format!("iops_{mix}_reads").into(),
        head: format!("{mix}/{} IOPS", 100 - mix).into(),
        ..Column::number("", "")
    }));
    let of = |mix: u32| rounds.cells.iter().filter(move |cell| cell.read_percent == mix);
    let row = |first: &pts::CellResult| {
        let block = first.block_bytes;
        let cells = mixes.iter().map(|&mix| {
            let cell = of(mix).find(|cell| cell.block_bytes == block).expect("every mix has every size");
            Cell::new(number::count(cell.iops.round() as u64), cell.iops)
        });
        let head = Cell::text(number::bytes(block as f64).to_string());
        std::iter::once(head).chain(cells).collect()
    };
    Table { schema: "nvlab.pts.iops/1", columns, rows: of(mixes[0]).map(row).collect() }
}

/// Every cell in a row.
fn list(test: Test, rounds: &RoundsResult) -> Table {
    let columns = vec![
        Column::for_programs("test"),
        Column::number("block_bytes", "block"),
        Column::number("read_percent", "reads"),
        Column::number("iops", "IOPS"),
        Column::number("bytes_per_s", "throughput"),
        Column::number("latency_mean_us", "mean"),
        Column::number("latency_p99_us", "p99"),
        Column::number("latency_max_us", "longest"),
    ];
    let row = |cell: &pts::CellResult| {
        let time = |us: f64| Cell::new(number::time_ns(us * 1e3).to_string(), us);
        vec![
            Cell::text(test.title()),
            Cell::new(number::bytes(cell.block_bytes as f64).to_string(), cell.block_bytes),
            Cell::new(format!("{} %", cell.read_percent), cell.read_percent),
            Cell::new(number::count(cell.iops.round() as u64), cell.iops),
            Cell::new(number::bandwidth(cell.bytes_per_s).to_string(), cell.bytes_per_s),
            time(cell.latency_mean_us),
            time(cell.latency_p99_us),
            time(cell.latency_max_us),
        ]
    };
    Table { schema: "nvlab.pts.cells/1", columns, rows: rounds.cells.iter().map(row).collect() }
}

/// Write saturation: every tenth point for people.
fn saturation(test: &TestResult, is_human: bool) -> Table {
    let columns = vec![
        Column::number("written_bytes", "written"),
        Column::number("iops", "IOPS"),
        Column::number("latency_mean_us", "mean"),
        Column::number("write_amplification", "WA"),
    ];
    let every = if is_human { 10 } else { 1 };
    let points =
        test.saturation.iter().enumerate().filter(|(number, _)| *number == 0 || (number + 1) % every == 0);
    let row = |(_, point): (usize, &pts::SaturationPoint)| {
        vec![
            Cell::new(number::bytes(point.written_bytes as f64).to_string(), point.written_bytes),
            Cell::new(number::count(point.iops.round() as u64), point.iops),
            Cell::new(number::time_ns(point.latency_mean_us * 1e3).to_string(), point.latency_mean_us),
            Cell::new(format!("{:.2}", point.write_amplification), point.write_amplification),
        ]
    };
    Table { schema: "nvlab.pts.saturation/1", columns, rows: points.map(row).collect() }
}
