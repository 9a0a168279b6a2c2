//! Tables of SNIA's performance test (PTS), as `nvlab pts` and reports of others print them: as text, CSV or Markdown.
//!
//! ```text
//! block     100/0   65/35   0/100          block_bytes,read_percent,iops,latency_mean_us
//! 4 KiB    39 992   2 228   1 242          4096,100,28376,35.24
//! ```
//!
//! The matrix has a column for each mix of reads and writes. The list has named columns; what `nvlab pts` calls throughput is
//! sequential. The test prescribes the state: steady for random requests, written twice in order for sequential ones. How many
//! requests were in flight, the list says by its mean latency (Little's law) and the matrix does not.

use super::measured::{Closed, Measured, Side};
use super::what::State;
use super::{Figures, log};
use nvlab_design::toml_reader::{FileError, Place, Source};
use nvlab_units::quantity;
use nvlab_workload::size;
use std::ops::Range;
use std::sync::Arc;

/// The test whose requests are sequential.
const IN_ORDER: &str = "throughput";

/// A line that was cut into cells.
type Row = Vec<String>;

/// What the columns of a table are.
enum Head {
    /// The share of reads of each column after the first.
    Matrix(Vec<f64>),
    /// Where block, share of reads, requests a second, mean latency, and the test stand.
    List { block: usize, reads: usize, per_s: usize, mean: Option<(usize, f64)>, test: Option<usize> },
}

/// How a table separates its cells.
fn cut(line: &str, by: char) -> Row {
    let cells: Vec<&str> = match by {
        ' ' => line.split("  ").filter(|cell| !cell.trim().is_empty()).collect(),
        '|' => line.trim().trim_matches('|').split('|').collect(),
        by => line.split(by).collect(),
    };
    cells.iter().map(|cell| cell.trim().to_string()).collect()
}

/// `100/0 IOPS`, `65/35`, `iops_65_reads`: the share of reads.
fn mix(cell: &str) -> Option<f64> {
    if let Some(percent) = cell.strip_prefix("iops_").and_then(|rest| rest.strip_suffix("_reads")) {
        return percent.parse::<f64>().ok().map(|percent| percent / 100.0);
    }
    let (reads, rest) = cell.split_once('/')?;
    let writes = rest.split(' ').next()?;
    let (reads, writes): (f64, f64) = (reads.trim().parse().ok()?, writes.parse().ok()?);
    (reads + writes == 100.0).then_some(reads / 100.0)
}

fn head(row: &Row) -> Option<Head> {
    let mixes: Vec<f64> = row.iter().skip(1).map_while(|cell| mix(cell)).collect();
    if mixes.len() >= 2 && mixes.len() + 1 == row.len() {
        return Some(Head::Matrix(mixes));
    }
    let names: Vec<String> = row.iter().map(|name| name.to_lowercase()).collect();
    let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let mean = [("latency_mean_us", 1e-6), ("mean", 1.0)]
        .into_iter()
        .find_map(|(name, unit)| find(&[name]).map(|at| (at, unit)));
    Some(Head::List {
        block: find(&["block_bytes", "block", "block size"])?,
        reads: find(&["read_percent", "reads"])?,
        per_s: find(&["iops"])?,
        mean,
        test: find(&["test"]),
    })
}

