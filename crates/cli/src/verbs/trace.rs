//! `nvlab trace`: inspects, converts and generates traces.

use crate::args::Trace;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_report::Format;
use nvlab_run::plan::{Source, cache};
use nvlab_trace::columns::{Columns, Origin};
use nvlab_trace::info::{self, HEAD_COLUMNS, TraceInfo};
use nvlab_trace::{self as trace, Format as TraceFormat, ReadOptions, WriteReport};
use nvlab_workload::block::record;
use nvlab_workload::replay::ReplaySpec;
use nvlab_workload::{AnyBlockWorkload, Pacing, Serves, Workload};
use serde_json::{Value, json};
use std::path::Path;

/// Lines that `trace head` reads, at least: requests are sorted by time, and recorders write them a little out of order.
const HEAD_LINES: u64 = 65_536;

pub fn trace(output: &Output, verb: Trace) -> Result<(), Failure> {
    match verb {
        Trace::Info { trace } => {
            let (columns, report) = read(output, &trace, &[], None)?;
            output.note(report);
            print_info(output, &TraceInfo::of(&columns));
            Ok(())
        }
        Trace::Convert { from, to, volumes } => {
            let (to, format) = target(&to)?;
            let (columns, report) = read(output, &from, &volumes, None)?;
            output.note(report);
            write(output, &columns, &to, format)
        }
        Trace::Split { from, dir, extension } => split(output, &from, &dir, &extension),
        Trace::Head { trace, count } => {
            let (columns, _) = read(output, &trace, &[], Some(HEAD_LINES.max(count as u64)))?;
            print_head(output, &columns, count);
            Ok(())
        }
        Trace::Make { workload, to, capacity, requests, seed } => {
            let (to, format) = target(&to)?;
            let columns = made(output, &workload, capacity, requests, seed)?;
            write(output, &columns, &to, format)
        }
    }
}

/// A trace as it was recorded, and the report of reading it.
fn read(
    output: &Output,
    text: &str,
    volumes: &[String],
    lines_max: Option<u64>,
) -> Result<(Columns, String), Failure> {
    let mut spec = as_recorded(text)?;
    spec.reading.volumes.extend(volumes.iter().cloned());
    spec.reading.lines_max = lines_max;
    // Inspecting a trace does not create a folder of results, and a part of one is not kept.
    let cache = Some(output.out.join(".cache")).filter(|_| output.out.is_dir() && lines_max.is_none());
    let read = cache::read(&spec, cache.as_deref())?;
    if let Some(aside) = read.aside {
        output.warn(aside);
    }
    Ok((read.columns, read.report))
}

/// A trace without anything that changes what was recorded.
fn as_recorded(text: &str) -> Result<ReplaySpec, Failure> {
    let spec = ReplaySpec::parse(text)?;
    let plain = ReplaySpec { reading: spec.reading.clone(), ..ReplaySpec::new(spec.path.clone()) };
    if plain != spec {
        return Err(Failure::Input(format!(
            "'{text}': trace commands read traces as recorded; only volume=, action=, skip-bad=, and columns= with its \
             options apply here"
        )));
    }
    Ok(spec)
}

/// Writes every volume to a file of its own.
fn split(output: &Output, from: &str, dir: &Path, ending: &str) -> Result<(), Failure> {
    let spec = as_recorded(from)?;
    std::fs::create_dir_all(dir).map_err(|error| Failure::Input(format!("{}: {error}", dir.display())))?;
    // The ending names the format, and its compression.
    let (_, format) = target(&format!("{}/volume.{ending}", dir.display()))?;
    let (written, report) = spec.split((format, ending), dir)?;
    output.note(report);
    for (to, report) in written {
        say(output, &to, format, &report);
    }
    Ok(())
}

/// The file and format after `FILE[:FORMAT]`.
pub(super) fn target(text: &str) -> Result<(std::path::PathBuf, TraceFormat), Failure> {
    let spec = ReplaySpec::parse(text)?;
    let format = spec.reading.format;
    let reading = ReadOptions { format, ..ReadOptions::default() };
    if spec != (ReplaySpec { reading, ..ReplaySpec::new(spec.path.clone()) }) {
        return Err(Failure::Input(format!("'{text}': an output file takes no options")));
    }
    let format = format.or_else(|| TraceFormat::from_file_name(&spec.path));
    let format = format.ok_or_else(|| {
        let written = TraceFormat::ALL.into_iter().filter(|format| format.is_written());
        let known = written.map(|format| format!(":{format}")).collect::<Vec<_>>().join(", ");
        Failure::Input(format!(
            "{}: its extension names no trace format; add one of {known}",
            spec.path.display()
        ))
    })?;
    if spec.path.exists() {
        return Err(Failure::Input(format!("{} exists and is not overwritten", spec.path.display())));
    }
    Ok((spec.path, format))
}

