//! Designs, parts, metrics, and what can be explained.

use crate::error::Trouble;
use nvlab_design::sheets::{self, Sheet};
use nvlab_design::{BUILT_IN, DesignErrors};
use nvlab_lab::explain;
use nvlab_run::metric::{self, Better, Metric, Unit, metrics};
use nvlab_run::plan::Named;
use nvlab_units::{Span, quantity};
use pyo3::prelude::*;
use std::sync::Arc;

/// A design: where it comes from, what was changed of it, and what that is.
#[pyclass(frozen, module = "nvlab._nvlab")]
#[derive(Clone)]
pub struct Design {
    /// A built-in name, or the name of `text`.
    source: String,
    /// The text of a file.
    text: Option<String>,
    /// The design under its name.
    pub named: Arc<Named>,
}

impl Design {
    fn read(source: String, text: Option<String>, sets: &[String]) -> Result<Design, DesignErrors> {
        let named = match &text {
            None => Named::load(&source, sets)?,
            Some(text) => {
                let design = nvlab_design::Design::parse(&source, text, sets)?;
                // A file is called by its path, as on the command line; any other text by the name in it.
                let name = if source.ends_with(".toml") { source.clone() } else { design.name.clone() };
                Named::new(&name, sets.to_vec(), design)
            }
        };
        Ok(Design { source, text, named: Arc::new(named) })
    }

    /// Its name, or the path of its file, and its changes; an error if it is only a text, which cannot be done with those.
    pub fn in_a_file(&self, done: &str) -> Result<(String, Vec<String>), Trouble> {
        let name = self.source.split(',').next().unwrap_or_default();
        if self.text.is_some() && !name.ends_with(".toml") {
            let why = format!("a design that is not in a file cannot {done}: save it, and load that");
            return Err(Trouble::Input(why));
        }
        Ok((name.to_string(), self.named.changes.clone()))
    }

    /// The design under its name.
    pub fn into_named(self) -> Named {
        Arc::unwrap_or_clone(self.named)
    }

    /// The same design with further changes.
    pub fn changed(&self, sets: &[String]) -> Result<Design, DesignErrors> {
        let all = [self.named.changes.as_slice(), sets].concat();
        // A later change of a key takes the place of an earlier one.
        let key = |set: &String| set.split('=').next().unwrap_or_default().trim().to_string();
        let is_last = |at: usize| all[at + 1..].iter().all(|later| key(later) != key(&all[at]));
        let sets: Vec<String> = (0..all.len()).filter(|&at| is_last(at)).map(|at| all[at].clone()).collect();
        // What stands after the commas of a name is among the changes.
        let source = match self.text {
            None => self.source.split(',').next().unwrap_or_default().to_string(),
            Some(_) => self.source.clone(),
        };
        Design::read(source, self.text.clone(), &sets)
    }
}

/// Path, value, origin.
type Value = (String, String, String);

#[pymethods]
impl Design {
    #[new]
    fn new(source: String, text: Option<String>, sets: Vec<String>) -> Result<Design, Trouble> {
        Ok(Design::read(source, text, &sets)?)
    }

    fn with_sets(&self, sets: Vec<String>) -> Result<Design, Trouble> {
        Ok(self.changed(&sets)?)
    }

    /// The same kind of drive with another capacity, said as in a design file.
    fn scale(&self, capacity: &str) -> Result<Design, Trouble> {
        let bytes = quantity::bytes(capacity).map_err(|error| Trouble::Input(error.to_string()))?;
        let (reference, _) = self.in_a_file("be extended")?;
        let scaled = nvlab_design::scale::scaled(&reference, &self.named.design, bytes)?;
        Ok(Design::read(scaled.design.name, Some(scaled.text), &[])?)
    }

    /// What [`Design::new`] makes it again from.
    pub fn parts(&self) -> (String, Option<String>, Vec<String>) {
        (self.source.clone(), self.text.clone(), self.named.changes.clone())
    }

    #[getter]
    fn name(&self) -> &str {
        &self.named.name
    }

    #[getter]
    fn about(&self) -> &str {
        &self.named.design.about
    }

    #[getter]
    fn cite(&self) -> &str {
        &self.named.design.cite
    }

