//! Jobs of fio that no closed form is of (skewed, paced, flushed, of several sizes): the design that was found runs them, and they
//! tell what it is worth. Nothing is fitted to them.

use super::{FitError, Runs};
use crate::figures::{Figures, OtherJob, Side, State, Unit};
use crate::model::{Model, Values, text};
use nvlab_design::Design;
use nvlab_run::Preparation;
use nvlab_run::State as Prepared;
use nvlab_run::plan::{Settings, Task};
use nvlab_run::result::{OpResult, RunResult};
use nvlab_workload::block::fio_job::FioJobFile;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

/// Requests of a run.
const REQUESTS: &str = "60k io";
/// Options that say when fio ends, and where its data are: here a run ends by itself.
const LEFT_OUT: [&str; 8] =
    ["runtime", "time_based", "loops", "number_ios", "io_size", "ramp_time", "filename", "uri"];

/// A job, measured and simulated: its reads and its writes.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// What makes it no figure.
    pub why: &'static str,
    /// What was measured.
    pub measured: [Side; 2],
    /// What the design does.
    pub simulated: [Side; 2],
}

/// Reads or writes of a job, measured and simulated.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// True: its writes.
    pub is_write: bool,
    /// What was measured.
    pub measured: Side,
    /// What the design does.
    pub simulated: Side,
}

impl Compared {
    /// Its reads, its writes, or both.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> + use<'_> {
        let all = self.measured.iter().zip(&self.simulated).zip([false, true]);
        let all = all.map(|((&measured, &simulated), is_write)| Pair { is_write, measured, simulated });
        all.filter(|pair| pair.measured.per_s > 0.0)
    }
}

impl Pair {
    /// Simulated over measured throughput, less 1.
    pub fn difference(&self) -> f64 {
        self.simulated.per_s / self.measured.per_s - 1.0
    }

    /// Its cells for people: kind, requests a second and latencies (mean, 99th percentile), measured and simulated, and the difference.
    pub fn cells(&self) -> [String; 6] {
        let rate = |side: Side| Unit::PerSecond.shown(side.per_s);
        let times = |side: Side| {
            side.latencies
                .map_or(String::new(), |of| of.map(|seconds| Unit::Seconds.shown(seconds)).join(", "))
        };
        [
            if self.is_write { "writes" } else { "reads" }.to_string(),
            rate(self.measured),
            rate(self.simulated),
            format!("{:+.1} %", self.difference() * 100.0),
            times(self.measured),
            times(self.simulated),
        ]
    }
}

/// Runs the jobs; also why some could not be run.
pub(super) fn compared(
    figures: &Figures,
    model: &Model,
    drives: &[Values],
    runs: &dyn Runs,
) -> Result<(Vec<Compared>, Vec<String>), FitError> {
    let (mut tasks, mut jobs, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for job in &figures.others {
        match task(job, figures, model, &drives[job.size], runs)? {
            Ok(task) => {
                tasks.push(task);
                jobs.push(job);
            }
            Err(why) => notes.push(format!("{}: not compared: {why}", job.name)),
        }
    }
    let titles: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let results = runs.run(&tasks.iter().collect::<Vec<_>>(), &titles)?;
    let mut found = Vec::new();
    for (job, result) in jobs.into_iter().zip(results) {
        match result {
            Ok(done) => found.push(Compared {
                name: job.name.clone(),
                why: job.why,
                measured: job.sides,
                simulated: sides(&done.result),
            }),
            Err(why) => notes.push(format!("{}: not compared: {why}", job.name)),
        }
    }
    Ok((found, notes))
}

/// The run of a job; or why there is none.
fn task(
    job: &OtherJob,
    figures: &Figures,
    model: &Model,
    drive: &Values,
    runs: &dyn Runs,
) -> Result<Result<Task, String>, FitError> {
    let name = &figures.drive.name;
    let text = match job.state {
        State::AfterCache => text::without_cache(model, drive, job.size),
        _ => text::whole(model, drive, job.size, &|_| String::new()),
    };
    let design = Design::parse(&format!("{name}.toml"), &text, &[])?;
    let file = JobFile::of(job)?;
    let source = match runs.source(&file.path.to_string_lossy()) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let state = Preparation::from(match job.state {
        State::Cache | State::AfterCache => Prepared::Fresh,
        State::Full => Prepared::Full,
        State::Steady => Prepared::Steady,
    });
    let settings = Settings { seed: 1, until: Some(REQUESTS.parse().expect("it is written here")), state };
    Ok(Task::new(design, name.clone(), &source, settings).map_err(|error| error.to_string()))
}

/// A job as a file, while it is read.
struct JobFile {
    path: PathBuf,
}

impl JobFile {
    fn of(job: &OtherJob) -> Result<JobFile, FitError> {
        let options = job.options.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
        let text = FioJobFile::section_text(&job.name, options);
        // The same job has the same name, so that its run is found again.
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let path = std::env::temp_dir().join(format!("nvlab-{:016x}.fio", hasher.finish()));
        let failed = |error| super::Ended::Machine(format!("{}: {error}", path.display()));
        fs::write(&path, text).map_err(failed)?;
        Ok(JobFile { path })
    }
}

impl Drop for JobFile {
    fn drop(&mut self) {
        // What is left is a few lines in a folder that is emptied.
        let _ = fs::remove_file(&self.path);
    }
}

fn sides(run: &RunResult) -> [Side; 2] {
    let side = |of: &OpResult| Side {
        per_s: of.per_s,
        bytes_per_s: of.bytes_per_s,
        bytes: of.bytes as f64,
        latencies: (of.count > 0).then_some([of.latency.mean_ns * 1e-9, of.latency.p99_ns as f64 * 1e-9]),
    };
    [side(&run.read), side(&run.write)]
}
