//! The argument of `-w`: a generator, a program, a fio job file or a trace, with its modifiers.
//!
//! ```text
//! zipf theta=0.99 read=70% bs=8KiB qd=32       a generator: the first word is its kind
//! tpca branches=155 rate=10k/s                 transactions on a memory instead of requests to a device
//! debit-credit style=c++ until=50000transactions   transactions on recoverable memory
//! tpcc warehouses=80 pool=400MiB mix=full       a database's requests to a device
//! iozone mode=rewrite record=4KiB fill=50%     a client's file on a FAT volume
//! logger record=200B rate=1/s fill=50%         small records, each forced, to files on a FAT volume
//! db.fio      db.fio:writer                    a fio job file, or one section of it
//! web.csv.gz:msr compact first=1h              a trace, its format by name, by content or after the colon
//! ```

use crate::arrivals::Limits;
use crate::block::fat::iozone::{self, IozoneConfig};
use crate::block::fat::logger::{self, LoggerConfig};
use crate::block::fio_job::{FioJobFile, FioStream};
use crate::block::generator::{self, GeneratorSpec, Mix};
use crate::block::replay::{Replay, ReplaySpec};
use crate::block::tpcc::{self, TpccConfig};
use crate::durable::compiler::{self, CompilerConfig};
use crate::durable::debit_credit::{self, DebitCreditConfig};
use crate::in_use::InUse;
use crate::memory::random_words::{self, WordsConfig};
use crate::memory::tpca::{self, TpcaConfig};
use crate::words::Words;
use crate::{
    AnyBlockWorkload, AnyDurableWorkload, AnyMemoryWorkload, Opened, Stream, Work, WorkloadError, ZoneShape,
};
use nvlab_units::suggest;
use std::path::{Path, PathBuf};

/// A workload before it is opened on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// The text it was read from, trimmed: its name in messages and results.
    pub text: String,
    /// What its first word names, with all parameters.
    pub kind: Kind,
    /// How much of the device is in use, if the text says; the workload sees a device of this size.
    pub in_use: Option<InUse>,
}

/// The kind of a workload and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `zipf theta=0.99 read=70%`
    Generator(GeneratorSpec),
    /// `tpcc`: a database on a block device.
    Tpcc(TpccConfig),
    /// `iozone`: a benchmark on a FAT volume.
    Iozone(IozoneConfig),
    /// `logger`: appends to files of a FAT volume.
    Logger(LoggerConfig),
    /// `db.fio` or `db.fio:section`.
    Job {
        /// The job file, read when the workload is opened.
        path: PathBuf,
        /// The section to run; `None` for all.
        section: Option<String>,
    },
    /// `web.csv.gz:msr compact`, `builtin:NAME` or `heap:NAME`.
    Trace(ReplaySpec),
    /// `tpca`: a database in a memory.
    Tpca(TpcaConfig),
    /// `words`: single words of a memory.
    Words(WordsConfig),
    /// `debit-credit`: bank transfers on recoverable memory.
    DebitCredit(DebitCreditConfig),
    /// `compiler`: a compiler's heap on recoverable memory.
    Compiler(CompilerConfig),
}

/// What a design can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Reads, writes, trims and flushes of blocks.
    Blocks,
    /// The same in zones, each of which is written in order.
    Zones(ZoneShape),
    /// Loads and stores of words; blocks too, as a RAM disk.
    Words,
    /// Transactions on recoverable memory, each made durable.
    Commits,
}

/// What a workload must know of the device it is opened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Bytes that requests may address.
    pub capacity_bytes: u64,
    /// Requests are whole units of this many bytes: a trace without `align` is aligned to them if they are larger than
    /// 512 B.
    pub unit_bytes: u64,
    /// What it can be asked for.
    pub serves: Serves,
}

impl Target {
    /// A block device of `capacity_bytes`.
    pub fn blocks(capacity_bytes: u64, unit_bytes: u64) -> Target {
        Target { capacity_bytes, unit_bytes, serves: Serves::Blocks }
    }

    /// Its zones, if it has any.
    fn zones(&self) -> Option<ZoneShape> {
        match self.serves {
            Serves::Zones(zones) => Some(zones),
            _ => None,
        }
    }

