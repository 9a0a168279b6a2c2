//! What fio measured: its JSON (`--output-format=json`), of any jobs, or a file of `nvlab probe` with many of those. A plain job
//! (`nvlab_workload::block::fio_job::PlainJob`) is one figure, its throughput; others are named with what makes them different.
//!
//! fio does not say how the drive was prepared. Unless the state is given, writes are taken as made in the steady state if the job
//! wrote the capacity or more at random, and otherwise in the state that figures of its class are in when they give none. Either is
//! said beside the answer.

use super::amount::Unit;
use super::what::{Requests, State, What};
use super::{Class, Drive, Figure, Figures};
use crate::probe;
use nvlab_design::toml_reader::{FileError, Place, Source};
use nvlab_workload::block::fio_job::{FioJobFile, PlainJob};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requests of at least so many bytes are told in bytes a second.
const LARGE: u32 = 64 << 10;
/// A job that goes to less of the drive leaves it more spare space than the whole of it has.
const WHOLE: f64 = 0.9;

/// A file with what was measured, and what is known of how.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The file.
    pub file: PathBuf,
    /// Which sibling was measured.
    pub size: usize,
    /// In which state it was written to, if known.
    pub state: Option<State>,
    /// What its figures may be off, as a share.
    pub tolerance: f64,
}

/// Reads, or writes, of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    per_s: f64,
    bytes_per_s: f64,
    bytes: f64,
    latencies: Option<[f64; 2]>,
}

/// A job as fio reports it.
struct Entry {
    name: String,
    group: (u64, u64),
    options: Vec<(String, String)>,
    read: Side,
    write: Side,
    at: Place,
}

/// Adds what a file says of a drive.
pub(super) fn add(figures: &mut Figures, of: &Measured) -> Result<(), FileError> {
    let File { name: file, entries, state } = read(&of.file)?;
    let of = &Measured { state: of.state.or(state), ..of.clone() };
    let (mut left_out, mut assumed, before) = (Vec::new(), Vec::new(), figures.figures.len());
    for group in entries.chunk_by(|a, b| a.group == b.group) {
        let name = &group[0].name;
        let found = plain(group, &file).and_then(|job| figure_of(group, job, &figures.drive, of));
        match found {
            Err(why) => left_out.push(format!("{name}: {why}")),
            Ok((figure, state)) => {
                if of.state.is_none() && state != State::Full {
                    assumed.push((name.clone(), state));
                }
                figures.figures.push(figure);
            }
        }
    }
    if figures.figures.len() == before {
        let error = FileError::new(format!("{file}: no job of it can be compared"));
        return Err(left_out.into_iter().fold(error, FileError::help));
    }
    for (name, state) in State::ALL {
        let jobs: Vec<&str> =
            assumed.iter().filter(|(_, of)| *of == state).map(|(job, _)| job.as_str()).collect();
        // One state has two names.
        if !jobs.is_empty() && name == state.name() {
            figures.notes.push(format!(
                "{file}: fio does not say how the drive was prepared: writes of {} are taken as made in state {name:?}; --state, or \
                 `state` of [[measured]], says it",
                jobs.join(", ")
            ));
        }
    }
    figures.notes.extend(left_out.into_iter().map(|why| format!("{file}: not compared: {why}")));
    Ok(())
}

/// A file: its jobs in their order, and the state that it says the drive was in.
struct File {
    name: String,
    entries: Vec<Entry>,
    state: Option<State>,
}

fn read(path: &Path) -> Result<File, FileError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| FileError::new(format!("{file}: {error}")))?;
    let no = |why: String| FileError::new(format!("{file}: not fio's JSON (--output-format=json): {why}"));
    let root = probe::report(&text).map_err(&no)?;
    let source = Arc::new(Source::file(&file, &text));
    let mut places = text.match_indices("\"jobname\"").map(|(at, name)| at..at + name.len());
    let mut found = Vec::new();
    let is_probe = root["schema"] == probe::SCHEMA;
    let runs = if is_probe {
        root["runs"].as_array().map_or(&[][..], Vec::as_slice)
    } else {
        std::slice::from_ref(&root)
    };
    for (number, run) in runs.iter().enumerate() {
        let version =
            run["fio version"].as_str().ok_or_else(|| no("it has no \"fio version\"".to_string()))?;
        if probe::major(version).is_some_and(|major| major < probe::LEAST) {
            return Err(no(format!("{version} tells times in other units; fio 3 is needed")));
        }
        let jobs = run["jobs"].as_array().or_else(|| run["client_stats"].as_array());
        for job in jobs.ok_or_else(|| no("it has no \"jobs\"".to_string()))? {
            let at = Place { source: Arc::clone(&source), span: places.next().unwrap_or(0..0) };
            let entry = entry(job, &run["global options"], number as u64, at)?;
            found.extend(entry);
        }
    }
    let state = root["state"].as_str().and_then(|text| text.parse().ok());
    Ok(File { name: file, entries: found, state })
}

