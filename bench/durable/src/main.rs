//! TPC-B (debit-credit) on rvm beside SQLite, Berkeley DB, LMDB, RocksDB and libpmemobj: commits a second as a multiple of
//! raw fdatasync a second, CPU time and bytes a transaction, and opening after kill -9.
//!
//! Each contender runs in a process of its own, which prints what it measured as JSON; this one arranges and prints
//! the tables. The balances are checked after each run; a contender that fails is reported and the exit status is 1.

mod contenders;
mod machine;
mod measure;
mod reopen;
mod report;

use contenders::{KINDS, Kind};
use measure::Plan;
use report::{Place, Report, Row};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nvlab_bench_stores::{Result, run};

const USAGE: &str = "\
usage: bench-durable [NAME=VALUE]...
  disk=FOLDER        where the file system on a disk is        (.)
  memory=FOLDER      where the file system in memory is        (/dev/shm)
  only=NAME,...      contenders                                (all)
  threads=N,...      runs with so many threads                 (1,2,4,8)
  seconds=S          longest run on the disk                   (1.6)
  memory-seconds=S   longest run in memory                     (0.8)
  commits=N          most commits of a run                     (400000)
  raw-seconds=S      raw fdatasync before and after each run   (0.4)
  warm-up=N          unmeasured transactions in memory         (20000)
  kill-seconds=S     transactions before a kill; 0: no kills   (1)
  json=FILE          where the results go                      (durable.json)";

struct Settings {
    places: [(Place, PathBuf); 2],
    only: Vec<String>,
    disk: Plan,
    memory: Plan,
    kill_seconds: f64,
    json: PathBuf,
}

impl Settings {
    fn parse(arguments: &[String]) -> Result<Settings> {
        let disk =
            Plan { threads: vec![1, 2, 4, 8], commits: 400_000, seconds: 1.6, raw_seconds: 0.4, warm_up: 20 };
        let memory = Plan { seconds: 0.8, raw_seconds: 0.05, warm_up: 20_000, ..disk.clone() };
        let places = [(Place::Disk, PathBuf::from(".")), (Place::Memory, PathBuf::from("/dev/shm"))];
        let json = PathBuf::from("durable.json");
        let mut settings = Settings { places, only: Vec::new(), disk, memory, kill_seconds: 1.0, json };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or(USAGE)?;
            match name {
                "disk" => settings.places[0].1 = value.into(),
                "memory" => settings.places[1].1 = value.into(),
                "only" => settings.only = value.split(',').map(String::from).collect(),
                "threads" => {
                    let threads =
                        value.split(',').map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
                    (settings.disk.threads, settings.memory.threads) = (threads.clone(), threads);
                }
                "seconds" => settings.disk.seconds = value.parse()?,
                "memory-seconds" => settings.memory.seconds = value.parse()?,
                "commits" => {
                    settings.disk.commits = value.parse()?;
                    settings.memory.commits = settings.disk.commits;
                }
                "raw-seconds" => settings.disk.raw_seconds = value.parse()?,
                "warm-up" => settings.memory.warm_up = value.parse()?,
                "kill-seconds" => settings.kill_seconds = value.parse()?,
                "json" => settings.json = value.into(),
                _ => return Err(USAGE.into()),
            }
        }
        if let Some(name) = settings.only.iter().find(|name| contenders::find(name).is_err()) {
            let names = KINDS.map(|kind| kind.name).join(", ");
            return Err(format!("no contender is called {name}; there are {names}").into());
        }
        Ok(settings)
    }
}

fn main() -> ExitCode {
    run(child, |arguments| all(&Settings::parse(arguments)?))
}

/// A process of its own: what to do, the contender, the folder, and a plan.
fn child(arguments: &[String]) -> Result<()> {
    let [what, name, folder, plan @ ..] = arguments else { return Err(USAGE.into()) };
    let (kind, folder) = (contenders::find(name)?, Path::new(folder));
    let json = match what.as_str() {
        "measure" => {
            let plan = serde_json::from_str(plan.first().ok_or("a plan")?)?;
            serde_json::to_string(&measure::measure(kind, folder, &plan)?)?
        }
        "die" => return reopen::work_until_killed(kind, folder),
        "reopen" => serde_json::to_string(&reopen::reopen(kind, folder)?)?,
        _ => return Err(USAGE.into()),
    };
    println!("{json}");
    Ok(())
}

/// Runs everybody everywhere. `false`: somebody failed.
fn all(settings: &Settings) -> Result<bool> {
    let mut report = Report::new();
    for (place, path) in &settings.places {
        let plan = if *place == Place::Disk { &settings.disk } else { &settings.memory };
        let file_system = nvlab_bench_stores::machine::file_system(path)?;
        report.heading(*place, path, &file_system, plan);
        for kind in KINDS
            .iter()
            .filter(|kind| settings.only.is_empty() || settings.only.iter().any(|name| name == kind.name))
        {
            if kind.memory_only && *place == Place::Disk {
                continue;
            }
            let mut row = Row::new(kind, *place, &file_system);
            if kind.make.is_some() {
                match one(kind, *place, path, plan, settings.kill_seconds) {
                    Ok((measured, reopened)) => (row.measured, row.reopened) = (measured, reopened),
                    Err(error) => row.failed = Some(error.to_string()),
                }
            }
            report.add(row);
        }
    }
    report.finish(&settings.json)
}

type Outcome = (Vec<measure::Measured>, Option<reopen::Reopened>);

/// Measures a contender in a new folder of its own, and kills it in another.
fn one(kind: &Kind, place: Place, path: &Path, plan: &Plan, kill_seconds: f64) -> Result<Outcome> {
    let folder = tempfile::tempdir_in(path)?;
    let plan = serde_json::to_string(plan)?;
    let measured = serde_json::from_str(&output(start(kind, place, "measure", folder.path(), &[&plan])?)?)?;
    drop(folder);
    if kill_seconds <= 0.0 {
        return Ok((measured, None));
    }
    let folder = tempfile::tempdir_in(path)?;
    let mut victim = start(kind, place, "die", folder.path(), &[])?;
    let mut began = Instant::now();
    let mut is_under_way = false;
    while began.elapsed().as_secs_f64() < kill_seconds || !is_under_way {
        std::thread::sleep(Duration::from_millis(2));
        if !is_under_way && reopen::has_begun(folder.path()) {
            (is_under_way, began) = (true, Instant::now());
        }
        if victim.try_wait()?.is_some() {
            return Err(format!("it ended before it was killed: {}", output(victim).unwrap_err()).into());
        }
    }
    // On Unix that is SIGKILL.
    victim.kill()?;
    victim.wait()?;
    let reopened = serde_json::from_str(&output(start(kind, place, "reopen", folder.path(), &[])?)?)?;
    Ok((measured, Some(reopened)))
}

fn start(kind: &Kind, place: Place, what: &str, folder: &Path, more: &[&str]) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--child", what, kind.name])
        .arg(folder)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if place == Place::Memory {
        command.envs(kind.memory_environment.iter().copied());
    }
    Ok(command.spawn()?)
}

/// Waits for a process and returns what it printed; its complaints are the error.
fn output(mut child: Child) -> Result<String> {
    let (mut text, mut complaints) = (String::new(), String::new());
    child.stdout.take().ok_or("its output")?.read_to_string(&mut text)?;
    child.stderr.take().ok_or("its output")?.read_to_string(&mut complaints)?;
    let status = child.wait()?;
    if status.success() { Ok(text) } else { Err(format!("{status}: {}", complaints.trim()).into()) }
}
