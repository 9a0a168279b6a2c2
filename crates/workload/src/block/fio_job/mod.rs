//! fio job files: the subset that affects a device.
//!
//! Options that affect which requests are issued, when and where are implemented or refused by name; the others are left out
//! with a note. An option that fio does not have is an error that names the nearest known one; all errors of a file are reported
//! at once.
//!
//! 1. Sections run together; `stonewall` begins a new phase that waits for all earlier ones, `wait_for` waits for one section.
//!    `numjobs` makes copies that differ in their random numbers. Jobs whose engine requests nothing of a device (`cpuio`,
//!    `exec`, `net`) are left out.
//! 2. Numbers follow fio: `4k`, `4kb`, `4K` and `4ki` are 4096 (kb_base=1024), and, contrary to common usage, `4kib` is
//!    4000. `kb_base=1000` swaps them. Times are in seconds. Sizes may be calculated (`5*1m/8`), times in brackets.
//! 3. As in fio, a random job without `norandommap` accesses every block once per pass; a job ends after `size` bytes unless it
//!    is `time_based`. A job of several passes (`loops`, `io_size`) goes over them in the same order each time, unless
//!    `randrepeat=0`; one that is `time_based` in another each time, unless `random_generator=lfsr`. (Measured with fio 3.33.)
//! 4. All jobs share one device from its first byte on, as with `filename=/dev/...`.
//! 5. A synchronous `ioengine` keeps one request outstanding, regardless of `iodepth`; others only set the depth.
//! 6. `rate` and `rate_iops` are limits in front of a closed loop of `iodepth`, for reads, writes and trims each: a mixed job
//!    issues more of the kind that is behind its rate than its mix says. Latency counts from when a request is issued.
//! 7. `include FILE`, `${NAME}` of the environment, `$pagesize`, `$mb_memory` and `$ncpus` are replaced in the text before it
//!    is read. What they stand for is part of what a result depends on ([`FioJobFile::hashed`]).
//! 8. A job that reaches beyond the end of the device ends there, with a note: its sizes were meant for another one.
//! 9. Jobs of a phase with `group_reporting` are one row in results, which has the name of the first.
//! 10. A job that writes with `verify` flushes, then reads what it wrote in the order of its writes, as fast as it can.
//! 11. With `zonemode=zbd` writes go to the write pointers of zones, which are reset before they are written again: to those of the
//!     device, which must be of `zonesize` if that is given, or, on one that has none, to zones of that size without resets. One
//!     write of a zone is in flight, as with Linux.
//! 12. Sizes, places and rates of reads, writes and trims (`bs=4k,64k`) may differ; where one distribution must do for a mixed
//!     job, it is that of writes.

mod expression;
mod issue;
mod job;
mod lines;
mod lists;
mod numbers;
mod options;
mod places;
mod plain;
#[cfg(test)]
mod tests;
mod zones;

pub use plain::{PlainError, PlainJob};

use super::generator::{Amount, AnyGenerator, GeneratorSpec, Mix};
use super::together::{Issue, Rate};
use crate::ZoneShape;
use crate::{Span, WorkloadError};
use nvlab_units::Rng;
use nvlab_units::quantity::told_bytes;
use nvlab_units::suggest;
use std::path::Path;

/// A job file whose options are read, before it knows a device.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJobFile {
    /// The path as given, for messages.
    pub file: String,
    /// Phases that run one after another, each of jobs that run together.
    pub phases: Vec<Vec<FioJob>>,
    /// Options that were skipped or interpreted in a particular way, one sentence each.
    pub notes: Vec<String>,
    /// The zones of the device it is opened on, if that has any.
    pub on: Option<ZoneShape>,
}

/// One section, before `numjobs` is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJob {
    /// What stands in the brackets.
    pub name: String,
    /// Where its brackets stand, from 1.
    pub line: u64,
    /// `numjobs`: each copy is a stream.
    pub copies: u32,
    /// Sizes, mix, pace: everything that does not need the device.
    spec: GeneratorSpec,
    offset: Amount,
    /// The bytes of its file; all of the device if not given.
    file: Option<Amount>,
    /// Where its requests go; beside the size of a file, how many bytes they have in all.
    size: Option<Amount>,
    /// Added to the offset of each further copy.
    offset_increment: Amount,
    io_bytes: Option<Amount>,
    /// Which of these are so many zones.
    in_zones: Vec<(&'static str, u64)>,
    loops: u64,
    time_based: bool,
    /// Requests before this are served, but not counted.
    pub ramp_time: Span,
    seed: Option<u64>,
    /// The section that must have ended before.
    waits_for: Option<String>,
    /// Delay from the moment at which it could begin.
    delay: Span,
    issue: Issue,
    /// It reads back what it wrote.
    reads_back: bool,
    /// One row in results for all such jobs of a phase.
    is_grouped: bool,
}

/// Where the requests of a copy of a job go.
struct Place {
    offset: u64,
    span: u64,
    /// Bytes of all requests of one loop.
    once: u64,
    /// What was changed so that it fits the device.
    note: Option<String>,
}

