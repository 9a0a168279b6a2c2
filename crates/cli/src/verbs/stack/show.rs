//! The table of layers, the stages of paths, and their page.

use super::machine::Machine;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_report::Format;
use nvlab_report::page::{Axis, Bars, MUTED, Page, Table as HtmlTable, escape};
use nvlab_run::number;
use nvlab_serve::stack::{Budget, Group, Layer, Measured, Part, Rounds, Series, Stat};
use nvlab_units::quantity::display_bytes;
use nvlab_workload::Op;
use serde_json::{Value, json};

const SCHEMA: &str = "nvlab.stack/1";

fn time(ns: f64) -> String {
    match ns {
        ns if ns.abs() < 0.5 => "0 ns".into(),
        ns if ns < 0.0 => format!("-{}", number::time_ns(-ns)),
        ns => number::time_ns(ns).to_string(),
    }
}

fn stat(series: &Series, part: Part) -> Stat {
    series.stat(part, Rounds::All)
}

/// Everything for stdout.
pub fn shown(output: &Output, measured: &Measured, budgets: &[Budget], machine: &Machine) -> String {
    match output.format {
        Format::Human => human(output, measured, budgets, machine),
        Format::Json => format!("{:#}", document(measured, budgets, machine)),
        Format::JsonLines => document(measured, budgets, machine).to_string(),
        format => layers(measured).render(format, 0, false),
    }
}

fn human(output: &Output, measured: &Measured, budgets: &[Budget], machine: &Machine) -> String {
    let style = output.style();
    let mut text = format!("{}\n\n", headline(measured, machine));
    text += &layers(measured).render(Format::Human, style.width, style.color);
    for budget in budgets {
        text += &format!("\n{} of {}: {}\n", budget.op, budget.path.key(), budget.path.about());
        text += &stages(budget).render(Format::Human, style.width, style.color);
        text += &format!("{}\n", verdict(budget));
    }
    let disturbed: u32 = measured.series.iter().map(|series| series.disturbed).sum();
    if disturbed > 0 {
        let all = measured.series.len() as u32 * measured.options.rounds;
        text += &format!(
            "\n{disturbed} of {all} slices were disturbed by other programs, even after repetition: measure on an idle machine\n"
        );
    }
    if !measured.missing.is_empty() {
        text += "\nnot measured\n";
        for (layer, why) in &measured.missing {
            text += &format!("  {layer}: {why}\n");
        }
    }
    text
}

fn headline(measured: &Measured, machine: &Machine) -> String {
    let options = &measured.options;
    format!(
        "requests of {} at random offsets of {}, one at a time; medians of {} slices of about {} us, with their standard error\n{}; {}",
        display_bytes(options.bytes as u64),
        display_bytes(options.file_bytes),
        options.rounds,
        options.slice.as_micros(),
        machine.cite(),
        processors(measured)
    )
}

/// What idle processors did.
pub fn processors(measured: &Measured) -> String {
    match &measured.asleep {
        None => "idle processors polled".into(),
        Some(why) => format!("idle processors slept, so waiting includes waking one ({why})"),
    }
}

/// A row for each layer and kind of request.
fn layers(measured: &Measured) -> Table {
    let columns = vec![
        Column::text("layer", "layer"),
        Column::text("op", "op"),
        Column::number("wall_ns", "time"),
        Column::number("wall_error_ns", "±"),
        Column::number("wall_iqr_ns", "spread"),
        Column::number("client_cpu_ns", "CPU"),
        Column::number("server_cpu_ns", "CPU of others"),
        Column::text("method", "one request is"),
    ];
    let rows = measured.series.iter().map(|series| {
        let ns = |value: f64| Cell::new(time(value), value);
        let wall = stat(series, Part::Wall);
        vec![
            Cell::text(series.layer.name()),
            Cell::text(series.op.to_string()),
            ns(wall.median),
            ns(wall.error),
            ns(wall.spread),
            ns(stat(series, Part::Client).median),
            ns(stat(series, Part::Server).median),
            Cell::text(method(series)),
        ]
    });
    Table { schema: SCHEMA, columns, rows: rows.collect() }
}

/// The method is said once for each layer.
fn method(series: &Series) -> &'static str {
    if series.op == Op::Read || !series.layer.has(Op::Read) { series.layer.method() } else { "" }
}

fn stages(budget: &Budget) -> Table {
    let columns = vec![
        Column::text("stage", "stage"),
        Column::number("ns", "time"),
        Column::number("error_ns", "±"),
        Column::text("basis", "how"),
    ];
    let row = |name: &str, ns: f64, error: f64, basis: String| {
        vec![Cell::text(name), Cell::new(time(ns), ns), Cell::new(time(error), error), Cell::text(basis)]
    };
    let mut rows: Vec<Vec<Cell>> = budget
        .stages
        .iter()
        .map(|stage| {
            let noise = if stage.is_noise() { "; not significantly different from 0" } else { "" };
            row(stage.name, stage.ns, stage.error, format!("{}{noise}", stage.basis))
        })
        .collect();
    let device = "the instant device itself, which a modelled device replaces";
    rows.push(row("copy", budget.device.median, budget.device.error, device.into()));
    Table { schema: SCHEMA, columns, rows }
}

fn verdict(budget: &Budget) -> String {
    let whole = budget.whole;
    let fault = budget.fault().map_or("within 10 %".to_string(), |fault| format!("not consistent: {fault}"));
    format!(
        "sum {}, whole path {} ± {} (measured in other slices), {:+.1} %: {fault}",
        time(budget.sum()),
        time(whole.median),
        time(whole.error),
        100.0 * budget.miss()
    )
}

