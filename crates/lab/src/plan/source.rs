//! A workload, read from the text after `-w`: opened on any design with any seed.

use super::cache;
use nvlab_units::quantity::display_bytes;
use nvlab_workload::columns::Columns;
use nvlab_workload::generator::Mix;
use nvlab_workload::replay::Replay;
use nvlab_workload::{
    AnyWindow, AnyWorkload, Opened, Pacing, Span, Stream, WindowSpec, WindowWorkload, Workload,
    WorkloadError, WorkloadSpec,
};
use std::path::{Path, PathBuf};

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
pub struct OnDevice {
    /// Its requests.
    pub workload: AnyWorkload,
    /// One line about what it really is.
    pub about: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// A workload of transactions on a memory.
#[derive(Clone, Debug)]
pub struct OnMemory {
    /// Its transactions.
    pub workload: AnyWindow,
    /// The same without an end, to bring the memory to its state; with the seed given for it.
    pub own: AnyWindow,
    /// One line about what it really is.
    pub about: String,
}

impl Source {
    /// Reads a workload. A trace is converted into the folder `cache` at its first use and read from there later.
    pub fn read(text: &str, cache: Option<&Path>) -> Result<Source, WorkloadError> {
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
        Ok(source)
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if it is a trace.
    pub fn is_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// True if a copy of it with another seed may bring the device to its state: a trace has one seed, and a client
    /// of a file system its own preparation.
    pub fn may_precondition(&self) -> bool {
        !self.is_trace() && !matches!(self.spec, WorkloadSpec::Iozone { .. })
    }

    /// True if it loads and stores words of a memory instead of asking a device for blocks.
    pub fn is_transactions(&self) -> bool {
        matches!(self.spec, WorkloadSpec::Window { .. })
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

    /// Opens it on a device of `capacity_bytes`.
    pub fn open(&self, capacity_bytes: u64, seed: u64) -> Result<OnDevice, WorkloadError> {
        if let (WorkloadSpec::Trace(spec), Some(columns)) = (&self.spec, &self.trace) {
            let replay = Replay::new(columns.clone(), spec, capacity_bytes, seed)?;
            let about = format!("{}; replayed: {}", self.report, replay.report());
            let workload = AnyWorkload::Replay(replay);
            let about = format!("{about}, {}", paced(workload.pacing()));
            return Ok(OnDevice { workload, about, notes: Vec::new() });
        }
        let Opened { phases, mut notes } = self.spec.open(capacity_bytes, SECTOR_BYTES, seed)?;
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
        Ok(OnDevice { workload, about, notes })
    }

    /// Opens transactions on a memory of `capacity_bytes`; `own_seed` is for the copy that prepares it. `None` if the
    /// workload asks for blocks.
    pub fn open_transactions(
        &self,
        capacity_bytes: u64,
        seed: u64,
        own_seed: u64,
    ) -> Option<Result<OnMemory, WorkloadError>> {
        let WorkloadSpec::Window { text, spec } = &self.spec else { return None };
        let what = format!("workload '{text}'");
        let open = |spec: WindowSpec, seed| spec.open(&what, capacity_bytes, seed);
        Some(open(*spec, seed).and_then(|workload| {
            let own = open(spec.endless(), own_seed)?;
            let pace = match workload.pacing() {
                Pacing::Open => "open loop".to_string(),
                Pacing::Closed { .. } | Pacing::Program => "one after the other".to_string(),
            };
            let described = workload.describe();
            let described = described.lines().take(2).collect::<Vec<_>>().join("; ");
            Ok(OnMemory { workload, own, about: format!("{described}, {pace}") })
        }))
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
