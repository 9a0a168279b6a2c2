//! CPU time of durable transactions over objects: swaps of array elements, TPC-B, a B-tree, a hash table and a graph, on
//! persistent heaps, databases and plain memory.
//!
//! Each contender runs each workload in processes of its own: one fills the store, one measures it and prints what it measured
//! as JSON; this one arranges and prints the tables. The store is verified after each run and after reopening; a contender that
//! fails is reported and the exit status is 1.

mod contenders;
mod measure;
mod report;
mod workloads;

use contenders::{KINDS, Kind};
use measure::{Measured, Plan, Workload};
use nvlab_bench_stores::{Error, Result, machine, run};
use report::{Place, Report};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: bench-heap [NAME=VALUE]...
  memory=FOLDER        where the file system in memory is       (/dev/shm)
  disk=FOLDER          where the file system on a disk is       (.)
  places=NAME,...      memory, disk                             (both)
  only=NAME,...        contenders                               (all)
  workloads=NAME,...   sps, tpc-b, b-tree, hash, six-degrees    (all)
  threads=N,...        runs with so many threads                (1,2)
  seconds=S            longest run                              (0.9)
  operations=N         most operations a thread in a run        (1800000)
  json=FILE            where the results go                     (heap.json)";

struct Settings {
    places: Vec<(Place, PathBuf)>,
    only: Vec<String>,
    workloads: Vec<Workload>,
    plan: Plan,
    json: PathBuf,
}

impl Settings {
    fn parse(arguments: &[String]) -> Result<Settings> {
        let (mut memory, mut disk) = (PathBuf::from("/dev/shm"), PathBuf::from("."));
        let mut places = "memory,disk".to_string();
        let mut settings = Settings {
            places: Vec::new(),
            only: Vec::new(),
            workloads: Workload::ALL.to_vec(),
            plan: Plan { threads: vec![1, 2], operations: 1_800_000, seconds: 0.9 },
            json: PathBuf::from("heap.json"),
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or(USAGE)?;
            match name {
                "memory" => memory = value.into(),
                "disk" => disk = value.into(),
                "places" => places = value.into(),
                "only" => settings.only = value.split(',').map(String::from).collect(),
                "workloads" => {
                    settings.workloads = value.split(',').map(Workload::find).collect::<Result<_>>()?;
                }
                "threads" => {
                    settings.plan.threads =
                        value.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
                    if settings
                        .plan
                        .threads
                        .iter()
                        .any(|&threads| threads == 0 || !workloads::KEYS.is_multiple_of(threads))
                    {
                        return Err("the number of threads must divide the number of keys".into());
                    }
                }
                "seconds" => settings.plan.seconds = value.parse()?,
                "operations" => settings.plan.operations = value.parse()?,
                "json" => settings.json = value.into(),
                _ => return Err(USAGE.into()),
            }
        }
        for name in places.split(',') {
            settings.places.push(match name {
                "memory" => (Place::Memory, memory.clone()),
                "disk" => (Place::Disk, disk.clone()),
                _ => return Err(USAGE.into()),
            });
        }
        if let Some(name) = settings.only.iter().find(|name| contenders::find(name).is_err()) {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
            return Err(format!("no contender is called {name}; there are {}", names.join(", ")).into());
        }
        Ok(settings)
    }

    fn wants(&self, kind: &Kind) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == kind.name)
    }
}

fn main() -> ExitCode {
    run(child, |arguments| all(&Settings::parse(arguments)?))
}

/// A process of its own: what to do, the contender, the workload, the folder and the plan; to record, also the switch of the
/// recorder.
fn child(arguments: &[String]) -> Result<()> {
    let [what, name, workload, folder, plan, rest @ ..] = arguments else { return Err(USAGE.into()) };
    let (kind, workload, folder) = (contenders::find(name)?, Workload::find(workload)?, Path::new(folder));
    let plan: Plan = serde_json::from_str(plan)?;
    match (what.as_str(), rest) {
        ("load", []) => measure::load(kind, workload, folder, &plan),
        ("measure", []) => {
            println!("{}", serde_json::to_string(&measure::measure(kind, workload, folder, &plan)?)?);
            Ok(())
        }
        ("record", [switch]) => {
            println!("{}", measure::record(kind, workload, folder, plan.operations, Path::new(switch))?);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// Runs everybody everywhere. `false`: somebody failed.
fn all(settings: &Settings) -> Result<bool> {
    let mut report = Report::new();
    for (place, path) in &settings.places {
        let file_system = machine::file_system(path)?;
        report.heading(*place, path, &file_system, &settings.plan);
        for kind in KINDS.iter().filter(|kind| settings.wants(kind)) {
            if kind.contender.is_none() {
                report.add_missing(kind);
            } else if *place == Place::Memory || !kind.memory_only {
                let one = |&workload| (workload, one(kind, workload, *place, path, &settings.plan));
                let results = settings.workloads.iter().map(one).collect();
                report.add(kind, (*place, &file_system), &settings.plan.threads, results);
            }
        }
    }
    report.finish(&settings.json)
}

/// Fills and measures a contender's store in a new folder.
fn one(kind: &Kind, workload: Workload, place: Place, path: &Path, plan: &Plan) -> Result<Vec<Measured>> {
    let folder = tempfile::tempdir_in(path)?;
    let plan = serde_json::to_string(plan)?;
    let run = |what: &str, is_memory: bool| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--child", what, kind.name, workload.name()]).arg(folder.path()).arg(&plan);
        if is_memory {
            command.envs(kind.memory_environment.iter().copied());
        }
        let output = command.output()?;
        if !output.status.success() {
            let complaints = String::from_utf8_lossy(&output.stderr);
            return Err(Error::from(format!("{}: {}", output.status, complaints.trim())));
        }
        Ok(output.stdout)
    };
    run("load", true)?;
    // What filling has left to write back would be written while it is measured.
    if place == Place::Disk {
        Command::new("sync").arg("-f").arg(folder.path()).status()?;
    }
    Ok(serde_json::from_slice(&run("measure", place == Place::Memory)?)?)
}
