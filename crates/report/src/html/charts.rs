//! Latency as a distribution, and throughput, latency and write amplification over time.

use super::labels::{Labelled, or_dash};
use super::summary::quantile;
use crate::human;
use crate::page::{Axis, Curves, Page, Series, Table, details, escape};
use nvlab_run::number;
use nvlab_run::result::Window;

/// The number of each kind of request: of its dash (writes are solid) and marker, and of its colour if there is one run.
fn kind(request: &str) -> usize {
    ["write", "read", "trim", "flush"].iter().position(|name| *name == request).unwrap_or(0)
}

/// A line of a run; one run's lines differ by colour, too.
fn series(runs: &[Labelled<'_>], labelled: &Labelled<'_>, what: &str, points: Vec<(f64, f64)>) -> Series {
    let color = if runs.len() > 1 { labelled.color } else { kind(what) };
    Series::new(&line(runs, labelled, what), points).color(color).shape(kind(what)).dash(kind(what))
}

/// The name of a line: that of the run only if there are several.
fn line(runs: &[Labelled<'_>], labelled: &Labelled<'_>, what: &str) -> String {
    if runs.len() > 1 {
        format!("{} {what}", labelled.label).trim_end().to_string()
    } else {
        what.to_string()
    }
}

fn time_ns(ns: f64) -> String {
    number::time_ns(ns).to_string()
}

/// A share with as many digits as it needs: the tail is rarer than 0.1 %.
fn rare(share: f64) -> String {
    let decimals = if share > 0.0 { (-(share * 100.0).log10().floor()).clamp(0.0, 12.0) as usize } else { 0 };
    format!("{:.decimals$} %", share * 100.0)
}

/// The distribution of latency.
pub(super) fn latency(page: &mut Page, runs: &[Labelled<'_>]) {
    let heads = ["design", "request", "50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "all"];
    let mut table = Table::new("Latency that this share of the requests did not exceed", 2, &heads);
    let (mut reached, mut longer, mut constant) = (Vec::new(), Vec::new(), Vec::new());
    for labelled in runs {
        for (name, op) in human::operations(labelled.run) {
            let mut cells = vec![labelled.marked(), name.to_string()];
            let shares = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
            cells.extend(shares.map(|share| quantile(&op.histogram_ns, share)));
            cells.push(time_ns(op.latency.max_ns as f64));
            table.row(&cells);
            // All requests took the same time: the line adds nothing to the table.
            if op.histogram_ns.iter().filter(|(_, count)| *count > 0).count() < 2
                && runs.len() + kind(name) > 1
            {
                constant.push(line(runs, labelled, name));
                continue;
            }
            reached.push(series(runs, labelled, name, not_exceeded(&op.histogram_ns)).steps_up());
            longer.push(series(runs, labelled, name, exceeded(&op.histogram_ns)).steps());
        }
    }
    let x = || Axis::log("latency").text(time_ns);
    let y = Axis::linear("share of requests").text(|share| format!("{:.0} %", share * 100.0)).including(1.0);
    let most = Curves::new("Share of requests that took at most this long", x(), y, reached);
    let (x, y) = (x(), Axis::log("share of requests").text(rare));
    let rest = Curves::new("Share of requests that took at least this long", x, y.including(1.0), longer);
    let about = "The distribution, and its tail on a logarithmic scale: a line one decade further down is ten times rarer.";
    let about = match constant.as_slice() {
        [] => about.to_string(),
        names => format!("{about} Constant, therefore not drawn: {}.", escape(&names.join(", "))),
    };
    let plots = format!("<div class=\"plots\">\n{}{}</div>\n", most.html(), rest.html());
    page.section("latency", "Latency", &about, &(plots + &details("Table", &table.html())));
}

/// For each bucket of a histogram its upper bound and the share of requests that took at most that long; it rises
/// from 0 at the first.
fn not_exceeded(histogram: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    let (mut points, mut so_far) = (Vec::new(), 0);
    for (bound, count) in histogram.iter().filter(|(_, count)| *count > 0) {
        if points.is_empty() {
            points.push((*bound as f64, 0.0));
        }
        so_far += count;
        points.push((*bound as f64, so_far as f64 / total as f64));
    }
    points
}

/// For each bucket of a histogram its upper bound and the share of requests that took at least as long.
fn exceeded(histogram: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    let mut left = total;
    let share = |&(bound, count): &(u64, u64)| {
        let share = left as f64 / total as f64;
        left -= count;
        (bound as f64, share)
    };
    histogram.iter().filter(|(_, count)| *count > 0).map(share).collect()
}

/// Maximum rows of a table over time; of more windows every n-th is shown.
const ROWS_MAX: usize = 50;

/// Throughput, latency and write amplification over time.
pub(super) fn over_time(page: &mut Page, runs: &[Labelled<'_>]) {
    let throughput = lines(runs, &["write", "read"], |window, write| {
        let bytes = if write { window.write_bytes } else { window.read_bytes };
        bytes as f64 / (window.to_s - window.from_s)
    });
    let p99 = lines(runs, &["write", "read"], |window, write| {
        (if write { window.write_p99_ns } else { window.read_p99_ns }) as f64
    });
    let waf = lines(runs, &[""], |window, _| window.write_amplification);
    let mut content = String::from("<div class=\"plots\">\n");
    let (_, unit) = time_unit(runs);
    for (title, y, series) in [
        ("Throughput", Axis::linear("bytes per second").units(number::bandwidth), throughput),
        ("99 % latency", Axis::log("latency").text(time_ns), p99),
        ("Write amplification", Axis::linear("units programmed per unit written"), waf),
    ] {
        let x = Axis::linear(&format!("simulated time, {unit}"));
        content += &Curves::new(title, x, y, series).html();
    }
    content += "</div>\n";
    for labelled in runs {
        let windows = &labelled.run.series;
        let every = windows.len().div_ceil(ROWS_MAX).max(1);
        let note = match every {
            1 => number::things(windows.len() as u64, "window"),
            every => format!("1 of {every} of {} windows", windows.len()),
        };
        content += &details(&format!("Table: {} ({note})", labelled.label), &windows_table(windows, every));
    }
    page.section("time", "Over time", "Simulated time since the start of the run.", &content);
}

/// The unit of the axis of time, in seconds and by name.
fn time_unit(runs: &[Labelled<'_>]) -> (f64, &'static str) {
    let ends = runs.iter().filter_map(|labelled| labelled.run.series.last()).map(|window| window.to_s);
    let end = ends.fold(0.0, f64::max);
    let units = [(86_400.0, "d"), (3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us")];
    units.into_iter().find(|(unit, _)| end >= 3.0 * unit).unwrap_or((1e-9, "ns"))
}

/// A line for each run and each kind of request that has a value in any window; `of` is passed true for writes.
fn lines(runs: &[Labelled<'_>], requests: &[&str], of: impl Fn(&Window, bool) -> f64) -> Vec<Series> {
    let (unit, _) = time_unit(runs);
    let mut lines = Vec::new();
    for labelled in runs {
        for name in requests {
            let point = |window: &Window| {
                let value = of(window, *name == "write");
                ((window.from_s + window.to_s) / 2.0 / unit, if value > 0.0 { value } else { f64::NAN })
            };
            let points: Vec<(f64, f64)> = labelled.run.series.iter().map(point).collect();
            if points.iter().any(|(_, value)| value.is_finite()) {
                lines.push(series(runs, labelled, name, points));
            }
        }
    }
    lines
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
            or_dash((wa > 0.0).then(|| number::two(wa))),
            number::count(window.erases),
        ]);
    }
    table.html()
}
