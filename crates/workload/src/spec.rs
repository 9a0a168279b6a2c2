//! The argument of `-w`: a generator, a fio job file or a trace, with its modifiers.
//!
//! ```text
//! zipf theta=0.99 read=70% bs=8KiB qd=32       a generator: the first word is its kind
//! tpca branches=155 rate=10k/s                  transactions on a memory instead of requests to a device
//! tpcc warehouses=80 pool=400MiB mix=full       a database's requests to a device
//! iozone mode=rewrite record=4KiB fill=50%     a client's file on a FAT volume
//! db.fio      db.fio:writer                    a fio job file, or one section of it
//! web.csv.gz:msr compact first=1h              a trace, its format by name, by content or after the colon
//! ```

use crate::fio_job::FioJobFile;
use crate::generator::{GeneratorSpec, KINDS};
use crate::iozone::{self, IozoneConfig};
use crate::replay::{Replay, ReplaySpec};
use crate::tpcc::{self, TpccConfig};
use crate::window::{self, WindowSpec};
use crate::words::Words;
use crate::{AnyWorkload, Span, WorkloadError, suggest};
use std::path::{Path, PathBuf};

/// A workload before it is opened on a device.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadSpec {
    /// A generator.
    Generator {
        /// The text it was read from: its name in messages and results.
        text: String,
        /// What it says.
        spec: GeneratorSpec,
    },
    /// A database.
    Tpcc {
        /// The text it was read from.
        text: String,
        /// What it says.
        config: TpccConfig,
    },
    /// A client of a FAT volume.
    Iozone {
        /// The text it was read from.
        text: String,
        /// What it says.
        config: IozoneConfig,
    },
    /// A fio job file.
    Job {
        /// The file.
        path: PathBuf,
        /// The section to run; `None` for all.
        section: Option<String>,
    },
    /// A trace.
    Trace(ReplaySpec),
    /// A program on a memory; opened by [`WindowSpec::open`], since a block device has no words.
    Window {
        /// The text it was read from.
        text: String,
        /// What it says.
        spec: WindowSpec,
    },
}

/// A workload on its device.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Phases that run one after another, each of streams that run together. Only job files have several.
    pub phases: Vec<Vec<Stream>>,
    /// Notes for the user: what was skipped, sorted, widened.
    pub notes: Vec<String>,
}

/// One of the workloads that run together.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name in results.
    pub name: String,
    /// Its requests.
    pub workload: AnyWorkload,
    /// Figures begin after this.
    pub ramp_time: Span,
}

impl WorkloadSpec {
    /// Reads the text after `-w`. Files are not opened yet.
    pub fn parse(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        let head = Words::head_of(text);
        if KINDS.contains(&head.as_str()) {
            return Ok(WorkloadSpec::Generator {
                text: text.trim().to_owned(),
                spec: GeneratorSpec::parse(text)?,
            });
        }
        if head == tpcc::KIND {
            let config = TpccConfig::parse(text.trim())?;
            return Ok(WorkloadSpec::Tpcc { text: text.trim().to_owned(), config });
        }
        if head == iozone::KIND {
            let config = IozoneConfig::parse(text.trim())?;
            return Ok(WorkloadSpec::Iozone { text: text.trim().to_owned(), config });
        }
        if let Some(spec) = WindowSpec::parse(&head, text.trim()) {
            return spec.map(|spec| WorkloadSpec::Window { text: text.trim().to_owned(), spec });
        }
        if let Some((path, section)) = job_file(&head) {
            Words::new(text, &[], &[])?;
            return Ok(WorkloadSpec::Job { path, section });
        }
        let is_file = head.contains(['/', '.', ':']) || Path::new(&head).exists();
        if is_file {
            return Ok(WorkloadSpec::Trace(ReplaySpec::parse(text)?));
        }
        let kinds: Vec<&str> =
            KINDS.into_iter().chain([tpcc::KIND, iozone::KIND]).chain(window::KINDS).collect();
        let hint = suggest::hint(&head, kinds.iter().copied());
        let reason = format!(
            "'{head}' is neither a kind of generator nor a file{hint} (kinds: {}; files: a trace, or a fio job \
             ending in .fio)",
            kinds.join(", ")
        );
        Err(WorkloadError::Text { text: text.to_owned(), reason })
    }

