//! An experiment as data: what is run, along which axes, what is claimed, what is drawn.
//!
//! ```toml
//! title    = "Figure 8: ..."      question = "..."      source = "paper, section"
//! [run]                           # {NAME} stands for the value of an axis
//! design = "envy"                 set = ["ftl.clean.kind={cleaner}"]
//! workload = "hotcold hot={locality} bs=256B"
//! precondition = "steady"         until = "2 x capacity"
//! [[axis]]
//! name = "locality"               values = ["50/50", "10/90"]
//! [smoke]                         # what a small run changes: set (added), workload, until, precondition, values
//! [[row]]                         # a claim
//! claim = "..."                   where = "figure 8"           basis = "stated"
//! at = { locality = "50/50" }     measure = "clean.cost"       expected = 4.0      band = "2 %"
//! # or: within = [3.5, 4.4]       note = "why these limits"    # or neither: the row is reported
//! # input = true                  # a parameter of the design: shown, held to its band, never counted as a pass
//! # sets = "tlc-64l-fg program"   # the number of a part or design that was set from this figure: never counted as a pass
//! [[plot]]
//! x = "locality"                  series = "cleaner"           measure = "clean.cost"
//! [[plot.curve]]
//! name = "closed form"            points = [["50/50", 1.693]]
//! ```

use crate::design::source::Basis;
use crate::plan::Until;
use crate::report::metric;
use crate::run::Preparation;
use crate::sweep::space::{At, Axis, RunSpec, Space};
use crate::toml_reader::datum::{Datum, Shape};
use crate::toml_reader::{FileError, Source, Table};
use nvlab_units::quantity;
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
    /// What a reader should know; may be empty.
    pub note: String,
    /// What is run.
    pub space: Space,
    /// What is claimed.
    pub rows: Vec<Row>,
    /// What is drawn.
    pub plots: Vec<Plot>,
}

/// How a claim is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The measure at a point.
    Value,
    /// The measure at `at` over the measure at `to`.
    Ratio,
    /// The sum of the measure along the line `at` over that along the line `to`.
    SumRatio,
    /// The harmonic mean of the ratios of the measure along the line `at` over that along the line `to`: of speed-ups, if it
    /// is a time.
    HarmonicMean,
    /// How much more the measure is at `at` than at `to`, in %: a price.
    Excess,
    /// How much less, in %: an improvement of a time.
    Saving,
    /// The smallest growth of the saving from one value of the free axis to the next: above 0 if it rises everywhere.
    SavingRises,
    /// Where, along the free axis, the lines `at` and `to` cross: interpolated between the points around it.
    Crossing,
    /// The largest ratio of line `at` over line `to`: below 1 if the first is lower everywhere.
    Below,
    /// The largest value along the free axis.
    Largest,
    /// The place of the smallest value along the free axis.
    LeastAt,
    /// Slope of the line behind the value over its slope before it.
    Steepening {
        /// The value on the free axis.
        around: String,
    },
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Row {
    /// What is claimed.
    pub claim: String,
    /// Where it is made.
    pub place: String,
    /// The point or line.
    pub at: At,
    /// The one it is compared with.
    pub to: At,
    /// How it is measured.
    pub check: Check,
    /// What is measured.
    pub measure: Measure,
    /// The number that was stated, or that follows from what was stated.
    pub expected: Option<f64>,
    /// The accepted range; `None`: reported only.
    pub band: Option<[f64; 2]>,
    /// The measure is an input, not a finding: it never counts as a pass.
    pub input: bool,
    /// The numbers of parts and designs that were set from this figure; empty if there are none. With any it is a
    /// calibration, not a finding, and never counts as a pass.
    pub sets: String,
    /// The basis of the expectation.
    pub basis: Basis,
    /// The reason of the band, or of a deviation.
    pub note: String,
}

