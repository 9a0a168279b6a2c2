//! The options of a section: their names, values and errors.

use super::numbers;
use crate::addresses::Zone;
use crate::block::generator::{Amount, Distribution, Mix, Sizes, pattern};
use crate::{Span, WorkloadError};

/// Options that are implemented.
pub(super) const KNOWN: &[&str] = &[
    "rw",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bssplit",
    "size",
    "io_size",
    "offset",
    "offset_increment",
    "iodepth",
    "numjobs",
    "rate",
    "rate_iops",
    "rate_process",
    "random_distribution",
    "norandommap",
    "fsync",
    "fdatasync",
    "end_fsync",
    "sync",
    "stonewall",
    "wait_for_previous",
    "runtime",
    "time_based",
    "ramp_time",
    "loops",
    "number_ios",
    "randseed",
    "kb_base",
];

/// Options that do not matter here.
pub(super) const IGNORED: &[&str] = &[
    "ioengine",
    "direct",
    "buffered",
    "filename",
    "name",
    "description",
    "directory",
    "group_reporting",
    "thread",
    "randrepeat",
    "allrandrepeat",
    "random_generator",
    "refill_buffers",
    "zero_buffers",
    "scramble_buffers",
    "buffer_pattern",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "dedupe_percentage",
    "invalidate",
    "fallocate",
    "create_on_open",
    "create_only",
    "create_serialize",
    "create_fsync",
    "unlink",
    "overwrite",
    "gtod_reduce",
    "disable_lat",
    "disable_slat",
    "disable_clat",
    "disable_bw",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "log_hist_msec",
    "log_offset",
    "per_job_logs",
    "bwavgtime",
    "iopsavgtime",
    "status_interval",
    "eta",
    "cpus_allowed",
    "cpus_allowed_policy",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "nice",
    "prio",
    "prioclass",
    "mem",
    "iomem",
    "iomem_align",
    "mem_align",
    "hugepage-size",
    "lockmem",
    "userspace_reap",
    "hipri",
    "fixedbufs",
    "registerfiles",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "nonvectored",
    "new_group",
    "unified_rw_reporting",
    "unit_base",
    "significant_figures",
    "disk_util",
    "allow_mounted_write",
    "openfiles",
    "file_service_type",
    "softrandommap",
    "ioscheduler",
    "uid",
    "gid",
];

/// Options that would change the requests but are not supported, with the reason.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("thinktime", "a workload does not learn when its requests complete; use rate_iops"),
    ("thinktime_blocks", "a workload does not learn when its requests complete; use rate_iops"),
    ("thinktime_spin", "a workload does not learn when its requests complete; use rate_iops"),
    ("latency_target", "the depth does not follow latencies; give iodepth"),
    ("rate_min", "a job is not stopped for being slow; look at the result"),
    ("rate_iops_min", "a job is not stopped for being slow; look at the result"),
    ("iodepth_batch", "requests are submitted one by one"),
    ("iodepth_batch_submit", "requests are submitted one by one"),
    ("iodepth_batch_complete", "requests are reaped one by one"),
    ("iodepth_batch_complete_min", "requests are reaped one by one"),
    ("iodepth_batch_complete_max", "requests are reaped one by one"),
    ("iodepth_low", "the queue is filled up at once"),
    ("bsrange", "sizes are drawn from a list; use bssplit"),
    ("bs_unaligned", "addresses are multiples of bs"),
    ("bs_is_seq_rand", "one bs holds for all operations"),
    ("blockalign", "addresses are multiples of bs"),
    ("nrfiles", "one device is one file"),
    ("filesize", "one device is one file; use size and offset"),
    ("exitall", "every job ends by itself; give all of them runtime and time_based"),
    ("exitall_on_error", "every job ends by itself; give all of them runtime and time_based"),
    ("wait_for", "phases are made with stonewall"),
    ("fill_device", "use size, or --precondition full"),
    ("startdelay", "jobs of a phase begin together; use stonewall for a later one"),
    ("verify", "nvlab checks content itself (nvlab cut)"),
    ("do_verify", "nvlab checks content itself (nvlab cut)"),
    ("read_iolog", "give the log as the workload: -w FILE:iolog"),
    ("write_iolog", "use nvlab trace make"),
    ("sync_file_range", "a device does not know files; use fsync"),
    ("write_barrier", "use fsync"),
    ("percentage_random", "use one random and one sequential job"),
    ("rw_sequencer", "use plain read, write or their random forms"),
    ("trim_percentage", "use rw=randtrimwrite"),
    ("zonemode", "zoned devices are not simulated"),
    ("zonesize", "zoned devices are not simulated; use random_distribution=zoned"),
    ("zoneskip", "zoned devices are not simulated; use random_distribution=zoned"),
    ("flow", "jobs do not balance each other; use rate_iops"),
    ("io_submit_mode", "requests are submitted by one thread"),
];

