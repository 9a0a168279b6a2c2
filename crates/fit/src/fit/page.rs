//! The answer as a page: each figure, stated and simulated, numbers with their intervals, what to measure next, the design.

use super::{Answer, Residual};
use crate::figures::Unit;
use nvlab_report::page::{Axis, Curves, Page, Series, Table, escape};
use nvlab_run::number::share;

/// The page.
pub fn page(found: &Answer, notes: &[String]) -> String {
    let mut page = Page::new(&format!("{}, fitted to its figures", found.name));
    let within = found.residuals.iter().filter(|residual| residual.is_within()).count();
    page.lead(&format!(
        "<p class=\"about\">{within} of {} figures are within what they may be off; {} runs.</p>\n",
        found.residuals.len(),
        found.runs
    ));
    let about = "By how much the design misses what is stated, and how far other drives that fit would.";
    page.section("figures", "Figures", about, &(picture(&found.residuals) + &figures(&found.residuals)));
    let about = "Nine of ten drives that fit have a number in its interval. What is usual is known without any figure.";
    page.section("numbers", "The design", about, &numbers(found));
    if !found.compared.is_empty() {
        let about =
            "Loads that no closed form is of: nothing was fitted to them, the design was only run with them.";
        page.section("compared", "Other jobs", about, &compared(found));
    }
    if !found.next.is_empty() {
        let about = "Figures on which drives that fit differ most: each would narrow the number beside it.";
        page.section("next", "What to measure next", about, &next(found));
    }
    let said: Vec<&String> = found.doubts.iter().chain(&found.notes).chain(notes).collect();
    if !said.is_empty() {
        let items: String = said.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
        page.section(
            "doubts",
            "What contradicts, and what was assumed",
            "",
            &format!("<ul>\n{items}</ul>\n"),
        );
    }
    for other in &found.others {
        let about = format!("It explains the figures as well: {}.", other.differs);
        page.section("other", "Another design", &about, &text(&other.text));
    }
    page.section("file", "The design file", "", &text(&found.text));
    page.html()
}

fn text(design: &str) -> String {
    format!("<pre>{}</pre>\n", escape(design))
}

fn picture(residuals: &[Residual]) -> String {
    let numbers: Vec<String> = (1..=residuals.len()).map(|number| number.to_string()).collect();
    let points = |of: &dyn Fn(&Residual) -> f64| {
        (0..)
            .zip(residuals)
            .map(|(at, residual)| (f64::from(at), of(residual) / residual.stated - 1.0))
            .collect()
    };
    let ends = [("least of drives that fit", 0), ("greatest", 1)];
    let end = |residual: &Residual, at| if at == 0 { residual.interval.0 } else { residual.interval.1 };
    let intervals = ends.map(|(name, at)| {
        Series::new(name, points(&|residual| end(residual, at))).scattered().color(1).shape(at)
    });
    let simulated = Series::new("simulated", points(&|residual| residual.simulated)).scattered();
    let series = [simulated].into_iter().chain(intervals).collect();
    let off = Axis::linear("simulated over stated, less 1").including(0.0).units(share);
    Curves::new("Stated and simulated", Axis::names("figure", &numbers), off, series).html()
}

fn figures(residuals: &[Residual]) -> String {
    let heads = [
        "",
        "figure",
        "stated",
        "simulated",
        "off",
        "may be",
        "drives that fit do",
        "mean, p99 measured",
        "simulated",
    ];
    let mut table = Table::new("", 2, &heads);
    for (number, residual) in (1..).zip(residuals) {
        let of = |value: f64| residual.unit.shown(value);
        let times = |of: [f64; 2]| of.map(|seconds| Unit::Seconds.shown(seconds)).join(", ");
        let latencies = residual.latencies.map_or(["", ""].map(String::from), |(a, b)| [times(a), times(b)]);
        let [measured, simulated] = latencies;
        let row = [
            number.to_string(),
            residual.name.clone(),
            of(residual.stated),
            of(residual.simulated),
            format!("{:+.1} %", residual.difference() * 100.0),
            share(residual.tolerance).to_string(),
            residual.unit.between(residual.interval),
            measured,
            simulated,
        ];
        table.row(&row.map(|cell| escape(&cell)));
    }
    table.html()
}

fn numbers(found: &Answer) -> String {
    let mut table =
        Table::new("", 1, &["number", "value", "drives that fit", "usual", "key", "source of what is usual"]);
    for number in &found.numbers {
        let [value, interval, usual] = &number.shown;
        let interval = if number.is_prior_only { "prior only: no figure depends on it" } else { interval };
        table.row(&[number.name, value, interval, usual, number.key, &number.source].map(escape));
    }
    table.html()
}

fn compared(found: &Answer) -> String {
    let heads = ["job", "", "measured", "simulated", "off", "mean, p99 measured", "simulated", "what it is"];
    let mut table = Table::new("", 2, &heads);
    for job in &found.compared {
        for pair in job.pairs() {
            let mut row = vec![escape(&job.name)];
            row.extend(pair.cells().iter().map(|cell| escape(cell)));
            row.push(escape(job.why));
            table.row(&row);
        }
    }
    table.html()
}

fn next(found: &Answer) -> String {
    let mut table = Table::new("", 1, &["figure", "drives that fit do", "narrows"]);
    for next in &found.next {
        table.row(&[&next.what, &next.unit.between(next.between), next.number].map(escape));
    }
    table.html()
}
