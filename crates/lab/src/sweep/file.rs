//! The file of a sweep, and axes as they are written on a command line.
//!
//! ```toml
//! schema = 1
//! [sweep]
//! name     = "cleaners"                 # of the files that are written; default: the name of this file
//! design   = "ssd-tlc"                  # or a list; a file is looked for beside this one, then where nvlab was started
//! set      = ["ftl.unit=4 KiB"]         # at every point
//! workload = ["zipf qd=32", "web.csv"]  # or one text, or a pattern, "fleet/*.csv": a point for each trace
//! seeds    = 3                          # that many, from 1 on, or a list
//! until    = "2 x capacity"             # as for `run`; so is precondition
//! [[axis]]
//! key    = "ftl.clean.kind"
//! values = ["greedy", "fifo"]
//! [[axis]]
//! key    = "ftl.spare"
//! range  = "7 % .. 28 % : 7 %"          # or by a factor: "1 MiB .. 64 MiB * 4"
//! [[axis]]                              # keys that move together
//! keys   = ["ftl.buffer.size", "media.sram.size"]
//! values = [["4 MiB", "52 MiB"], ["16 MiB", "64 MiB"]]
//! [[skip]]
//! where  = "ftl.clean.kind == 'fifo' and ftl.spare > 20 %"
//! ```

use super::fleet;
use super::skip::Skip;
use super::space::{Axis, DESIGN, RunSpec, Space, design_axis, key_axis, keys_axis, list_axis};
use super::{SEED, Sweep, WORKLOAD};
use nvlab_design::toml_reader::{FileError, Source, Table};
use nvlab_run::Preparation;
use nvlab_run::plan::Until;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why there is nothing to sweep.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The file is wrong.
    #[error(transparent)]
    Wrong(#[from] Box<FileError>),
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The command line is wrong.
    #[error("{0}")]
    Asked(String),
}

/// Maximum number of points of a sweep.
const POINTS_MAX: usize = 1_000_000;

type Read<T> = Result<T, FileError>;

impl Sweep {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Sweep, SweepError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SweepError::Unreadable { path: path.display().to_string(), source })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Sweep::read(&path.display().to_string(), &stem, path.parent(), &text).map_err(Box::new)?)
    }

    /// Reads the text of a file; designs are looked for in `folder` first.
    pub fn read(file: &str, stem: &str, folder: Option<&Path>, text: &str) -> Read<Sweep> {
        let root = Table::root(&Arc::new(Source::file(file, text)), "a sweep")?;
        if root.number("schema")?.is_some_and(|schema| schema != 1.0) {
            return Err(root.wrong("schema", "must be 1: this nvlab supports no other"));
        }
        let sweep = root.needed_table("sweep")?;
        let name = sweep.text("name")?.unwrap_or_else(|| stem.to_string());
        if name.is_empty() || name.contains(['/', '\\']) {
            return Err(sweep.wrong("name", "becomes part of file names"));
        }
        let designs = one_or_more(&sweep, "design")?.iter().map(|name| beside(folder, name)).collect();
        let workloads = one_or_more(&sweep, "workload")?;
        let volumes = match &workloads[..] {
            [one] => fleet::axis(one)
                .map_err(|problem| sweep.wrong("workload", format!("is invalid: {problem}")))?,
            _ => None,
        };
        // The volumes come first: a trace is read once for all that is done with it.
        let (mut axes, workload) = match volumes {
            Some((axis, text)) => (vec![axis, design_axis(designs)], text),
            None => {
                let listed = list_axis(WORKLOAD, workloads);
                (std::iter::once(design_axis(designs)).chain(listed).collect(), format!("{{{WORKLOAD}}}"))
            }
        };
        for table in root.tables("axis")? {
            axes.push(axis(&table)?);
            table.end()?;
        }
        let run = run_spec(&sweep, &mut axes, workload)?;
        sweep.end()?;
        let space = Space { run, axes };
        space.check().map_err(|problem| root.error(problem))?;
        let mut skips = Vec::new();
        for table in root.tables("skip")? {
            let text = table.needed("where")?;
            skips.push(Skip::parse(&text, &space).map_err(|problem| table.wrong("where", problem))?);
            table.end()?;
        }
        root.end()?;
        if space.count() > POINTS_MAX {
            return Err(root.error(format!("{} points are more than {POINTS_MAX}", space.count())));
        }
        Ok(Sweep { name, space, skips })
    }

    /// A sweep of a design as a command line describes it: `params` are `KEY=V1,V2,...`, `KEY=LO..HI:STEP` or
    /// `KEY=LO..HI*FACTOR`.
    pub fn of_params(run: RunSpec, params: &[String]) -> Result<Sweep, SweepError> {
        let mut axes = Vec::new();
        for param in params {
            let asked = |problem: String| SweepError::Asked(format!("-p {param}: {problem}"));
            let (key, values) = param.split_once('=').ok_or_else(|| asked("write KEY=VALUES".to_string()))?;
            let values = match values.contains("..") {
                true => range(values).map_err(asked)?,
                false => values.split(',').map(|value| value.trim().to_string()).collect(),
            };
            axes.push(AskedAxis::one(key.trim(), values));
        }
        let name = run.design.rsplit('/').next().unwrap_or_default().trim_end_matches(".toml").to_string();
        Sweep::of_axes(name, run, axes)
    }

    /// A sweep over axes: keys of the design, alone or together, or `design`, `workload` and `seed`.
    pub fn of_axes(name: String, mut run: RunSpec, axes: Vec<AskedAxis>) -> Result<Sweep, SweepError> {
        let mut built = Vec::new();
        if let Some((axis, text)) = fleet::axis(&run.workload).map_err(SweepError::Asked)? {
            built.push(axis);
            run.workload = text;
        }
        for AskedAxis { keys, rows } in axes {
            let [key] = &keys[..] else {
                built.push(together(&keys, &rows).map_err(SweepError::Asked)?);
                continue;
            };
            let values = rows.into_iter().flatten().collect();
            let text = match key.as_str() {
                DESIGN => &mut run.design,
                WORKLOAD => &mut run.workload,
                SEED => &mut run.seed,
                _ => {
                    built.push(key_axis(key, values));
                    continue;
                }
            };
            *text = format!("{{{key}}}");
            built.extend(list_axis(key, values));
        }
        let axes = built;
        let space = Space { run, axes };
        space.check().map_err(SweepError::Asked)?;
        Ok(Sweep { name, space, skips: Vec::new() })
    }
}

