//! An experiment as data: its runs and axes, its claims, its plots.
//!
//! ```toml
//! title    = "Figure 8: ..."      question = "..."      source = "paper, section"
//! [run]                           # {NAME} stands for the value of an axis
//! design = "envy"                 set = ["ftl.clean.kind={cleaner}"]
//! workload = "hotcold hot={locality} bs=256B"
//! precondition = "steady"         until = "2 x capacity"
//! [[axis]]
//! name = "locality"               values = ["50/50", "10/90"]   # an axis `seed` repeats the run with each
//! [smoke]                         # what a small run changes: set (added), workload, until, precondition, values
//! [[row]]                         # a claim
//! claim = "..."                   where = "figure 8"           basis = "stated"
//! at = { locality = "50/50" }     measure = "clean.cost"       expected = 4.0      band = "2 %"
//! # or: within = [3.5, 4.4]       note = "why these limits"    # or neither: the row is reported
//! # form = "8 / 67 ns"            # how a derived number follows from stated ones
//! # input = true                  # a parameter of the design: shown, held to its band, never counted as a pass
//! # sets = "tlc-64l-fg program"   # the number of a part or design that was set from this figure: never counted as a pass
//! # regression = true             # computed by this program earlier: never counted as a pass
//! [[plot]]
//! x = "locality"                  series = "cleaner"           measure = "clean.cost"
//! [[plot.curve]]
//! name = "closed form"            points = [["50/50", 1.693]]
//! ```

use super::row::{Measure, Row, at, parse_measure, row};
use crate::sweep::SEED;
use crate::sweep::space::{At, Axis, RunSpec, Space};
use nvlab_design::toml_reader::datum::{Datum, Shape};
use nvlab_design::toml_reader::{FileError, Source, Table};
use nvlab_run::Preparation;
use nvlab_run::plan::Until;
use std::sync::Arc;

/// One experiment: mostly one figure.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// `fig08`.
    pub name: String,
    /// What it reproduces.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// Where the claims are made.
    pub source: String,
    /// Additional information for the reader; may be empty.
    pub note: String,
    /// The runs.
    pub space: Space,
    /// The claims.
    pub rows: Vec<Row>,
    /// The plots.
    pub plots: Vec<Plot>,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// The x axis.
    pub x: String,
    /// Its label.
    pub x_label: String,
    /// Its scale.
    pub x_scale: Scale,
    /// The axis with one line for each value.
    pub series: Option<String>,
    /// Further axes stay at these values.
    pub at: At,
    /// What is drawn along the y axis; a line for each.
    pub measures: Vec<(String, Measure)>,
    /// Its label.
    pub y_label: String,
    /// Its scale.
    pub y_scale: Scale,
    /// Lines to compare with.
    pub curves: Vec<Curve>,
}

/// A line that was not measured.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Value of the x axis, and y.
    pub points: Vec<(String, f64)>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
    /// One place for each value.
    Steps,
}

type Read<T> = Result<T, FileError>;

impl Experiment {
    /// Reads an experiment; with `smoke`, at the size its `[smoke]` describes.
    pub fn read(name: &str, file: &str, text: &str, smoke: bool) -> Read<Experiment> {
        let top = Table::root(&Arc::new(Source::file(file, text)), "an experiment")?;
        let (run, axes) = run_and_axes(&top, smoke)?;
        let mut experiment = Experiment {
            name: name.to_string(),
            title: top.needed("title")?,
            question: top.needed("question")?,
            source: top.needed("source")?,
            note: top.text("note")?.unwrap_or_default(),
            space: Space { run, axes },
            rows: Vec::new(),
            plots: Vec::new(),
        };
        for table in top.tables("row")? {
            experiment.rows.extend(row(&table, &experiment.space, smoke)?);
        }
        for table in top.tables("plot")? {
            experiment.plots.push(plot(&table, &experiment)?);
        }
        top.end()?;
        Ok(experiment)
    }
}

