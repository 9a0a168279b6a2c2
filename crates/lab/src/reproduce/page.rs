//! A reproduction as one HTML file: the table of claims, then every figure. No scripts, no network.

use super::experiment::Experiment;
use super::judge::{Judged, Measured, judge, passed_claims, summary};
use super::plot;
use crate::report::html::text::{Table, details, escape, section};
use crate::report::html::{REPORT_CSS, digest};
use crate::report::number;

const CSS: &str = include_str!("reproduce.css");

/// The columns of a claim that are numbers, as people read them: expected, measured, band.
pub fn shown(judged: &Judged<'_>) -> [String; 3] {
    let row = judged.row;
    let unit = match row.measure.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let with_unit = |value: f64| format!("{}{unit}", number::three(value));
    let band = row.band.map(|[low, high]| format!("{} to {}", number::three(low), number::three(high)));
    [
        row.expected.map_or("–".to_string(), with_unit),
        judged.measured.map_or("–".to_string(), with_unit),
        band.unwrap_or_else(|| "–".to_string()),
    ]
}

/// All experiments of a system as a page. `about` says what was run: `nvlab 0.1.0, seed 1`.
pub fn page(title: &str, about: &str, measured: &[Measured<'_>]) -> String {
    let judged: Vec<Judged<'_>> = measured.iter().flat_map(judge).collect();
    let passed = match passed_claims(judged.iter()).join("; ") {
        claims if claims.is_empty() => "No claim of the source passed.".to_string(),
        claims => format!("Claims of the source that passed: {claims}."),
    };
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n<p class=\"about\">{}.</p>\n<p class=\"about\">{}</p>\n\
         </header>\n",
        escape(title),
        escape(about),
        escape(&summary(judged.iter())),
        escape(&passed)
    );
    body += &claims(measured);
    for measured in measured {
        body += &figure(measured);
    }
    let policy = format!(
        "default-src 'none'; style-src {} {}; base-uri 'none'; form-action 'none'",
        digest(REPORT_CSS),
        digest(CSS)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>{REPORT_CSS}</style>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         </body>\n</html>\n",
        escape(title)
    )
}

fn claims(measured: &[Measured<'_>]) -> String {
    let heads = ["claim", "where", "basis", "verdict", "expected", "measured", "band"];
    let mut table = Table::new("", 4, &heads);
    for measured in measured {
        for judged in judge(measured) {
            let [expected, found, band] = shown(&judged);
            let note = match judged.row.note.as_str() {
                "" => String::new(),
                note => format!("<small>{}</small>", escape(note)),
            };
            let class = if judged.unsteady { "unsteady" } else { judged.verdict.name() };
            table.row(&[
                escape(&judged.row.claim) + &note,
                escape(&judged.row.place),
                judged.row.basis.name().to_string(),
                format!("<span class=\"verdict {class}\">{}</span>", judged.shown()),
                expected,
                found,
                band,
            ]);
        }
    }
    let about = "A claim without a band is reported as it comes out; an input is a number that the design or the \
                 workload puts in, shown beside what the source says. Not steady: a run had not reached its steady state, so that the number \
                 would be another after a longer one. Basis: stated in the source, cited from another \
                 public one, derived from stated numbers.";
    section("claims", "Claims", about, &table.html())
}

fn figure(measured: &Measured<'_>) -> String {
    let experiment = measured.experiment;
    let mut content = String::new();
    for plot in &experiment.plots {
        let Some(svg) = plot::svg(plot, measured) else { continue };
        let title = if plot.title == experiment.title { String::new() } else { escape(&plot.title) };
        content += &format!("<figure><figcaption>{title}</figcaption>\n{svg}</figure>\n");
    }
    if !experiment.note.is_empty() {
        content += &format!("<p>{}</p>\n", escape(&experiment.note));
    }
    content += &details("Points", &points(experiment, measured));
    let about = format!(
        "{} <span class=\"dim\">({})</span>",
        escape(&experiment.question),
        escape(&experiment.source)
    );
    section(&experiment.name, &escape(&experiment.title), &about, &content)
}

/// Every point with what was measured of it.
fn points(experiment: &Experiment, measured: &Measured<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut measures = Vec::new();
    let all = experiment.rows.iter().map(|row| &row.measure);
    for measure in all.chain(experiment.plots.iter().flat_map(|plot| plot.measures.iter().map(|(_, m)| m))) {
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    let titles: Vec<String> = measures
        .iter()
        .map(|measure| {
            let over = measure.over.as_ref().map_or(String::new(), |over| format!(" / {over}"));
            let unit = if measure.unit.is_empty() { String::new() } else { format!(", {}", measure.unit) };
            format!("{}{over}{unit}", measure.metric)
        })
        .collect();
    names.extend(experiment.space.axes.iter().map(|axis| axis.name.as_str()));
    let words = names.len().max(1);
    if names.is_empty() {
        names.push("point");
    }
    names.extend(titles.iter().map(String::as_str));
    names.push("run");
    let mut table = Table::new("", words, &names);
    for (index, point) in experiment.space.points().unwrap_or_default().iter().enumerate() {
        let mut cells: Vec<String> = point.values.iter().map(|value| escape(value)).collect();
        if cells.is_empty() {
            cells.push("all".to_string());
        }
        let values = measures.iter().map(|measure| measured.value(index, measure));
        cells.extend(values.map(|value| value.map_or("–".to_string(), number::three)));
        let key = measured.results[index].map_or("–", |run| run.key.get(..8).unwrap_or(&run.key));
        cells.push(format!("<code>{key}</code>"));
        table.row(&cells);
    }
    table.html()
}
