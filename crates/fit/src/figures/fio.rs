//! What fio measured: its JSON (`--output-format=json`), of any jobs, or a file of `nvlab probe` with many of those. A plain job
//! (`nvlab_workload::block::fio_job::PlainJob`) is one figure, its throughput; any other that can be simulated is kept as it is, for the
//! design that was found.
//!
//! fio does not say how the drive was prepared. Unless the state is given, writes are taken as made in the steady state if the job
//! wrote the capacity or more at random, and otherwise in the state that figures of its class are in when they give none. Either is
//! said beside the answer.

use super::measured::{Closed, Measured, Side};
use super::what::{State, What};
use super::{Class, Drive, Figure, Figures, OtherJob};
use crate::probe;
use nvlab_design::toml_reader::{FileError, Place, Source};
use nvlab_workload::block::fio_job::{FioJobFile, PlainError, PlainJob};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Behind its cache a drive writes at most so many times as fast.
const CLIFF: f64 = 0.8;
/// What the size of a cache may be off that was found by where a burst became slower.
const CACHE_OFF: f64 = 0.1;
/// A job that goes to less of the drive leaves it more spare space than the whole of it has.
const WHOLE: f64 = 0.9;

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
pub(super) fn add(figures: &mut Figures, of: &Measured, text: &str) -> Result<(), FileError> {
    let File { name: file, is_probe, entries, state } = read(of, text)?;
    let of = &Measured { state: of.state.or(state), ..of.clone() };
    let (mut left_out, mut assumed) = (Vec::new(), Vec::new());
    let (before, others) = (figures.figures.len(), figures.others.len());
    let is_burst = |entry: &Entry| is_probe && entry.name.starts_with(probe::BURST);
    let (parts, entries): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_burst);
    match burst(&parts, &figures.drive, of) {
        Ok(found) => figures.figures.extend(found),
        Err(why) => {
            left_out.extend(parts.first().map(|part| format!("{} and those after it: {why}", part.name)))
        }
    }
    for group in entries.chunk_by(|a, b| a.group == b.group) {
        let name = &group[0].name;
        let found = plain(group, &file).and_then(|job| figure_of(group, job, &figures.drive, of));
        match found {
            Err(Left::Out(why)) => left_out.push(format!("{name}: {why}")),
            Err(Left::Other(why)) => match other(group, why, &figures.drive, of) {
                Some(job) => figures.others.push(job),
                None => left_out.push(format!("{name}: it served nothing")),
            },
            Ok((figure, state)) => {
                if of.state.is_none() && state != State::Full {
                    assumed.push((name.clone(), state));
                }
                figures.figures.push(figure);
            }
        }
    }
    if figures.figures.len() == before && figures.others.len() == others {
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
    is_probe: bool,
    entries: Vec<Entry>,
    state: Option<State>,
}

fn read(of: &Measured, text: &str) -> Result<File, FileError> {
    let file = of.file.display().to_string();
    let no = |why: String| FileError::new(format!("{file}: not fio's JSON (--output-format=json): {why}"));
    let root = probe::report(text).map_err(&no)?;
    let source = Arc::new(Source::file(&file, text));
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
    Ok(File { name: file, is_probe, entries: found, state })
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

/// What the burst of a probe says of a drive that was empty: the rate into its cache, the rate behind it, and what the cache took. A part
/// on the way is taken as having two rates, one after the other.
fn burst(parts: &[Entry], drive: &Drive, of: &Measured) -> Result<Vec<Figure>, &'static str> {
    let parts: Vec<&Entry> = parts.iter().filter(|part| part.name != probe::RESTED).collect();
    let [first, .., last] = &parts[..] else { return Ok(Vec::new()) };
    if of.state != Some(State::Cache) {
        return Err("only of an empty drive (--state fresh) a burst tells more than other writes in order");
    }
    let closed = |state| Closed { is_sequential: true, reads: 0.0, block_bytes: 1 << 20, depth: 32, state };
    let figure = |entry: &Entry, state| {
        closed(state).figure(of, [entry.read, entry.write], (format!("fio, {}", entry.name), &entry.at))
    };
    let mut found: Vec<Figure> = figure(first, State::Cache).into_iter().collect();
    let (fast, slow) = (first.write.bytes_per_s, last.write.bytes_per_s);
    if drive.class == Class::Client && slow < CLIFF * fast {
        found.extend(figure(last, State::AfterCache));
        let fast_bytes = |part: &&Entry| {
            let Side { bytes, bytes_per_s, .. } = part.write;
            let part = (bytes / bytes_per_s - bytes / slow) / (1.0 / fast - 1.0 / slow);
            part.clamp(0.0, bytes)
        };
        let value = parts.iter().map(fast_bytes).sum();
        let (what, at) = (What::Cache, last.at.clone());
        let source = "fio, where the burst became slower".to_string();
        let tolerance = of.tolerance.max(CACHE_OFF);
        found.push(Figure { size: of.size, what, value, latencies: None, tolerance, source, at });
    }
    Ok(found)
}

