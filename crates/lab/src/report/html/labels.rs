//! What runs are called on a page, and which colours they have.

use crate::report::page::{COLORS, escape};
use crate::result::RunResult;
use std::collections::BTreeSet;

/// A run and what the page calls it.
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

/// Labels runs uniquely: with the design, if need be with the seed, if need be with a number. Runs that differ only in
/// the seed share a colour.
pub(super) fn labelled(results: &[RunResult]) -> Vec<Labelled<'_>> {
    let (mut taken, mut kinds) = (BTreeSet::new(), Vec::new());
    let shared =
        |run: &RunResult| results.iter().filter(|other| other.design.name == run.design.name).count() > 1;
    let label = |run: &RunResult| match shared(run) {
        true => format!("{} · seed {}", run.design.name, run.seed),
        false => run.design.name.clone(),
    };
    results
        .iter()
        .enumerate()
        .map(|(index, run)| {
            let mut label = label(run);
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

/// A value that may be missing.
pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_string())
}
