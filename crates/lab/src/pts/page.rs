//! The report of the tests as a page: a table for each test, its convergence, and the curve of write saturation.

use super::{PtsResult, RoundsResult, Test, TestResult};
use nvlab_report::page::{Axis, Curves, Page, Series, Table, escape};
use nvlab_run::number;

/// The page.
pub fn page(result: &PtsResult) -> String {
    let mut page = Page::new(&format!("Performance test of {}", result.design));
    page.lead(&format!(
        "<p class=\"about\">{} for the host; cells of {} of simulated time; seed {}. Follows SNIA's Solid State Storage Performance \
         Test Specification (Enterprise), with shorter cells and preconditioning until write amplification is steady.</p>\n",
        number::bytes(result.capacity_bytes as f64),
        number::time_s(result.cell_s),
        result.seed
    ));
    for test in &result.tests {
        let body: String = match test.test {
            Test::WriteSaturation => saturation(test),
            _ => test.rounds.iter().map(|rounds| of_rounds(test, rounds)).collect(),
        };
        let steady = if test.is_steady() {
            ""
        } else {
            "NOT STEADY after 25 rounds: these are not steady-state figures."
        };
        let id = test.test.title().to_lowercase().replace(' ', "-");
        page.section(&id, test.test.title(), steady, &body);
    }
    page.html()
}

/// What was reached, in one line.
pub fn verdict(rounds: &RoundsResult) -> String {
    let count = rounds.tracked_by_round.len();
    match rounds.window {
        None => format!("not steady: only {count} rounds"),
        Some(window) => format!(
            "{} after {count} rounds: {} within {:.1} % of their average (limit: 20), slope {:.1} % (limit: 10)",
            if window.is_steady { "steady" } else { "NOT STEADY" },
            rounds.tracked,
            100.0 * window.range_share,
            100.0 * window.slope_share
        ),
    }
}

fn of_rounds(test: &TestResult, rounds: &RoundsResult) -> String {
    let heads = ["block", "reads", "IOPS", "throughput", "mean", "p99", "longest"];
    let mut table = Table::new("", 1, &heads);
    for cell in &rounds.cells {
        table.row(&[
            number::bytes(cell.block_bytes as f64).to_string(),
            format!("{} %", cell.read_percent),
            number::count(cell.iops.round() as u64),
            number::bandwidth(cell.bytes_per_s).to_string(),
            number::time_ns(cell.latency_mean_us * 1e3).to_string(),
            number::time_ns(cell.latency_p99_us * 1e3).to_string(),
            number::time_ns(cell.latency_max_us * 1e3).to_string(),
        ]);
    }
    let points = (1..).zip(&rounds.tracked_by_round).map(|(round, &value)| (round as f64, value)).collect();
    let label = match test.test {
        Test::Latency => "microseconds",
        Test::Throughput => "bytes/s",
        _ => "IOPS",
    };
    let series = vec![Series::new(&rounds.tracked, points)];
    let curve = Curves::new("Convergence", Axis::linear("round"), Axis::linear(label).including(0.0), series);
    let about = format!("<p>{}; {}</p>\n", escape(&rounds.preconditioned), escape(&verdict(rounds)));
    format!("{about}{}{}", table.html(), curve.html())
}

fn saturation(test: &TestResult) -> String {
    let of = |value: fn(&super::SaturationPoint) -> f64| {
        test.saturation.iter().map(|point| (point.written_bytes as f64 / 1e9, value(point))).collect()
    };
    let curve = |title: &str, label: &str, points| {
        let axes = (Axis::linear("GB written"), Axis::linear(label).including(0.0));
        Curves::new(title, axes.0, axes.1, vec![Series::new(label, points)]).html()
    };
    curve("Writes of 4 KiB", "IOPS", of(|point| point.iops))
        + &curve("Latency", "mean in microseconds", of(|point| point.latency_mean_us))
        + &curve("Write amplification", "write amplification", of(|point| point.write_amplification))
}