/// The canonical name of an option that has several.
pub(super) fn canonical(key: &str) -> &str {
    match key {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "io_limit" => "io_size",
        "timeout" => "runtime",
        "fileoffset" => "offset",
        "iodepth_batch_min" => "iodepth_batch_complete_min",
        other => other,
    }
}

/// Options and their line numbers.
#[derive(Clone)]
pub(super) struct Options {
    file: String,
    set: Vec<(String, Option<String>, u64)>,
}

impl Options {
    pub fn new(file: &str) -> Options {
        Options { file: file.to_owned(), set: Vec::new() }
    }

    /// Sets an option; a later value replaces an earlier one.
    pub fn set(&mut self, key: &str, value: Option<&str>, line: u64) {
        self.set.retain(|(seen, _, _)| seen != key);
        self.set.push((key.to_owned(), value.map(str::to_owned), line));
    }

    fn find(&self, key: &str) -> Option<&(String, Option<String>, u64)> {
        self.set.iter().find(|(seen, _, _)| seen == key)
    }

    pub fn value(&self, key: &str) -> Option<&str> {
        self.find(key).map(|(_, value, _)| value.as_deref().unwrap_or(""))
    }

    /// The error for the value of `key`.
    pub fn wrong(&self, key: &'static str, allowed: &str) -> WorkloadError {
        WorkloadError::Line {
            file: self.file.clone(),
            line: self.find(key).map_or(0, |option| option.2),
            column: key,
            found: self.value(key).unwrap_or("").to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    /// True if the option is given without a value or is 1.
    pub fn flag(&self, key: &'static str) -> Result<bool, WorkloadError> {
        match self.value(key) {
            None | Some("0") => Ok(false),
            Some("" | "1") => Ok(true),
            Some(_) => Err(self.wrong(key, "0 or 1")),
        }
    }

    fn kb_base(&self) -> Result<u64, WorkloadError> {
        match self.value("kb_base") {
            None | Some("1024") => Ok(1024),
            Some("1000") => Ok(1000),
            Some(_) => Err(self.wrong("kb_base", "1024 or 1000")),
        }
    }

    /// A whole number, with fio's suffixes.
    pub fn number(
        &self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match numbers::size(value, self.kb_base()?) {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ if *range.end() == u64::MAX => {
                Err(self.wrong(key, &format!("a whole number from {}", range.start())))
            }
            _ => Err(self.wrong(key, &format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// Bytes.
    pub fn bytes(&self, key: &'static str) -> Result<Option<u64>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let kb_base = self.kb_base()?;
        let bytes = numbers::size(value, kb_base);
        bytes.map(Some).ok_or_else(|| self.wrong(key, "one size by fio's rule, as 4k, 1m or 2g"))
    }

    /// Bytes or a percentage.
    pub fn amount(&self, key: &'static str) -> Result<Option<Amount>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        if let Some(percent) = value.strip_suffix('%') {
            let percent =
                percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
            return match percent {
                Some(percent) => Ok(Some(Amount::Share(percent / 100.0))),
                None => Err(self.wrong(key, "0% to 100%")),
            };
        }
        let bytes = numbers::size(value, self.kb_base()?);
        let allowed = "a size by fio's rule, as 4k, 1m or 2g, or a share, as 50%";
        bytes.map(|bytes| Some(Amount::Bytes(bytes))).ok_or_else(|| self.wrong(key, allowed))
    }

    /// A time.
    pub fn time(&self, key: &'static str) -> Result<Option<Span>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        numbers::time(value)
            .map(Some)
            .ok_or_else(|| self.wrong(key, "seconds, or a number with us, ms, s, m, h or d"))
    }

    /// `rw` and the mix.
    pub fn pattern(&self) -> Result<(bool, Mix), WorkloadError> {
        const ALLOWED: &str = "read, write, trim, rw, trimwrite, or these with rand before";
        let name = self.value("rw").unwrap_or("read");
        let (random, mut mix) = pattern(name).ok_or_else(|| self.wrong("rw", ALLOWED))?;
        let (reads, writes) = (self.number("rwmixread", 0..=100)?, self.number("rwmixwrite", 0..=100)?);
        if let (Some(reads), Some(writes)) = (reads, writes)
            && reads + writes != 100
        {
            return Err(self.wrong("rwmixwrite", "rwmixread and rwmixwrite must make 100"));
        }
        let is_mixed = matches!(name, "rw" | "readwrite" | "randrw");
        if let Some(reads) = reads.or(writes.map(|writes| 100 - writes))
            && is_mixed
        {
            mix = Mix::Share { read: reads as f64 / 100.0, trim: 0.0 };
        }
        Ok((random, mix))
    }

    /// `bs` or `bssplit`.
    pub fn sizes(&self) -> Result<Sizes, WorkloadError> {
        let is_size = |bytes: u64| u32::try_from(bytes).ok().filter(|&bytes| bytes > 0);
        let Some(split) = self.value("bssplit") else {
            if self.value("bs").is_some_and(|value| value.contains(',')) {
                return Err(
                    self.wrong("bs", "one size for all operations; sizes per operation are not done here")
                );
            }
            let bytes = self.bytes("bs")?.unwrap_or(4096);
            let allowed = "1 byte to 4294967295 bytes";
            return is_size(bytes).map(Sizes::Fixed).ok_or_else(|| self.wrong("bs", allowed));
        };
        let kb_base = self.kb_base()?;
        let allowed = "SIZE/PERCENT:SIZE/PERCENT making 100, as 4k/60:64k/40, the same for all operations";
        let wrong = || self.wrong("bssplit", allowed);
        let mut parts = Vec::new();
        let mut open = Vec::new();
        for part in split.split(':') {
            let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
            let bytes = numbers::size(bytes, kb_base).and_then(is_size).ok_or_else(wrong)?;
            if percent.is_empty() {
                open.push(parts.len());
            }
            let percent =
                if percent.is_empty() { Some(0.0) } else { percent.parse::<u32>().ok().map(f64::from) };
            parts.push((bytes, percent.ok_or_else(wrong)?));
        }
        let given: f64 = parts.iter().map(|&(_, percent)| percent).sum();
        // The rest is divided among the sizes without a percentage.
        for &index in &open {
            parts[index].1 = (100.0 - given) / open.len() as f64;
        }
        let is_whole = if open.is_empty() { given == 100.0 } else { given < 100.0 };
        if is_whole { Ok(Sizes::Split(parts)) } else { Err(wrong()) }
    }

    /// `random_distribution`, and fio's map of blocks already accessed.
    pub fn distribution(&self, random: bool) -> Result<Distribution, WorkloadError> {
        if !random {
            return Ok(Distribution::Sequential);
        }
        let value = self.value("random_distribution").unwrap_or("random");
        let (kind, parameter) = value.split_once(':').unwrap_or((value, ""));
        let wrong = |allowed: &str| self.wrong("random_distribution", allowed);
        let number =
            |is_allowed: fn(f64) -> bool| parameter.parse::<f64>().ok().filter(|&number| is_allowed(number));
        match kind {
            "random" if self.flag("norandommap")? => Ok(Distribution::Uniform),
            "random" => Ok(Distribution::Shuffled),
            "zipf" => {
                let theta = number(|theta| theta > 0.0 && theta <= 10.0);
                let theta = theta.ok_or_else(|| wrong("zipf:THETA, above 0, at most 10, as zipf:1.2"))?;
                Ok(Distribution::Zipf { theta, scatter: true })
            }
            "pareto" => {
                let h = number(|h| h > 0.0 && h <= 0.5);
                let h = h.ok_or_else(|| wrong("pareto:H, above 0, at most 0.5, as pareto:0.2"))?;
                Ok(Distribution::SelfSimilar { h, scatter: true })
            }
            "zoned" => {
                let allowed =
                    "zoned:ACCESSES/SPACE:... in percent, each making 100, as zoned:60/10:30/20:10/70";
                let zones = zones(parameter).ok_or_else(|| wrong(allowed))?;
                Ok(Distribution::Zones { zones, scatter: false })
            }
            _ => Err(wrong(
                "random, zipf:THETA, pareto:H or zoned:...; normal and zoned_abs are not done here",
            )),
        }
    }
}

fn zones(text: &str) -> Option<Vec<Zone>> {
    let mut zones = Vec::new();
    for part in text.split(':') {
        let (accesses, space) = part.split_once('/')?;
        let percent = |text: &str| text.parse::<u32>().ok().filter(|percent| *percent <= 100).map(f64::from);
        zones
            .push(Zone { accesses: percent(accesses)?, space: percent(space).filter(|space| *space > 0.0)? });
    }
    let sum = |of: fn(&Zone) -> f64| zones.iter().map(of).sum::<f64>();
    (sum(|zone| zone.accesses) == 100.0 && sum(|zone| zone.space) == 100.0).then_some(zones)
}
