//! The runs, and the commands to repeat them.

use super::labels::Labelled;
use crate::page::{Page, Table, details, escape};
use crate::{human, warnings};
use nvlab_run::number;

/// The workloads and the common part of the names of the designs, as the lead of the page.
pub(super) fn workloads(runs: &[Labelled<'_>], shared: &str) -> String {
    let mut workloads: Vec<&str> = runs.iter().map(|run| run.run.workload.as_str()).collect();
    workloads.dedup();
    let mut html: String =
        workloads.iter().map(|workload| format!("<p><code>{}</code></p>\n", escape(workload))).collect();
    let about = &runs[0].run.workload_about;
    if workloads.len() == 1 && !about.is_empty() {
        html += &format!("<p class=\"about\">{}</p>\n", escape(about));
    }
    if !shared.is_empty() {
        html += &format!("<p class=\"about\">Designs: {}</p>\n", escape(shared));
    }
    html
}

/// The runs, and the warnings that a reader needs before using them.
pub(super) fn runs(runs: &[Labelled<'_>]) -> String {
    let heads = ["design", "what it is", "for the host", "raw", "seed", "requests", "simulated", "key"];
    let mut table = Table::new("", 2, &heads);
    for labelled in runs {
        let run = labelled.run;
        let (about, cite) = (escape(&run.design.about), escape(&run.design.cite));
        let about =
            if cite.is_empty() { about } else { format!("{about} <span class=\"dim\">({cite})</span>") };
        table.row(&[
            labelled.marked(),
            about,
            number::bytes(run.design.capacity_bytes as f64).to_string(),
            number::bytes(run.design.raw_bytes as f64).to_string(),
            run.seed.to_string(),
            number::count(run.requests_served),
            number::time_s(run.simulated_s).to_string(),
            format!("<code>{}</code>", escape(run.key.get(..8).unwrap_or(&run.key))),
        ]);
    }
    table.html() + &states(runs)
}

/// How each run was preconditioned, and whether it ended early.
fn states(runs: &[Labelled<'_>]) -> String {
    let mut html = String::from("<ul class=\"states\">\n");
    for labelled in runs {
        let (state, unsteady) = human::precondition(labelled.run);
        let (requests, missing) = human::requests(labelled.run);
        let mut texts = vec![mark(&format!("prepared: {state}"), unsteady)];
        if missing {
            texts.push(mark(&requests, true));
        }
        texts.extend(warnings(labelled.run).iter().map(|warning| mark(warning, true)));
        html += &format!("<li>{}: {}</li>\n", labelled.marked(), texts.join("; "));
    }
    html + "</ul>\n"
}

fn mark(text: &str, wrong: bool) -> String {
    let text = escape(text);
    if wrong { format!("<strong class=\"warn\">! {text}</strong>") } else { text }
}

/// The commands, the resolved designs, versions.
pub(super) fn again(page: &mut Page, runs: &[Labelled<'_>]) {
    let commands: Vec<String> = runs.iter().map(|run| escape(&run.run.repeat_command())).collect();
    let mut html = format!("<pre>{}</pre>\n", commands.join("\n"));
    for labelled in runs {
        let run = labelled.run;
        let versions =
            format!("# key {}, nvlab {}, results version {}", run.key, run.nvlab, run.results_version);
        let text = format!("{versions}\n{}", run.design.resolved_toml.trim_end());
        let summary = format!("{}: the design with every value filled in", labelled.label);
        html += &details(&summary, &format!("<pre>{}</pre>\n", escape(&text)));
    }
    page.section("again", "Run it again", "", &html);
}
