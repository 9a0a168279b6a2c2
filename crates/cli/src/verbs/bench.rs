//! `nvlab bench` and `nvlab check-theory`: measure and check the simulator itself. Hidden: for developers.

mod served;

use crate::args::Bench;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_run::bench::{self, BenchRow};
use nvlab_run::theory::{self, Check};
use nvlab_workload::Op;

/// Millions of requests per CPU-second on a quiet core.
const WRITE_GOALS: [(&str, f64); 7] = [
    ("bench-4g", 20.0),
    ("bench-4g-8x4", 10.0),
    ("bench-16g", 15.0),
    ("bench-16g-8x4", 7.0),
    // Random overwrites, including their merges: seven or eight programs each.
    ("mlc-fast", 3.0),
    ("hybrid-slc-mlc", 3.0),
    ("bench-scm", 20.0),
];
const READ_GOALS: [(&str, f64); 5] = [
    ("bench-4g", 80.0),
    ("bench-4g-8x4", 40.0),
    ("bench-16g", 40.0),
    ("bench-16g-8x4", 40.0),
    // Three buses, a bank, a permutation: reads cost what writes do.
    ("bench-scm", 20.0),
];
/// Reads at depth include the cost of keeping them in order.
const DEEP_READ_GOALS: [(&str, f64); 1] = [("bench-4g", 60.0)];
const DESIGNS: [&str; 8] = [
    "bench-4g",
    "bench-4g-8x4",
    "bench-16g",
    "bench-16g-8x4",
    "envy",
    "mlc-fast",
    "hybrid-slc-mlc",
    "bench-scm",
];
const SMOKE_REQUESTS: u64 = 100_000;

pub fn bench(output: &Output, args: &Bench) -> Result<(), Failure> {
    if cfg!(debug_assertions) && !args.smoke {
        output.warn("this is a debug build: the rates are meaningless");
    }
    if args.served {
        return served::bench(output, args);
    }
    let mut designs: Vec<&str> = args.designs.iter().map(String::as_str).collect();
    if designs.is_empty() {
        designs = if args.smoke { DESIGNS[..1].to_vec() } else { DESIGNS.to_vec() };
    }
    let requests = if args.smoke { args.requests.min(SMOKE_REQUESTS) } else { args.requests };
    // Reads one by one show the cost of a request alone, reads at depth also that of keeping them in order.
    let measures = [(Op::Write, args.depth), (Op::Read, 1), (Op::Read, args.depth)];
    let wanted = |op: Op| args.only.as_deref().is_none_or(|only| only == op.name());
    let measures: Vec<(Op, u32)> = measures.into_iter().filter(|&(op, _)| wanted(op)).collect();
    let mut rows = Vec::new();
    for design in designs {
        output.note(format_args!("{design}: preconditioning, then {requests} requests of each kind"));
        let measured = bench::bench(design, requests, &measures).map_err(Failure::Input)?;
        rows.extend(measured.iter().map(row));
    }
    let columns = vec![
        Column::text("design", "design"),
        Column::text("op", "op"),
        Column::number("depth", "depth"),
        Column::number("requests", "requests"),
        Column::number("requests_per_cpu_s", "M req/CPU-s"),
        Column::number("goal_per_cpu_s", "goal"),
        Column::number("write_amplification", "WA"),
        Column::number("programs_per_cpu_s", "M programs/CPU-s"),
        Column::number("memory_bytes_per_unit", "B/unit"),
        Column::text("hash", "hash"),
    ];
    output.table(&Table { schema: "nvlab.bench/1", columns, rows });
    Ok(())
}

fn row(row: &BenchRow) -> Vec<Cell> {
    // There is none for the reads of block maps, and at depth only that of one design.
    let goals: &[(&str, f64)] = match row.op {
        "read" if row.depth == 1 => &READ_GOALS,
        "read" => &DEEP_READ_GOALS,
        _ => &WRITE_GOALS,
    };
    let goal = goals.iter().find(|(design, _)| *design == row.design).map(|(_, millions)| *millions);
    let goal = goal.map(|millions| millions * 1e6);
    vec![
        Cell::text(&row.design),
        Cell::text(row.op),
        Cell::new(row.depth.to_string(), row.depth),
        Cell::new(row.requests.to_string(), row.requests),
        Cell::new(format!("{:.2}", row.rate() / 1e6), row.rate()),
        Cell::or_dash(goal, |goal| Cell::new(format!("{:.0}", goal / 1e6), goal)),
        Cell::new(format!("{:.3}", row.write_amplification), row.write_amplification),
        Cell::new(format!("{:.1}", row.programs_rate() / 1e6), row.programs_rate()),
        Cell::new(format!("{:.2}", row.memory_per_unit), row.memory_per_unit),
        Cell::text(format!("{:016x}", row.hash)),
    ]
}

pub fn check_theory(output: &Output) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let all = theory::check_all(|check| rows.push(theory_row(check)));
    let columns = vec![
        Column::text("what", "simulated"),
        Column::number("expected", "theory"),
        Column::number("measured", "measured"),
        Column::number("deviation", "deviation"),
        Column::number("tolerance", "allowed"),
        Column::text("holds", ""),
    ];
    output.table(&Table { schema: "nvlab.theory/1", columns, rows });
    match all {
        true => Ok(()),
        false => Err(Failure::Check("the simulation is not within the tolerance of theory".to_string())),
    }
}

fn theory_row(check: &Check) -> Vec<Cell> {
    vec![
        Cell::text(&check.what),
        Cell::new(format!("{:.4}", check.expected), check.expected),
        Cell::new(format!("{:.4}", check.measured), check.measured),
        Cell::new(format!("{:+.2} %", check.deviation() * 100.0), check.deviation()),
        Cell::new(format!("{:.0} %", check.tolerance * 100.0), check.tolerance),
        Cell::new(if check.holds() { "ok" } else { "NOT MET" }, check.holds()),
    ]
}
