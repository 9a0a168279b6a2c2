//! What scripts draw: the data, the places for the charts, and their tables.

use super::summary::quantile;
use super::text::{Labelled, Table, details, escape, or_dash, script_data, section as section_of};
use super::wear;
use crate::report::{human, number};
use crate::result::Window;
use serde_json::{Value, json};

/// The data of the page: the results as `result.json` has them, and what they are called. The texts of designs
/// stand in the page already and are left out.
pub(super) fn data(runs: &[Labelled<'_>]) -> String {
    let run = |labelled: &Labelled<'_>| {
        let mut result = serde_json::to_value(labelled.run).unwrap_or(Value::Null);
        result["design"]["resolved_toml"] = Value::String(String::new());
        let (label, color) = (&labelled.label, labelled.color);
        json!({"label": label, "color": color, "dies": wear::dies(labelled.run), "result": result})
    };
    script_data(&json!({"runs": runs.iter().map(run).collect::<Vec<_>>()}))
}

/// A place for a chart.
fn chart(id: &str, title: &str) -> String {
    format!(
        "<figure class=\"script\"><figcaption>{}</figcaption><div class=\"chart\" id=\"{id}\"></div></figure>\n",
        escape(title)
    )
}

const WITHOUT_SCRIPT: &str =
    "<noscript><p class=\"about\">Charts need scripts; the tables do not.</p></noscript>\n";

/// The tail of latency.
pub(super) fn latency(runs: &[Labelled<'_>]) -> String {
    let title = "Share of requests that took at least as long";
    let heads = ["design", "request", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "all"];
    let mut table = Table::new("Latency that this share of the requests did not exceed", 2, &heads);
    for labelled in runs {
        for (name, op) in human::operations(labelled.run) {
            let mut cells = vec![labelled.marked(), name.to_string()];
            let shares = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
            cells.extend(shares.map(|share| quantile(&op.histogram, share)));
            cells.push(number::time_ns(op.latency.max_ns as f64).to_string());
            table.row(&cells);
        }
    }
    let about = "Reads are dashed, writes solid. Both axes are logarithmic: a line further down is ten times rarer. \
                 Drag to zoom, double click to go back.";
    let content = chart("chart-latency", title) + WITHOUT_SCRIPT + &details("Table", &table.html());
    section_of("latency", "Latency", about, &content)
}

/// Rows of a table over time; of more windows every n-th is shown.
const ROWS_MAX: usize = 50;

/// Throughput, latency and write amplification over time.
pub(super) fn over_time(runs: &[Labelled<'_>]) -> String {
    let mut content = chart("chart-throughput", "Throughput");
    content += &chart("chart-p99", "99 % latency");
    content += &chart("chart-waf", "Write amplification");
    content += WITHOUT_SCRIPT;
    for labelled in runs {
        let windows = &labelled.run.series;
        let every = windows.len().div_ceil(ROWS_MAX).max(1);
        let note = match every {
            1 => number::things(windows.len() as u64, "window"),
            every => format!("1 of {every} of {} windows", windows.len()),
        };
        content += &details(&format!("Table: {} ({note})", labelled.label), &windows_table(windows, every));
    }
    let about = "Simulated time since the run began. Reads are dashed, writes solid. Zoom is shared by the three charts.";
    section_of("time", "Over time", about, &content)
}

fn windows_table(windows: &[Window], every: usize) -> String {
    let heads = [
        "from",
        "to",
        "requests",
        "read",
        "written",
        "read p50",
        "read p99",
        "write p50",
        "write p99",
        "WA",
        "erases",
    ];
    let mut table = Table::new("", 0, &heads);
    for window in windows.iter().step_by(every) {
        let span = window.to_s - window.from_s;
        let rate =
            |bytes: u64| or_dash((span > 0.0).then(|| number::bandwidth(bytes as f64 / span).to_string()));
        let latency = |ns: u64| or_dash((ns > 0).then(|| number::time_ns(ns as f64).to_string()));
        let wa = window.write_amplification;
        table.row(&[
            number::time_s(window.from_s).to_string(),
            number::time_s(window.to_s).to_string(),
            number::count(window.requests),
            rate(window.read_bytes),
            rate(window.write_bytes),
            latency(window.read_p50_ns),
            latency(window.read_p99_ns),
            latency(window.write_p50_ns),
            latency(window.write_p99_ns),
            or_dash((wa > 0.0).then(|| human::two(wa))),
            number::count(window.erases),
        ]);
    }
    table.html()
}