/// A job of the run with this number; `None` for what fio adds up over clients.
fn entry(job: &Value, global: &Value, run: u64, at: Place) -> Result<Option<Entry>, FileError> {
    let name = job["jobname"].as_str().unwrap_or("a job").to_string();
    if name == "All clients" {
        return Ok(None);
    }
    if let Some(error) = job["error"].as_i64().filter(|error| *error != 0) {
        return Err(FileError::at(
            at,
            format!("`{name}` ended with error {error}: it did not do what it says"),
            "",
        ));
    }
    let (own, mut options) = (self::options(&job["job options"]), self::options(global));
    options.retain(|(key, _)| !own.iter().any(|(of_job, _)| of_job == key));
    options.extend(own);
    options.retain(|(key, _)| key != "name");
    let group = (run, job["groupid"].as_u64().unwrap_or(0));
    Ok(Some(Entry { group, options, read: side(&job["read"]), write: side(&job["write"]), at, name }))
}

fn options(value: &Value) -> Vec<(String, String)> {
    let empty = Map::new();
    let all = value.as_object().unwrap_or(&empty).iter();
    all.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_string())).collect()
}

fn side(value: &Value) -> Side {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let percentile = |kind: &str| value[kind]["percentile"]["99.000000"].as_f64();
    let mean = value["lat_ns"]["mean"].as_f64().filter(|mean| *mean > 0.0);
    let p99 = percentile("lat_ns").or_else(|| percentile("clat_ns"));
    Side {
        per_s: number(&value["iops"]),
        bytes_per_s: number(&value["bw_bytes"]),
        bytes: number(&value["io_bytes"]),
        latencies: mean.zip(p99).map(|(mean, p99)| [mean * 1e-9, p99 * 1e-9]),
    }
}

/// The job of a group: one, or copies of one.
fn plain(group: &[Entry], file: &str) -> Result<PlainJob, String> {
    let job = &group[0];
    if group.iter().any(|other| other.options != job.options) {
        return Err(format!("it runs beside {} others (a `stonewall` would part them)", group.len() - 1));
    }
    let mut plain = FioJobFile::plain(&job.name, &job.options, file).map_err(|error| error.to_string())?;
    if group.len() > 1 {
        plain.copies = group.len() as u32;
    }
    Ok(plain)
}

/// The figure of a plain job, of its reads or of its writes, whichever are more; and the state that the drive is taken to be in.
fn figure_of(
    group: &[Entry],
    job: PlainJob,
    drive: &Drive,
    of: &Measured,
) -> Result<(Figure, State), String> {
    let (capacity, reads) = (drive.capacities[of.size], job.reads);
    let written: f64 = group.iter().map(|entry| entry.write.bytes).sum();
    let usual = match (drive.class, job.is_sequential) {
        _ if reads == 1.0 => State::Full,
        (_, false) if written >= capacity as f64 => State::Steady,
        (Class::Client, true) if written >= capacity as f64 => State::AfterCache,
        (Class::Client, _) => State::Cache,
        (Class::DataCentre, true) => State::Full,
        (Class::DataCentre, false) => State::Steady,
    };
    // What is read lies in order, unless random writes have left it anywhere.
    let state = match of.state {
        Some(state) if reads < 1.0 || state == State::Steady => state,
        _ => usual,
    };
    if state == State::Steady && job.is_sequential && reads < 1.0 && written < capacity as f64 {
        return Err(
            "it writes in order, for a while, what was written at random before: no state that is modelled"
                .into(),
        );
    }
    let share = job.share(capacity);
    if state == State::Steady && reads < 1.0 && share < WHOLE {
        return Err(format!(
            "it writes to {:.0} % of the drive only, whose steady state is another",
            share * 100.0
        ));
    }
    // The mix is given: of both rates, one says all.
    let is_write = reads < 0.5;
    let side = |entry: &Entry| if is_write { entry.write } else { entry.read };
    let unit = match job.is_sequential || job.block_bytes >= LARGE {
        true => Unit::BytesPerSecond,
        false => Unit::PerSecond,
    };
    let rate =
        |entry: &Entry| if unit == Unit::PerSecond { side(entry).per_s } else { side(entry).bytes_per_s };
    let value: f64 = group.iter().map(rate).sum();
    if value <= 0.0 {
        return Err("it served nothing".to_string());
    }
    let requests = Requests {
        is_sequential: job.is_sequential,
        is_write,
        mixed: (0.0 < reads && reads < 1.0).then_some(reads),
        block_bytes: job.block_bytes.into(),
        depth: job.depth * job.copies,
        state,
    };
    let figure = Figure {
        size: of.size,
        what: What::Rate(requests, unit),
        value,
        // Percentiles of copies do not add up.
        latencies: side(&group[0]).latencies.filter(|_| group.len() == 1),
        tolerance: of.tolerance,
        source: format!("fio, {}", group[0].name),
        at: group[0].at.clone(),
    };
    Ok((figure, state))
}