/// What is measured of a run: a metric, or one over another, times a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The metric.
    pub metric: String,
    /// What it is divided by.
    pub over: Option<String>,
    /// Factor, for another unit.
    pub times: f64,
    /// The unit shown; empty for a plain number.
    pub unit: String,
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
            experiment.rows.extend(row(&table, &experiment, smoke)?);
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
            return Err(
                table.wrong("set", format!("changes the design for `{value}`, which is none of its values"))
            );
        }
        axes.push(Axis { name: table.needed("name")?, values, sets });
        table.end()?;
    }
    if let Some(table) = top.table("smoke")? {
        let changes = (table.texts("set")?, table.text("workload")?, state(&table)?, until(&table)?);
        let values = table.lists("values")?.unwrap_or_default();
        for (name, values) in values {
            let Some(axis) = axes.iter_mut().find(|axis| axis.name == name) else {
                return Err(table.wrong("values", format!("names `{name}`, which is no axis")));
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
    read.map_err(|problem| table.wrong("precondition", format!("is wrong: {problem}")))
}

fn until(table: &Table) -> Read<Option<String>> {
    let text = table.text("until")?;
    if let Some(text) = text.as_ref().filter(|text| !text.contains('{')) {
        text.parse::<Until>().map_err(|problem| table.wrong("until", format!("is wrong: {problem}")))?;
    }
    Ok(text)
}

/// A point or line; `None` if one of its values is not among those of a small run.
fn at(table: &Table, key: &'static str, experiment: &Experiment, smoke: bool) -> Read<Option<At>> {
    let pairs = table.pairs(key)?.unwrap_or_default();
    for (name, value) in &pairs {
        let Some(axis) = experiment.space.axis(name) else {
            return Err(table.wrong(key, format!("names `{name}`, which is no axis")));
        };
        if !axis.values.contains(value) {
            if smoke {
                return Ok(None);
            }
            let values = axis.values.join(", ");
            return Err(table.wrong(key, format!("`{value}` is no value of `{name}` (values: {values})")));
        }
    }
    Ok(Some(pairs))
}

fn row(table: &Table, experiment: &Experiment, smoke: bool) -> Read<Option<Row>> {
    let (claim, place) = (table.needed("claim")?, table.needed("where")?);
    let from = at(table, "at", experiment, smoke)?;
    let to = at(table, "to", experiment, smoke)?;
    let around = table.text("around")?;
    let check = match (table.text("check")?.as_deref(), around) {
        (None | Some("value"), None) => Check::Value,
        (Some("ratio"), None) => Check::Ratio,
        (Some("sum-ratio"), None) => Check::SumRatio,
        (Some("harmonic-mean"), None) => Check::HarmonicMean,
        (Some("excess"), None) => Check::Excess,
        (Some("saving"), None) => Check::Saving,
        (Some("saving-rises"), None) => Check::SavingRises,
        (Some("crossing"), None) => Check::Crossing,
        (Some("below"), None) => Check::Below,
        (Some("largest"), None) => Check::Largest,
        (Some("least-at"), None) => Check::LeastAt,
        (Some("steepening"), Some(around)) => Check::Steepening { around },
        _ => {
            let all = "value, ratio, sum-ratio, harmonic-mean, excess, saving, saving-rises, crossing, below, largest, least-at, or steepening with `around`";
            return Err(table.wrong("check", format!("is one of {all}")));
        }
    };
    let measure = measure(table)?;
    let expected = table.number("expected")?;
    let band = band(table, expected, smoke)?;
    let basis = table.needed("basis")?;
    let basis = Basis::ALL.iter().find(|(name, _)| *name == basis).map(|(_, basis)| *basis);
    let basis = basis.ok_or_else(|| table.wrong("basis", "is stated, cited, derived or assumed"))?;
    let note = table.text("note")?.unwrap_or_default();
    let input = table.flag("input")?.unwrap_or(false);
    let sets = table.text("sets")?.unwrap_or_default();
    if table.range("within")?.is_some() && note.is_empty() {
        return Err(table.wrong("within", "needs a `note`: the reason of the band"));
    }
    if !sets.is_empty() && band.is_none() {
        return Err(table.wrong("sets", "needs a band: how well it could be set"));
    }
    if input && band.is_none() {
        return Err(table.wrong("input", "needs a band: what is put in is known"));
    }
    let in_smoke = table.flag("smoke")?.unwrap_or(true);
    table.end()?;
    let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
    if smoke && !in_smoke {
        return Ok(None);
    }
    let row = Row { claim, place, at: from, to, check, measure, expected, band, input, sets, basis, note };
    free_axes(table, experiment, &row)?;
    Ok(Some(row))
}

/// A check needs a point (every axis fixed) or a line (one axis free).
fn free_axes(table: &Table, experiment: &Experiment, row: &Row) -> Read<()> {
    let (line, two) = match row.check {
        Check::Value => (0, false),
        Check::Ratio | Check::Excess | Check::Saving => (0, true),
        Check::SumRatio | Check::HarmonicMean | Check::Crossing | Check::Below | Check::SavingRises => {
            (1, true)
        }
        Check::Largest | Check::LeastAt | Check::Steepening { .. } => (1, false),
    };
    let wanted = experiment.space.axes.len().saturating_sub(line);
    let fixed = |key: &'static str, at: &At| {
        if at.len() == wanted {
            return Ok(());
        }
        let names: Vec<&str> = experiment.space.axes.iter().map(|axis| axis.name.as_str()).collect();
        Err(table.wrong(
            key,
            format!("fixes {} axes; this check wants {wanted} of: {}", at.len(), names.join(", ")),
        ))
    };
    fixed("at", &row.at)?;
    if two { fixed("to", &row.to) } else { Ok(()) }
}

/// `measure = "a"` or `"a / b"`, `times`, `unit`.
fn measure(table: &Table) -> Read<Measure> {
    let text = table.needed("measure")?;
    let measure =
        parse_measure(&text).map_err(|problem| table.wrong("measure", format!("is wrong: {problem}")))?;
    Ok(Measure {
        times: table.number("times")?.unwrap_or(1.0),
        unit: table.text("unit")?.unwrap_or_default(),
        ..measure
    })
}

fn parse_measure(text: &str) -> Result<Measure, String> {
    let (name, over) = match text.split_once('/') {
        Some((name, over)) => (name.trim(), Some(over.trim())),
        None => (text.trim(), None),
    };
    let known = |name: &str| metric::find(name).map(|metric| metric.name);
    Ok(Measure { metric: known(name)?, over: over.map(known).transpose()?, times: 1.0, unit: String::new() })
}

/// `band = "3 %"` around the expectation, or `within = [low, high]`; a small run may have its own.
fn band(table: &Table, expected: Option<f64>, smoke: bool) -> Read<Option<[f64; 2]>> {
    let around = |key: &'static str| match (table.text(key)?, expected) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(table.wrong(key, "needs `expected`; use `within`")),
        (Some(text), Some(expected)) => {
            let share = quantity::fraction(&text).map_err(|error| table.wrong(key, error))?;
            let reach = expected.abs() * share;
            Ok(Some([expected - reach, expected + reach]))
        }
    };
    let plain = (around("band")?, table.range("within")?);
    let small = (around("smoke-band")?, table.range("smoke-within")?);
    let one = |(band, within): (Option<[f64; 2]>, Option<[f64; 2]>), keys: &str| match (band, within) {
        (Some(_), Some(_)) => Err(table.error(format!("{keys}: give one of them"))),
        (band, within) => Ok(band.or(within)),
    };
    let (plain, small) = (one(plain, "`band` and `within`")?, one(small, "`smoke-band` and `smoke-within`")?);
    Ok(if smoke { small.or(plain) } else { plain })
}

fn plot(table: &Table, experiment: &Experiment) -> Read<Plot> {
    let axis = |key: &'static str, name: String| match experiment.space.axis(&name) {
        Some(_) => Ok(name),
        None => Err(table.wrong(key, format!("names `{name}`, which is no axis"))),
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
        let measure =
            parse_measure(&text).map_err(|problem| table.wrong("measure", format!("is wrong: {problem}")))?;
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
        at: at(table, "at", experiment, false)?.unwrap_or_default(),
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
