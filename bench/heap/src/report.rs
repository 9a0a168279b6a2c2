//! The tables on the standard output, and the same as JSON.

use crate::Result;
use crate::contenders::{KINDS, Kind};
use crate::measure::{Measured, Plan, Workload};
use nvlab_bench_stores::machine::load;
use serde::Serialize;
use std::path::Path;

/// Where a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Memory,
    Disk,
}

/// A contender's workload in a place.
#[derive(Debug, Serialize)]
struct Row {
    place: Place,
    file_system: String,
    name: &'static str,
    guarantee: &'static str,
    workload: Workload,
    failed: Option<String>,
    measured: Vec<Measured>,
}

/// All rows; those of a contender in a place are printed as a line when they are added.
#[derive(Debug, Serialize)]
pub struct Report {
    load_at_start: String,
    load_at_end: String,
    not_installed: Vec<&'static str>,
    rows: Vec<Row>,
}

impl Report {
    pub fn new() -> Report {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        let load_at_start = load();
        println!("{processors} processors, load average {load_at_start} at the start");
        println!("An operation guarantees:");
        for kind in &KINDS {
            println!("  {:<13} {}", kind.name, kind.guarantee);
        }
        Report { load_at_start, load_at_end: String::new(), not_installed: Vec::new(), rows: Vec::new() }
    }

    pub fn heading(&self, place: Place, path: &Path, file_system: &str, plan: &Plan) {
        let Plan { operations, seconds, .. } = plan;
        println!(
            "\n{} ({file_system}); runs of {seconds} s or {operations} operations a thread",
            path.display()
        );
        if place == Place::Memory {
            println!(
                "Nothing here survives a power failure, unless the memory does. pmemobj: PMEM_IS_PMEM_FORCE=1."
            );
        }
        println!("CPU-ns an operation, all threads of the process: median of the slices");
        print!("{:<13} {:>2}", "contender", "T");
        Workload::ALL.iter().for_each(|workload| print!(" {:>11}", workload.name()));
        println!();
    }

    pub fn add_missing(&mut self, kind: &Kind) {
        println!("{:<13} not installed (package {})", kind.name, kind.package);
        self.not_installed.push(kind.name);
    }

    /// Adds what a contender did in a place: a result for each workload that was wanted.
    pub fn add(
        &mut self,
        kind: &Kind,
        (place, file_system): (Place, &str),
        threads: &[u64],
        results: Vec<(Workload, Result<Vec<Measured>>)>,
    ) {
        for &threads in threads {
            print!("{:<13} {threads:>2}", kind.name);
            for workload in Workload::ALL {
                let runs = results.iter().find(|(other, _)| *other == workload).map(|(_, result)| result);
                let cell = match runs {
                    None => "-".into(),
                    Some(Err(_)) => "FAILED".into(),
                    Some(Ok(runs)) => runs
                        .iter()
                        .find(|run| run.threads == threads)
                        .map_or("-".into(), |run| format!("{:.0}", run.cpu_ns)),
                };
                print!(" {cell:>11}");
            }
            println!();
        }
        for (workload, result) in results {
            let (measured, failed) = match result {
                Ok(measured) => (measured, None),
                Err(error) => {
                    println!("{:<13} {}: {error}", kind.name, workload.name());
                    (Vec::new(), Some(error.to_string()))
                }
            };
            let (name, guarantee, file_system) = (kind.name, kind.guarantee, file_system.into());
            self.rows.push(Row { place, file_system, name, guarantee, workload, failed, measured });
        }
    }

    /// Writes the file. `false`: somebody failed.
    pub fn finish(mut self, json: &Path) -> Result<bool> {
        self.load_at_end = load();
        println!("\nload average {} at the end", self.load_at_end);
        std::fs::write(json, serde_json::to_string_pretty(&self)?)?;
        Ok(self.rows.iter().all(|row| row.failed.is_none()))
    }
}
