//! What limits each run, in the words of the terminal.

use super::labels::Labelled;
use crate::report::page::{Page, escape};
use crate::report::reasons;

/// The section; none if nothing can be said of any run.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    let rows = runs.iter().flat_map(|run| reasons(run.run).into_iter().map(move |reason| (run, reason)));
    let rows: String =
        rows.map(|(run, reason)| format!("<li>{}: {}</li>\n", run.marked(), escape(&reason))).collect();
    if !rows.is_empty() {
        page.section("why", "Why", "", &format!("<ul class=\"states\">\n{rows}</ul>\n"));
    }
}
