//! fio job files: the subset that affects a device.
//!
//! Options that affect which requests are issued, when and where are implemented, or refused with the line and the
//! reason; options that do not matter to a simulated device (engines, buffers, logs) are skipped with a note; an
//! option that fio does not have is an error that names the nearest known one.
//!
//! 1. Sections run together; `stonewall` begins a new phase that waits for all earlier ones. `numjobs` makes
//!    copies that differ in their random numbers.
//! 2. Numbers follow fio: `4k`, `4kb` and `4K` are 4096 (kb_base=1024), and so, contrary to common usage, `4ki`
//!    and `4kib` are 4000. `kb_base=1000` swaps them. Times are in seconds.
//! 3. As in fio, a random job without `norandommap` accesses every block once per pass; a job ends after
//!    `size` bytes unless it is `time_based`.
//! 4. All jobs share one device from its first byte on, as with `filename=/dev/...`.
//! 5. A synchronous `ioengine` keeps one request outstanding, regardless of `iodepth`; others only set the depth.
//! 6. `rate` and `rate_iops` make an open loop: `iodepth` no longer limits it, which is noted.

mod numbers;
mod options;
#[cfg(test)]
mod tests;

use super::generator::{Amount, AnyGenerator, Distribution, GeneratorSpec, Mix, Sizes};
use crate::arrivals::Pace;
use crate::{Span, WorkloadError, suggest};
use nvlab_units::Rng;
use options::{IGNORED, KNOWN, Options, REFUSED, canonical};
use std::path::Path;

/// A parsed job file.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJobFile {
    /// The file, for messages.
    pub file: String,
    /// Phases that run one after another, each of jobs that run together.
    pub phases: Vec<Vec<FioJob>>,
    /// Options that were skipped or interpreted in a particular way, one sentence each.
    pub notes: Vec<String>,
}

/// One section, before `numjobs` is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJob {
    /// The name of the section.
    pub name: String,
    /// The line of the section.
    pub line: u64,
    /// The number of copies.
    pub copies: u32,
    /// Sizes, mix, pace: everything that does not need the device.
    spec: GeneratorSpec,
    offset: Amount,
    size: Option<Amount>,
    /// Added to the offset of each further copy.
    offset_increment: Amount,
    io_bytes: Option<Amount>,
    loops: u64,
    time_based: bool,
    /// Figures begin after this.
    pub ramp_time: Span,
    seed: Option<u64>,
}

/// One running copy of a job.
#[derive(Clone, Debug)]
pub struct FioStream {
    /// The section, with `.1`, `.2` for the copies.
    pub name: String,
    /// Its requests.
    pub workload: AnyGenerator,
    /// Figures begin after this.
    pub ramp_time: Span,
}

impl FioJobFile {
    /// Reads a job file.
    pub fn read(path: &Path) -> Result<FioJobFile, WorkloadError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| WorkloadError::File { path: path.to_owned(), source })?;
        FioJobFile::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a job file; `file` is its name in messages.
    pub fn parse(text: &str, file: &str) -> Result<FioJobFile, WorkloadError> {
        let mut parsed = FioJobFile { file: file.to_owned(), phases: vec![Vec::new()], notes: Vec::new() };
        let sections = sections(text, file, &mut parsed.notes)?;
        for section in &sections {
            let starts_phase =
                section.options.flag("stonewall")? || section.options.flag("wait_for_previous")?;
            if starts_phase && !parsed.phases[parsed.phases.len() - 1].is_empty() {
                parsed.phases.push(Vec::new());
            }
            let job = section.job(&mut parsed.notes)?;
            parsed.phases.last_mut().expect("there is a phase").push(job);
        }
        if sections.is_empty() {
            let reason = "the file has no job: add a section such as [job1]".to_owned();
            return Err(WorkloadError::Job {
                file: file.to_owned(),
                line: text.lines().count() as u64,
                reason,
            });
        }
        let has_files = sections.iter().all(|section| section.options.value("filename").is_some());
        let jobs: u32 = parsed.phases.iter().flatten().map(|job| job.copies).sum();
        if jobs > 1 && !has_files {
            let note = "fio gives every job without filename a file of its own; here all share the device";
            parsed.notes.push(note.to_owned());
        }
        Ok(parsed)
    }

    /// Keeps only the section called `name`.
    pub fn section(mut self, name: &str) -> Result<FioJobFile, WorkloadError> {
        let names: Vec<String> = self.phases.iter().flatten().map(|job| job.name.clone()).collect();
        self.phases.iter_mut().for_each(|phase| phase.retain(|job| job.name == name));
        self.phases.retain(|phase| !phase.is_empty());
        if self.phases.is_empty() {
            let hint = suggest::hint(name, names.iter().map(String::as_str));
            let reason = format!("has no section '{name}'{hint} (sections: {})", names.join(", "));
            return Err(WorkloadError::DoesNotFit { what: self.file, reason });
        }
        Ok(self)
    }

    /// The workloads on a device of `capacity` bytes: phase by phase, each copy with its own stream number.
    pub fn open(&self, capacity: u64, seed: u64) -> Result<Vec<Vec<FioStream>>, WorkloadError> {
        let mut stream = 0u32;
        let mut phases = Vec::new();
        for phase in &self.phases {
            let mut streams = Vec::new();
            for job in phase {
                for copy in 0..job.copies {
                    let number = u8::try_from(stream).map_err(|_| WorkloadError::DoesNotFit {
                        what: self.file.clone(),
                        reason: "more than 256 jobs; lower numjobs and raise iodepth".to_owned(),
                    })?;
                    streams.push(job.open(&self.file, capacity, seed, copy, number)?);
                    stream += 1;
                }
            }
            phases.push(streams);
        }
        Ok(phases)
    }
}

