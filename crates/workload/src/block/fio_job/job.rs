//! From a section to a job.

use super::lines::Section;
use super::lists::{NO_REQUESTS, has};
use super::numbers::{self, MICROSECOND_PS};
use super::{FioJob, places};
use crate::arrivals::{Limits, Pace};
use crate::block::generator::{Amount, Distribution, GeneratorSpec, Mix, Sizes};
use crate::block::together::Think;
use crate::{Span, WorkloadError};

/// Engines that keep one request in flight.
const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

/// Collects the error of a value, in whose place the default stands.
fn kept<T: Default>(errors: &mut Vec<WorkloadError>, value: Result<T, WorkloadError>) -> T {
    value.unwrap_or_else(|error| {
        errors.push(error);
        T::default()
    })
}

impl Section {
    /// True if it waits for all sections before it.
    pub(super) fn starts_phase(&self, errors: &mut Vec<WorkloadError>) -> bool {
        let options = &self.options;
        let previous = kept(errors, options.flag("wait_for_previous"));
        kept(errors, options.flag("stonewall")) || previous
    }

    /// Its job, if its engine requests something of a device. What is wrong is added to `errors`.
    pub(super) fn job(&self, notes: &mut Vec<String>, errors: &mut Vec<WorkloadError>) -> Option<FioJob> {
        let options = &self.options;
        if let Some(engine) = options.value("ioengine").filter(|engine| has(NO_REQUESTS, engine)) {
            notes.push(format!("[{}]: ioengine={engine} requests nothing of a device; left out", self.name));
            return None;
        }
        let spec = self.spec(notes, errors);
        let is_whole = kept(errors, options.flag("fill_device"));
        let size = kept(errors, options.amount("size"));
        let size = size.or(kept(errors, options.amount("filesize"))).filter(|_| !is_whole);
        let think_time =
            options.time_in("thinktime", MICROSECOND_PS, "microseconds, or a number with us, ms or s");
        let think_time = kept(errors, think_time).filter(|time| !time.is_zero());
        let every = kept(errors, options.number("thinktime_blocks", 1..=u32::MAX as u64));
        let is_timed = kept(errors, options.flag("time_based"));
        if is_timed && spec.limits.time.is_none() {
            notes.push(format!("[{}]: time_based needs runtime; left out", self.name));
        }
        let count = |errors: &mut Vec<WorkloadError>, key, most| kept(errors, options.number(key, 1..=most));
        Some(FioJob {
            name: self.name.clone(),
            line: self.line,
            copies: count(errors, "numjobs", 256).unwrap_or(1) as u32,
            offset: kept(errors, options.amount("offset")).unwrap_or(Amount::Bytes(0)),
            size,
            offset_increment: kept(errors, options.amount("offset_increment")).unwrap_or(Amount::Bytes(0)),
            io_bytes: kept(errors, options.amount("io_size")),
            loops: count(errors, "loops", u32::MAX as u64).unwrap_or(1),
            time_based: is_timed && spec.limits.time.is_some(),
            ramp_time: kept(errors, options.time("ramp_time")).unwrap_or(Span::ZERO),
            seed: kept(errors, options.number("randseed", 0..=u64::MAX)),
            waits_for: options.value("wait_for").map(str::to_owned),
            delay: kept(errors, options.time("startdelay")).unwrap_or(Span::ZERO),
            think: think_time.map(|time| Think { time, every: every.unwrap_or(1) as u32 }),
            spec,
        })
    }