    fn check_unit(&self, what: &str, smallest: u32) -> Result<(), WorkloadError> {
        let unit = self.unit_bytes;
        if unit <= 512 || (smallest as u64).is_multiple_of(unit) {
            return Ok(());
        }
        let reason = format!("requests of {smallest} B are not whole units of the device's {unit} B");
        Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason })
    }

    /// Refuses a workload that asks for something else. A memory serves blocks too, as a RAM disk.
    fn check_serves(&self, what: &str, wanted: Serves) -> Result<(), WorkloadError> {
        let reason = match (wanted, self.serves) {
            (wanted, serves) if wanted == serves => return Ok(()),
            (Serves::Blocks, Serves::Words | Serves::Zones(_)) => return Ok(()),
            (Serves::Words, Serves::Blocks | Serves::Zones(_)) => {
                "it loads and stores words of a memory, but this is a block device; use a design of kind envy"
            }
            (Serves::Words, _) => {
                "it loads and stores words of a memory, but this is a log; use a design of kind envy"
            }
            (Serves::Commits, _) => "it commits transactions, which needs a log; use a design of kind rvm",
            (Serves::Blocks | Serves::Zones(_), _) => {
                "it issues block requests, but this is a log, which serves transactions (debit-credit, compiler)"
            }
        };
        Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason: reason.to_owned() })
    }
}

impl WorkloadSpec {
    /// Reads the text after `-w`. Files are not opened yet.
    pub fn parse(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        let whole = text.trim();
        let (in_use, text) = InUse::take(whole)?;
        let (text, head) = (text.as_str(), Words::head_of(whole));
        let kind = match head.as_str() {
            kind if generator::KINDS.contains(&kind) => Kind::Generator(GeneratorSpec::parse(text)?),
            head => match PROGRAMS.iter().find(|(kind, _)| *kind == head) {
                Some((_, parse)) => parse(text)?,
                None => file(text, head)?,
            },
        };
        let spec = WorkloadSpec { text: whole.to_owned(), kind, in_use };
        if in_use.is_some() && spec.wants() != Serves::Blocks {
            let reason =
                "used= applies to block devices, and this workload issues no block requests".to_owned();
            return Err(WorkloadError::Text { text: whole.to_owned(), reason });
        }
        Ok(spec)
    }

    fn wants(&self) -> Serves {
        match &self.kind {
            Kind::Tpca(_) | Kind::Words(_) => Serves::Words,
            Kind::DebitCredit(_) | Kind::Compiler(_) => Serves::Commits,
            Kind::Generator(_)
            | Kind::Tpcc(_)
            | Kind::Iozone(_)
            | Kind::Logger(_)
            | Kind::Job { .. }
            | Kind::Trace(_) => Serves::Blocks,
        }
    }

    /// Opens it on a device. Loads and stores need a memory, transactions a log.
    pub fn open(&self, target: Target, seed: u64) -> Result<Opened, WorkloadError> {
        let what = format!("workload '{}'", self.text);
        target.check_serves(&what, self.wants())?;
        let target = self.within(target)?;
        let capacity = target.capacity_bytes;
        let work = match &self.kind {
            Kind::Generator(spec) => {
                target.check_unit(&what, spec.sizes.smallest())?;
                let spec = GeneratorSpec { on: target.zones(), ..spec.clone() };
                Work::Requests(AnyBlockWorkload::Generator(Box::new(spec.open(&what, capacity, seed)?)))
            }
            Kind::Tpcc(config) => {
                target.check_unit(&what, config.page_bytes)?;
                Work::Requests(AnyBlockWorkload::Tpcc(Box::new(config.open(&what, capacity, seed)?)))
            }
            Kind::Iozone(config) => {
                target.check_unit(&what, 512)?;
                Work::Requests(AnyBlockWorkload::Fat(config.open(&what, capacity, seed)?))
            }
            Kind::Logger(config) => {
                target.check_unit(&what, 512)?;
                Work::Requests(AnyBlockWorkload::Fat(config.open(&what, capacity)?))
            }
            Kind::Job { path, section } => return open_job(path, section.as_deref(), target, seed),
            Kind::Trace(spec) => return open_trace(spec, target, seed),
            Kind::Tpca(config) => {
                Work::Accesses(AnyMemoryWorkload::Tpca(Box::new(config.open(&what, capacity, seed)?)))
            }
            Kind::Words(config) => {
                Work::Accesses(AnyMemoryWorkload::Words(Box::new(config.open(&what, capacity, seed)?)))
            }
            Kind::DebitCredit(config) => {
                Work::Commits(AnyDurableWorkload::DebitCredit(Box::new(config.open(&what, capacity, seed)?)))
            }
            Kind::Compiler(config) => {
                Work::Commits(AnyDurableWorkload::Compiler(Box::new(config.open(&what, capacity, seed)?)))
            }
        };
        let stream = Stream::new(self.text.clone(), work);
        let note = if let Kind::Generator(spec) = &self.kind { spec.note() } else { None };
        Ok(Opened { streams: vec![stream], notes: note.map(str::to_owned).into_iter().collect() })
    }