    /// Opens it on a device of `capacity` bytes that takes requests in units of `unit` bytes: a trace without
    /// `align` is aligned to it if it is larger than 512 B.
    pub fn open(&self, capacity: u64, unit: u64, seed: u64) -> Result<Opened, WorkloadError> {
        match self {
            WorkloadSpec::Generator { text, spec } => {
                let what = format!("workload '{text}'");
                let smallest = spec.sizes.smallest() as u64;
                if unit > 512 && !smallest.is_multiple_of(unit) {
                    let reason =
                        format!("requests of {smallest} B are not whole units of the device's {unit} B");
                    return Err(WorkloadError::DoesNotFit { what, reason });
                }
                let workload = spec.open(&what, capacity, seed)?;
                Ok(Opened { phases: vec![vec![Stream::new(text, workload)]], notes: Vec::new() })
            }
            WorkloadSpec::Tpcc { text, config } => {
                let what = format!("workload '{text}'");
                check_unit(&what, config.page_bytes, unit)?;
                let workload = AnyWorkload::Tpcc(Box::new(config.open(&what, capacity, seed)?));
                Ok(Opened { phases: vec![vec![Stream::new(text, workload)]], notes: Vec::new() })
            }
            WorkloadSpec::Iozone { text, config } => {
                let what = format!("workload '{text}'");
                check_unit(&what, 512, unit)?;
                let workload = AnyWorkload::Iozone(config.open(&what, capacity, seed)?);
                Ok(Opened { phases: vec![vec![Stream::new(text, workload)]], notes: Vec::new() })
            }
            WorkloadSpec::Job { path, section } => open_job(path, section.as_deref(), capacity, unit, seed),
            WorkloadSpec::Trace(spec) => open_trace(spec, capacity, unit, seed),
            WorkloadSpec::Window { text, .. } => {
                let what = format!("workload '{text}'");
                let reason = "it loads and stores words of a memory, and this is a block device; a design of \
                              kind envy has a memory";
                Err(WorkloadError::DoesNotFit { what, reason: reason.to_owned() })
            }
        }
    }
}

impl Stream {
    fn new(name: &str, workload: AnyWorkload) -> Stream {
        Stream { name: name.to_owned(), workload, ramp_time: Span::ZERO }
    }
}

/// `db.fio` or `db.fio:section`.
fn job_file(head: &str) -> Option<(PathBuf, Option<String>)> {
    if head.ends_with(".fio") {
        return Some((head.into(), None));
    }
    let (path, section) = head.split_once(".fio:")?;
    Some((format!("{path}.fio").into(), Some(section.to_owned())))
}

fn check_unit(what: &str, smallest: u32, unit: u64) -> Result<(), WorkloadError> {
    if unit <= 512 || (smallest as u64).is_multiple_of(unit) {
        return Ok(());
    }
    let reason = format!("requests of {smallest} B are not whole units of the device's {unit} B");
    Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason })
}

fn open_job(
    path: &Path,
    section: Option<&str>,
    capacity: u64,
    unit: u64,
    seed: u64,
) -> Result<Opened, WorkloadError> {
    let mut file = FioJobFile::read(path)?;
    if let Some(name) = section {
        file = file.section(name)?;
    }
    for job in file.phases.iter().flatten() {
        check_unit(&format!("{}: [{}]", file.file, job.name), job.block_bytes(), unit)?;
    }
    let mut phases = Vec::new();
    for phase in file.open(capacity, seed)? {
        let streams = phase.into_iter();
        phases.push(
            streams.map(|s| Stream { name: s.name, workload: s.workload, ramp_time: s.ramp_time }).collect(),
        );
    }
    Ok(Opened { phases, notes: file.notes })
}

fn open_trace(spec: &ReplaySpec, capacity: u64, unit: u64, seed: u64) -> Result<Opened, WorkloadError> {
    let mut spec = spec.clone();
    let (columns, read) = spec.read()?;
    if unit > 512 {
        spec.align.get_or_insert(unit);
    }
    let replay = Replay::new(columns, &spec, capacity, seed)?;
    let notes = vec![read.to_string(), replay.report().to_string()];
    let name = spec.path.display().to_string();
    Ok(Opened { phases: vec![vec![Stream::new(&name, AnyWorkload::Replay(replay))]], notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_are_told_apart() {
        assert!(matches!(WorkloadSpec::parse("zipf read=70%"), Ok(WorkloadSpec::Generator { .. })));
        let job = WorkloadSpec::Job { path: "a/db.fio".into(), section: Some("writer".to_owned()) };
        assert_eq!(WorkloadSpec::parse("a/db.fio:writer").unwrap(), job);
        assert!(matches!(WorkloadSpec::parse("web.csv.gz:msr compact"), Ok(WorkloadSpec::Trace(_))));
        assert_eq!(
            WorkloadSpec::parse("zpif").unwrap_err().to_string(),
            "workload 'zpif': 'zpif' is neither a kind of generator nor a file; did you mean 'zipf'? (kinds: \
             uniform, shuffled, sequential, zipf, hotcold, selfsimilar, tpcc, iozone, tpca, words; files: a trace, or a fio job ending in .fio)"
        );
    }

    #[test]
    fn small_requests_need_a_small_unit() {
        let spec = WorkloadSpec::parse("uniform bs=2KiB").unwrap();
        assert!(spec.open(1 << 20, 512, 1).is_ok());
        assert_eq!(
            spec.open(1 << 20, 4096, 1).unwrap_err().to_string(),
            "workload 'uniform bs=2KiB': requests of 2048 B are not whole units of the device's 4096 B"
        );
    }
}