fn run_and_axes(top: &Table, smoke: bool) -> Read<(RunSpec, Vec<Axis>)> {
    let table = top.needed_table("run")?;
    let mut run = RunSpec {
        design: table.needed("design")?,
        sets: table.texts("set")?.unwrap_or_default(),
        workload: table.needed("workload")?,
        state: state(&table)?.unwrap_or_default(),
        until: until(&table)?,
        seed: match table.datum("seed", Shape::Count { min: 0, max: u64::MAX })? {
            Some(Datum::Count(seed)) => seed.to_string(),
            _ => "1".to_string(),
        },
    };
    table.end()?;
    let mut axes = Vec::new();
    for table in top.tables("axis")? {
        let values = table.texts("values")?.filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| table.error("[[axis]] needs `values`, at least one"))?;
        let sets = table.lists("set")?.unwrap_or_default();
        if let Some((value, _)) = sets.iter().find(|(value, _)| !values.contains(value)) {
            return Err(table
                .wrong("set", format!("changes the design for `{value}`, which is not one of its values")));
        }
        axes.push(Axis { name: table.needed("name")?, values, sets });
        table.end()?;
    }
    if axes.iter().any(|axis| axis.name == SEED) {
        run.seed = format!("{{{SEED}}}");
    }
    if let Some(table) = top.table("smoke")? {
        let changes = (table.texts("set")?, table.text("workload")?, state(&table)?, until(&table)?);
        let values = table.lists("values")?.unwrap_or_default();
        for (name, values) in values {
            let Some(axis) = axes.iter_mut().find(|axis| axis.name == name) else {
                return Err(table.wrong("values", format!("names `{name}`, which is not an axis")));
            };
            if smoke {
                axis.values = values;
            }
        }
        table.end()?;
        if smoke {
            run.sets.extend(changes.0.unwrap_or_default());
            run.workload = changes.1.unwrap_or(run.workload);
            run.state = changes.2.unwrap_or(run.state);
            run.until = changes.3.or(run.until);
        }
    }
    Ok((run, axes))
}

fn state(table: &Table) -> Read<Option<Preparation>> {
    let text = table.text("precondition")?;
    let read = text.map(|text| text.parse::<Preparation>()).transpose();
    read.map_err(|problem| table.wrong("precondition", format!("is invalid: {problem}")))
}

fn until(table: &Table) -> Read<Option<String>> {
    let text = table.text("until")?;
    if let Some(text) = text.as_ref().filter(|text| !text.contains('{')) {
        text.parse::<Until>().map_err(|problem| table.wrong("until", format!("is invalid: {problem}")))?;
    }
    Ok(text)
}

fn plot(table: &Table, experiment: &Experiment) -> Read<Plot> {
    let axis = |key: &'static str, name: String| match experiment.space.axis(&name) {
        Some(_) => Ok(name),
        None => Err(table.wrong(key, format!("names `{name}`, which is not an axis"))),
    };
    let scale = |key: &'static str| match table.text(key)?.as_deref() {
        None | Some("linear") => Ok(Scale::Linear),
        Some("log") => Ok(Scale::Log),
        Some("steps") if key == "x-scale" => Ok(Scale::Steps),
        Some(_) => Err(table.wrong(key, "is linear or log (or steps, for x)")),
    };
    let times = table.number("times")?.unwrap_or(1.0);
    let unit = table.text("unit")?.unwrap_or_default();
    let pairs = match table.text("measure")? {
        Some(one) => vec![(String::new(), one)],
        None => table.pairs("measures")?.unwrap_or_default(),
    };
    let mut measures = Vec::new();
    for (name, text) in pairs {
        let measure = parse_measure(&text)
            .map_err(|problem| table.wrong("measure", format!("is invalid: {problem}")))?;
        measures.push((name, Measure { times, unit: unit.clone(), ..measure }));
    }
    if measures.is_empty() {
        return Err(table.error("[[plot]] needs `measure`, or `measures` with a name for each"));
    }
    let mut curves = Vec::new();
    for curve in table.tables("curve")? {
        curves.push(Curve { name: curve.needed("name")?, points: curve.points("points")? });
        curve.end()?;
    }
    let x = axis("x", table.needed("x")?)?;
    let plot = Plot {
        title: table.text("title")?.unwrap_or_else(|| experiment.title.clone()),
        x_label: table.text("x-label")?.unwrap_or_else(|| x.clone()),
        x,
        x_scale: scale("x-scale")?,
        series: table.text("series")?.map(|name| axis("series", name)).transpose()?,
        // A small run may have other values: then nothing is drawn.
        at: at(table, "at", &experiment.space, false)?.unwrap_or_default(),
        measures,
        y_label: table.text("y-label")?.unwrap_or_default(),
        y_scale: scale("y-scale")?,
        curves,
    };
    table.end()?;
    let covered = 1 + usize::from(plot.series.is_some()) + plot.at.len();
    if covered != experiment.space.axes.len() {
        return Err(table.error(format!(
            "[[plot]] covers {covered} of {} axes: x, series, at",
            experiment.space.axes.len()
        )));
    }
    Ok(plot)
}
