//! Results as one HTML file, built from the kit in [`page`](super::page).
//!
//! | module | what |
//! |---|---|
//! | `labels` | labels and colours of runs |
//! | `verdict` | the answer in a few lines, above all else |
//! | `head` | what ran, and how to run it again |
//! | `summary`, `streams`, `cost` | sections that are tables |
//! | `why` | what limits each run |
//! | `charts`, `bars`, `software`, `wear` | sections with plots; every plot has its table behind a disclosure |

mod bars;
mod charts;
mod cost;
mod head;
mod labels;
mod software;
mod streams;
mod summary;
mod verdict;
mod wear;
mod why;

use super::page::Page;
use nvlab_run::result::RunResult;

/// Returns results as one HTML file; the first result is the baseline.
pub fn html(results: &[RunResult], title: &str) -> String {
    let runs = labels::labelled(results);
    let mut page = Page::new(title);
    if runs.is_empty() {
        page.lead("<p>There are no results.</p>\n");
        return page.html();
    }
    page.lead(&head::workloads(&runs, &labels::shared(results)));
    page.lead(&verdict::lead(&runs));
    summary::section(&mut page, &runs);
    streams::section(&mut page, &runs);
    why::section(&mut page, &runs);
    charts::latency(&mut page, &runs);
    software::section(&mut page, &runs);
    charts::over_time(&mut page, &runs);
    bars::writes(&mut page, &runs);
    bars::busy(&mut page, &runs);
    wear::section(&mut page, &runs);
    cost::section(&mut page, &runs);
    head::again(&mut page, &runs);
    page.html()
}

#[cfg(test)]
mod tests;
