//! A finished sweep, read from its table: its page is made without running anything again.

use super::description::{Description, KEY};
use super::page;
use super::scale::Scale;
use super::shown::Shown;
use super::space::Point;
use super::table::within;
use super::{Figures, Outcome, Sweep};
use nvlab_run::metric::metrics;
use nvlab_table::{Table, Values};
use std::fs;
use std::path::{Path, PathBuf};

/// A finished sweep.
pub struct Finished {
    /// The sweep.
    pub sweep: Sweep,
    /// The outcomes of its points, or of those in the table of a shard.
    pub outcomes: Vec<Outcome>,
    /// The metrics and objectives shown.
    pub shown: Shown,
}

/// The table of a sweep at a path: a Parquet file itself, or the only complete table in a folder of results. `None`:
/// the path is neither; an error: the path is ambiguous.
pub fn table_at(path: &Path) -> Result<Option<PathBuf>, String> {
    if path.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return match name.ends_with(".parquet") {
            true => Ok(Some(path.to_path_buf())),
            false if name.starts_with("sweep-") => {
                Err(format!("{}: give the .parquet table of the sweep", path.display()))
            }
            false => Ok(None),
        };
    }
    let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.retain(|name| name.starts_with("sweep-") && name.ends_with(".parquet"));
    names.sort();
    let (shards, whole): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.contains(".shard-"));
    match (&whole[..], &shards[..]) {
        ([one], _) => Ok(Some(path.join(one))),
        ([], []) => Ok(None),
        ([], _) => Err(format!(
            "{} has only the tables of shards: sweep without --shard makes the whole table (or name the file of one shard)",
            path.display()
        )),
        (several, _) => {
            Err(format!("{} has {} sweeps; name one: {}", path.display(), several.len(), several.join(", ")))
        }
    }
}

impl Finished {
    /// The table in a Parquet file, and the sweep that it is of.
    pub fn load(path: &Path) -> Result<(Table, Finished), String> {
        let about = |problem: String| format!("{}: {problem}", path.display());
        let table = Table::load(path).map_err(|error| about(error.to_string()))?;
        let finished = Finished::of(&table).map_err(about)?;
        Ok((table, finished))
    }

    /// The sweep that a table is of.
    pub fn of(table: &Table) -> Result<Finished, String> {
        let Some(text) = table.says(KEY) else {
            return Err(match table.says("nvlab.schema") == Some(super::table::SCHEMA) {
                true => "it was written by an earlier nvlab and does not list the axes; run the sweep again: stored results are not \
                         simulated again"
                    .into(),
                false => "it is not the table of a sweep".into(),
            });
        };
        let description: Description = serde_json::from_str(text)
            .map_err(|error| format!("its description of the sweep cannot be read: {error}"))?;
        let sweep = description.sweep()?;
        let outcomes = outcomes(table, &sweep, &description)?;
        Ok(Finished { shown: description.shown()?, sweep, outcomes })
    }

    /// The same with other metrics in its table and curves, or other objectives; if none are given, those of the
    /// sweep.
    pub fn showing(self, metrics: &[String], front: &[String]) -> Result<Finished, String> {
        let other = Shown::named(metrics, front)?;
        let metrics = if metrics.is_empty() { self.shown.metrics } else { other.metrics };
        let front = if front.is_empty() { self.shown.front } else { other.front };
        Ok(Finished { shown: Shown { metrics, front }, ..self })
    }

    /// The page, as the sweep itself made it.
    pub fn page(&self) -> String {
        page::page(&self.sweep, &self.outcomes, &self.shown)
    }
}

/// The rows as outcomes. They have the order of the points, of which some may be missing: skipped, or of another shard.
fn outcomes(table: &Table, sweep: &Sweep, description: &Description) -> Result<Vec<Outcome>, String> {
    let keys = sweep.space.keys();
    let scales: Vec<Scale> = keys.iter().map(|key| sweep.space.scale(key)).collect();
    let of = |scale: &Scale| column(table, &scale.column);
    let values = scales.iter().map(of).collect::<Result<Vec<&Values>, _>>()?;
    let found: Vec<Option<&Values>> =
        metrics().iter().map(|metric| column(table, &metric.column()).ok()).collect();
    let intervals: Vec<Option<&Values>> =
        metrics().iter().map(|metric| column(table, &within(metric)?).ok()).collect();
    let (prepared, runs, errors) =
        (column(table, "prepared")?, column(table, "run")?, column(table, "error")?);
    let is_at = |point: &Point, row: usize| {
        keys.iter().zip(&scales).zip(&values).all(|((key, scale), column)| {
            let value = sweep.space.value_at(point, key).unwrap_or_default();
            match scale.number(&value) {
                Some(number) => column.number(row) == Some(number),
                None => column.text(row) == Some(&value),
            }
        })
    };
    let points = sweep.space.points()?;
    let mut points = points.into_iter();
    let mut outcomes = Vec::with_capacity(table.rows());
    for row in 0..table.rows() {
        let point = points.find(|point| is_at(point, row));
        let point = point.ok_or_else(|| format!("row {} is not a point of its sweep", row + 1))?;
        let result = match errors.text(row) {
            Some(why) => Err(why.to_string()),
            None => Ok(figures(description, (&found, &intervals), row, [prepared, runs])),
        };
        outcomes.push(Outcome { point, result });
    }
    Ok(outcomes)
}

/// The columns of a table, of which it may lack some.
type Columns<'a> = [Option<&'a Values>];

/// The figures in a row.
fn figures(
    description: &Description,
    (found, intervals): (&Columns<'_>, &Columns<'_>),
    row: usize,
    [prepared, runs]: [&Values; 2],
) -> Figures {
    let values: Vec<Option<f64>> = found.iter().map(|column| (*column)?.number(row)).collect();
    let interval = |(column, value): (&Option<&Values>, &Option<f64>)| {
        let within = column.and_then(|column| column.number(row)).unwrap_or(0.0);
        // A value of 0 has no relative interval.
        if within == 0.0 || within.is_infinite() { within } else { within * value.unwrap_or(0.0).abs() }
    };
    Figures {
        key: runs.text(row).unwrap_or_default().to_string(),
        reused: true,
        nvlab: description.nvlab.clone(),
        results_version: description.results_version,
        closed_loop: description.closed_loop,
        prepared: prepared.text(row).unwrap_or_default().to_string(),
        intervals: intervals.iter().zip(&values).map(interval).collect(),
        values,
    }
}

fn column<'a>(table: &'a Table, name: &str) -> Result<&'a Values, String> {
    table.column(name).ok_or_else(|| format!("it has no column `{name}`"))
}
