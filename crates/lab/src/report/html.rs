//! Results as one HTML file: no network, no `eval`, readable and printable without scripts.
//!
//! 1. Every text from a result goes through [`text::escape`], every datum for scripts through
//!    [`text::script_data`]; a name such as `</script>` is shown, never run.
//! 2. The page carries its own Content-Security-Policy: only our two scripts and two style sheets, named by
//!    their SHA-256, may act. So there are no `style` attributes: drawings are SVG with classes.
//! 3. Every plot has its table behind a disclosure. Colours are those of Okabe and Ito.
//! 4. The same results give the same bytes.
//!
//! | module | what |
//! |---|---|
//! | [`text`] | escaping, tables, labels of runs |
//! | `head`, `summary`, `cost` | sections that are tables |
//! | `bars`, `wear` | sections that are drawn here, as SVG |
//! | `charts` | sections that are drawn by `assets/report.js` with uPlot 1.6 |

mod bars;
mod charts;
mod cost;
mod head;
mod summary;
pub mod text;
mod wear;

use crate::result::RunResult;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use text::{Labelled, escape};

const UPLOT_JS: &str = include_str!("assets/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("assets/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("assets/uPlot.LICENSE");
const REPORT_JS: &str = include_str!("assets/report.js");
pub(crate) const REPORT_CSS: &str = include_str!("assets/report.css");

/// Results as one HTML file; the first is the baseline.
pub fn html(results: &[RunResult], title: &str) -> String {
    let runs = text::labelled(results);
    let mut body = head::section(&runs, title);
    if !runs.is_empty() {
        body += &summary::section(&runs);
        body += &charts::latency(&runs);
        body += &charts::over_time(&runs);
        body += &bars::writes(&runs);
        body += &bars::busy(&runs);
        body += &wear::section(&runs);
        body += &cost::section(&runs);
        body += &head::foot(&runs);
    }
    page(title, &body, &runs)
}

fn page(title: &str, body: &str, runs: &[Labelled<'_>]) -> String {
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {} {}; base-uri 'none'; form-action 'none'",
        digest(UPLOT_JS),
        digest(REPORT_JS),
        digest(UPLOT_CSS),
        digest(REPORT_CSS)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{UPLOT_CSS}</style>\n<style>{REPORT_CSS}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <!-- uPlot\n{UPLOT_LICENSE}-->\n<script>{UPLOT_JS}</script>\n<script>{REPORT_JS}</script>\n\
         </body>\n</html>\n",
        title = escape(title),
        data = charts::data(runs),
    )
}

/// The name of a script or style sheet in a Content-Security-Policy.
pub(crate) fn digest(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content.as_bytes())))
}

#[cfg(test)]
mod tests;