/// One running copy of a job.
#[derive(Clone, Debug)]
pub struct FioStream {
    /// The section, with `.1`, `.2` for the copies.
    pub name: String,
    /// The requests it issues.
    pub workload: AnyGenerator,
    /// Requests before this are served, but not counted.
    pub ramp_time: Span,
    /// Streams of this file that must have ended before, by their number.
    pub after: Vec<usize>,
    /// Delay after they ended, or after the beginning.
    pub delay: Span,
    /// Pauses, rate limits and reaping (`thinktime`, `rate`, `iodepth_batch_complete`).
    pub issue: Issue,
    /// Its figures are added to those of this stream of the file, by its number.
    pub reported_with: Option<usize>,
    /// What was changed so that it fits the device.
    pub note: Option<String>,
}

impl FioJobFile {
    /// Reads a file and those it includes; reports all unusable options at once.
    pub fn read(path: &Path) -> Result<FioJobFile, WorkloadError> {
        FioJobFile::parse(&text_of(path)?, &path.display().to_string())
    }

    /// The text that the jobs of a file depend on: with what it includes, and values instead of variables.
    pub fn hashed(path: &Path) -> Result<String, WorkloadError> {
        Ok(lines::expanded(&text_of(path)?, &path.display().to_string()))
    }

    /// Reads the text of a job file; `file` is its name in messages.
    pub fn parse(text: &str, file: &str) -> Result<FioJobFile, WorkloadError> {
        let mut parsed =
            FioJobFile { file: file.to_owned(), phases: vec![Vec::new()], notes: Vec::new(), on: None };
        let read = lines::sections(text, file);
        let mut errors = read.errors;
        parsed.notes = read.notes;
        let mut without = 0;
        for section in &read.sections {
            if section.starts_phase(&mut errors) && !parsed.phases[parsed.phases.len() - 1].is_empty() {
                parsed.phases.push(Vec::new());
            }
            match section.job(&mut parsed.notes, &mut errors) {
                Some(job) => parsed.phases.last_mut().expect("there is a phase").push(job),
                None => without += 1,
            }
        }
        let of_file = |line, reason: &str| WorkloadError::Job {
            file: file.to_owned(),
            line,
            reason: reason.to_owned(),
        };
        if read.sections.is_empty() && errors.is_empty() {
            errors.push(of_file(read.lines, "the file has no job: add a section such as [job1]"));
        } else if without > 0 && without == read.sections.len() {
            errors.push(of_file(read.lines, "no job of the file issues requests to a device"));
        }
        let names: Vec<&str> = read.sections.iter().map(|section| section.name.as_str()).collect();
        for job in parsed.phases.iter().flatten() {
            if let Some(name) = job.waits_for.as_deref().filter(|name| !names.contains(name)) {
                let hint = suggest::hint(name, names.iter().copied());
                errors.push(of_file(job.line, &format!("wait_for: there is no section '{name}'{hint}")));
            }
        }
        WorkloadError::all(errors)?;
        let has_files = read.sections.iter().all(|section| section.options.value("filename").is_some());
        let jobs: u32 = parsed.phases.iter().flatten().map(|job| job.copies).sum();
        if jobs > 1 && !has_files {
            let note = "fio gives every job without filename its own file; here all share the device";
            parsed.notes.push(note.to_owned());
        }
        Ok(parsed)
    }

    /// Keeps only the section called `name`; an error lists those there are.
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

    /// The workloads on a device of `capacity` bytes, each copy with its own stream number.
    pub fn open(&self, capacity: u64, seed: u64) -> Result<Vec<FioStream>, WorkloadError> {
        let mut streams: Vec<FioStream> = Vec::new();
        // The section of each stream.
        let mut sections: Vec<&str> = Vec::new();
        for phase in &self.phases {
            let earlier = streams.len();
            let mut group = None;
            for job in phase {
                let placed = job.in_bytes(&self.file, self.on)?;
                for copy in 0..job.copies {
                    let number = self.number_of(streams.len())?;
                    let is_awaited = |index: &usize| Some(sections[*index]) == job.waits_for.as_deref();
                    let awaited = (earlier..sections.len()).filter(is_awaited);
                    let after = (0..earlier).chain(awaited).collect();
                    let stream = placed.open(&self.file, capacity, seed, copy, number)?;
                    let reported_with = group.filter(|_| job.is_grouped);
                    if job.is_grouped && group.is_none() {
                        group = Some(streams.len());
                    }
                    // The row is not that of one copy.
                    let name = if job.is_grouped && reported_with.is_none() {
                        job.name.clone()
                    } else {
                        stream.name
                    };
                    streams.push(FioStream { name, after, reported_with, ..stream });
                    sections.push(&job.name);
                    if job.reads_back {
                        let written = streams.len() - 1;
                        let number = self.number_of(streams.len())?;
                        let stream = placed.reading().open(&self.file, capacity, seed, copy, number)?;
                        let name = format!("{} verify", stream.name);
                        let reported_with = streams[written].reported_with.or(Some(written));
                        streams.push(FioStream {
                            name,
                            after: vec![written],
                            reported_with,
                            note: None,
                            ..stream
                        });
                        sections.push(&job.name);
                    }
                }
            }
        }
        Ok(streams)
    }