impl FioJob {
    /// The smallest request: what the device's unit must divide.
    pub fn block_bytes(&self) -> u32 {
        self.spec.sizes.smallest()
    }

    fn open(
        &self,
        file: &str,
        capacity: u64,
        seed: u64,
        copy: u32,
        stream: u8,
    ) -> Result<FioStream, WorkloadError> {
        let name = if self.copies > 1 { format!("{}.{copy}", self.name) } else { self.name.clone() };
        let unit = self.spec.sizes.smallest() as u64;
        let mut spec = self.spec.clone();
        let step = self.offset_increment.of(capacity, unit);
        let offset = step
            .checked_mul(copy as u64)
            .and_then(|far| far.checked_add(self.offset.of(capacity, unit)))
            .unwrap_or(u64::MAX / unit * unit);
        spec.offset = Amount::Bytes(offset);
        let rest = capacity.saturating_sub(offset);
        let span = self.size.map_or(rest, |size| size.of(capacity, unit));
        spec.span = Some(Amount::Bytes(span));
        spec.stream = stream;
        if !self.time_based {
            let once = self.io_bytes.map_or(span, |bytes| bytes.of(capacity, unit));
            spec.limits.bytes = Some(once.saturating_mul(self.loops));
        }
        let seed = Rng::stream(self.seed.unwrap_or(seed), &name).bits();
        let workload = spec.open(&format!("{file}: [{}]", self.name), capacity, seed)?;
        Ok(FioStream { name, workload, ramp_time: self.ramp_time })
    }
}

/// A section and its options, including those of `[global]`.
struct Section {
    name: String,
    line: u64,
    options: Options,
}

fn sections(text: &str, file: &str, notes: &mut Vec<String>) -> Result<Vec<Section>, WorkloadError> {
    let mut global = Options::new(file);
    let mut sections: Vec<Section> = Vec::new();
    let mut in_global = true;
    for (number, line) in text.lines().enumerate() {
        let number = number as u64 + 1;
        let error = |reason: String| WorkloadError::Job { file: file.to_owned(), line: number, reason };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(name) = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty()) else {
                return Err(error(format!("'{line}' is not a section: write [name]")));
            };
            in_global = name == "global";
            if !in_global {
                sections.push(Section { name: name.to_owned(), line: number, options: global.clone() });
            }
            continue;
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (line, None),
        };
        let key = canonical(key);
        if line.starts_with("include ") {
            return Err(error(
                "include is not done here: put the lines of the other file in its place".to_owned(),
            ));
        }
        if value.is_some_and(|value| value.contains('$')) {
            return Err(error(format!("{key} uses a variable; only plain values are read")));
        }
        if let Some((_, reason)) = REFUSED.iter().find(|(name, _)| *name == key) {
            return Err(error(format!("{key} is not done here: {reason}")));
        }
        if IGNORED.contains(&key) {
            let is_buffered = matches!((key, value), ("direct", Some("0")) | ("buffered", None | Some("1")));
            let note = match is_buffered {
                true => "the page cache is not simulated: buffered requests reach the device one by one"
                    .to_owned(),
                false => format!("{key} does not matter to a simulated device; left out"),
            };
            if key != "ioengine" && !notes.contains(&note) {
                notes.push(note);
            }
            if !matches!(key, "filename" | "ioengine") {
                continue;
            }
        } else if !KNOWN.contains(&key) {
            let all = KNOWN.iter().chain(IGNORED).copied().chain(REFUSED.iter().map(|(name, _)| *name));
            return Err(error(format!("unknown option '{key}'{}", suggest::hint(key, all))));
        }
        let options = match (in_global, sections.last_mut()) {
            (true, _) => &mut global,
            (false, Some(section)) => &mut section.options,
            (false, None) => return Err(error(format!("'{key}' stands before the first section"))),
        };
        options.set(key, value, number);
    }
    Ok(sections)
}