    /// The part of a device that is in use.
    pub fn within(&self, target: Target) -> Result<Target, WorkloadError> {
        let Some(in_use) = self.in_use else { return Ok(target) };
        let refused =
            |reason| WorkloadError::DoesNotFit { what: format!("workload '{}'", self.text), reason };
        Ok(Target { capacity_bytes: in_use.bytes(target.capacity_bytes).map_err(refused)?, ..target })
    }

    /// The copy whose writes, drawn with another seed, bring a device to its steady state: without an end where it can do
    /// without one. `None` if it has none: a log is in its steady state from the first transaction on.
    pub fn preparing(&self) -> Option<WorkloadSpec> {
        let limits = Limits::default();
        let kind = match &self.kind {
            Kind::DebitCredit(_) | Kind::Compiler(_) => return None,
            Kind::Tpca(config) => Kind::Tpca(TpcaConfig { limits, ..*config }),
            Kind::Words(config) => Kind::Words(WordsConfig { limits, ..*config }),
            Kind::Tpcc(config) => Kind::Tpcc(TpccConfig { limits, ..*config }),
            kind @ (Kind::Generator(_)
            | Kind::Iozone(_)
            | Kind::Logger(_)
            | Kind::Job { .. }
            | Kind::Trace(_)) => kind.clone(),
        };
        Some(WorkloadSpec { text: self.text.clone(), kind, in_use: self.in_use })
    }

    /// The share of its requests that write blocks, 0 to 1; 1 if it is not known. Transactions on a memory store a few
    /// words each: 0.
    pub fn write_share(&self) -> f64 {
        match &self.kind {
            Kind::Generator(GeneratorSpec { mix: Mix::Share { read, trim }, .. }) => {
                (1.0 - read - trim).max(0.0)
            }
            Kind::Generator(GeneratorSpec { mix: Mix::TrimThenWrite, .. }) => 0.5,
            Kind::Tpcc(_) | Kind::Iozone(_) | Kind::Logger(_) | Kind::Job { .. } | Kind::Trace(_) => 1.0,
            Kind::Tpca(_) | Kind::Words(_) | Kind::DebitCredit(_) | Kind::Compiler(_) => 0.0,
        }
    }
}

/// Reads the text of a workload.
type Parse = fn(&str) -> Result<Kind, WorkloadError>;

/// What is neither a generator nor a file, by the first word of its text.
const PROGRAMS: [(&str, Parse); 7] = [
    (tpcc::KIND, |text| TpccConfig::parse(text).map(Kind::Tpcc)),
    (iozone::KIND, |text| IozoneConfig::parse(text).map(Kind::Iozone)),
    (logger::KIND, |text| LoggerConfig::parse(text).map(Kind::Logger)),
    (tpca::KIND, |text| TpcaConfig::parse(text).map(Kind::Tpca)),
    (random_words::KIND, |text| WordsConfig::parse(text).map(Kind::Words)),
    (debit_credit::KIND, |text| DebitCreditConfig::parse(text).map(Kind::DebitCredit)),
    (compiler::KIND, |text| CompilerConfig::parse(text).map(Kind::Compiler)),
];

