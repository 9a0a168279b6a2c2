//! The results of a sweep as one table: a row for each point, a column for each key that was varied, for each metric, for the
//! key of the run, for how its device was prepared and for the reason if there is no result.
//!
//! A key is a column of numbers in a base unit if all of its values are numbers: 7 % is 0.07, and `ftl.unit_bytes`
//! 4096. Values of metrics are in base units, the unit in the column's name; a metric for which a run has no value is
//! missing. A metric that a run measures with limited precision also has a column `METRIC.within`: half of its 95 %
//! interval over its value, 0 if it is not random, infinite (in JSON null) if the run is too short. `prepared` says
//! how the device was prepared. The columns do not depend on the results. In memory and in Parquet the table also
//! contains the description of its sweep ([`super::finished`]).

use super::description::{Description, KEY};
use super::scale::Scale;
use super::{Figures, Outcome, Shown, Sweep};
use nvlab_report::compare::csv_row;
use nvlab_run::Figure;
use nvlab_run::metric::{Metric, metrics};
use nvlab_table::{Column, Table, Values};
use serde_json::{Map, Value};
use std::io;

/// Version of the table.
pub const SCHEMA: &str = "nvlab.sweep/1";

/// The results of a sweep.
pub struct SweepTable {
    keys: Vec<Scale>,
    metrics: &'static [Metric],
    rows: Vec<Row>,
    /// As JSON.
    description: String,
}

struct Row {
    values: Vec<String>,
    metrics: Vec<Option<f64>>,
    prepared: Option<String>,
    run: Option<String>,
    error: Option<String>,
}

/// The name of the column with the precision of a metric; `None`: runs do not report it.
pub(super) fn within(metric: &Metric) -> Option<String> {
    Figure::of_metric(&metric.name).map(|_| format!("{}.within", metric.name))
}

/// The columns of a metric.
fn names(metric: &Metric) -> impl Iterator<Item = String> {
    [metric.column()].into_iter().chain(within(metric))
}

/// What is in them.
fn cells(metric: &Metric, run: Option<&Figures>) -> impl Iterator<Item = Option<f64>> {
    let (value, interval) = run.and_then(|run| run.known(metric)).unzip();
    let relative = value.zip(interval).map(|(value, interval)| match interval {
        0.0 => 0.0,
        interval => interval / value.abs(),
    });
    [value].into_iter().chain(within(metric).map(|_| relative))
}

impl SweepTable {
    /// Of all points, in their order; its metadata say what was varied and what is `shown` of it.
    pub fn new(sweep: &Sweep, outcomes: &[Outcome], shown: &Shown) -> SweepTable {
        let (keys, metrics) = (sweep.space.keys(), metrics());
        let row = |outcome: &Outcome| {
            let run = outcome.result.as_ref().ok();
            let value = |key: &String| sweep.space.value_at(&outcome.point, key).unwrap_or_default();
            Row {
                values: keys.iter().map(value).collect(),
                metrics: metrics.iter().flat_map(|metric| cells(metric, run)).collect(),
                prepared: run.map(|run| run.prepared.clone()),
                run: run.map(|run| run.key.clone()),
                error: outcome.result.as_ref().err().cloned(),
            }
        };
        let rows = outcomes.iter().map(row).collect();
        let keys = keys.iter().map(|key| sweep.space.scale(key)).collect();
        let description = Description::of(sweep, outcomes, shown);
        let description = serde_json::to_string(&description).expect("texts and numbers");
        SweepTable { keys, metrics, rows, description }
    }

    fn names(&self) -> Vec<String> {
        let metrics = self.metrics.iter().flat_map(names);
        let last = ["prepared", "run", "error"].map(str::to_string);
        self.keys.iter().map(|key| key.column.clone()).chain(metrics).chain(last).collect()
    }

    /// Comma-separated, with a line of names; a missing value is empty.
    pub fn csv(&self) -> String {
        let row = |row: &Row| {
            let metrics =
                row.metrics.iter().map(|value| value.map_or(String::new(), |value| value.to_string()));
            let last = [&row.prepared, &row.run, &row.error].map(|text| text.clone().unwrap_or_default());
            let values = self.keys.iter().zip(&row.values).map(|(key, value)| {
                key.number(value).map_or_else(|| value.clone(), |number| number.to_string())
            });
            csv_row(&values.chain(metrics).chain(last).collect::<Vec<_>>())
        };
        csv_row(&self.names()) + &self.rows.iter().map(row).collect::<String>()
    }

    /// One JSON document: `schema`, and an object for each row.
    pub fn json(&self) -> String {
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::from);
        let row = |row: &Row| {
            let metrics = row.metrics.iter().map(|value| value.map_or(Value::Null, Value::from));
            let values = self.keys.iter().zip(&row.values).map(|(key, value)| key.value(value));
            let cells = values.chain(metrics).chain([&row.prepared, &row.run, &row.error].map(text));
            Value::Object(self.names().into_iter().zip(cells).collect::<Map<_, _>>())
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        format!("{:#}\n", serde_json::json!({ "schema": SCHEMA, "rows": rows }))
    }

    /// Parquet: zstd, one row group, every column nullable.
    pub fn parquet(&self) -> io::Result<Vec<u8>> {
        self.table().parquet()
    }

    /// In memory, with what it says of its sweep.
    pub fn table(&self) -> Table {
        let texts = |of: &dyn Fn(&Row) -> Option<String>| Values::Texts(self.rows.iter().map(of).collect());
        let numbers = |of: &dyn Fn(&Row) -> Option<f64>| Values::Numbers(self.rows.iter().map(of).collect());
        let key = |at: usize| match self.keys[at].is_numeric() {
            true => numbers(&|row| self.keys[at].number(&row.values[at])),
            false => texts(&|row| Some(row.values[at].clone())),
        };
        let metrics = self.metrics.iter().flat_map(names).count();
        let metric = |at: usize| numbers(&|row| row.metrics[at]);
        let last: [fn(&Row) -> Option<String>; 3] =
            [|row| row.prepared.clone(), |row| row.run.clone(), |row| row.error.clone()];
        let values = (0..self.keys.len()).map(key).chain((0..metrics).map(metric));
        let values = values.chain(last.iter().map(|of| texts(of)));
        let metadata = [("nvlab.schema", SCHEMA), (KEY, &self.description)];
        Table {
            columns: self
                .names()
                .into_iter()
                .zip(values)
                .map(|(name, values)| Column::new(name, values))
                .collect(),
            metadata: metadata.map(|(key, value)| (key.to_string(), value.to_string())).into(),
        }
    }
}
