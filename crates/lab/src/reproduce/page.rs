//! A reproduction as one HTML file: the table of claims, then every figure.

use super::experiment::Experiment;
use super::judge::{Judged, Measured, judge, passed_claims, summary};
use super::plot;
use nvlab_report::page::{Page, Table, details, escape};
use nvlab_run::number;

/// The numbers of a claim as text: expected, measured, band.
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

/// Returns all experiments of a system as a page. `about` says what was run: `nvlab 0.1.0, seed 1`.
pub fn page(title: &str, about: &str, measured: &[Measured<'_>]) -> String {
    let judged: Vec<Judged<'_>> = measured.iter().flat_map(judge).collect();
    let passed = match passed_claims(judged.iter()).join("; ") {
        claims if claims.is_empty() => "No claim of the source passed.".to_string(),
        claims => format!("Claims of the source that passed: {claims}."),
    };
    let mut page = Page::new(title);
    for text in [about, &format!("{}.", summary(judged.iter())), &passed] {
        page.lead(&format!("<p class=\"about\">{}</p>\n", escape(text)));
    }
    claims(&mut page, measured);
    for measured in measured {
        figures(&mut page, measured);
    }
    page.html()
}

fn claims(page: &mut Page, measured: &[Measured<'_>]) {
    let heads = ["claim", "where", "class", "verdict", "expected", "measured", "band"];
    let mut table = Table::new("", 4, &heads);
    for measured in measured {
        for judged in judge(measured) {
            let [expected, found, band] = shown(&judged);
            let small = |before: &str, text: &str| match text {
                "" => String::new(),
                text => format!("<small>{before}{}</small>", escape(text)),
            };
            let row = judged.row;
            let note = [("set from this figure: ", &row.sets), ("by: ", &row.form), ("", &row.note)];
            let note: String = note.iter().map(|(before, text)| small(before, text)).collect();
            let class = if judged.unsteady { "unsteady" } else { judged.name() };
            table.row(&[
                escape(&row.claim) + &note,
                escape(&row.place),
                row.class.name().to_string(),
                format!("<span class=\"verdict {class}\">{}</span>", judged.shown()),
                expected,
                found,
                band,
            ]);
        }
    }
    let about = "Class: a claim is stated by the source of the system; held is stated by another source; derived follows from \
                 stated numbers by a closed form. These can pass. An input is a parameter of the design or the workload; for \
                 a calibrated row, a number of the design was set from the same figure; a regression was computed by this \
                 program earlier. A row without a band is reported as measured. Not steady: a run had not reached its steady \
                 state, so a longer run would measure another number.";
    page.section("claims", "Claims", about, &table.html());
}

fn figures(page: &mut Page, measured: &Measured<'_>) {
    let experiment = measured.experiment;
    let mut content = String::from("<div class=\"plots\">\n");
    for plot in &experiment.plots {
        let title = if plot.title == experiment.title { "" } else { &plot.title };
        content += &plot::figure(title, plot, measured).unwrap_or_default();
    }
    content += "</div>\n";
    if !experiment.note.is_empty() {
        content += &format!("<p>{}</p>\n", escape(&experiment.note));
    }
    content += &details("Points", &points(experiment, measured));
    let about = format!(
        "{} <span class=\"dim\">({})</span>",
        escape(&experiment.question),
        escape(&experiment.source)
    );
    page.section(&experiment.name, &experiment.title, &about, &content);
}

/// Every point and what was measured there.
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
