//! The time of a request between the program and the device, and its processor time.

use super::labels::Labelled;
use crate::page::{Axis, Bars, MUTED, Page, Table, details, escape};
use nvlab_run::result::SoftwareResult;
use nvlab_run::{metric, number};

/// Columns of the table of runs.
const COLUMNS: [&str; 6] =
    ["software.latency", "cpu.request", "cpu.spin", "lock.wait", "lock.share", "cpu.cores"];

fn time(us: f64) -> String {
    number::time_ns(us * 1000.0).to_string()
}

/// The section; none if no design has stages.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    let staged: Vec<(&Labelled<'_>, &SoftwareResult)> =
        runs.iter().filter_map(|run| Some((run, run.run.software.as_ref()?))).collect();
    if staged.is_empty() {
        return;
    }
    let parts = [
        ("before the device", 0),
        ("device", MUTED),
        ("after the device", 5),
        ("locks", 4),
        ("thread or core", 2),
    ];
    let axis = Axis::linear("mean us per request").text(time).including(0.0);
    let mut bars = Bars::new("", axis, &parts);
    for (labelled, software) in &staged {
        let stages = |submits| {
            let stages = software.stages.iter().filter(move |stage| stage.submits == submits);
            stages.map(|stage| stage.cpu_ns + stage.wait_ns).sum::<f64>()
        };
        let times = [stages(true), software.device_ns, stages(false), software.lock_ns, software.queue_ns];
        let total = (software.latency_ns + software.device_ns) / 1000.0;
        bars.row(&labelled.label, &times.map(|ns| ns / 1000.0), &time(total));
    }
    let content = bars.html() + &costs(&staged) + &details("Table of stages", &stages(&staged));
    page.section("software", "Where the time above the device goes", "", &content);
}

fn costs(staged: &[(&Labelled<'_>, &SoftwareResult)]) -> String {
    let columns = COLUMNS.map(|name| metric::find(name).expect("the table of metrics has them"));
    let mut heads = vec!["design", "stack", "threads"];
    heads.extend(columns.iter().map(|column| column.title.as_str()));
    let mut table = Table::new("Mean processor time per request", 2, &heads);
    for (labelled, software) in staged {
        let mut cells = vec![labelled.marked(), escape(&software.stack), software.threads.to_string()];
        for column in &columns {
            cells.push(
                column.of(labelled.run).map_or("–".into(), |value| column.unit.shown(value).to_string()),
            );
        }
        table.row(&cells);
    }
    table.html()
}

fn stages(staged: &[(&Labelled<'_>, &SoftwareResult)]) -> String {
    let heads = ["design", "stage", "side", "processor", "lock", "wait"];
    let mut table = Table::new("Stages, mean per request", 3, &heads);
    for (labelled, software) in staged {
        for stage in &software.stages {
            let side = if stage.submits { "submit" } else { "complete" };
            let mut cells = vec![labelled.marked(), escape(&stage.name), side.to_string()];
            let times = [stage.cpu_ns, stage.lock_ns, stage.wait_ns];
            cells.extend(times.map(|ns| number::time_ns(ns).to_string()));
            table.row(&cells);
        }
    }
    table.html()
}
