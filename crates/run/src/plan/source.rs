//! A workload, read from the text after `-w`: opened on any design with any seed.

use super::cache;
use crate::preparation::{Preparation, State};
use nvlab_design::Design;
use nvlab_trace::{Columns, TraceError};
use nvlab_units::Rng;
use nvlab_units::quantity::display_bytes;
use nvlab_workload::block::fio_job::FioJobFile;
use nvlab_workload::block::repeated::Repeated;
use nvlab_workload::block::together::{Issue, Tenant, Together};
use nvlab_workload::replay::{Replay, ReplaySpec};
use nvlab_workload::spec::Kind;
use nvlab_workload::{
    AnyBlockWorkload, InUse, Pacing, Serves, Span, Stream, Target, Work, WorkloadError, WorkloadSpec,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The smallest request of a host: devices read and write parts of their units.
const SECTOR_BYTES: u64 = 512;

/// Random orders of a workload with an end that take turns, so that it does not overwrite its blocks in the order in which it wrote
/// them, pass by pass.
const ORDERS: u64 = 4;

/// Between two workloads that run together.
const AND: &str = " + ";

/// A workload, read: one, or several that run together.
#[derive(Debug)]
pub struct Source {
    text: String,
    parts: Vec<Part>,
    hash: Option<u64>,
    /// Warnings that do not affect the result.
    asides: Vec<String>,
    in_use: Option<InUse>,
}

/// One of the workloads.
#[derive(Debug)]
struct Part {
    spec: WorkloadSpec,
    trace: Option<Held>,
    /// The report of reading the trace.
    report: String,
    hash: Option<u64>,
}

/// The requests of a trace, unless they were released: then they are read again when they are needed.
#[derive(Debug)]
struct Held {
    columns: Mutex<Option<Arc<Columns>>>,
    cache: Option<PathBuf>,
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
    /// Reads a workload, to be shared by all tasks that run it; of several, ` + ` stands between them. A trace is converted
    /// into the folder `cache` at its first use and read from there later.
    pub fn read(text: &str, cache: Option<&Path>) -> Result<Arc<Source>, WorkloadError> {
        let mut asides = Vec::new();
        let parts = text.split(AND).map(|text| Part::read(text, cache, &mut asides));
        let mut parts = parts.collect::<Result<Vec<Part>, WorkloadError>>()?;
        let in_use = in_use(text, &parts)?;
        parts.iter_mut().for_each(|part| part.spec.in_use = in_use);
        let hashes: Vec<u64> = parts.iter().filter_map(|part| part.hash).collect();
        let hash = match &hashes[..] {
            [] => None,
            [hash] => Some(*hash),
            hashes => Some(xxhash_rust::xxh3::xxh3_64(format!("{hashes:x?}").as_bytes())),
        };
        let texts: Vec<&str> = parts.iter().map(|part| part.spec.text.as_str()).collect();
        Ok(Arc::new(Source { text: texts.join(AND), parts, hash, asides, in_use }))
    }

    /// Whether a text can be a workload; files are not read.
    pub fn check(text: &str) -> Result<(), WorkloadError> {
        text.split(AND).try_for_each(|part| WorkloadSpec::parse(part).map(drop))
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if it is a trace.
    pub fn is_trace(&self) -> bool {
        matches!(&self.parts[..], [part] if part.trace.is_some())
    }

    /// How much of the device is in use, and what the rest holds, if it says: of several workloads, for all of them.
    pub fn in_use(&self) -> Option<InUse> {
        self.in_use
    }

    /// The hash of its files, if it has some.
    pub fn hash(&self) -> Option<u64> {
        self.hash
    }

    /// Bytes of the traces that it holds in memory.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.parts
            .iter()
            .filter_map(|part| part.trace.as_ref()?.get())
            .map(|columns| columns.memory_bytes())
            .sum()
    }

    /// Releases the traces; they are read again when they are needed.
    pub(crate) fn release(&self) {
        self.parts.iter().filter_map(|part| part.trace.as_ref()).for_each(Held::release);
    }

    /// Warnings from reading it: a cache that cannot be written.
    pub fn asides(&self) -> &[String] {
        &self.asides
    }

    /// The share of requests that write blocks, 0 to 1; 1 if it is not known; of several workloads the largest.
    pub(crate) fn write_share(&self) -> f64 {
        self.parts.iter().map(|part| part.spec.write_share()).fold(0.0, f64::max)
    }

    /// Opens it on a device of `capacity_bytes`: which serves what `serves` says.
    pub fn open(&self, capacity_bytes: u64, serves: Serves, seed: u64) -> Result<Opened, WorkloadError> {
        let target = Target { capacity_bytes, unit_bytes: SECTOR_BYTES, serves };
        if let [Part { spec: WorkloadSpec { kind: Kind::Trace(_), .. }, report, .. }] = &self.parts[..] {
            let (mut streams, _) = self.streams(target, seed, Part::open)?;
            let work = streams.remove(0).work;
            let about = format!("{report}; replayed: {}, {}", work.describe(), paced(&work));
            return Ok(Opened { work, about, notes: Vec::new() });
        }
        let (streams, mut notes) = self.streams(target, seed, Part::open)?;
        notes.dedup();
        let name = streams[0].name.clone();
        let work = self.joined(streams)?;
        let described = work.describe();
        let described = described.lines().take(2).collect::<Vec<_>>().join("; ");
        let (footprint, pace) = (work.footprint(), paced(&work));
        let span = display_bytes(footprint.end - footprint.start);
        let about = match (&work, &self.parts[0].spec.kind) {
            (Work::Accesses(_) | Work::Commits(_), _) => format!("{described}, {pace}"),
            (Work::Requests(AnyBlockWorkload::Together(_)), _) => format!("{described} over {span}"),
            (Work::Requests(_), Kind::Job { .. }) => format!("job {name}: {pace} over {span}"),
            (Work::Requests(_), _) if described.is_empty() => format!("{pace} over {span}"),
            (Work::Requests(_), _) => format!("{described}; {pace} over {span}"),
        };
        Ok(Opened { work, about, notes })
    }

    /// Opens the copy whose writes bring the device to its steady state: without an end, or repeated ([`Repeated`]) where it has one
    /// that matters: a recording, a client of a file system, streams that wait for others, and a sequential one that ends before the
    /// end of its region. `None` if the workload has none ([`WorkloadSpec::preparing`]).
    pub(crate) fn open_own(
        &self,
        capacity_bytes: u64,
        serves: Serves,
        seed: u64,
    ) -> Result<Option<Work>, WorkloadError> {
        let target = Target { capacity_bytes, unit_bytes: SECTOR_BYTES, serves };
        let open = |seed, how| self.streams(target, seed, how).map(|(streams, _)| streams);
        let mut streams = open(seed, Part::open_own as Open)?;
        if streams.is_empty() {
            return Ok(None);
        }
        if streams.iter().any(|stream| !stream.after.is_empty()) {
            let passes = (0..ORDERS).map(|order| self.joined(open(seed ^ order, Part::open)?));
            let passes = passes.collect::<Result<Vec<Work>, WorkloadError>>()?;
            return Ok(repeated(passes));
        }
        let is_alone = streams.len() == 1;
        for stream in &mut streams {
            (stream.delay, stream.ramp_time) = (Span::ZERO, Span::ZERO);
            if let Work::Requests(workload) = &mut stream.work {
                match workload {
                    AnyBlockWorkload::Generator(generator) if is_alone && generator.leaves_rest() => {}
                    AnyBlockWorkload::Generator(generator) => generator.go_on(is_alone),
                    AnyBlockWorkload::Replay(replay) if !is_alone => *replay = replay.clone().endless(),
                    _ => {}
                }
            }
        }
        let work = self.joined(streams)?;
        if work.has_end() { Ok(repeated(vec![work])) } else { Ok(Some(work)) }
    }

    /// The streams of all parts, and notes.
    fn streams(
        &self,
        target: Target,
        seed: u64,
        open: Open,
    ) -> Result<(Vec<Stream>, Vec<String>), WorkloadError> {
        let (mut streams, mut notes) = (Vec::new(), Vec::new());
        for (index, part) in self.parts.iter().enumerate() {
            // Equal parts draw different numbers.
            let seed = if index == 0 { seed } else { Rng::stream(seed, &format!("part {index}")).bits() };
            let opened = open(part, target, seed)?;
            let earlier = streams.len();
            streams.extend(opened.streams.into_iter().map(|mut stream| {
                stream.after.iter_mut().for_each(|before| *before += earlier);
                stream.reported_with = stream.reported_with.map(|with| with + earlier);
                stream
            }));
            notes.extend(opened.notes);
        }
        Ok((streams, notes))
    }

    /// What streams ask of a device: several become one workload.
    fn joined(&self, mut streams: Vec<Stream>) -> Result<Work, WorkloadError> {
        if let [Stream { issue, delay: Span::ZERO, ramp_time: Span::ZERO, .. }] = &streams[..]
            && *issue == Issue::default()
        {
            return Ok(streams.remove(0).work);
        }
        let tenants = streams.into_iter().map(|stream| {
            let Stream { name, work, after, delay, ramp_time, issue, reported_with } = stream;
            let fits = |workload: &AnyBlockWorkload| {
                !workload.carries_payload() && workload.pacing() != Pacing::Program
            };
            let workload = work.requests().filter(fits).ok_or_else(|| WorkloadError::DoesNotFit {
                what: format!("workload '{name}'"),
            reason: "it cannot be combined with other workloads: only generators, databases, jobs and traces without \
                     think=keep can"
                    .to_string(),
            })?;
            Ok(Tenant { name, workload, after, delay, ramp_time, issue, reported_with })
        });
        let tenants = tenants.collect::<Result<Vec<Tenant>, WorkloadError>>()?;
        Ok(Work::Requests(AnyBlockWorkload::Together(Together::new(tenants))))
    }
}

/// The passes of workloads with an end; `None` if they are no requests for blocks.
fn repeated(passes: Vec<Work>) -> Option<Work> {
    let passes: Option<Vec<AnyBlockWorkload>> = passes.into_iter().map(Work::requests).collect();
    passes.map(|passes| Work::Requests(AnyBlockWorkload::Repeated(Repeated::new(passes))))
}

/// How much of the device is in use: what one of the parts says holds for all.
fn in_use(text: &str, parts: &[Part]) -> Result<Option<InUse>, WorkloadError> {
    let mut said = parts.iter().filter_map(|part| part.spec.in_use);
    let first = said.next();
    match said.find(|other| Some(*other) != first) {
        None => Ok(first),
        Some(_) => {
            let reason =
                "used= and trimmed= apply to the device: give them once for all workloads".to_string();
            Err(WorkloadError::Text { text: text.to_string(), reason })
        }
    }
}

/// How a part is opened.
type Open = fn(&Part, Target, u64) -> Result<nvlab_workload::Opened, WorkloadError>;

impl Part {
    fn read(text: &str, cache: Option<&Path>, asides: &mut Vec<String>) -> Result<Part, WorkloadError> {
        let spec = WorkloadSpec::parse(text)?;
        let mut part = Part { spec, trace: None, report: String::new(), hash: None };
        match &part.spec.kind {
            Kind::Job { path, .. } => {
                part.hash = Some(xxhash_rust::xxh3::xxh3_64(FioJobFile::hashed(path)?.as_bytes()));
            }
            Kind::Trace(spec) => {
                let read = cache::read(spec, cache)?;
                part.hash = Some(read.columns.origin.hash);
                let columns = Mutex::new(Some(Arc::new(read.columns)));
                part.trace = Some(Held { columns, cache: cache.map(Path::to_path_buf) });
                part.report = read.report;
                asides.extend(read.aside);
            }
            _ => {}
        }
        Ok(part)
    }

    fn open(&self, target: Target, seed: u64) -> Result<nvlab_workload::Opened, WorkloadError> {
        let (Kind::Trace(spec), Some(held)) = (&self.spec.kind, &self.trace) else {
            return self.spec.open(target, seed);
        };
        let target = self.spec.within(target)?;
        let columns = held.columns(spec, self.hash)?;
        let replay = Replay::new(Columns::clone(&columns), spec, target.capacity_bytes, seed)?;
        let work = Work::Requests(AnyBlockWorkload::Replay(replay));
        let streams = vec![Stream::new(self.spec.text.clone(), work)];
        Ok(nvlab_workload::Opened { streams, notes: vec![self.report.clone()] })
    }

    fn open_own(&self, target: Target, seed: u64) -> Result<nvlab_workload::Opened, WorkloadError> {
        let nothing = Ok(nvlab_workload::Opened { streams: Vec::new(), notes: Vec::new() });
        if let (Kind::Trace(spec), Some(held)) = (&self.spec.kind, &self.trace) {
            let target = self.spec.within(target)?;
            let columns = held.columns(spec, self.hash)?;
            let once = ReplaySpec { loops: 1, keeps_think: false, ..spec.clone() };
            let replay = Replay::new(Columns::clone(&columns), &once, target.capacity_bytes, seed)?;
            let Some(replay) = replay.without_reads() else { return nothing };
            let work = Work::Requests(AnyBlockWorkload::Replay(replay));
            let streams = vec![Stream::new(self.spec.text.clone(), work)];
            return Ok(nvlab_workload::Opened { streams, notes: Vec::new() });
        }
        self.spec.preparing().map_or(nothing, |spec| spec.open(target, seed))
    }
}

impl Held {
    fn get(&self) -> Option<Arc<Columns>> {
        self.columns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn release(&self) {
        *self.columns.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The requests; an error if they have to be read again and are not what they were.
    fn columns(&self, spec: &ReplaySpec, hash: Option<u64>) -> Result<Arc<Columns>, WorkloadError> {
        if let Some(columns) = self.get() {
            return Ok(columns);
        }
        let columns = Arc::new(cache::read(spec, self.cache.as_deref())?.columns);
        if Some(columns.origin.hash) != hash {
            let reason = "it has changed since it was first read".to_string();
            return Err(TraceError::Damaged { file: spec.path.display().to_string(), reason }.into());
        }
        *self.columns.lock().unwrap_or_else(PoisonError::into_inner) = Some(columns.clone());
        Ok(columns)
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

/// What the writes of a workload depend on.
pub(crate) fn workload_key(source: &Source) -> String {
    format!("{}\n{:?}", source.text(), source.hash())
}

/// The copy of a workload whose writes bring the device to its steady state, if that is asked for: in the part of the
/// device that they go to.
pub(crate) fn own_of(
    design: &Design,
    source: &Source,
    preparation: &Preparation,
) -> Result<Option<Work>, WorkloadError> {
    if !preparation.is_of_workload() {
        return Ok(None);
    }
    if preparation.state == State::LogFull && !design.has_log_blocks() {
        return Err(WorkloadError::DoesNotFit {
            what: format!("design '{}'", design.name),
            reason: "it has no log blocks: --precondition log-full is for ftl.kind = bast and fast"
                .to_string(),
        });
    }
    // A workload that says what is in use goes there by itself.
    let capacity = match source.in_use() {
        Some(_) => design.capacity_bytes(),
        None => preparation.span_bytes(design.capacity_bytes()),
    };
    source.open_own(capacity, design.ftl.kind().serves(), preparation.seed ^ OWN_SEED)
}

/// Changes the seed of a preparation for the copy of its workload that prepares the device.
const OWN_SEED: u64 = 0x5072_6563_6f6e_6400;