/// A job file or trace; `head` is the first word of its text.
fn file(text: &str, head: &str) -> Result<Kind, WorkloadError> {
    match job_file(head) {
        Some((path, section)) => {
            Words::new(text, &[], &[])?;
            Ok(Kind::Job { path, section })
        }
        None if head.contains(['/', '.', ':']) || Path::new(head).exists() => {
            Ok(Kind::Trace(ReplaySpec::parse(text)?))
        }
        None => Err(unknown(text, head)),
    }
}

fn unknown(text: &str, head: &str) -> WorkloadError {
    let kinds: Vec<&str> = generator::KINDS.into_iter().chain(PROGRAMS.map(|(kind, _)| kind)).collect();
    let hint = suggest::hint(head, kinds.iter().copied());
    let reason = format!(
        "'{head}' is neither a kind of generator nor a file{hint} (kinds: {}; files: a trace, or a fio job \
         ending in .fio)",
        kinds.join(", ")
    );
    WorkloadError::Text { text: text.to_owned(), reason }
}

/// `db.fio` or `db.fio:section`.
fn job_file(head: &str) -> Option<(PathBuf, Option<String>)> {
    if head.ends_with(".fio") {
        return Some((head.into(), None));
    }
    let (path, section) = head.split_once(".fio:")?;
    Some((format!("{path}.fio").into(), Some(section.to_owned())))
}

fn open_job(path: &Path, section: Option<&str>, target: Target, seed: u64) -> Result<Opened, WorkloadError> {
    let mut file = FioJobFile::read(path)?;
    if let Some(name) = section {
        file = file.section(name)?;
    }
    for job in file.phases.iter().flatten() {
        target.check_unit(&format!("{}: [{}]", file.file, job.name), job.block_bytes())?;
    }
    file.on = target.zones();
    let opened = file.open(target.capacity_bytes, seed)?;
    let mut notes = file.notes;
    notes.extend(opened.iter().filter_map(|stream| stream.note.clone()));
    let streams = opened.into_iter().map(|stream| {
        let work = Work::Requests(AnyBlockWorkload::Generator(Box::new(stream.workload)));
        let FioStream { name, ramp_time, after, delay, issue, reported_with, .. } = stream;
        Stream { name, work, ramp_time, after, delay, issue, reported_with }
    });
    Ok(Opened { streams: streams.collect(), notes })
}

fn open_trace(spec: &ReplaySpec, target: Target, seed: u64) -> Result<Opened, WorkloadError> {
    let mut spec = spec.clone();
    let (columns, read) = spec.read()?;
    if target.unit_bytes > 512 {
        spec.align.get_or_insert(target.unit_bytes);
    }
    let replay = Replay::new(columns, &spec, target.capacity_bytes, seed)?;
    let notes = vec![read.to_string(), replay.report().to_string()];
    let name = spec.path.display().to_string();
    let work = Work::Requests(AnyBlockWorkload::Replay(replay));
    Ok(Opened { streams: vec![Stream::new(name, work)], notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let kind = |text: &str| WorkloadSpec::parse(text).unwrap().kind;
        assert!(matches!(kind("zipf read=70%"), Kind::Generator(_)));
        let job = Kind::Job { path: "a/db.fio".into(), section: Some("writer".to_owned()) };
        assert_eq!(kind("a/db.fio:writer"), job);
        assert!(matches!(kind("web.csv.gz:msr compact"), Kind::Trace(_)));
        assert_eq!(
            WorkloadSpec::parse("zpif").unwrap_err().to_string(),
            "workload 'zpif': 'zpif' is neither a kind of generator nor a file; did you mean 'zipf'? (kinds: \
             uniform, shuffled, sequential, zipf, hotcold, selfsimilar, zones, jesd219, tpcc, iozone, logger, tpca, words, debit-credit, compiler; files: a trace, or a fio job ending in .fio)"
        );
    }

    #[test]
    fn small_requests_need_a_small_unit() {
        let spec = WorkloadSpec::parse("uniform bs=2KiB").unwrap();
        assert!(spec.open(Target::blocks(1 << 20, 512), 1).is_ok());
        assert_eq!(
            spec.open(Target::blocks(1 << 20, 4096), 1).unwrap_err().to_string(),
            "workload 'uniform bs=2KiB': requests of 2048 B are not whole units of the device's 4096 B"
        );
    }
}
