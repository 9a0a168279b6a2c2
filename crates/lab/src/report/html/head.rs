//! What ran (at the top), and how to run it again (at the foot).

use super::text::{Labelled, Table, details, escape, section as section_of};
use crate::report::{human, number, repeat_command};

/// Title, workload, the runs.
pub(super) fn section(runs: &[Labelled<'_>], title: &str) -> String {
    let mut html = format!("<header>\n<h1>{}</h1>\n", escape(title));
    let Some(first) = runs.first() else {
        return html + "<p>There are no results.</p>\n</header>\n";
    };
    let mut workloads: Vec<&str> = runs.iter().map(|run| run.run.workload.as_str()).collect();
    workloads.dedup();
    for workload in &workloads {
        html += &format!("<p class=\"workload\"><code>{}</code></p>\n", escape(workload));
    }
    if workloads.len() == 1 && !first.run.workload_about.is_empty() {
        html += &format!("<p class=\"about\">{}</p>\n", escape(&first.run.workload_about));
    }
    html += NAVIGATION;
    html += "</header>\n";
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
    html += &table.html();
    html + &states(runs)
}

const NAVIGATION: &str = "<nav><a href=\"#summary\">Summary</a> <a href=\"#latency\">Latency</a> \
    <a href=\"#time\">Over time</a> <a href=\"#writes\">Writes</a> <a href=\"#busy\">Die time</a> \
    <a href=\"#wear\">Wear</a> <a href=\"#cost\">Cost</a> <a href=\"#again\">Run again</a></nav>\n";

/// Preconditioning, and what a reader must know before trusting a run.
fn states(runs: &[Labelled<'_>]) -> String {
    let mut html = String::from("<ul class=\"states\">\n");
    for labelled in runs {
        let (state, unsteady) = human::precondition(labelled.run);
        let (requests, missing) = human::requests(labelled.run);
        let mut texts = vec![mark(&state, unsteady)];
        if missing {
            texts.push(mark(&requests, true));
        }
        html += &format!("<li>{}: {}</li>\n", labelled.marked(), texts.join("; "));
    }
    html + "</ul>\n"
}

fn mark(text: &str, wrong: bool) -> String {
    let text = escape(text);
    if wrong { format!("<strong class=\"warn\">! {text}</strong>") } else { text }
}

/// The commands, the resolved designs, versions.
pub(super) fn foot(runs: &[Labelled<'_>]) -> String {
    let commands: Vec<String> = runs.iter().map(|run| escape(&repeat_command(run.run))).collect();
    let mut html = format!("<pre>{}</pre>\n", commands.join("\n"));
    for labelled in runs {
        let run = labelled.run;
        let versions =
            format!("# key {}, nvlab {}, results version {}", run.key, run.nvlab, run.results_version);
        let text = format!("{versions}\n{}", run.design.resolved_toml.trim_end());
        let summary = format!("{}: the design with every value filled in", labelled.label);
        html += &details(&summary, &format!("<pre>{}</pre>\n", escape(&text)));
    }
    section_of("again", "Run it again", "", &html)
}