impl Section {
    fn job(&self, notes: &mut Vec<String>) -> Result<FioJob, WorkloadError> {
        let options = &self.options;
        let (random, mix) = options.pattern()?;
        let sizes = options.sizes()?;
        let pace = self.pace(&sizes, notes)?;
        let sync = match options.value("sync") {
            None | Some("0" | "none") => false,
            Some("1" | "sync" | "dsync") => true,
            Some(_) => return Err(options.wrong("sync", "0, none, 1, sync or dsync")),
        };
        let flush_every =
            match (options.number("fsync", 0..=u64::MAX)?, options.number("fdatasync", 0..=u64::MAX)?) {
                (Some(every), None) | (None, Some(every)) => every,
                (None, None) => 0,
                (Some(_), Some(_)) => {
                    return Err(options.wrong("fdatasync", "either fsync or fdatasync, not both"));
                }
            };
        let time_based = options.flag("time_based")?;
        let mut spec = GeneratorSpec {
            distribution: options.distribution(random)?,
            mix,
            sizes,
            pace,
            flush_every,
            flush_at_end: options.flag("end_fsync")?,
            fua: sync,
            ..GeneratorSpec::default()
        };
        spec.limits.time = options.time("runtime")?.filter(|time| !time.is_zero());
        spec.limits.requests = options.number("number_ios", 1..=u64::MAX)?;
        if time_based && spec.limits.time.is_none() {
            return Err(options.wrong("time_based", "it needs runtime, as in runtime=60s"));
        }
        if matches!(spec.mix, Mix::TrimThenWrite) && spec.distribution == Distribution::Sequential {
            notes.push(format!("[{}]: each block is trimmed and then written, one by one", self.name));
        }
        Ok(FioJob {
            name: self.name.clone(),
            line: self.line,
            copies: options.number("numjobs", 1..=256)?.unwrap_or(1) as u32,
            spec,
            offset: options.amount("offset")?.unwrap_or(Amount::Bytes(0)),
            size: options.amount("size")?,
            offset_increment: options.amount("offset_increment")?.unwrap_or(Amount::Bytes(0)),
            io_bytes: options.amount("io_size")?,
            loops: options.number("loops", 1..=u32::MAX as u64)?.unwrap_or(1),
            time_based,
            ramp_time: options.time("ramp_time")?.unwrap_or(Span::ZERO),
            seed: options.number("randseed", 0..=u64::MAX)?,
        })
    }

    /// `iodepth`, which fio's synchronous engines ignore.
    fn depth(&self, notes: &mut Vec<String>) -> Result<u32, WorkloadError> {
        const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
        let depth = self.options.number("iodepth", 1..=65_536)?.unwrap_or(1) as u32;
        let name = &self.name;
        match self.options.value("ioengine") {
            _ if depth == 1 => Ok(1),
            Some(engine) if SYNCHRONOUS.contains(&engine) => {
                let note =
                    format!("[{name}]: ioengine={engine} keeps one request under way, whatever iodepth says");
                notes.push(note);
                Ok(1)
            }
            Some(_) => Ok(depth),
            None => {
                let note = "without ioengine fio would keep one request under way; here iodepth is obeyed";
                notes.push(format!("[{name}]: {note}"));
                Ok(depth)
            }
        }
    }

    fn pace(&self, sizes: &Sizes, notes: &mut Vec<String>) -> Result<Pace, WorkloadError> {
        let options = &self.options;
        let depth = self.depth(notes)?;
        let poisson = match options.value("rate_process") {
            None | Some("linear") => false,
            Some("poisson") => true,
            Some(_) => return Err(options.wrong("rate_process", "linear or poisson")),
        };
        let per_second = match (options.number("rate_iops", 1..=u64::MAX)?, options.bytes("rate")?) {
            (None, None) => return Ok(Pace::Closed { depth }),
            (Some(_), Some(_)) => return Err(options.wrong("rate", "either rate or rate_iops, not both")),
            (Some(requests), None) => requests as f64,
            (None, Some(0)) => return Err(options.wrong("rate", "bytes per second, more than 0")),
            (None, Some(bytes)) => bytes as f64 / sizes.mean(),
        };
        let note = format!("[{}]: a rate makes it an open loop; iodepth does not bound it here", self.name);
        notes.push(note);
        Ok(if poisson { Pace::Poisson { per_second } } else { Pace::Regular { per_second } })
    }
}
