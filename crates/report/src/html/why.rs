//! The time of each run's requests, and what limits the run, in the wording of the terminal.

use super::labels::Labelled;
use crate::page::{Axis, Bars, MUTED, Page, escape};
use crate::reasons;
use crate::times::{OTHER, TimePart, time_parts};
use nvlab_run::number;

/// The section; none if nothing is known about any run.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    let rows = runs.iter().flat_map(|run| reasons(run.run).into_iter().map(move |reason| (run, reason)));
    let rows: String =
        rows.map(|(run, reason)| format!("<li>{}: {}</li>\n", run.marked(), escape(&reason))).collect();
    let mut content = shares(runs);
    if !rows.is_empty() {
        content += &format!("<ul class=\"states\">\n{rows}</ul>\n");
    }
    if !content.is_empty() {
        page.section("why", "Why", "", &content);
    }
}

/// The shares of the time of all requests, a bar for each run.
fn shares(runs: &[Labelled<'_>]) -> String {
    let told: Vec<(&Labelled<'_>, Vec<TimePart>)> =
        runs.iter().map(|run| (run, time_parts(run.run))).filter(|(_, parts)| !parts.is_empty()).collect();
    let mut names: Vec<&'static str> = Vec::new();
    for part in told.iter().flat_map(|(_, parts)| parts) {
        if !names.contains(&part.what) {
            names.push(part.what);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    names.sort_by_key(|name| *name == OTHER);
    let colour = |(number, name): (usize, &&'static str)| match *name {
        OTHER => (OTHER, MUTED),
        name => (name, number % MUTED),
    };
    let colours: Vec<(&'static str, usize)> = names.iter().enumerate().map(colour).collect();
    let axis = Axis::linear("% of the time of all requests").including(0.0);
    let mut bars = Bars::new("", axis, &colours);
    for (run, parts) in &told {
        let share = |name: &&str| parts.iter().find(|part| part.what == *name).map_or(0.0, |part| part.share);
        let shares: Vec<f64> = names.iter().map(|name| 100.0 * share(name)).collect();
        let [largest, ..] = &parts[..] else { continue };
        bars.row(&run.label, &shares, &format!("{} {}", largest.what, number::share(largest.share)));
    }
    bars.html()
}