/// An axis that is asked for: keys, and a value of each of them in every row.
#[derive(Clone, Debug)]
pub struct AskedAxis {
    /// One key, or several that move together.
    pub keys: Vec<String>,
    /// As many values as keys in each.
    pub rows: Vec<Vec<String>>,
}

impl AskedAxis {
    /// An axis of one key.
    pub fn one(key: &str, values: Vec<String>) -> AskedAxis {
        let rows = values.into_iter().map(|value| vec![value]).collect();
        AskedAxis { keys: vec![key.to_string()], rows }
    }
}

/// The axis of keys that move together.
fn together(keys: &[String], rows: &[Vec<String>]) -> Result<Axis, String> {
    let names = keys.join(", ");
    if let Some(alone) = keys.iter().find(|key| [DESIGN, WORKLOAD, SEED].contains(&key.as_str())) {
        return Err(format!(
            "`{names}`: `{alone}` must be a separate axis; only design keys can change together"
        ));
    }
    match rows.iter().find(|row| row.len() != keys.len()) {
        _ if keys.is_empty() || rows.is_empty() => Err(format!("`{names}`: an axis needs keys and values")),
        Some(row) => {
            Err(format!("`{names}`: `{}` has {} values for {} keys", row.join(", "), row.len(), keys.len()))
        }
        None => Ok(keys_axis(keys, rows)),
    }
}

/// A text, or a list of texts.
fn one_or_more(table: &Table, key: &'static str) -> Read<Vec<String>> {
    match table.get(key).map(|node| node.value.items().is_some()) {
        Some(true) => table.texts(key).map(Option::unwrap_or_default),
        _ => table.needed(key).map(|one| vec![one]),
    }
}

/// A design's file beside the file of the sweep, if there is one.
fn beside(folder: Option<&Path>, name: &str) -> String {
    let path = folder.map(|folder| folder.join(name)).filter(|path| path.is_file());
    path.map_or_else(|| name.to_string(), |path| path.display().to_string())
}