/// Reads and writes of the copies of a job, together. Percentiles of copies do not add up.
fn sides(group: &[Entry]) -> [Side; 2] {
    let all = |side: &dyn Fn(&Entry) -> Side| {
        let sum = |of: &dyn Fn(Side) -> f64| group.iter().map(|entry| of(side(entry))).sum();
        Side {
            per_s: sum(&|side| side.per_s),
            bytes_per_s: sum(&|side| side.bytes_per_s),
            bytes: sum(&|side| side.bytes),
            latencies: side(&group[0]).latencies.filter(|_| group.len() == 1),
        }
    };
    [all(&|entry| entry.read), all(&|entry| entry.write)]
}

/// Why a group of jobs is no figure.
enum Left {
    /// It cannot be compared with anything.
    Out(String),
    /// It is a load that no closed form is of, but that can be simulated.
    Other(&'static str),
}

impl From<String> for Left {
    fn from(why: String) -> Left {
        Left::Out(why)
    }
}

/// The job of a group: one, or copies of one.
fn plain(group: &[Entry], file: &str) -> Result<PlainJob, Left> {
    let job = &group[0];
    if group.iter().any(|other| other.options != job.options) {
        let why = format!("it runs beside {} others (a `stonewall` would part them)", group.len() - 1);
        return Err(Left::Out(why));
    }
    let plain = FioJobFile::plain(&job.name, &job.options, file);
    let mut plain = plain.map_err(|error| match error {
        PlainError::Other(why) => Left::Other(why),
        PlainError::Wrong(error) => Left::Out(error.to_string()),
    })?;
    if group.len() > 1 {
        plain.copies = group.len() as u32;
    }
    Ok(plain)
}

/// A job that is another kind of load, as it is.
fn other(group: &[Entry], why: &'static str, drive: &Drive, of: &Measured) -> Option<OtherJob> {
    let (job, sides) = (&group[0], sides(group));
    let usual = match drive.class {
        _ if sides[1].per_s == 0.0 => State::Full,
        Class::Client => State::Cache,
        Class::DataCentre => State::Steady,
    };
    let copies = (group.len() > 1).then(|| ("numjobs".to_string(), group.len().to_string()));
    (sides.iter().any(|side| side.per_s > 0.0)).then(|| OtherJob {
        size: of.size,
        name: job.name.clone(),
        why,
        options: job
            .options
            .iter()
            .filter(|(key, _)| copies.is_none() || key != "numjobs")
            .cloned()
            .chain(copies.clone())
            .collect(),
        state: of.state.unwrap_or(usual),
        sides,
    })
}

/// The figure of a plain job, of its reads or of its writes, whichever are more; and the state that the drive is taken to be in.
fn figure_of(group: &[Entry], job: PlainJob, drive: &Drive, of: &Measured) -> Result<(Figure, State), Left> {
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
        return Err(Left::Other("it writes in order, for a while, what was written at random before"));
    }
    let share = job.share(capacity);
    if state == State::Steady && reads < 1.0 && share < WHOLE {
        return Err(Left::Other("it writes to a part of the drive only, whose steady state is another"));
    }
    let closed = Closed {
        is_sequential: job.is_sequential,
        reads,
        block_bytes: job.block_bytes.into(),
        depth: job.depth * job.copies,
        state,
    };
    let source = (format!("fio, {}", group[0].name), &group[0].at);
    let figure =
        closed.figure(of, sides(group), source).ok_or_else(|| Left::Out("it served nothing".to_string()))?;
    Ok((figure, state))
}