    /// All that needs no device.
    fn spec(&self, notes: &mut Vec<String>, errors: &mut Vec<WorkloadError>) -> GeneratorSpec {
        let options = &self.options;
        let (pattern, mix) = options.pattern().unwrap_or_else(|error| {
            errors.push(error);
            (Default::default(), Mix::Share { read: 1.0, trim: 0.0 })
        });
        let (sizes, read_sizes) = places::sizes(options, mix).unwrap_or_else(|error| {
            errors.push(error);
            (Sizes::Fixed(4096), None)
        });
        let (distribution, span) = places::distribution(options, pattern, mix).unwrap_or_else(|error| {
            errors.push(error);
            (Distribution::Uniform, None)
        });
        let flushes = [("fsync", 0..=u64::MAX), ("fdatasync", 0..=u64::MAX)];
        let [fsync, fdatasync] = flushes.map(|(key, range)| kept(errors, options.number(key, range)));
        if fsync.is_some() && fdatasync.is_some() {
            errors.push(options.wrong("fdatasync", "either fsync or fdatasync, not both"));
        }
        let is_unaligned = kept(errors, options.flag("bs_unaligned"));
        let align = kept(errors, options.bytes("blockalign")).or(is_unaligned.then_some(512));
        let align = align.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes > 0);
        let mut spec = GeneratorSpec {
            distribution,
            mix,
            jumps: kept(errors, places::jumps(options, pattern, mix)),
            sizes,
            read_sizes,
            align,
            span: span.map(Amount::Bytes),
            flush_every: fsync.or(fdatasync).unwrap_or(0),
            flush_at_end: kept(errors, options.flag("end_fsync")),
            fua: self.is_sync(errors),
            ..GeneratorSpec::default()
        };
        spec.pace = self.pace(&spec, notes, errors);
        spec.limits = Limits {
            time: kept(errors, options.time("runtime")).filter(|time| !time.is_zero()),
            requests: kept(errors, options.number("number_ios", 1..=u64::MAX)),
            ..Limits::default()
        };
        let slot_bytes = spec.slot_bytes() as u64;
        if !pattern.skip_bytes.unsigned_abs().is_multiple_of(slot_bytes) {
            errors
                .push(options.wrong("rw", &format!("what is skipped must be a multiple of {slot_bytes} B")));
        }
        if matches!(mix, Mix::TrimThenWrite) && !pattern.is_random {
            notes.push(format!("[{}]: each block is trimmed and then written, one by one", self.name));
        }
        spec
    }

    fn is_sync(&self, errors: &mut Vec<WorkloadError>) -> bool {
        match self.options.value("sync") {
            None | Some("0" | "none") => false,
            Some("1" | "sync" | "dsync") => true,
            Some(_) => {
                errors.push(self.options.wrong("sync", "0, none, 1, sync or dsync"));
                false
            }
        }
    }

    /// `iodepth`, which fio's synchronous engines ignore.
    fn depth(&self, notes: &mut Vec<String>, errors: &mut Vec<WorkloadError>) -> u32 {
        let depth = kept(errors, self.options.number("iodepth", 1..=65_536)).unwrap_or(1) as u32;
        let name = &self.name;
        match self.options.value("ioengine") {
            _ if depth == 1 => 1,
            Some(engine) if SYNCHRONOUS.contains(&engine) => {
                let note =
                    format!("[{name}]: ioengine={engine} keeps one request under way, whatever iodepth says");
                notes.push(note);
                1
            }
            Some(_) => depth,
            None => {
                let note = "without ioengine fio would keep one request under way; here iodepth is obeyed";
                notes.push(format!("[{name}]: {note}"));
                depth
            }
        }
    }

    fn pace(&self, spec: &GeneratorSpec, notes: &mut Vec<String>, errors: &mut Vec<WorkloadError>) -> Pace {
        let options = &self.options;
        let depth = self.depth(notes, errors);
        let is_poisson = match options.value("rate_process") {
            None | Some("linear") => false,
            Some("poisson") => true,
            Some(_) => {
                errors.push(options.wrong("rate_process", "linear or poisson"));
                false
            }
        };
        let kb_base = kept(errors, options.kb_base().map(Some)).unwrap_or(1024);
        let number = |text: &str| numbers::size(text, kb_base);
        let mut rates = |key, allowed| kept(errors, options.each(key, allowed, number));
        let by_count = rates("rate_iops", "requests per second, of reads, writes and trims");
        let by_bytes = rates("rate", "bytes per second, as 1m, of reads, writes and trims");
        let means =
            [spec.read_sizes.as_ref().unwrap_or(&spec.sizes), &spec.sizes, &spec.sizes].map(Sizes::mean);
        // A kind of request that comes to its limit holds up the others, as they come in a fixed proportion.
        let of_kind = |kind: usize| {
            let count = by_count[kind].map(|count| count as f64);
            let bytes = by_bytes[kind].map(|bytes| bytes as f64 / means[kind]);
            let share = places::shares(spec.mix)[kind];
            [count, bytes]
                .into_iter()
                .flatten()
                .filter(move |&rate| rate > 0.0 && share > 0.0)
                .map(move |rate| rate / share)
        };
        let Some(per_second) = (0..3).flat_map(of_kind).reduce(f64::min) else {
            return Pace::Closed { depth };
        };
        let note = format!("[{}]: a rate makes it an open loop; iodepth does not bound it here", self.name);
        notes.push(note);
        if is_poisson { Pace::Poisson { per_second } } else { Pace::Regular { per_second } }
    }
}