/// A number with spaces between its thousands, `1 242`.
fn number(cell: &str) -> Option<f64> {
    let plain: String = cell.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

fn block(cell: &str) -> Option<u64> {
    let bytes = size(cell).ok()?;
    (bytes >= 512).then_some(bytes)
}

/// `12.3 us`, or a number in the unit of its column.
fn seconds(cell: &str, unit: f64) -> Option<f64> {
    number(cell).map(|value| value * unit).or_else(|| quantity::span(cell).ok().map(|span| span.seconds()))
}

/// A table being read: its separator and columns.
struct Open {
    by: char,
    head: Head,
    width: usize,
}

/// Adds what the tables of a file say of a drive.
pub(super) fn add(figures: &mut Figures, of: &Measured, text: &str) -> Result<(), FileError> {
    let file = of.file.display().to_string();
    let source = Arc::new(Source::file(&file, text));
    let place = |span: Range<usize>| Place { source: Arc::clone(&source), span };
    let (before, mut start) = (figures.figures.len(), 0);
    let (mut open, mut in_order): (Option<Open>, bool) = (None, false);
    for line in text.split_inclusive('\n') {
        let at = place(start..start + line.trim_end().len());
        start += line.len();
        let line = line.trim_end();
        let new = ['|', '\t', ';', ',', ' '].into_iter().find_map(|by| {
            let row = cut(line, by);
            head(&row).map(|head| Open { by, head, width: row.len() })
        });
        if new.is_some() {
            open = new;
            continue;
        }
        // Above a table stands which test it is of.
        if let Some(title) = line.split(" · ").next().filter(|_| line.contains(" · ")) {
            in_order = title.eq_ignore_ascii_case(IN_ORDER);
        }
        let Some(table) = &open else { continue };
        let row = cut(line, table.by);
        // Below the heads of Markdown is a rule.
        if row.iter().all(|cell| cell.chars().all(|c| "-:".contains(c))) && !line.is_empty() {
            continue;
        }
        if row.len() != table.width {
            open = None;
            continue;
        }
        cells(figures, of, table, (&row, in_order), &at).map_err(|why| FileError::at(at, why, ""))?;
    }
    if figures.figures.len() > before {
        return Ok(());
    }
    let log = if log::is_log(text) { ", and no latency log" } else { "" };
    Err(FileError::new(format!(
        "{file}: it is neither fio's JSON (--output-format=json) nor a table of SNIA's test{log}"
    ))
    .help(
        "a table has heads such as 100/0, 65/35, 0/100 above its columns, or block_bytes, read_percent, iops"
            .to_string(),
    ))
}

/// The figures of a row; `in_order`: it stands below the title of the sequential test.
fn cells(
    figures: &mut Figures,
    of: &Measured,
    table: &Open,
    (row, in_order): (&Row, bool),
    at: &Place,
) -> Result<(), String> {
    let block_of = |cell: &str| block(cell).ok_or_else(|| format!("`{cell}` is no block size"));
    let rate_of =
        |cell: &str| number(cell).filter(|rate| *rate > 0.0).ok_or_else(|| format!("`{cell}` is no rate"));
    let mut add =
        |block_bytes: u64, reads: f64, per_s: f64, (depth, mean): (u32, Option<f64>), is_sequential: bool| {
            let state = of.state.unwrap_or(if is_sequential { State::Full } else { State::Steady });
            let closed = Closed { is_sequential, reads, block_bytes, depth, state };
            let side = |share: f64| Side {
                per_s: per_s * share,
                bytes_per_s: per_s * share * block_bytes as f64,
                bytes: 0.0,
                latencies: None,
            };
            let source = match mean {
                Some(_) => "SNIA's test, a list",
                None => "SNIA's test, a matrix",
            };
            let figure = closed.figure(of, [side(reads), side(1.0 - reads)], (source.to_string(), at));
            figures.figures.extend(figure);
        };
    match &table.head {
        Head::Matrix(mixes) => {
            let depth = of
                .depth
                .ok_or("a matrix does not say how many requests were in flight: `qd` of [[measured]] does")?;
            let block_bytes = block_of(&row[0])?;
            for (&reads, cell) in mixes.iter().zip(&row[1..]) {
                add(block_bytes, reads, rate_of(cell)?, (depth, None), false);
            }
        }
        Head::List { block, reads, per_s, mean, test } => {
            let (block_bytes, per_s) = (block_of(&row[*block])?, rate_of(&row[*per_s])?);
            let percent = row[*reads].trim_end_matches('%').trim();
            let reads = number(percent).filter(|percent| (0.0..=100.0).contains(percent));
            let reads = reads.ok_or_else(|| format!("`{percent}` is no share of reads"))? / 100.0;
            let mean = match mean {
                Some((at, unit)) => {
                    Some(seconds(&row[*at], *unit).ok_or_else(|| format!("`{}` is no time", row[*at]))?)
                }
                None => None,
            };
            let little = mean.map(|mean| (per_s * mean).round().max(1.0) as u32);
            let depth = of.depth.or(little).ok_or(
                "without a mean latency, `qd` of [[measured]] has to say how many requests were in flight",
            )?;
            add(
                block_bytes,
                reads,
                per_s,
                (depth, mean),
                test.map_or(in_order, |at| row[at].eq_ignore_ascii_case(IN_ORDER)),
            );
        }
    }
    Ok(())
}