    /// The number of a stream, as far as there are numbers.
    fn number_of(&self, stream: usize) -> Result<u8, WorkloadError> {
        u8::try_from(stream).map_err(|_| WorkloadError::DoesNotFit {
            what: self.file.clone(),
            reason: "more than 256 jobs; lower numjobs and raise iodepth".to_owned(),
        })
    }
}

fn text_of(path: &Path) -> Result<String, WorkloadError> {
    let failed = |source| WorkloadError::File { path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

impl FioJob {
    /// The smallest request: what the device's unit must divide.
    pub fn block_bytes(&self) -> u32 {
        self.spec.smallest()
    }

    /// The same on a device with such zones, if it has any: what is given in zones is in bytes.
    fn in_bytes(&self, file: &str, on: Option<ZoneShape>) -> Result<FioJob, WorkloadError> {
        let mut job = self.clone();
        job.spec.on = on;
        let shape = on.or(self.spec.zones.as_ref().and_then(|zones| zones.shape));
        for &(key, zones) in &self.in_zones {
            let Some(shape) = shape else {
                let reason = format!("{key}={zones}z counts zones, but this device has none; give zonesize");
                return Err(WorkloadError::DoesNotFit { what: format!("{file}: [{}]", self.name), reason });
            };
            let bytes = Amount::Bytes(zones.saturating_mul(shape.size_bytes));
            match key {
                "offset" => job.offset = bytes,
                "offset_increment" => job.offset_increment = bytes,
                "size" => job.size = Some(bytes),
                _ => job.io_bytes = Some(bytes),
            }
        }
        Ok(job)
    }

    /// It reads what it wrote, in the same order, as fast as it can.
    fn reading(&self) -> FioJob {
        let spec = GeneratorSpec {
            mix: Mix::Share { read: 1.0, trim: 0.0 },
            flush_every: 0,
            flush_at_end: false,
            fua: false,
            ..self.spec.clone()
        };
        let issue = Issue { reap: self.issue.reap, ..Issue::default() };
        FioJob { spec, issue, delay: Span::ZERO, ramp_time: Span::ZERO, ..self.clone() }
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
        let mut spec = self.spec.clone();
        let Place { offset, span, once, note } = self.place(file, copy, capacity)?;
        spec.offset = Amount::Bytes(offset);
        spec.span = Some(Amount::Bytes(span));
        spec.stream = stream;
        if !self.time_based {
            spec.limits.bytes = Some(once.saturating_mul(self.loops));
        }
        let seed = Rng::stream(self.seed.unwrap_or(seed), &name).bits();
        let workload = spec.open(&format!("{file}: [{}]", self.name), capacity, seed)?;
        let (ramp_time, delay) = (self.ramp_time, self.delay);
        let rate = self.issue.rate.clone().map(|rate| Rate { seed, ..rate });
        let issue = Issue { rate, ..self.issue.clone() };
        Ok(FioStream {
            name,
            workload,
            ramp_time,
            after: Vec::new(),
            delay,
            issue,
            reported_with: None,
            note,
        })
    }

    /// Where a copy's requests go on a device of `device` bytes.
    fn place(&self, job_file: &str, copy: u32, device: u64) -> Result<Place, WorkloadError> {
        let unit = self.spec.slot_bytes() as u64;
        let file = self.file.map_or(device, |bytes| bytes.of(device, unit));
        let end = file.min(device);
        let step = self.offset_increment.of(end, unit);
        let offset = step
            .checked_mul(copy as u64)
            .and_then(|far| far.checked_add(self.offset.of(end, unit)))
            .unwrap_or(u64::MAX / unit * unit);
        let rest = end.saturating_sub(offset);
        let what = if file < device { "file" } else { "device" };
        if rest < unit {
            return Err(WorkloadError::DoesNotFit {
                what: format!("{job_file}: [{}]", self.name),
                reason: format!(
                    "it starts at {}, but the {what} ends at {}: give a smaller offset, or a larger {what}",
                    told_bytes(offset),
                    told_bytes(end)
                ),
            });
        }
        let size = self.size.map(|size| size.of(end, unit));
        // Bytes beside the size of a file say how much is requested, not where.
        let (where_to, how_much) = match (self.file, self.size) {
            (Some(_), Some(Amount::Bytes(_))) => (None, size),
            _ => (size, None),
        };
        let zones = self.spec.span.map(|zones| zones.of(end, unit));
        let asked = [where_to, zones].into_iter().flatten().min().unwrap_or(file.saturating_sub(offset));
        let span = if asked > rest { rest / unit * unit } else { asked };
        let note = (asked > span && span > 0).then(|| {
            let ends = [offset.saturating_add(asked), end].map(told_bytes);
            format!(
                "[{}]: it would extend to {}; clipped to the end of the {what} at {}",
                self.name, ends[0], ends[1]
            )
        });
        let all = how_much.map_or(span, |bytes| bytes.min(span));
        let once = self.io_bytes.map_or(all, |bytes| bytes.of(end, unit));
        Ok(Place { offset, span, once, note })
    }
}
