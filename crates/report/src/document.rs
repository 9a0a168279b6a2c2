//! The documents for programs: `run --json`, `compare --json` and a stored `result.json`, and their JSON Schema, made
//! from the types themselves.
//!
//! Within the version in a document's `schema` no field is renamed or removed; fields may be added.

use crate::notes::notes;
use nvlab_run::metric::Metric;
use nvlab_run::result::RunResult;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use std::collections::BTreeMap;

pub(super) const RUNS: &str = "nvlab.runs/1";
pub(super) const COMPARISON: &str = "nvlab.compare/2";
pub(super) const COMPARISON_ROW: &str = "nvlab.compare.row/1";

/// A run: a stored `result.json`, or `run --json`, which adds the assertions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunDocument<'a> {
    /// The result.
    #[serde(flatten)]
    run: &'a RunResult,
    /// The assertions of `--assert`.
    #[serde(skip_serializing_if = "<[Assertion]>::is_empty")]
    asserts: &'a [Assertion],
    /// Warnings that a reader needs before using a figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl<'a> RunDocument<'a> {
    /// Of this run.
    pub fn new(run: &'a RunResult, asserts: &'a [Assertion]) -> RunDocument<'a> {
        RunDocument { run, asserts, notes: notes(run) }
    }
}

/// An assertion and whether it holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Assertion {
    /// Whether it holds.
    pub holds: bool,
    /// The assertion and the value it was compared with.
    pub text: String,
}

/// Runs with several seeds: `run -n 5 --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunsDocument<'a> {
    /// Names this kind of document and its version.
    #[schemars(extend("const" = RUNS))]
    schema: &'static str,
    /// One for each seed.
    runs: &'a [RunResult],
    /// The assertions of `--assert`, of every run.
    asserts: &'a [Assertion],
    /// Warnings that a reader needs before using a figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl<'a> RunsDocument<'a> {
    /// Of these runs.
    pub fn new(runs: &'a [RunResult], asserts: &'a [Assertion]) -> RunsDocument<'a> {
        let of = |run: &RunResult| {
            let seed = run.seed;
            notes(run).into_iter().map(move |note| format!("seed {seed}: {note}"))
        };
        RunsDocument { schema: RUNS, runs, asserts, notes: runs.iter().flat_map(of).collect() }
    }
}

/// Several designs under the same workload: `compare --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Comparison<'a> {
    /// Names this kind of document and its version.
    #[schemars(extend("const" = COMPARISON))]
    pub schema: &'static str,
    /// The workload's text.
    pub workload: &'a str,
    /// The baseline of the comparison: the first design.
    pub baseline: &'a str,
    /// The metrics compared.
    pub metrics: Vec<MetricEntry<'a>>,
    /// The designs, in the order they were given.
    pub designs: Vec<Design<'a>>,
    /// Conclusions from the figures, for users.
    pub sentences: Vec<String>,
    /// Warnings that a reader needs before using a figure.
    pub notes: &'a [String],
}

/// A line of `compare --format jsonl`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ComparisonRow<'a> {
    /// Names this kind of document and its version.
    #[schemars(extend("const" = COMPARISON_ROW))]
    pub schema: &'static str,
    /// The workload's text.
    pub workload: &'a str,
    /// The design.
    #[serde(flatten)]
    pub design: Design<'a>,
}

/// A metric, as `-m` takes it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MetricEntry<'a> {
    /// Its name: `write.p99`.
    name: &'a str,
    /// Its key in `values`, with the unit: `write.p99_ns`.
    field: String,
    /// Its name for users.
    title: &'a str,
    /// Its definition.
    about: &'a str,
}

impl MetricEntry<'_> {
    pub fn of(metric: &Metric) -> MetricEntry<'_> {
        let Metric { name, title, about, .. } = metric;
        MetricEntry { name, field: metric.column(), title, about }
    }
}

/// One design.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Design<'a> {
    /// Its name, with what was changed in it.
    pub design: &'a str,
    /// The seeds of its runs.
    pub seeds: &'a [u64],
    /// The keys of its runs.
    pub keys: &'a [String],
    /// How its devices were prepared.
    pub prepared: &'a str,
    /// A value for each metric, in the base unit that the key ends with; `null` if it has none.
    pub values: BTreeMap<String, Option<Value<'a>>>,
}

/// The value of a metric.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Value<'a> {
    /// Mean of all runs.
    pub mean: f64,
    /// Half of its 95 % interval, 0 if it is not random; `null`: the runs are too short.
    pub interval: Option<f64>,
    /// The value of each run.
    pub values: &'a [f64],
    /// The mean over that of the baseline; `null` in the baseline itself.
    pub ratio: Option<f64>,
    /// Half of its 95 % interval; `null` also if the runs are too short.
    pub ratio_interval: Option<f64>,
    /// True if it does not differ significantly from the baseline.
    pub same: bool,
    /// Why the value must be used with care.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub doubts: &'a [String],
}

/// Any of these documents.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "nvlab results")]
#[expect(dead_code, reason = "only its schema is used")]
enum Document<'a> {
    Run(RunDocument<'a>),
    Runs(RunsDocument<'a>),
    Comparison(Comparison<'a>),
    ComparisonRow(ComparisonRow<'a>),
}

/// The JSON Schema of results, as text.
pub fn schema() -> String {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<Document<'_>>();
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
