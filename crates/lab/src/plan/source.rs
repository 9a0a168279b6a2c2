//! A workload, read from the text after `-w`: opened on any design with any seed.

use super::cache;
use nvlab_units::quantity::display_bytes;
use nvlab_workload::columns::Columns;
use nvlab_workload::replay::Replay;
use nvlab_workload::spec::Kind;
use nvlab_workload::{
    AnyBlockWorkload, Pacing, Serves, Span, Stream, Target, Work, WorkloadError, WorkloadSpec,
};
use std::path::Path;
use std::sync::Arc;

/// The smallest request of a host: devices read and write parts of their units.
const SECTOR_BYTES: u64 = 512;

/// A workload, read.
#[derive(Clone, Debug)]
pub struct Source {
    spec: WorkloadSpec,
    trace: Option<Columns>,
    /// The report of reading the trace.
    report: String,
    hash: Option<u64>,
    /// Warnings that do not affect the result.
    asides: Vec<String>,
}

/// A workload on a device.
#[derive(Clone, Debug)]
pub struct Opened {
    /// What it asks of the device.
    pub work: Work,
    /// One line: what it is, its pace and its size.
    pub about: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Source {
    /// Reads a workload, to be shared by all tasks that run it. A trace is converted into the folder `cache` at its first
    /// use and read from there later.
    pub fn read(text: &str, cache: Option<&Path>) -> Result<Arc<Source>, WorkloadError> {
        let spec = WorkloadSpec::parse(text)?;
        let mut source = Source { spec, trace: None, report: String::new(), hash: None, asides: Vec::new() };
        match &source.spec.kind {
            Kind::Job { path, .. } => source.hash = Some(hash_of(path)?),
            Kind::Compile(config) => source.hash = Some(config.hash()?),
            Kind::Trace(spec) => {
                let read = cache::read(spec, cache)?;
                source.hash = Some(read.columns.origin.hash);
                source.trace = Some(read.columns);
                source.report = read.report;
                source.asides = read.aside.into_iter().collect();
            }
            _ => {}
        }
        Ok(Arc::new(source))
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.spec.text
    }

    /// True if it is a trace.
    pub fn is_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// The hash of its file, if it has one.
    pub fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// Warnings from reading it: a cache that cannot be written.
    pub fn asides(&self) -> &[String] {
        &self.asides
    }

    /// The share of requests that write blocks, 0 to 1; 1 if it is not known.
    pub(crate) fn write_share(&self) -> f64 {
        self.spec.write_share()
    }

    /// Opens it on a device of `capacity_bytes`: which serves what `serves` says.
    pub fn open(&self, capacity_bytes: u64, serves: Serves, seed: u64) -> Result<Opened, WorkloadError> {
        if let (Kind::Trace(spec), Some(columns)) = (&self.spec.kind, &self.trace) {
            let replay = Replay::new(columns.clone(), spec, capacity_bytes, seed)?;
            let work = Work::Requests(AnyBlockWorkload::Replay(replay));
            let about = format!("{}; replayed: {}, {}", self.report, work.describe(), paced(&work));
            return Ok(Opened { work, about, notes: Vec::new() });
        }
        let (stream, mut notes) = self.open_stream(&self.spec, capacity_bytes, serves, seed)?;
        let Stream { name, work, ramp_time } = stream;
        if ramp_time > Span::ZERO {
            notes.push(format!("the first {ramp_time} (ramp_time) count too: the device is preconditioned"));
        }
        let described = work.describe();
        let described = described.lines().take(2).collect::<Vec<_>>().join("; ");
        let (footprint, pace) = (work.footprint(), paced(&work));
        let span = display_bytes(footprint.end - footprint.start);
        let about = match (&work, &self.spec.kind) {
            (Work::Accesses(_) | Work::Commits(_), _) => format!("{described}, {pace}"),
            (Work::Requests(_), Kind::Job { .. }) => format!("job {name}: {pace} over {span}"),
            (Work::Requests(_), _) if described.is_empty() => format!("{pace} over {span}"),
            (Work::Requests(_), _) => format!("{described}; {pace} over {span}"),
        };
        Ok(Opened { work, about, notes })
    }

    /// Opens the copy whose writes bring the device to its steady state; `None` if the workload has none
    /// ([`WorkloadSpec::preparing`]).
    pub(crate) fn open_own(
        &self,
        capacity_bytes: u64,
        serves: Serves,
        seed: u64,
    ) -> Result<Option<Work>, WorkloadError> {
        let Some(spec) = self.spec.preparing() else { return Ok(None) };
        let (stream, _) = self.open_stream(&spec, capacity_bytes, serves, seed)?;
        Ok(Some(stream.work))
    }

    fn open_stream(
        &self,
        spec: &WorkloadSpec,
        capacity_bytes: u64,
        serves: Serves,
        seed: u64,
    ) -> Result<(Stream, Vec<String>), WorkloadError> {
        let target = Target { capacity_bytes, unit_bytes: SECTOR_BYTES, serves };
        let opened = spec.open(target, seed)?;
        Ok((self.only(opened.phases)?, opened.notes))
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
        let file = self.text().split_whitespace().next().unwrap_or_default();
        let reason = match self.spec.kind {
            Kind::Job { section: None, .. } if names.len() > 1 => format!(
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

fn paced(work: &Work) -> String {
    match (work.pacing(), work) {
        (Pacing::Open, _) => "open loop".to_string(),
        (_, Work::Accesses(_) | Work::Commits(_)) => "one after the other".to_string(),
        (Pacing::Closed { depth }, work) => match work.threads() {
            1 => format!("closed loop of depth {depth}"),
            threads => format!("closed loop of depth {depth} from {threads} threads"),
        },
        (Pacing::Program, _) => "at the pace of the recorded program".to_string(),
    }
}

fn hash_of(path: &Path) -> Result<u64, WorkloadError> {
    let bytes =
        std::fs::read(path).map_err(|source| WorkloadError::File { path: path.to_path_buf(), source })?;
    Ok(xxhash_rust::xxh3::xxh3_64(&bytes))
}
