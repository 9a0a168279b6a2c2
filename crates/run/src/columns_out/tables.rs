//! The columns of a result as Parquet: zstd, one row group, units in the names, key and schema as metadata.

use crate::result::{OpResult, RunResult, Window};
use nvlab_table::{Column, Table, Values};

/// Names and versions of the tables of a run.
const SERIES: &str = "nvlab.series/1";
const HISTOGRAMS: &str = "nvlab.hist/1";

/// The windows of a run. What a window does not have (the latency of reads when nothing was read) is missing.
pub fn series(run: &RunResult) -> Table {
    let windows = || run.series.iter();
    let real = |get: fn(&Window) -> f64| Values::Numbers(windows().map(|window| Some(get(window))).collect());
    let count = |get: fn(&Window) -> u64| Values::Counts(windows().map(|window| Some(get(window))).collect());
    let latency = |get: fn(&Window) -> u64| {
        Values::Counts(windows().map(|window| Some(get(window)).filter(|ns| *ns > 0)).collect())
    };
    let amplification = windows().map(|window| Some(window.write_amplification).filter(|wa| *wa > 0.0));
    of_run(
        run,
        SERIES,
        vec![
            ("from_s", real(|w| w.from_s)),
            ("to_s", real(|w| w.to_s)),
            ("requests", count(|w| w.requests)),
            ("read_bytes", count(|w| w.read_bytes)),
            ("write_bytes", count(|w| w.write_bytes)),
            ("read_p50_ns", latency(|w| w.read_p50_ns)),
            ("read_p99_ns", latency(|w| w.read_p99_ns)),
            ("write_p50_ns", latency(|w| w.write_p50_ns)),
            ("write_p99_ns", latency(|w| w.write_p99_ns)),
            ("write_amplification", Values::Numbers(amplification.collect())),
            ("cleaning_cost", real(|w| w.cleaning_cost)),
            ("erases", count(|w| w.erases)),
        ],
    )
}

/// The latency buckets of every kind of request, ascending within a kind.
pub fn histograms(run: &RunResult) -> Table {
    let ops: [(&str, &OpResult); 4] =
        [("read", &run.read), ("write", &run.write), ("trim", &run.trim), ("flush", &run.flush)];
    let rows: Vec<(&str, u64, u64)> = ops
        .iter()
        .flat_map(|(name, op)| op.histogram_ns.iter().map(|&(upper, count)| (*name, upper, count)))
        .collect();
    let names = rows.iter().map(|row| Some(row.0.to_string())).collect();
    let uppers = rows.iter().map(|row| Some(row.1)).collect();
    let counts = rows.iter().map(|row| Some(row.2)).collect();
    of_run(
        run,
        HISTOGRAMS,
        vec![
            ("op", Values::Texts(names)),
            ("upper_ns", Values::Counts(uppers)),
            ("count", Values::Counts(counts)),
        ],
    )
}

fn of_run(run: &RunResult, schema: &str, columns: Vec<(&str, Values)>) -> Table {
    // The same for every run, whether a value is missing or not: readers may put many runs into one table.
    let may_miss = |name: &str| name.contains("_p") || name == "write_amplification";
    let column = |(name, values)| Column { may_miss: may_miss(name), ..Column::new(name, values) };
    let metadata = [("nvlab.schema", schema), ("nvlab.key", &run.key)];
    Table {
        columns: columns.into_iter().map(column).collect(),
        metadata: metadata.map(|(key, value)| (key.to_string(), value.to_string())).into(),
    }
}
