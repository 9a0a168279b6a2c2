//! Turns a section of a job file into a job.

use super::lines::Section;
use super::lists::{NO_REQUESTS, has};
use super::{FioJob, places, zones};
use crate::arrivals::{Limits, Pace};
use crate::block::generator::{Amount, Distribution, GeneratorSpec, Mix, Sizes};
use crate::{Span, WorkloadError};

/// Collects the error of a value, in whose place the default stands.
pub(super) fn kept<T: Default>(errors: &mut Vec<WorkloadError>, value: Result<T, WorkloadError>) -> T {
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
            notes
                .push(format!("[{}]: ioengine={engine} issues no requests to a device; left out", self.name));
            return None;
        }
        let depth = self.depth(notes, errors);
        let mut spec = GeneratorSpec { pace: Pace::Closed { depth }, ..self.spec(notes, errors) };
        let is_whole = kept(errors, options.flag("fill_device"));
        let size = kept(errors, options.amount("size")).filter(|_| !is_whole);
        let file = kept(errors, options.amount("filesize")).filter(|_| !is_whole);
        let is_timed = kept(errors, options.flag("time_based"));
        if is_timed && spec.limits.time.is_none() {
            notes.push(format!("[{}]: time_based needs runtime; left out", self.name));
        }
        // In time, fio goes on with other numbers; after the bytes of the job it begins anew with the same.
        let is_alike = options.value("randrepeat") != Some("0") && !is_timed;
        let repeats = is_alike || options.value("random_generator") == Some("lfsr");
        if let Distribution::Shuffled { repeats: passes } = &mut spec.distribution {
            *passes = repeats;
        }
        let count = |errors: &mut Vec<WorkloadError>, key, most| kept(errors, options.number(key, 1..=most));
        let reads_back = self.reads_back(&spec, errors);
        let issue = self.issue(&spec, depth, errors);
        notes.extend(issue.pauses_below_a_rate().map(|what| format!("[{}]: {what}", self.name)));
        spec.flush_at_end |= reads_back;
        Some(FioJob {
            name: self.name.clone(),
            line: self.line,
            copies: count(errors, "numjobs", 256).unwrap_or(1) as u32,
            offset: kept(errors, options.amount("offset")).unwrap_or(Amount::Bytes(0)),
            file,
            size,
            offset_increment: kept(errors, options.amount("offset_increment")).unwrap_or(Amount::Bytes(0)),
            io_bytes: kept(errors, options.amount("io_size")),
            in_zones: ["offset", "offset_increment", "size", "io_size"]
                .into_iter()
                .filter_map(|key| Some((key, options.zones(key)?)))
                .collect(),
            loops: count(errors, "loops", u32::MAX as u64).unwrap_or(1),
            time_based: is_timed && spec.limits.time.is_some(),
            ramp_time: kept(errors, options.time("ramp_time")).unwrap_or(Span::ZERO),
            seed: kept(errors, options.number("randseed", 0..=u64::MAX)),
            waits_for: options.value("wait_for").map(str::to_owned),
            delay: kept(errors, options.time("startdelay")).unwrap_or(Span::ZERO),
            issue,
            reads_back,
            is_grouped: kept(errors, options.flag("group_reporting")),
            spec,
        })
    }

    /// True if it reads back what it wrote, to verify it: after its writes and a flush, in their order.
    fn reads_back(&self, spec: &GeneratorSpec, errors: &mut Vec<WorkloadError>) -> bool {
        let options = &self.options;
        let verifies = options.value("verify").is_some_and(|how| !matches!(how, "none" | "0"));
        let [_, writes, _] = places::shares(spec.mix);
        if !verifies || options.value("do_verify") == Some("0") || writes == 0.0 {
            return false;
        }
        let is_once = match spec.distribution {
            Distribution::Shuffled { .. } => spec.jumps.is_none(),
            Distribution::Sequential { skip_bytes } => skip_bytes == 0,
            Distribution::Uniform
            | Distribution::Zipf { .. }
            | Distribution::Zones { .. }
            | Distribution::SelfSimilar { .. }
            | Distribution::Normal { .. } => false,
        };
        // With a filesize, size is how much of the file is requested, as io_size is.
        let is_part = ["size", "filesize"].iter().all(|key| options.value(key).is_some());
        let is_endless = is_part || ["loops", "io_size"].iter().any(|key| options.value(key).is_some());
        if writes == 1.0 && is_once && !is_endless && spec.limits.time.is_none() {
            return true;
        }
        let reason = "only a job that writes each block once, without runtime, loops, io_size and size beside filesize, \
                      reads back what it wrote; give do_verify=0, and a separate job that reads";
        errors.push(options.refused("verify", reason));
        false
    }

    /// The part of the job that does not depend on the device.
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
        let spec = GeneratorSpec {
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
            zones: zones::rules(options, pattern, mix).unwrap_or_else(|error| {
                errors.push(error);
                None
            }),
            limits: Limits {
                time: kept(errors, options.time("runtime")).filter(|time| !time.is_zero()),
                requests: kept(errors, options.number("number_ios", 1..=u64::MAX)),
                ..Limits::default()
            },
            ..GeneratorSpec::default()
        };
        let slot_bytes = spec.slot_bytes() as u64;
        if !pattern.skip_bytes.unsigned_abs().is_multiple_of(slot_bytes) {
            errors.push(options.wrong("rw", &format!("the skip must be a multiple of {slot_bytes} B")));
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
}