fn write(output: &Output, columns: &Columns, to: &Path, format: TraceFormat) -> Result<(), Failure> {
    let report = trace::write_file(columns, format, to)?;
    say(output, to, format, &report);
    Ok(())
}

/// Says what was written.
fn say(output: &Output, to: &Path, format: TraceFormat, report: &WriteReport) {
    let bytes = std::fs::metadata(to).map_or(0, |meta| meta.len());
    match output.format {
        Format::Json | Format::JsonLines => output.print(json!({
            "schema": "nvlab.converted/1",
            "file": to.display().to_string(),
            "format": format.name(),
            "bytes": bytes,
            "requests": report.requests,
            "trims_left_out": report.trims_left_out,
            "flushes_left_out": report.flushes_left_out,
            "fua_lost": report.fua_lost,
        })),
        _ => output.note(format_args!(
            "{} ({format}, {}): {report}",
            to.display(),
            nvlab_units::quantity::display_bytes(bytes)
        )),
    }
}

/// The requests of a generated workload.
fn made(output: &Output, text: &str, capacity: u64, limit: u64, seed: u64) -> Result<Columns, Failure> {
    let source = Source::read(text, None)?;
    if source.is_trace() {
        return Err(Failure::Input(format!("'{text}' is already a trace: use nvlab trace convert")));
    }
    let opened = source.open(capacity, Serves::Blocks, seed)?;
    opened.notes.iter().for_each(|note| output.warn(note));
    let mut workload = opened.work.requests().expect("a block device is asked for blocks");
    if let AnyBlockWorkload::Tpcc(database) = &workload {
        output.note(database.describe().trim_end());
    }
    if let Pacing::Closed { .. } = workload.pacing() {
        output.warn("a closed loop has no arrival times: every request is written with time 0");
    }
    if workload.time_limit().is_some() && workload.len_hint().is_none() {
        output.detail("it ends by simulated time");
    }
    let origin = Origin { format: format!("{text} seed {seed}"), hash: 0 };
    let columns = record(&mut *workload, limit, origin);
    match columns.is_empty() {
        true => Err(Failure::Input(format!("'{text}' has no requests"))),
        false => Ok(columns),
    }
}

fn print_head(output: &Output, columns: &Columns, count: usize) {
    let right = [true, false, true, true, false, false];
    let heads = HEAD_COLUMNS.iter().zip(right).map(|(&name, right)| Column {
        name: name.into(),
        head: name.into(),
        right,
    });
    let number = |text: String| match text.parse::<u64>() {
        Ok(value) => Cell::new(text, value),
        Err(_) => Cell::text(text),
    };
    let rows = info::head(columns, count).into_iter().map(|[time, op, offset, bytes, volume, fua]| {
        let seconds: f64 = time.parse().unwrap_or_default();
        let forced = fua == "yes";
        vec![
            Cell::new(time, seconds),
            Cell::text(op),
            number(offset),
            number(bytes),
            Cell::text(volume),
            Cell::new(fua, forced),
        ]
    });
    let table = Table { schema: "nvlab.requests/1", columns: heads.collect(), rows: rows.collect() };
    output.table(&table);
}

fn print_info(output: &Output, info: &TraceInfo) {
    match output.format {
        Format::Human => output.print(info),
        Format::Json => output.print(format!("{:#}", document(info))),
        Format::JsonLines => output.print(document(info)),
        _ => {
            let columns = vec![Column::text("figure", "figure"), Column::number("value", "value")];
            let Value::Object(figures) = document(info) else { return };
            let rows = figures.into_iter().skip(1).map(|(name, value)| {
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
                vec![Cell::text(name), Cell::new(shown, value)]
            });
            let table = Table { schema: "nvlab.trace/1", columns, rows: rows.collect() };
            output.table(&table);
        }
    }
}

fn document(info: &TraceInfo) -> Value {
    json!({
        "schema": "nvlab.trace/1",
        "origin": info.origin,
        "requests": info.requests,
        "duration_s": info.duration.seconds(),
        "reads": info.reads.requests,
        "read_bytes": info.reads.bytes,
        "writes": info.writes.requests,
        "write_bytes": info.writes.bytes,
        "trims": info.trims.requests,
        "trim_bytes": info.trims.bytes,
        "flushes": info.flushes,
        "volumes": info.volumes,
        "footprint_bytes": info.footprint_bytes,
        "written_footprint_bytes": info.written_bytes,
        "end_bytes": info.end_bytes,
        "size_mean_bytes": info.size_mean_bytes,
        "size_p50_bytes": info.size_p50_bytes,
        "size_max_bytes": info.size_max_bytes,
        "sequential_share": info.sequential_share,
        "hot_share": info.hot_share,
        "zipf_theta": info.zipf_theta,
        "gap_mean_s": info.gap_mean.seconds(),
        "gap_p99_s": info.gap_p99.seconds(),
        "rate_mean_per_s": info.rate_mean,
        "rate_peak_minute_per_s": info.rate_peak_minute,
    })
}
