//! A latency log of fio (`write_lat_log`): a line for each request with time (ms), latency (ns), direction, bytes and, with
//! `log_offset=1`, offset. It is a figure like that of fio's JSON; how many requests were in flight follows from Little's law, since
//! a job in a closed loop always has as many.

use super::measured::{Closed, Measured, Side};
use super::what::State;
use super::{Class, Figures};
use nvlab_design::toml_reader::{FileError, Place, Source};
use std::sync::Arc;

/// Requests of a log, at least.
const LEAST: usize = 100;
/// A share of requests that begin where another has ended makes a log sequential.
const IN_ORDER: f64 = 0.8;

/// A line.
struct Entry {
    at_ms: f64,
    latency_ns: f64,
    is_write: bool,
    bytes: u64,
    offset: Option<u64>,
}

fn entry(line: &str) -> Option<Entry> {
    let mut cells = line.split(',').map(str::trim);
    let mut next = || cells.next()?.parse::<f64>().ok();
    let (at_ms, latency_ns, direction, bytes) = (next()?, next()?, next()?, next()?);
    let is_write = [0.0, 1.0].iter().position(|known| *known == direction)? == 1;
    Some(Entry { at_ms, latency_ns, is_write, bytes: bytes as u64, offset: next().map(|at| at as u64) })
}

/// True if a text is a log: its first line is an entry.
pub(super) fn is_log(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.split(',').count() >= 4 && entry(line).is_some())
}

/// The requests of a log.
fn entries(text: &str, source: &Arc<Source>) -> Result<Vec<Entry>, FileError> {
    let (mut entries, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let place = Place { source: Arc::clone(source), span: start..start + line.trim_end().len() };
        let wrong = |why: &str| Err(FileError::at(place.clone(), why, ""));
        start += line.len();
        match entry(line) {
            Some(entry) if entry.bytes == 0 => {
                return wrong("lines are averages (log_avg_msec): percentiles and requests are lost");
            }
            Some(entry) => entries.push(entry),
            None if line.trim().is_empty() => {}
            None => {
                return wrong("this is no line of a latency log: time, latency, direction, bytes");
            }
        }
    }
    Ok(entries)
}

/// The reads or the writes of a log that took so long.
fn side(entries: &[Entry], is_write: bool, seconds: f64) -> Side {
    let of = entries.iter().filter(|entry| entry.is_write == is_write);
    let mut latencies: Vec<f64> = of.map(|entry| entry.latency_ns * 1e-9).collect();
    latencies.sort_by(f64::total_cmp);
    let (count, block_bytes) = (latencies.len() as f64, entries[0].bytes as f64);
    let mean = latencies.iter().sum::<f64>() / count.max(1.0);
    let rank = (count * 0.99).ceil() as usize;
    Side {
        per_s: count / seconds,
        bytes_per_s: count / seconds * block_bytes,
        bytes: count * block_bytes,
        latencies: latencies.get(rank.saturating_sub(1)).map(|p99| [mean, *p99]),
    }
}

/// Adds what a log says of a drive.
pub(super) fn add(figures: &mut Figures, of: &Measured, text: &str) -> Result<(), FileError> {
    let file = of.file.display().to_string();
    let source = Arc::new(Source::file(&file, text));
    let entries = entries(text, &source)?;
    let place = Place { source, span: 0..0 };
    let wrong = |why: &str| FileError::at(place.clone(), why, "");
    let ends = entries.iter().map(|entry| entry.at_ms * 1e-3);
    let (first, last) =
        ends.fold((f64::INFINITY, 0.0_f64), |(first, last), at| (first.min(at), last.max(at)));
    let (count, seconds) = (entries.len() as f64, last - first);
    if entries.len() < LEAST || seconds <= 0.0 {
        return Err(wrong("it has fewer than 100 requests: too few to say anything"));
    }
    if entries.iter().any(|entry| entry.bytes != entries[0].bytes) {
        return Err(wrong("its requests differ in size: no closed form is of that"));
    }
    let reads = entries.iter().filter(|entry| !entry.is_write).count() as f64 / count;
    let mean_s = entries.iter().map(|entry| entry.latency_ns).sum::<f64>() / count * 1e-9;
    let depth = of.depth.unwrap_or((count / seconds * mean_s).round().max(1.0) as u32);
    let pairs =
        entries.windows(2).filter_map(|pair| Some(pair[1].offset? == pair[0].offset? + pair[0].bytes));
    let in_order = pairs.clone().filter(|follows| *follows).count() as f64 / pairs.count().max(1) as f64;
    let usual = match (reads, figures.drive.class) {
        (1.0, _) => State::Full,
        (_, Class::Client) => State::Cache,
        (_, Class::DataCentre) => State::Steady,
    };
    let state = of.state.unwrap_or(usual);
    let closed =
        Closed { is_sequential: in_order > IN_ORDER, reads, block_bytes: entries[0].bytes, depth, state };
    let sides = [false, true].map(|is_write| side(&entries, is_write, seconds));
    let figure = closed.figure(of, sides, ("latency log of fio".to_string(), &place));
    figures.figures.push(figure.expect("it has requests"));
    let where_to = match entries[0].offset {
        Some(_) => "",
        None => " at random, as far as it says (log_offset=1 says where)",
    };
    figures.notes.push(format!(
        "{file}: a closed loop of {depth} requests{where_to}, taken as made in state {:?}",
        state.name()
    ));
    Ok(())
}