fn document(measured: &Measured, budgets: &[Budget], machine: &Machine) -> Value {
    let part = |series: &Series, part: Part| {
        let stat = stat(series, part);
        json!({ "median": stat.median, "error": stat.error, "iqr": stat.spread })
    };
    let layers = measured.series.iter().map(|series| {
        json!({
            "layer": series.layer.name(), "op": series.op.to_string(), "method": series.layer.method(),
            "requests_per_slice": series.requests, "disturbed_slices": series.disturbed,
            "wall_ns": part(series, Part::Wall),
            "client_cpu_ns": part(series, Part::Client),
            "server_cpu_ns": part(series, Part::Server),
        })
    });
    let paths = budgets.iter().map(|budget| {
        let stages = budget.stages.iter().map(|stage| {
            json!({ "name": stage.name, "ns": stage.ns, "error_ns": stage.error, "waits": stage.waits(), "basis": stage.basis })
        });
        json!({
            "path": budget.path.key(), "op": budget.op.to_string(), "stages": stages.collect::<Vec<_>>(),
            "device_ns": budget.device.median, "sum_ns": budget.sum(),
            "whole_ns": { "median": budget.whole.median, "error": budget.whole.error },
            "fault": budget.fault(),
        })
    });
    let missing = measured.missing.iter().map(|(layer, why)| json!({ "layer": layer.name(), "reason": why }));
    json!({
        "schema": SCHEMA,
        "machine": { "processor": machine.processor, "processors": machine.cores, "kernel": machine.kernel, "date": machine.date },
        "processors_asleep": measured.asleep,
        "bytes": measured.options.bytes, "rounds": measured.options.rounds,
        "layers": layers.collect::<Vec<_>>(),
        "paths": paths.collect::<Vec<_>>(),
        "not_measured": missing.collect::<Vec<_>>(),
    })
}

/// The page.
pub fn page(measured: &Measured, budgets: &[Budget], machine: &Machine) -> String {
    let mut page = Page::new("The software above an instant device");
    page.lead(&format!(
        "<p class=\"about\">{}</p>\n",
        escape(&headline(measured, machine).replace('\n', "; "))
    ));
    for op in [Op::Read, Op::Write] {
        let heading = if op == Op::Read { "Layers, reads" } else { "Layers, writes" };
        page.section(
            heading,
            heading,
            "Time of one request, by where it is spent.",
            &layer_bars(measured, op),
        );
    }
    if !budgets.is_empty() {
        let about = "Each path as stages, computed as differences between layers.";
        page.section("paths", "Paths", about, &path_bars(budgets).html());
    }
    page.section("table", "Table", "", &html_table(measured));
    page.html()
}

fn axis() -> Axis {
    Axis::linear("time of one request").text(time)
}

const PARTS: [(&str, usize); 3] =
    [("processor, program and kernel", 0), ("processor, servers and kernel workers", 1), ("waiting", 2)];

fn layer_bars(measured: &Measured, op: Op) -> String {
    let mut bars = Bars::new("", axis(), &PARTS);
    for series in measured.series.iter().filter(|series| series.op == op) {
        let median = |part| stat(series, part).median;
        // Where processors worked at the same time their bars are longer than the time, which is the text behind them.
        let parts = [median(Part::Client), median(Part::Waited), median(Part::Wait).max(0.0)];
        bars.row(series.layer.name(), &parts, &time(median(Part::Wall)));
    }
    bars.html()
}

const GROUPS: [(&str, usize); 6] = [
    ("copy in memory: the instant device", MUTED),
    ("system call, page fault", 0),
    ("file system, page cache, FUSE or socket", 4),
    ("block layer, io_uring, driver", 1),
    ("server or kernel worker", 5),
    ("waiting and wake-ups", 2),
];

/// The stages of each path, stacked.
pub fn path_bars(budgets: &[Budget]) -> Bars {
    let mut bars = Bars::new("", axis(), &GROUPS);
    for budget in budgets {
        let of = |group| {
            let stages = budget.stages.iter().filter(|stage| stage.group == group);
            stages.map(|stage| stage.ns).sum::<f64>().max(0.0)
        };
        let groups = [Group::Entry, Group::Files, Group::Block, Group::Server, Group::Waiting];
        let values: Vec<f64> = std::iter::once(budget.device.median).chain(groups.map(of)).collect();
        bars.row(&format!("{} ({})", budget.path.key(), budget.op), &values, &time(budget.whole.median));
    }
    bars
}

fn html_table(measured: &Measured) -> String {
    let heads = ["layer", "op", "one request is", "time", "±", "spread", "CPU", "CPU of others"];
    let mut table = HtmlTable::new("", 3, &heads);
    for series in &measured.series {
        let wall = stat(series, Part::Wall);
        let times = [
            wall.median,
            wall.error,
            wall.spread,
            stat(series, Part::Client).median,
            stat(series, Part::Server).median,
        ];
        let mut cells = vec![escape(series.layer.name()), series.op.to_string(), escape(method(series))];
        cells.extend(times.map(time));
        table.row(&cells);
    }
    let missing = |(layer, why): &(Layer, String)| format!("<li>{layer}: {}</li>\n", escape(why));
    let missing: String = measured.missing.iter().map(missing).collect();
    let missing =
        if missing.is_empty() { missing } else { format!("<p>Not measured:</p>\n<ul>\n{missing}</ul>\n") };
    table.html() + &missing
}