fn run_spec(sweep: &Table, axes: &mut Vec<Axis>, workload: String) -> Read<RunSpec> {
    let until = sweep.text("until")?;
    if let Some(problem) = until.as_ref().and_then(|text| text.parse::<Until>().err()) {
        return Err(sweep.wrong("until", format!("is invalid: {problem}")));
    }
    let state = match sweep.text("precondition")? {
        None => Preparation::default(),
        Some(text) => {
            text.parse().map_err(|problem| sweep.wrong("precondition", format!("is invalid: {problem}")))?
        }
    };
    let whole = |text: &String| text.parse::<u64>().is_ok();
    let seeds: Vec<String> = match sweep.get("seeds").map(|node| &node.value) {
        None => vec!["1".to_string()],
        Some(value) => match (value.scalar().and_then(|count| count.parse::<u32>().ok()), value.items()) {
            (Some(count), _) => (1..=count).map(|seed| seed.to_string()).collect(),
            (_, Some(items)) => items.iter().filter_map(|item| item.value.scalar()).collect(),
            _ => Vec::new(),
        },
    };
    if seeds.is_empty() || !seeds.iter().all(whole) {
        return Err(sweep.wrong("seeds", "must be the number of seeds or a list of whole numbers"));
    }
    axes.extend(list_axis(SEED, seeds));
    let sets = sweep.texts("set")?.unwrap_or_default();
    // A setting with an axis takes its values from there.
    let on_axis = |name: &str| format!("{{{name}}}");
    Ok(RunSpec { design: on_axis("design"), sets, workload, state, until, seed: on_axis(SEED) })
}

fn axis(table: &Table) -> Read<Axis> {
    let values = table.get("values").map(|node| node.value.items().unwrap_or_default());
    if let Some(key) = table.text("key")? {
        let values = match (values, table.text("range")?) {
            (Some(values), None) => values
                .iter()
                .map(|value| value.value.scalar())
                .collect::<Option<Vec<_>>>()
                .filter(|values| !values.is_empty())
                .ok_or_else(|| table.wrong("values", "must be a list of strings or numbers"))?,
            (None, Some(text)) => range(&text).map_err(|problem| table.wrong("range", problem))?,
            _ => return Err(table.error("an axis needs either `values` or a `range`")),
        };
        return Ok(key_axis(&key, values));
    }
    let keys = table.texts("keys")?.filter(|keys| keys.len() > 1);
    let keys =
        keys.ok_or_else(|| table.error("an axis needs a `key`, or several `keys` that change together"))?;
    let rows = values.filter(|values| !values.is_empty()).and_then(|values| {
        let row = |value: &nvlab_design::toml_reader::Node| {
            let row = value.value.items()?.iter().map(|value| value.value.scalar());
            row.collect::<Option<Vec<String>>>().filter(|row| row.len() == keys.len())
        };
        values.iter().map(row).collect::<Option<Vec<_>>>()
    });
    let rows = rows
        .ok_or_else(|| table.wrong("values", format!("must be a list of lists of {} values", keys.len())))?;
    Ok(keys_axis(&keys, &rows))
}

/// The values of `LO .. HI : STEP` or `LO .. HI * FACTOR`; all have the unit of the first.
pub fn range(text: &str) -> Result<Vec<String>, String> {
    let usage = || format!("`{text}` is not a range: write LO .. HI : STEP, or LO .. HI * FACTOR");
    let (low, rest) = text.split_once("..").ok_or_else(usage)?;
    let (high, by, factor) = match (rest.split_once(':'), rest.split_once('*')) {
        (Some((high, step)), None) => (high, step, false),
        (None, Some((high, factor))) => (high, factor, true),
        _ => return Err(usage()),
    };
    let [(low, unit), (high, high_unit), (by, by_unit)] = [low, high, by].map(number_and_unit);
    let (Some(low), Some(high), Some(by)) = (low, high, by) else { return Err(usage()) };
    if high_unit != unit || !(by_unit == unit || by_unit.is_empty()) {
        return Err(format!("`{text}`: both ends and the step must have the same unit"));
    }
    let grows = if factor { low > 0.0 && by > 1.0 } else { by > 0.0 };
    if !grows || high < low {
        return Err(format!("`{text}` never ends: it must increase, by a step above 0 or a factor above 1"));
    }
    let at = |index: i32| if factor { low * by.powi(index) } else { low + by * f64::from(index) };
    let end = high + 1e-9 * high.abs().max(by);
    let values = (0..).map(at).take_while(|value| *value <= end).take(POINTS_MAX);
    let blank = if unit.is_empty() { "" } else { " " };
    // Twelve digits: 0.1 + 2 x 0.1 reads as 0.3.
    let rounded = |value: f64| format!("{value:.11e}").parse::<f64>().unwrap_or(value);
    Ok(values.map(|value| format!("{}{blank}{unit}", rounded(value))).collect())
}

fn number_and_unit(text: &str) -> (Option<f64>, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".-+".contains(c))).unwrap_or(text.len());
    (text[..end].parse().ok(), text[end..].trim())
}
