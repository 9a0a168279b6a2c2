//! The tables on the standard output, and the same as JSON.

use crate::Result;
use crate::contenders::{KINDS, Kind};
use crate::measure::{Measured, Plan};
use crate::reopen::{self, Reopened};
use nvlab_bench_stores::machine::load;
use serde::Serialize;
use std::path::Path;

/// Where a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Disk,
    Memory,
}

/// A contender in a place.
#[derive(Debug, Serialize)]
pub struct Row {
    name: &'static str,
    guarantee: &'static str,
    place: Place,
    file_system: String,
    /// The package that is missing.
    not_installed: Option<&'static str>,
    pub failed: Option<String>,
    pub measured: Vec<Measured>,
    pub reopened: Option<Reopened>,
}

impl Row {
    pub fn new(kind: &Kind, place: Place, file_system: &str) -> Row {
        Row {
            name: kind.name,
            guarantee: kind.guarantee,
            place,
            file_system: file_system.into(),
            not_installed: kind.make.is_none().then_some(kind.package),
            failed: None,
            measured: Vec::new(),
            reopened: None,
        }
    }
}

/// All rows; each is printed when it is added.
#[derive(Debug, Serialize)]
pub struct Report {
    load_at_start: String,
    load_at_end: String,
    rows: Vec<Row>,
}

const LEGEND: &str = "
Raw fdatasync: slowest and fastest slice, in turns with the contender's. wait: share of its time that it was ready to run and had
no processor. ratio: commits/s by raw fdatasync/s; one with ? is not valid, because that share is above 10 %, or because the ratio
is far above the number of threads, which no store can reach. CPU-ns: a transaction, all threads; committer: the committing ones.
Bytes a transaction: passed to write calls, in records of the log. Forces and fences: a transaction.";

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

impl Report {
    pub fn new() -> Report {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let load_at_start = load();
        println!("{processors} processors, load average {load_at_start} at the start");
        println!("A commit guarantees:");
        for kind in &KINDS {
            println!("  {:<14} {}", kind.name, kind.guarantee);
        }
        Report { load_at_start, load_at_end: String::new(), rows: Vec::new() }
    }

    pub fn heading(&self, place: Place, path: &Path, file_system: &str, plan: &Plan) {
        println!(
            "\n{} ({file_system}); runs of {} s or {} commits",
            path.display(),
            plan.seconds,
            plan.commits
        );
        if place == Place::Memory {
            println!(
                "Nothing here survives a power failure, unless the memory does. pmemobj: PMEM_IS_PMEM_FORCE=1."
            );
        }
        println!(
            "{:<14} {:>2} {:>9} {:>17} {:>5} {:>6} {:>8} {:>9} {:>7} {:>7} {:>6} {:>6}",
            "contender",
            "T",
            "commits/s",
            "raw fdatasync/s",
            "wait",
            "ratio",
            "CPU-ns",
            "committer",
            "written",
            "logged",
            "forces",
            "fences"
        );
    }

    pub fn add(&mut self, row: Row) {
        if let Some(package) = row.not_installed {
            println!("{:<14} not installed (package {package})", row.name);
        }
        if let Some(error) = &row.failed {
            println!("{:<14} FAILED: {error}", row.name);
        }
        for run in &row.measured {
            println!(
                "{:<14} {:>2} {:>9.0} {:>17} {:>5} {:>6} {:>8.0} {:>9.0} {:>7.0} {:>7} {:>6} {:>6}",
                row.name,
                run.threads,
                run.commits_per_second,
                format!("{:.0}..{:.0}", run.raw_spread[0], run.raw_spread[1]),
                format!("{:.0}%", run.raw_processor_wait * 100.0),
                format!("{:.2}{}", run.per_fdatasync, if run.is_valid { "" } else { "?" }),
                run.cpu_ns,
                run.committer_cpu_ns,
                run.written_bytes,
                number(run.logged_bytes, 1),
                number(run.forces, 3),
                number(run.fences, 3),
            );
        }
        self.rows.push(row);
    }

    /// Prints the second table and writes the file. `false`: somebody failed.
    pub fn finish(mut self, json: &Path) -> Result<bool> {
        println!("{LEGEND}");
        println!(
            "\nOpening after kill -9 ({} threads were committing; what is mapped as a whole has 1 GiB)",
            reopen::THREADS
        );
        println!("{:<14} {:<6} {:>9} {:>12} {:>9}", "contender", "on", "ms", "acknowledged", "found");
        for row in &self.rows {
            if let Some(Reopened { seconds, acknowledged, found }) = &row.reopened {
                println!(
                    "{:<14} {:<6} {:>9.1} {acknowledged:>12} {found:>9}",
                    row.name,
                    row.file_system,
                    seconds * 1e3
                );
            }
        }
        self.load_at_end = load();
        println!("\nload average {} at the end", self.load_at_end);
        std::fs::write(json, serde_json::to_string_pretty(&self)?)?;
        Ok(self.rows.iter().all(|row| row.failed.is_none()))
    }
}
