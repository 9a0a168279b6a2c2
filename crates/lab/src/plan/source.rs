//! A workload, read from the text after `-w`: opened on any design with any seed.

use super::cache;
use crate::run::Work;
use nvlab_units::quantity::display_bytes;
use nvlab_workload::columns::Columns;
use nvlab_workload::generator::Mix;
use nvlab_workload::replay::Replay;
use nvlab_workload::{
    AnyWorkload, Pacing, Span, Stream, WindowWorkload, Workload, WorkloadError, WorkloadSpec,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The smallest piece a host asks for: devices read and write parts of their units.
pub const SECTOR_BYTES: u64 = 512;

/// A workload, read.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    spec: WorkloadSpec,
    trace: Option<Columns>,
    /// What reading the trace said.
    report: String,
    hash: Option<u64>,
    /// What happened on the way that does not change the result.
    asides: Vec<String>,
}

/// A workload on a device.
#[derive(Clone, Debug)]
pub struct Opened {
    /// What the device is asked for.
    pub work: Work,
    /// One line about what it really is.
    pub about: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Source {
    /// Reads a workload, to be shared by all tasks that run it. A trace is converted into the folder `cache` at its first
    /// use and read from there later.
    pub fn read(text: &str, cache: Option<&Path>) -> Result<Arc<Source>, WorkloadError> {
        let spec = WorkloadSpec::parse(text)?;
        let text = text.trim().to_string();
        let mut source =
            Source { text, spec, trace: None, report: String::new(), hash: None, asides: Vec::new() };
        match &source.spec {
            WorkloadSpec::Generator { .. }
            | WorkloadSpec::Tpcc { .. }
            | WorkloadSpec::Iozone { .. }
            | WorkloadSpec::Window { .. } => {}
            WorkloadSpec::Job { path, .. } => source.hash = Some(hash_of(path)?),
            WorkloadSpec::Trace(spec) => {
                let read = cache::read(spec, cache)?;
                source.hash = Some(read.columns.origin.hash);
                source.trace = Some(read.columns);
                source.report = read.report;
                source.asides = read.aside.into_iter().collect();
            }
        }
        Ok(Arc::new(source))
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if it is a trace.
    pub fn is_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// The hash of its file, if it has one.
    pub fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// What happened while it was read: a cache that cannot be written.
    pub fn asides(&self) -> &[String] {
        &self.asides
    }

    /// The share of requests that write, 0 to 1; 1 if it is not known.
    pub fn write_share(&self) -> f64 {
        match &self.spec {
            WorkloadSpec::Generator { spec, .. } => match spec.mix {
                Mix::Share { read, trim } => (1.0 - read - trim).max(0.0),
                Mix::TrimThenWrite => 0.5,
            },
            _ => 1.0,
        }
    }

    /// Opens it on a device of `capacity_bytes`, which `is_memory` or a block device.
    pub fn open(&self, capacity_bytes: u64, is_memory: bool, seed: u64) -> Result<Opened, WorkloadError> {
        if let (WorkloadSpec::Trace(spec), Some(columns)) = (&self.spec, &self.trace) {
            let replay = Replay::new(columns.clone(), spec, capacity_bytes, seed)?;
            let about = format!("{}; replayed: {}", self.report, replay.report());
            let workload = AnyWorkload::Replay(replay);
            let about = format!("{about}, {}", paced(workload.pacing()));
            return Ok(Opened { work: Work::Requests(workload), about, notes: Vec::new() });
        }
        if let (WorkloadSpec::Window { text, spec }, true) = (&self.spec, is_memory) {
            let workload = spec.open(&format!("workload '{text}'"), capacity_bytes, seed)?;
            let pace = match workload.pacing() {
                Pacing::Open => "open loop",
                Pacing::Closed { .. } | Pacing::Program => "one after the other",
            };
            let described = workload.describe();
            let described = described.lines().take(2).collect::<Vec<_>>().join("; ");
            let about = format!("{described}, {pace}");
            return Ok(Opened { work: Work::Accesses(workload), about, notes: Vec::new() });
        }
        self.open_stream(capacity_bytes, seed)
    }

    /// Opens the copy whose writes bring the device to its steady state: with a seed of its own, and without an end where
    /// it accesses words. `None` if the workload has none: a trace has one seed, and a client of a file system its own
    /// preparation.
    pub fn open_own(
        &self,
        capacity_bytes: u64,
        is_memory: bool,
        seed: u64,
    ) -> Result<Option<Work>, WorkloadError> {
        match &self.spec {
            WorkloadSpec::Trace(_) | WorkloadSpec::Iozone { .. } => Ok(None),
            WorkloadSpec::Window { text, spec } if is_memory => {
                let opened = spec.endless().open(&format!("workload '{text}'"), capacity_bytes, seed)?;
                Ok(Some(Work::Accesses(opened)))
            }
            _ => Ok(Some(self.open(capacity_bytes, is_memory, seed)?.work)),
        }
    }

    fn open_stream(&self, capacity_bytes: u64, seed: u64) -> Result<Opened, WorkloadError> {
        let nvlab_workload::Opened { phases, mut notes } =
            self.spec.open(capacity_bytes, SECTOR_BYTES, seed)?;
        let Stream { workload, ramp_time, name } = self.only(phases)?;
        if ramp_time > Span::ZERO {
            notes.push(format!("the first {ramp_time} (ramp_time) count too: the device is preconditioned"));
        }
        let footprint = workload.footprint();
        let span = display_bytes(footprint.end - footprint.start);
        let mut about = format!("{} over {span}", paced(workload.pacing()));
        if matches!(self.spec, WorkloadSpec::Job { .. }) {
            about = format!("job {name}: {about}");
        }
        if let AnyWorkload::Tpcc(database) = &workload {
            let described = database.describe();
            about = format!("{}; {about}", described.lines().take(2).collect::<Vec<_>>().join("; "));
        }
        if let AnyWorkload::Iozone(client) = &workload {
            about = format!("{}; {about}", client.describe());
        }
        Ok(Opened { work: Work::Requests(workload), about, notes })
    }

    /// The only stream there is. Several closed loops at once need to know each other's completions, which one
    /// stream of requests does not: refused rather than approximated.
    fn only(&self, phases: Vec<Vec<Stream>>) -> Result<Stream, WorkloadError> {
        let mut streams: Vec<Stream> = phases.into_iter().flatten().collect();
        if streams.len() == 1 {
            return Ok(streams.remove(0));
        }
        let mut names: Vec<&str> = streams.iter().map(|stream| section_of(&stream.name)).collect();
        let count = names.len();
        names.dedup();
        names.truncate(6);
        let file = self.text.split_whitespace().next().unwrap_or_default();
        let reason = match self.spec {
            WorkloadSpec::Job { section: None, .. } if names.len() > 1 => format!(
                "its {count} jobs ({}) cannot be run together yet; run one: '{file}:{}'",
                names.join(", "),
                names[0]
            ),
            _ => format!("its {count} copies cannot be run together yet; set numjobs=1 and raise iodepth"),
        };
        Err(WorkloadError::DoesNotFit { what: file.to_string(), reason })
    }
}

/// The section of a copy: `log` of `log.3`.
fn section_of(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((section, copy)) if !copy.is_empty() && copy.bytes().all(|b| b.is_ascii_digit()) => section,
        _ => name,
    }
}

fn paced(pacing: Pacing) -> String {
    match pacing {
        Pacing::Open => "open loop".to_string(),
        Pacing::Closed { depth } => format!("closed loop of depth {depth}"),
        Pacing::Program => "at the pace of the recorded program".to_string(),
    }
}

fn hash_of(path: &PathBuf) -> Result<u64, WorkloadError> {
    let bytes = std::fs::read(path).map_err(|source| WorkloadError::File { path: path.clone(), source })?;
    Ok(xxhash_rust::xxh3::xxh3_64(&bytes))
}
