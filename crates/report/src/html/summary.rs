//! The figures: one row for each run, and latency by run and kind of request.

use super::head;
use super::labels::{Labelled, doubted, notes, or_dash};
use crate::compare::life;
use crate::human;
use crate::page::{Page, Table};
use nvlab_run::{metric, number};

/// Columns of the summary.
const COLUMNS: [&str; 7] =
    ["iops", "read.bandwidth", "write.bandwidth", "read.p99", "write.p99", "waf", "erases"];
/// Columns behind the figures of life.
const COLUMNS_LAST: [&str; 3] = ["price", "price.gib", "memory"];

/// What ran, then the summary and latency tables.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    let about = if runs.len() > 1 { "In small print: the ratio to the first row." } else { "" };
    page.section("summary", "Summary", about, &(head::runs(runs) + &figures(runs) + &latencies(runs)));
}

fn figures(runs: &[Labelled<'_>]) -> String {
    let names = [&COLUMNS, life(runs.iter().map(|labelled| labelled.run)), &COLUMNS_LAST].concat();
    let columns = names.into_iter().map(|name| metric::find(name).expect("the table of metrics has them"));
    let columns: Vec<_> =
        columns.filter(|column| runs.iter().any(|run| column.of(run.run).is_some())).collect();
    let mut heads = vec!["design"];
    heads.extend(columns.iter().map(|column| column.title.as_str()));
    let mut table = Table::new("", 1, &heads);
    for (index, labelled) in runs.iter().enumerate() {
        let mut cells = vec![labelled.marked()];
        for column in &columns {
            let value = column.of(labelled.run);
            let baseline = column.of(runs[0].run).filter(|baseline| index > 0 && *baseline != 0.0);
            let ratio = value.zip(baseline).map(|(value, baseline)| ratio(value / baseline));
            let missing = match column.is_life_of(labelled.run) {
                true => human::unworn(labelled.run).split(':').next().unwrap_or_default(),
                false => "–",
            };
            let shown = |value| doubted(column.unit.shown(value).to_string(), &column.name, labelled.run);
            let shown = value.map_or(missing.to_string(), shown);
            cells.push(format!("{shown}{}", ratio.unwrap_or_default()));
        }
        table.row(&cells);
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    table.html() + &notes(runs.iter(), &names)
}

/// The ratio to the baseline, in small print.
fn ratio(ratio: f64) -> String {
    let text = if ratio == 1.0 { "same".to_string() } else { format!("× {}", number::three(ratio)) };
    format!("<small>{text}</small>")
}

fn latencies(runs: &[Labelled<'_>]) -> String {
    let heads = ["design", "request", "count", "mean", "p50", "p95", "p99", "p99.9", "p99.99", "max"];
    let mut table = Table::new("Latency, from when the host issues a request", 2, &heads);
    for labelled in runs {
        for (name, op) in human::timed(labelled.run) {
            let mut cells = vec![labelled.marked(), name.to_string(), number::count(op.count)];
            let shown = |(ns, at): (&f64, &str)| {
                doubted(number::time_ns(*ns).to_string(), &format!("{name}.{at}"), labelled.run)
            };
            let names = ["mean", "p50", "p95", "p99", "p99_9", "p99_99", "max"];
            cells.extend(human::latencies(op).iter().zip(names).map(shown));
            table.row(&cells);
        }
    }
    table.html()
        + &notes(runs.iter(), &["read.mean", "write.mean", "trim.mean", "flush.mean", "transaction.mean"])
}

/// A percentile of a histogram: the smallest bucket bound that at least `share` of the requests do not exceed.
pub(super) fn quantile(histogram: &[(u64, u64)], share: f64) -> String {
    let count: u64 = histogram.iter().map(|(_, count)| count).sum();
    let wanted = ((count as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    let found = histogram.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    or_dash(found.map(|(upper, _)| number::time_ns(*upper as f64).to_string()))
}