    #[getter]
    fn changes(&self) -> Vec<String> {
        self.named.changes.clone()
    }

    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.named.design.capacity_bytes()
    }

    #[getter]
    fn raw_bytes(&self) -> u64 {
        self.named.design.raw_bytes()
    }

    #[getter]
    fn price_usd(&self) -> Option<f64> {
        self.named.design.price().total_usd()
    }

    /// What each medium costs: name, bytes, USD.
    fn prices(&self) -> Vec<(String, u64, Option<f64>)> {
        let items = self.named.design.price().items;
        items.into_iter().map(|item| (item.medium, item.bytes, item.usd)).collect()
    }

    fn values(&self) -> Vec<Value> {
        let resolved = self.named.design.resolved.iter();
        resolved.map(|value| (value.path.clone(), value.value.to_string(), value.origin.text())).collect()
    }

    fn to_toml(&self) -> String {
        self.named.design.resolved_toml().trim_start().to_string()
    }

    fn canonical(&self) -> String {
        self.named.design.canonical_text()
    }

    /// Path, value here, value there.
    fn diff(&self, other: &Design) -> Vec<(String, Option<String>, Option<String>)> {
        let found = nvlab_design::diff(&self.named.design, &other.named.design);
        found.into_iter().map(|one| (one.path, one.left, one.right)).collect()
    }

    /// Values that are hardly meant.
    fn warnings(&self) -> Vec<String> {
        self.named.doubts()
    }
}

/// The names of the built-in designs.
#[pyfunction]
fn designs() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

#[pyfunction]
fn design_template(name: &str) -> String {
    nvlab_design::template(name)
}

#[pyfunction]
fn design_schema() -> String {
    nvlab_design::schema::schema()
}

#[pyfunction]
#[pyo3(signature = (topic=None))]
fn explain_text(topic: Option<&str>) -> Result<String, Trouble> {
    Ok(explain::text(topic)?)
}

fn ns(span: Span) -> f64 {
    span.ps() as f64 / 1e3
}

/// Name, kind, bytes, ns of the fastest and slowest read, of a write, of an erase, cycles, USD per GiB, about.
type PartRow = (String, String, u64, f64, f64, f64, Option<f64>, Option<u32>, Option<f64>, String);

#[pyfunction]
fn parts() -> Vec<PartRow> {
    let row = |row: sheets::Row| {
        let [fastest, slowest] = row.read.map(ns);
        let price = row.price.map(|price| price.of(1 << 30));
        (
            row.name,
            row.kind,
            row.bytes,
            fastest,
            slowest,
            ns(row.write),
            row.erase.map(ns),
            row.endurance,
            price,
            row.about,
        )
    };
    sheets::list().into_iter().map(row).collect()
}

/// Name, about, and of each number key, value, basis and source.
type PartSheet = (String, String, Vec<(String, String, &'static str, String)>);

#[pyfunction]
fn part(name: &str) -> Result<PartSheet, Trouble> {
    let sheet = Sheet::load(name)?;
    let facts = sheet.facts.into_iter();
    let facts = facts.map(|fact| (fact.key, fact.value, fact.evidence.basis.name(), fact.evidence.source));
    Ok((sheet.name, sheet.about, facts.collect()))
}

/// Name, column, title, unit, `less`, `more` or ``, about, whether it says how long the flash lasts.
type MetricRow = (String, String, String, &'static str, &'static str, String, bool);

/// The table of metrics.
#[pyfunction]
fn metric_table() -> Vec<MetricRow> {
    let row = |metric: &Metric| {
        let better = match metric.better {
            Better::Less => "less",
            Better::More => "more",
            Better::Neither => "",
        };
        (
            metric.name.clone(),
            metric.column(),
            metric.title.clone(),
            unit(metric.unit),
            better,
            metric.about.clone(),
            metric.is_life(),
        )
    };
    metrics().iter().map(row).collect()
}

/// The unit of a metric, as an axis shows it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ratio | Unit::Count | Unit::Share => "",
        Unit::Nanoseconds => "ns",
        Unit::Seconds => "s",
        Unit::Bytes | Unit::BytesDecimal => "B",
        Unit::BytesPerSecond => "B/s",
        Unit::PerSecond => "1/s",
        Unit::Years => "years",
        Unit::Usd => "USD",
        Unit::UsdPerGib => "USD/GiB",
    }
}

/// A value of a metric for people: `2.41 ms`.
#[pyfunction]
fn display_metric(name: &str, value: f64) -> Result<String, Trouble> {
    Ok(metric::find(name)?.unit.shown(value).to_string())
}

/// Bytes for people: `114 GiB`.
#[pyfunction]
fn display_bytes(bytes: u64) -> String {
    quantity::display_bytes(bytes)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Design>()?;
    module.add_function(wrap_pyfunction!(designs, module)?)?;
    module.add_function(wrap_pyfunction!(design_template, module)?)?;
    module.add_function(wrap_pyfunction!(design_schema, module)?)?;
    module.add_function(wrap_pyfunction!(explain_text, module)?)?;
    module.add_function(wrap_pyfunction!(parts, module)?)?;
    module.add_function(wrap_pyfunction!(part, module)?)?;
    module.add_function(wrap_pyfunction!(metric_table, module)?)?;
    module.add_function(wrap_pyfunction!(display_metric, module)?)?;
    module.add_function(wrap_pyfunction!(display_bytes, module)?)
}
