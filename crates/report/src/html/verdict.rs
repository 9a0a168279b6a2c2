//! The answer at the top of the page: results, limits, caveats.

use super::labels::Labelled;
use crate::compare::sentences;
use crate::names::together;
use crate::page::escape;
use crate::{notes, reasons};
use nvlab_run::metric;
use nvlab_run::result::RunResult;

/// The main figures of a run, as far as it has them.
const FIGURES: [&str; 7] = ["tps", "program.time", "iops", "write.p99", "read.p99", "waf", "lifetime"];
/// Maximum number of these figures shown.
const SAID: usize = 4;

/// A paragraph each: the answer, the limits, the caveats.
pub(super) fn lead(runs: &[Labelled<'_>]) -> String {
    let mut groups: Vec<Vec<RunResult>> = Vec::new();
    let is_same = |a: &RunResult, b: &RunResult| a.design.name == b.design.name && a.workload == b.workload;
    for labelled in runs {
        match groups.iter_mut().find(|group| is_same(&group[0], labelled.run)) {
            Some(group) => group.push(labelled.run.clone()),
            None => groups.push(vec![labelled.run.clone()]),
        }
    }
    let answer = match groups.len() {
        1 => figures(&groups[0]),
        _ => sentences(&groups).join(". ").replace("\n    ", ", "),
    };
    let named = |of: fn(&RunResult) -> Vec<String>| -> Vec<(String, String)> {
        let of_run = |one: &Labelled<'_>| {
            of(one.run).into_iter().map(|text| (one.label.clone(), text)).collect::<Vec<_>>()
        };
        runs.iter().flat_map(of_run).collect()
    };
    let said = |all: Vec<(String, String)>| match runs.len() {
        1 => all.into_iter().map(|(_, text)| text).collect(),
        count => together(&all, count),
    };
    // The most decisive reason comes first.
    let limits: Vec<String> = said(named(|run| reasons(run).into_iter().take(1).collect()));
    let caveats: Vec<String> = said(named(notes));
    let paragraph = |class: &str, head: &str, texts: &[String]| match texts {
        [] => String::new(),
        texts => format!("<p class=\"{class}\">{head}{}</p>\n", escape(&texts.join("; "))),
    };
    paragraph("answer", "", &Vec::from_iter(Some(answer).filter(|text| !text.is_empty())))
        + &paragraph("about", "What limits it: ", &limits)
        + &paragraph("warn", "! ", &caveats)
}

/// The first figures of a design, means over its seeds.
fn figures(runs: &[RunResult]) -> String {
    let shown = |name: &&str| {
        let metric = metric::find(name).ok()?;
        let values: Vec<f64> = runs.iter().filter_map(|run| metric.of(run)).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        (!values.is_empty()).then(|| format!("{} {}", metric.title, metric.unit.shown(mean)))
    };
    FIGURES.iter().filter_map(shown).take(SAID).collect::<Vec<_>>().join(", ")
}
