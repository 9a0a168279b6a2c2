//! Labels and colours of the runs on a page.

use crate::names::{Names, short_names};
use crate::notes::doubt;
use crate::page::{COLORS, escape};
use nvlab_run::result::{RunResult, is_life};
use std::collections::BTreeSet;

/// A run and its label.
pub(super) struct Labelled<'a> {
    /// Unique on the page; the design's name if that is enough.
    pub label: String,
    /// The number of its colour.
    pub color: usize,
    pub run: &'a RunResult,
}

impl Labelled<'_> {
    /// A mark in the run's colour and its label, as HTML.
    pub fn marked(&self) -> String {
        format!("<span class=\"mark c{}\"></span>{}", self.color, escape(&self.label))
    }
}

/// The common part of the names of all designs of a page, if their labels leave it out.
pub(super) fn shared(results: &[RunResult]) -> String {
    names(results).shared
}

fn names(results: &[RunResult]) -> Names {
    short_names(&results.iter().map(|run| run.design.name.as_str()).collect::<Vec<_>>())
}

/// Labels runs uniquely: with the design, without the part common to all, and if necessary with the seed or a number.
/// Runs that differ only in the seed share a colour.
pub(super) fn labelled(results: &[RunResult]) -> Vec<Labelled<'_>> {
    let (mut taken, mut kinds) = (BTreeSet::new(), Vec::new());
    let is_repeated =
        |run: &RunResult| results.iter().filter(|other| other.design.name == run.design.name).count() > 1;
    let short = names(results).short;
    let label = |(run, name): (&RunResult, &String)| match is_repeated(run) {
        true => format!("{name} · seed {}", run.seed),
        false => name.clone(),
    };
    results
        .iter()
        .enumerate()
        .map(|(index, run)| {
            let mut label = label((run, &short[index]));
            if !taken.insert(label.clone()) {
                label = format!("{label} · run {}", index + 1);
                taken.insert(label.clone());
            }
            let kind = (&run.design.name, &run.workload);
            let color = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                kinds.push(kind);
                kinds.len() - 1
            });
            Labelled { label, color: color % COLORS, run }
        })
        .collect()
}

/// A value of a metric as HTML, marked if it must be used with care.
pub(super) fn doubted(shown: String, metric: &str, run: &RunResult) -> String {
    match run.doubts(metric).as_slice() {
        [] => shown,
        doubts => format!("{shown} <abbr title=\"{}\">!</abbr>", escape(&doubts.join("; "))),
    }
}

/// The reasons for care with marked values: a paragraph for each run that has some.
pub(super) fn notes<'a>(runs: impl Iterator<Item = &'a Labelled<'a>>, metrics: &[&str]) -> String {
    let note = |labelled: &Labelled<'_>| {
        let (lives, others): (Vec<&str>, Vec<&str>) = metrics.iter().partition(|name| is_life(name));
        let caveat = labelled.run.lifetime.caveat.iter().filter(|_| !lives.is_empty()).cloned();
        let all: Vec<String> =
            caveat.chain(others.iter().filter_map(|name| doubt(name, labelled.run))).collect();
        (!all.is_empty())
            .then(|| format!("<p class=\"about\">! {}: {}</p>\n", labelled.marked(), escape(&all.join("; "))))
    };
    runs.filter_map(note).collect()
}

/// A value that may be missing.
pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_string())
}
