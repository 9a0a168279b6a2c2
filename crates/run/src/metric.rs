//! The one table of metrics, used by `--metrics`, `--assert` and the columns of tables.
//!
//! A name is a path of lower-case words: `waf`, `waf.clean`, `read.p99`, `write.p99_9`. Also accepted: `p99.9` for
//! `p99_9`, `p99.write` for `write.p99`, the names of columns (`write.p99_ns`), and the short names in `ALIASES`.

mod unit;

use crate::result::{
    DurableResult, FlashResult, MediumResult, MemoryResult, OpResult, RouteResult, RunResult, SoftwareResult,
    is_life, regained,
};
use nvlab_units::suggest::near_or_with;
use std::sync::LazyLock;
pub use unit::Unit;

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
    /// Neither.
    Neither,
}

/// One metric.
#[derive(Clone, Debug)]
pub struct Metric {
    /// `write.p99_9`.
    pub name: String,
    /// Head of a column: `write p99.9`.
    pub title: String,
    /// What it counts in.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// One line, without a full stop.
    pub about: String,
    get: Get,
}

#[derive(Clone, Copy, Debug)]
enum Get {
    Run(fn(&RunResult) -> Option<f64>),
    Op(Of, fn(&OpResult) -> f64),
}

impl Metric {
    /// The name of its column in tables for programs, with the unit: `write.p99_ns`. A name that says its unit says it once:
    /// `lifetime.bytes`, `read.iops`.
    pub fn column(&self) -> String {
        let last = self.name.rsplit('.').next().unwrap_or_default();
        let suffix = match (self.unit, last) {
            (Unit::Bytes | Unit::BytesDecimal, "bytes") | (Unit::PerSecond, "iops" | "tps" | "per_s") => "",
            (Unit::UsdPerGib, "gib") => "_usd",
            (unit, _) => unit.suffix(),
        };
        format!("{}{suffix}", self.name)
    }

    /// The metric's value in a run; `None` if it has none, such as the latency of reads when nothing was read.
    pub fn of(&self, run: &RunResult) -> Option<f64> {
        match self.get {
            Get::Run(get) => get(run),
            Get::Op(op, get) => Some(op(run)).filter(|op| op.count > 0).map(get),
        }
    }

    /// True for figures of the lifetime of the flash, which should include the cost of cleaning.
    pub fn is_life(&self) -> bool {
        is_life(&self.name)
    }

    /// What must be known of a run before its value is used.
    pub fn doubts(&self, run: &RunResult) -> Vec<String> {
        self.of(run).map_or(Vec::new(), |_| run.doubts(&self.name))
    }

    /// True for the lifetime of something that the run's device has: without a value, nothing wore it.
    pub fn is_life_of(&self, run: &RunResult) -> bool {
        let of = match self.name.as_str() {
            "log.lifetime" => of_role(run, &["log", "slc"], |_| 1.0).is_some(),
            "pram.lifetime" => run.pram.is_some(),
            name => name == "data.lifetime" || name.starts_with("lifetime"),
        };
        of && run.lifetime.years.is_none()
    }
}

/// The value of a metric by name, in base units: ns, bytes, bytes per second, years, USD, shares of 1. `None` if
/// there is no such metric or the run has no value for it; [`find`] tells them apart.
pub fn metric(name: &str, run: &RunResult) -> Option<f64> {
    find(name).ok()?.of(run)
}

/// Short names.
const ALIASES: &[(&str, &str)] = &[
    ("wa", "waf"),
    ("life", "lifetime"),
    ("tbw", "lifetime.bytes"),
    ("dwpd", "lifetime.dwpd"),
    ("wear", "cycles.max"),
    ("busy", "busy.flash"),
];

/// Finds a metric by name. The error says what is wrong and names the nearest metric.
pub fn find(name: &str) -> Result<Metric, String> {
    let all = metrics();
    let wanted = name.trim().to_lowercase().replace("p99.99", "p99_99").replace("p99.9", "p99_9");
    let wanted = ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(wanted.as_str(), |(_, name)| name);
    let turned = wanted.split_once('.').map(|(a, b)| format!("{b}.{a}"));
    let fits = |metric: &&Metric| {
        metric.name == wanted || metric.column() == wanted || Some(&metric.name) == turned.as_ref()
    };
    if let Some(metric) = all.iter().find(fits) {
        return Ok(metric.clone());
    }
    let known = all.iter().map(|metric| metric.name.as_str()).chain(ALIASES.iter().map(|(alias, _)| *alias));
    Err(match near_or_with(wanted, known) {
        Some(near) => format!("there is no metric `{}`; did you mean `{near}`?", name.trim()),
        None => {
            let heads = "throughput, iops, read.p99, write.mean, waf, erases, lifetime, price";
            format!("there is no metric `{}`; some metrics: {heads}", name.trim())
        }
    })
}

/// One row of the table of metrics of a whole run.
type Row = (&'static str, &'static str, Unit, Better, &'static str, fn(&RunResult) -> Option<f64>);
/// One row of the table of metrics of one kind of request.
type OpRow = (&'static str, &'static str, Unit, Better, &'static str, fn(&OpResult) -> f64);

/// Which requests of a run.
type Of = fn(&RunResult) -> &OpResult;

const OPS: [(&str, Of); 6] = [
    ("read", |r| &r.read),
    ("write", |r| &r.write),
    ("trim", |r| &r.trim),
    ("flush", |r| &r.flush),
    ("commit", |r| &r.commit),
    ("transaction", |r| &r.transaction),
];

const OP_ROWS: &[OpRow] = &[
    ("count", "s", Unit::Count, Better::Neither, "requests served", |o| o.count as f64),
    ("bytes", "volume", Unit::Bytes, Better::Neither, "bytes served", |o| o.bytes as f64),
    ("iops", "IOPS", Unit::PerSecond, Better::More, "requests per second", |o| o.per_s),
    ("bandwidth", "rate", Unit::BytesPerSecond, Better::More, "bytes per second", |o| o.bytes_per_s),
    ("mean", "mean", Unit::Nanoseconds, Better::Less, "mean latency", |o| o.latency.mean_ns),
    ("p50", "p50", Unit::Nanoseconds, Better::Less, "median latency", |o| o.latency.p50_ns as f64),
    ("p95", "p95", Unit::Nanoseconds, Better::Less, "95th percentile of latency", |o| {
        o.latency.p95_ns as f64
    }),
    ("p99", "p99", Unit::Nanoseconds, Better::Less, "99th percentile of latency", |o| {
        o.latency.p99_ns as f64
    }),
    ("p99_9", "p99.9", Unit::Nanoseconds, Better::Less, "99.9th percentile of latency", |o| {
        o.latency.p99_9_ns as f64
    }),
    ("p99_99", "p99.99", Unit::Nanoseconds, Better::Less, "99.99th percentile of latency", |o| {
        o.latency.p99_99_ns as f64
    }),
    ("max", "max", Unit::Nanoseconds, Better::Less, "longest latency", |o| o.latency.max_ns as f64),
];

/// A count of a memory, for each transaction.
fn per_transaction(run: &RunResult, count: fn(&MemoryResult) -> u64) -> Option<f64> {
    let memory = run.memory.as_ref().filter(|_| run.transaction.count > 0)?;
    Some(count(memory) as f64 / run.transaction.count as f64)
}

/// A count of the driver in front of the controller.
fn route(run: &RunResult) -> Option<&RouteResult> {
    run.pram.as_ref()?.route.as_ref()
}

/// Requests per simulated second of all kinds.
fn iops(run: &RunResult) -> f64 {
    run.read.per_s + run.write.per_s + run.trim.per_s + run.flush.per_s
}

/// Requests that were to be served and were not; `None` if it is not known how many were.
fn missing(run: &RunResult) -> Option<f64> {
    let waiting = run.arrivals.map(|arrivals| arrivals.waiting);
    let missing = run.requests_asked.map(|asked| asked.saturating_sub(run.requests_served));
    waiting.max(missing).map(|count| count as f64)
}

/// A value that is meaningful only if the host wrote.
fn written(run: &RunResult, value: f64) -> Option<f64> {
    run.write_amplification.is_of_something().then_some(value)
}

/// Die time of a medium: its operations times their durations.
fn busy_s(medium: &MediumResult) -> f64 {
    medium.read_s + medium.program_s + medium.erase_s
}

/// A figure of the flash in one of these roles; `None` if there is none.
fn of_role(run: &RunResult, roles: &[&str], figure: fn(&MediumResult) -> f64) -> Option<f64> {
    run.media.iter().find(|medium| roles.contains(&medium.role.as_str())).map(figure)
}

/// Units that the cleaner moved for each unit the host wrote, in the last quarter of the windows.
fn late_cost(run: &RunResult) -> Option<f64> {
    let late = &run.series[run.series.len() - run.series.len().div_ceil(4)..];
    let wrote: Vec<f64> =
        late.iter().filter(|w| w.write_amplification > 0.0).map(|w| w.cleaning_cost).collect();
    (!wrote.is_empty()).then(|| wrote.iter().sum::<f64>() / wrote.len() as f64)
}

/// Host bytes that can be written before a medium is worn out.
fn endurance(run: &RunResult, medium: &MediumResult) -> Option<f64> {
    medium.years.map(|years| years * 365.25 * 86_400.0 * run.write.bytes_per_s)
}

/// Bytes of the page table of a memory, as the design counts them.
fn table_bytes(run: &RunResult) -> Option<f64> {
    run.memory.map(|memory| memory.table_bytes as f64)
}

/// The price of a byte of a memory's RAM.
fn ram_usd(run: &RunResult) -> Option<f64> {
    let is_flash = |name: &String| run.media.iter().any(|medium| medium.name == *name);
    let ram = run.memory.and_then(|_| run.price.parts.iter().find(|part| !is_flash(&part.name)));
    ram.and_then(|ram| Some(ram.usd? / ram.bytes as f64))
}

/// The share of die time in which dies are busy.
pub fn busy_flash(flash: &FlashResult) -> f64 {
    flash.busy_read + flash.busy_program + flash.busy_erase
}

/// A figure of a log of recoverable memory; `None` without one.
fn durable(run: &RunResult, figure: fn(&DurableResult) -> f64) -> Option<f64> {
    run.durable.as_ref().map(figure)
}

/// A figure of the host's software; `None` without stages.
fn software(run: &RunResult, figure: fn(&SoftwareResult) -> f64) -> Option<f64> {
    run.software.as_ref().map(figure)
}

/// A figure of the flash; `None` without flash.
fn flash(run: &RunResult, figure: fn(&FlashResult) -> f64) -> Option<f64> {
    run.flash.as_ref().map(figure)
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("throughput", "read + write", Unit::BytesPerSecond, Better::More, "bytes read and written per second", |r| Some(r.read.bytes_per_s + r.write.bytes_per_s)),
    ("iops", "IOPS", Unit::PerSecond, Better::More, "requests of all kinds per second", |r| Some(iops(r))),
    ("software.latency", "software", Unit::Nanoseconds, Better::Less, "mean latency without the device: stages, locks, waiting for the thread or a core", |r| software(r, |s| s.latency_ns)),
    ("software.device", "device", Unit::Nanoseconds, Better::Less, "mean time from the submission to the device until its completion", |r| software(r, |s| s.device_ns)),
    ("software.queue", "for thread or core", Unit::Nanoseconds, Better::Less, "mean time until the request's own thread was free and had a core", |r| software(r, |s| s.queue_ns)),
    ("cpu.request", "CPU/request", Unit::Nanoseconds, Better::Less, "processor time of the software per request, without spinning and waiting for locks", |r| software(r, |s| s.cpu_ns)),
    ("cpu.spin", "spinning", Unit::Nanoseconds, Better::Less, "processor time per request spent spinning for the device", |r| software(r, |s| s.spin_ns)),
    ("cpu.cores", "cores used", Unit::Ratio, Better::Less, "processor time over run time, including spinning and waiting for locks", |r| software(r, |s| s.cores_used)),
    ("lock.count", "locks", Unit::Count, Better::Less, "locks in the host's software", |r| software(r, |s| s.locks as f64)),
    ("lock.wait", "lock wait", Unit::Nanoseconds, Better::Less, "time per request spent waiting for locks", |r| software(r, |s| s.lock_ns)),
    ("lock.share", "at locks", Unit::Share, Better::Less, "share of the latency spent waiting for locks", |r| software(r, |s| s.lock_share)),
    ("waf", "WA", Unit::Ratio, Better::Less, "units programmed per unit written by the host", |r| written(r, r.write_amplification.total)),
    ("waf.host", "WA host", Unit::Ratio, Better::Neither, "part of waf: the host's own writes", |r| written(r, r.write_amplification.host)),
    ("waf.clean", "WA cleaning", Unit::Ratio, Better::Less, "part of waf: moved by cleaning", |r| written(r, r.write_amplification.clean)),
    ("waf.merge", "WA merges", Unit::Ratio, Better::Less, "part of waf: moved by merging log blocks into data blocks", |r| written(r, r.write_amplification.merge)),
    ("waf.fold", "WA folding", Unit::Ratio, Better::Less, "part of waf: moved from a cache in SLC mode to blocks with all bits", |r| written(r, r.write_amplification.fold)),
    ("waf.transfer", "WA between partitions", Unit::Ratio, Better::Less, "part of waf: moved between partitions by a cleaner that gathers", |r| written(r, r.write_amplification.transfer)),
    ("cache.share", "to SLC", Unit::Share, Better::Neither, "share of the host data that was programmed to a cache in SLC mode", |r| r.cache.map(|c| c.written_share)),
    ("cache.folds", "folds", Unit::Count, Better::Less, "blocks of the cache folded in idle time or to make room", |r| r.cache.map(|c| c.folded_blocks as f64)),
    ("cache.blocks", "SLC blocks", Unit::Count, Better::Neither, "blocks in SLC mode at the end", |r| r.cache.map(|c| c.blocks as f64)),
    ("map.hits", "map hits", Unit::Share, Better::More, "share of look-ups that hit the part of the map in memory", |r| r.map.map(|m| m.hit_share())),
    ("map.hits.read", "map hits read", Unit::Share, Better::More, "map.hits of reads only", |r| r.map.map(|m| m.read_hits as f64 / m.reads.max(1) as f64)),
    ("map.hits.write", "map hits write", Unit::Share, Better::More, "map.hits of writes only", |r| r.map.map(|m| m.write_hits as f64 / m.writes.max(1) as f64)),
    ("map.hits.host", "map hits host", Unit::Share, Better::Neither, "share of look-ups that hit the host memory buffer", |r| r.map.map(|m| m.host_hits as f64 / (m.reads + m.writes).max(1) as f64)),
    ("map.loaded", "map loaded", Unit::Count, Better::Less, "pages of the map read from flash", |r| r.map.map(|m| (m.loaded + m.loaded_to_rewrite) as f64)),
    ("map.programmed", "map programmed", Unit::Count, Better::Less, "pages of the map programmed because entries changed or units moved", |r| r.map.map(|m| (m.written_back + m.rewritten + m.moved) as f64)),
    ("map.wait", "map wait", Unit::Seconds, Better::Less, "total time that reads and unbuffered writes waited for the map", |r| r.map.map(|m| m.read_wait_s + m.write_wait_s)),
    ("lines.hits", "line hits", Unit::Share, Better::More, "hit rate of the line cache in front of the controller", |r| r.lines.map(|l| l.hit_share())),
    ("lines.fetched", "lines fetched", Unit::Count, Better::Less, "lines fetched on cache misses", |r| r.lines.map(|l| l.fetched as f64)),
    ("lines.ahead", "lines ahead", Unit::Count, Better::Neither, "lines prefetched into the cache", |r| r.lines.map(|l| l.fetched_ahead as f64)),
    ("lines.written_back", "write-backs", Unit::Count, Better::Less, "lines of the cache written back to the flash", |r| r.lines.map(|l| l.written_back as f64)),
    ("lines.dirty", "dirty lines", Unit::Count, Better::Less, "dirty lines in the cache at the end", |r| r.lines.map(|l| l.dirty as f64)),
    ("waf.wear", "WA wear", Unit::Ratio, Better::Less, "part of waf: moved by wear levelling", |r| written(r, r.write_amplification.wear)),
    ("waf.retire", "WA retired", Unit::Ratio, Better::Less, "part of waf: moved because a block was retired or a program failed", |r| written(r, r.write_amplification.retire)),
    ("waf.map", "WA map", Unit::Ratio, Better::Less, "part of waf: checkpoints of the map and records of trims", |r| written(r, r.write_amplification.map)),
    ("waf.trim", "WA trims", Unit::Ratio, Better::Less, "part of waf: overwritten because of trims, by a controller without a map", |r| written(r, r.write_amplification.trim)),
    ("waf.padding", "WA padding", Unit::Ratio, Better::Less, "part of waf: padding of pages programmed before they were full", |r| written(r, r.write_amplification.padding)),
    ("waf.unaligned", "unaligned", Unit::Ratio, Better::Less, "bytes of units touched per byte the host wrote; not part of waf", |r| written(r, r.write_amplification.unaligned)),
    ("clean.blocks", "cleaned", Unit::Count, Better::Less, "blocks cleaned", |r| Some(r.write_amplification.cleaned_blocks as f64)),
    ("clean.live", "live share", Unit::Share, Better::Less, "mean share of live units in cleaned blocks", |r| Some(r.write_amplification.cleaned_live_share).filter(|_| r.write_amplification.cleaned_blocks > 0)),
    ("flash.reads", "cell reads", Unit::Count, Better::Less, "array reads", |r| flash(r, |f| f.reads as f64)),
    ("flash.programs", "programs", Unit::Count, Better::Less, "program operations", |r| flash(r, |f| f.programs as f64)),
    ("erases", "erases", Unit::Count, Better::Less, "blocks erased in the run", |r| flash(r, |f| f.erases as f64)),
    ("flash.retries", "read retries", Unit::Count, Better::Less, "reads repeated because of bit errors", |r| flash(r, |f| f.read_retries as f64)),
    ("failures.read", "lost reads", Unit::Count, Better::Less, "uncorrectable reads", |r| flash(r, |f| f.failures[0] as f64)),
    ("failures.program", "bad programs", Unit::Count, Better::Less, "failed programs", |r| flash(r, |f| f.failures[1] as f64)),
    ("failures.erase", "bad erases", Unit::Count, Better::Less, "failed erases", |r| flash(r, |f| f.failures[2] as f64)),
    ("flash.retired", "retired", Unit::Count, Better::Less, "blocks retired in the run", |r| flash(r, |f| f.retired_blocks as f64)),
    ("busy.flash", "dies busy", Unit::Share, Better::Neither, "share of die time spent working", |r| flash(r, busy_flash)),
    ("busy.read", "dies reading", Unit::Share, Better::Neither, "share of die time spent reading", |r| flash(r, |f| f.busy_read)),
    ("busy.program", "dies programming", Unit::Share, Better::Neither, "share of die time spent programming", |r| flash(r, |f| f.busy_program)),
    ("busy.erase", "dies erasing", Unit::Share, Better::Neither, "share of die time spent erasing", |r| flash(r, |f| f.busy_erase)),
    ("busy.channel", "channels busy", Unit::Share, Better::Neither, "share of channel time spent transferring", |r| flash(r, |f| f.busy_channel)),
    ("media.time", "media time", Unit::Seconds, Better::Less, "total duration of the reads, programs and erases of all flash", |r| Some(r.media.iter().map(busy_s).sum()).filter(|_| !r.media.is_empty())),
    ("durable.ranges", "bytes in ranges", Unit::Bytes, Better::Neither, "mean bytes in the ranges of a transaction", |r| durable(r, |d| d.range_bytes)),
    ("durable.record", "bytes of a record", Unit::Bytes, Better::Less, "mean record size of a transaction", |r| durable(r, |d| d.record_bytes)),
    ("durable.written", "bytes written", Unit::Bytes, Better::Less, "mean bytes written to the log device per transaction", |r| durable(r, |d| d.written_bytes)),
    ("durable.ahead", "bytes ahead", Unit::Bytes, Better::Neither, "mean bytes of a transaction's record written before its commit", |r| durable(r, |d| d.ahead_bytes)),
    ("durable.ahead.wasted", "bytes ahead wasted", Unit::Bytes, Better::Less, "mean bytes written before a commit that no commit used, per transaction", |r| durable(r, |d| d.ahead_wasted_bytes)),
    ("durable.log", "log", Unit::Bytes, Better::Neither, "capacity of the log for records", |r| durable(r, |d| d.log_bytes as f64)),
    ("durable.usable", "log in service", Unit::Bytes, Better::Neither, "bytes of the log device that records wear", |r| durable(r, |d| d.usable_bytes as f64)),
    ("durable.fills", "log fills", Unit::Ratio, Better::Neither, "how often the records filled the log", |r| durable(r, |d| d.fills)),
    ("durable.truncations", "truncations", Unit::Count, Better::Less, "truncations of the log", |r| durable(r, |d| d.truncations as f64)),
    ("durable.applied", "applied", Unit::Bytes, Better::Less, "bytes written to the data by truncations", |r| durable(r, |d| d.applied_bytes as f64)),
    ("durable.compute", "computing", Unit::Share, Better::Neither, "share of time the program computes or waits for the next transaction", |r| durable(r, |d| d.time.compute)),
    ("durable.compress", "compressing", Unit::Share, Better::Less, "share of time spent compressing records", |r| durable(r, |d| d.time.compress)),
    ("durable.decompress", "decompressing", Unit::Share, Better::Less, "share of time spent decompressing records to apply them", |r| durable(r, |d| d.time.decompress)),
    ("durable.write", "writing the log", Unit::Share, Better::Less, "share of time spent writing records and status to the log", |r| durable(r, |d| d.time.write)),
    ("durable.erase", "erasing the log", Unit::Share, Better::Less, "share of time spent erasing blocks of the log", |r| durable(r, |d| d.time.erase)),
    ("durable.apply", "applying the log", Unit::Share, Better::Less, "share of time truncation spends reading the log and writing the data", |r| durable(r, |d| d.time.read + d.time.apply)),
    ("data.reads", "data reads", Unit::Count, Better::Less, "array reads of the data medium", |r| of_role(r, &["data"], |m| m.reads as f64)),
    ("data.programs", "data programs", Unit::Count, Better::Less, "programs of the data medium", |r| of_role(r, &["data"], |m| m.programs as f64)),
    ("data.erases", "data erases", Unit::Count, Better::Less, "erases of the data medium", |r| of_role(r, &["data"], |m| m.erases as f64)),
    ("data.read.mean", "time of a data read", Unit::Seconds, Better::Less, "mean time of an array read of the data medium", |r| of_role(r, &["data"], |m| m.read_s / m.reads as f64).filter(|mean| mean.is_finite())),
    ("data.program.mean", "time of a data program", Unit::Seconds, Better::Less, "mean program time of the data medium", |r| of_role(r, &["data"], |m| m.program_s / m.programs as f64).filter(|mean| mean.is_finite())),
    ("data.erase.mean", "time of a data erase", Unit::Seconds, Better::Less, "mean erase time of the data medium", |r| of_role(r, &["data"], |m| m.erase_s / m.erases as f64).filter(|mean| mean.is_finite())),
    ("data.time", "data time", Unit::Seconds, Better::Less, "media.time of the data medium", |r| of_role(r, &["data"], busy_s)),
    ("data.lifetime", "data lifetime", Unit::Years, Better::More, "years until the mean block of the data medium is worn out", |r| r.media.iter().find(|m| m.role == "data")?.years),
    ("data.endurance", "data endurance", Unit::BytesDecimal, Better::More, "host bytes written until the mean block of the data medium is worn out", |r| endurance(r, r.media.iter().find(|m| m.role == "data")?)),
    ("log.reads", "log reads", Unit::Count, Better::Less, "array reads of the log's own array, or of blocks in SLC mode", |r| of_role(r, &["log", "slc"], |m| m.reads as f64)),
    ("log.programs", "log programs", Unit::Count, Better::Less, "programs of the log's own array, or of blocks in SLC mode", |r| of_role(r, &["log", "slc"], |m| m.programs as f64)),
    ("log.erases", "log erases", Unit::Count, Better::Less, "erases of the log's own array, or of blocks in SLC mode", |r| of_role(r, &["log", "slc"], |m| m.erases as f64)),
    ("log.time", "log time", Unit::Seconds, Better::Less, "media.time of the log's own array, or of blocks in SLC mode", |r| of_role(r, &["log", "slc"], busy_s)),
    ("log.lifetime", "log lifetime", Unit::Years, Better::More, "years until the mean block of the log's own array, or in SLC mode, is worn out", |r| r.media.iter().find(|m| m.role != "data")?.years),
    ("log.endurance", "log endurance", Unit::BytesDecimal, Better::More, "host bytes written until the mean block of the log's own array, or in SLC mode, is worn out", |r| endurance(r, r.media.iter().find(|m| m.role != "data")?)),
    ("price.flash", "flash price", Unit::Usd, Better::Less, "price of the flash alone", |r| r.media.iter().filter(|m| m.bytes > 0).map(|m| m.usd).sum::<Option<f64>>().filter(|_| !r.media.is_empty())),
    ("cycles.min", "cycles min", Unit::Count, Better::Neither, "fewest erases of a block since new", |r| flash(r, |f| f.cycles_min as f64)),
    ("cycles.mean", "cycles mean", Unit::Ratio, Better::Less, "mean erases of a block since new", |r| flash(r, |f| f.cycles_mean)),
    ("cycles.max", "cycles max", Unit::Count, Better::Less, "most erases of a block since new", |r| flash(r, |f| f.cycles_max as f64)),
    ("cycles.spread", "cycles spread", Unit::Count, Better::Less, "difference between the most and the fewest erases of a block since new", |r| flash(r, |f| (f.cycles_max - f.cycles_min) as f64)),
    ("cycles.deviation", "cycles dev.", Unit::Ratio, Better::Less, "standard deviation of the erases of blocks since new", |r| flash(r, |f| f.cycles_deviation)),
    ("lifetime", "lifetime", Unit::Years, Better::More, "years until the mean block is worn out at this load; in a closed loop, compare lifetime.bytes instead", |r| r.lifetime.years),
    ("lifetime.days", "days", Unit::Ratio, Better::More, "days until the mean block is worn out at this load", |r| r.lifetime.years.map(|years| years * 365.25)),
    ("lifetime.rated", "rated cycles", Unit::Count, Better::More, "rated cycles of a block", |r| Some(r.lifetime.rated_cycles as f64).filter(|&cycles| cycles > 0.0)),
    ("lifetime.worst", "first block", Unit::Years, Better::More, "years until the most worn block is worn out, once the mean erase count has reached ten", |r| r.lifetime.years_worst_block),
    ("lifetime.bytes", "endurance", Unit::BytesDecimal, Better::More, "host bytes that can be written in total: rated cycles times the bytes of the flash, over write amplification", |r| r.lifetime.host_bytes),
    ("lifetime.dwpd", "DWPD", Unit::Ratio, Better::More, "full drive writes per day over five years", |r| r.lifetime.drive_writes_per_day),
    ("lifetime.regained", "space regained", Unit::Share, Better::Neither, "share of the blocks filled in the run that were erased again, not counting one erase; below 90 %, a lifetime does not include the cost of cleaning", |r| regained(&r.media)),
    ("price", "price", Unit::Usd, Better::Less, "price of all media", |r| r.price.total_usd),
    ("price.table", "table price", Unit::Usd, Better::Less, "of a memory: price of its page table in the RAM that holds it", |r| Some(table_bytes(r)? * ram_usd(r)?)),
    ("price.ram", "price as RAM", Unit::Usd, Better::Neither, "of a memory: price of as much RAM as it has flash", |r| Some(r.design.raw_bytes as f64 * ram_usd(r)?)),
    ("price.gib", "USD/GiB", Unit::UsdPerGib, Better::Less, "price of all media per GiB the host can address", |r| r.price.usd_per_gib),
    ("price.iops", "USD/IOPS", Unit::Usd, Better::Less, "price of all media per request per second", |r| r.price.total_usd.filter(|_| iops(r) > 0.0).map(|usd| usd / iops(r))),
    ("retention.current", "mA to retain", Unit::Ratio, Better::Less, "current that preserves the contents of all RAM while the power is off, mA", |r| r.retention_ma),
    ("memory", "memory", Unit::Bytes, Better::Less, "memory of the controller's tables in this simulator", |r| Some(r.controller_memory_bytes as f64)),
    ("transfers", "transfers", Unit::Count, Better::Less, "transfers between a memory used in place and the host: bursts on the memory bus, or parts of requests if the device moves the data", |r| r.transfers.map(|count| count as f64)),
    ("queue.wait", "queue wait", Unit::Seconds, Better::Less, "total time that requests waited in the host because the device's queue was full or the device was late", |r| Some(r.queue_wait_s)),
    ("buffer.wait", "buffer wait", Unit::Seconds, Better::Less, "host time spent waiting for room in the write buffer", |r| Some(r.buffer_wait_s)),
    ("buffer.absorbed", "absorbed", Unit::Share, Better::More, "share of the host's writes that replaced a unit still in the write buffer", |r| written(r, r.write_amplification.absorbed)),
    ("merge.wait", "merge wait", Unit::Seconds, Better::Less, "host time spent waiting until log blocks were merged", |r| Some(r.merge_wait_s)),
    ("read.unwritten", "read unwritten", Unit::Share, Better::Less, "share of the units read that hold no data (never written, or trimmed) and need no flash read", |r| Some(r.unwritten_read_share).filter(|_| r.read.count > 0)),
    ("tps", "TPS", Unit::PerSecond, Better::More, "transactions per second", |r| Some(r.transaction.per_s).filter(|_| r.transaction.count > 0)),
    ("clean.cost", "cleaning cost", Unit::Ratio, Better::Less, "units moved by the cleaner per unit written by the host", |r| Some(r.write_amplification.clean + r.write_amplification.transfer).filter(|_| r.write_amplification.is_of_something())),
    ("clean.cost.last", "late cost", Unit::Ratio, Better::Less, "clean.cost in the last quarter of the run: the level an adaptive cleaner has reached", late_cost),
    ("flushed", "pages flushed", Unit::Count, Better::Less, "pages flushed from the write buffer of a memory", |r| r.memory.map(|m| m.flushed_pages as f64)),
    ("flushed.per_s", "flush rate", Unit::PerSecond, Better::Less, "pages flushed per second", |r| r.memory.map(|m| m.flushed_pages as f64 / r.simulated_s)),
    ("flushed.per_transaction", "flushes/transaction", Unit::Ratio, Better::Less, "pages flushed per transaction", |r| per_transaction(r, |m| m.flushed_pages)),
    ("copied", "pages copied", Unit::Count, Better::Less, "pages copied to the write buffer because of a store", |r| r.memory.map(|m| m.copied_pages as f64)),
    ("buffer.hits", "buffer hits", Unit::Share, Better::More, "share of stores that found their page in the write buffer", |r| r.memory.filter(|m| r.transaction.count > 0 && m.stores > 0).map(|m| m.buffer_hits as f64 / m.stores as f64)),
    ("time.read", "time reading", Unit::Share, Better::Neither, "share of a memory's time spent on loads", |r| r.memory.map(|m| m.time.read)),
    ("time.write", "time writing", Unit::Share, Better::Neither, "share of a memory's time spent on stores and their copies", |r| r.memory.map(|m| m.time.write)),
    ("time.flush", "time flushing", Unit::Share, Better::Neither, "share of a memory's time spent on flushes", |r| r.memory.map(|m| m.time.flush)),
    ("time.clean", "time cleaning", Unit::Share, Better::Neither, "share of a memory's time spent on cleaning", |r| r.memory.map(|m| m.time.clean)),
    ("time.wear", "time levelling", Unit::Share, Better::Neither, "share of a memory's time spent on wear levelling swaps", |r| r.memory.map(|m| m.time.wear)),
    ("time.erase", "time erasing", Unit::Share, Better::Neither, "share of a memory's time spent on erases", |r| r.memory.map(|m| m.time.erase)),
    ("time.idle", "time idle", Unit::Share, Better::Neither, "share of a memory's time spent idle or waiting to resume", |r| r.memory.map(|m| m.time.idle)),
    ("file.bandwidth", "file rate", Unit::BytesPerSecond, Better::More, "bytes per second that a file-system client reads from or writes to its file", |r| r.client_bytes.map(|bytes| bytes as f64 / r.simulated_s)),
    ("pram.map", "map in PRAM", Unit::Bytes, Better::Less, "PRAM used by the controller's tables", |r| r.pram.as_ref().map(|p| p.map_bytes as f64)),
    ("pram.route", "metadata in PRAM", Unit::Bytes, Better::Less, "PRAM reserved for file system metadata", |r| r.pram.as_ref().map(|p| p.route_bytes as f64)),
    ("pram.sectors", "sectors in PRAM", Unit::Count, Better::Neither, "sectors of metadata in PRAM at the end", |r| route(r).map(|route| route.sectors_in_pram as f64)),
    ("pram.changed", "words changed", Unit::Share, Better::Neither, "share of words that changed when a sector in PRAM was overwritten", |r| route(r).map(|route| route.changed_share)),
    ("pram.spilled", "spilled", Unit::Count, Better::Less, "sectors of metadata that went to flash because PRAM was full", |r| route(r).map(|route| route.spilled_sectors as f64)),
    ("pram.words", "words programmed", Unit::Count, Better::Less, "program steps of PRAM", |r| r.pram.as_ref().map(|p| p.words_programmed as f64)),
    ("pram.line", "worst line", Unit::Count, Better::Less, "writes to the most written line of PRAM since new", |r| r.pram.as_ref().map(|p| p.line_writes_max as f64)),
    ("pram.lifetime", "PRAM lifetime", Unit::Years, Better::More, "years until the most written line of PRAM is worn out at this load", |r| r.pram.as_ref().and_then(|p| p.years)),
    ("pram.life", "share of ideal life", Unit::Share, Better::More, "lifetime of the most written line of PRAM, as a share of the lifetime under even wear", |r| r.pram.as_ref().and_then(|p| p.life_share)),
    ("pram.registers", "levelling registers", Unit::Bytes, Better::Less, "registers needed by the wear levelling of PRAM", |r| r.pram.as_ref().map(|p| p.level_bytes as f64)),
    ("mount.time", "mount", Unit::Seconds, Better::Less, "mount time after a power cut at the end; of recoverable memory with its log on flash, the time to recover what the log holds then", |r| r.mount.map(|m| m.time_s)),
    ("mount.reads", "mount reads", Unit::Count, Better::Less, "flash pages read by the mount after a power cut at the end", |r| r.mount.map(|m| m.nand_reads as f64)),
    ("program.time", "run time", Unit::Seconds, Better::Less, "run time of a recorded program, from its first request to its last completion", |r| r.program.map(|_| r.simulated_s)),
    ("program.waiting", "waiting", Unit::Seconds, Better::Less, "part of program.time with a request in flight", |r| r.program.map(|p| p.waiting_s)),
    ("program.computing", "computing", Unit::Seconds, Better::Neither, "part of program.time with nothing in flight", |r| r.program.map(|p| p.computing_s)),
    ("program.recorded", "recorded", Unit::Seconds, Better::Neither, "run time of the program where it was recorded", |r| r.program.map(|p| p.recorded_s)),
    ("requests", "requests", Unit::Count, Better::Neither, "requests served", |r| Some(r.requests_served as f64)),
    ("requests.missing", "missing", Unit::Count, Better::Less, "requests issued but not served", missing),
    ("rate.offered", "offered", Unit::PerSecond, Better::Neither, "requests offered per second by an open loop", |r| r.arrivals.map(|a| a.offered_per_s)),
    ("rate.served", "served", Unit::PerSecond, Better::More, "requests served per second in an open loop", |r| r.arrivals.map(|a| a.served_per_s)),
    ("queue.growth", "queue growth", Unit::PerSecond, Better::Less, "growth of the host's queue in an open loop, in requests per second; if not 0, latencies depend on the length of the run", |r| r.arrivals.map(|a| a.growth_per_s)),
    ("simulated", "simulated", Unit::Seconds, Better::Neither, "simulated time", |r| Some(r.simulated_s)),
    ("table", "page table", Unit::Bytes, Better::Less, "of a memory: size of its page table in the design", table_bytes),
    ("wear.swaps", "wear swaps", Unit::Count, Better::Neither, "of a memory: swaps of a worn and a young segment by wear levelling", |r| r.memory.map(|m| m.wear_swaps as f64)),
    ("capacity", "capacity", Unit::Bytes, Better::More, "bytes the host can address", |r| Some(r.design.capacity_bytes as f64)),
    ("raw", "raw", Unit::Bytes, Better::Neither, "bytes of flash", |r| Some(r.design.raw_bytes as f64)),
    ("precondition.bytes", "written before", Unit::Bytes, Better::Neither, "bytes written by preconditioning", |r| Some(r.precondition.host_bytes as f64)),
];

/// Every metric, in the order in which tables list them.
pub fn metrics() -> &'static [Metric] {
    static ALL: LazyLock<Vec<Metric>> = LazyLock::new(made);
    &ALL
}

fn made() -> Vec<Metric> {
    let whole = ROWS.iter().map(|&(name, title, unit, better, about, get)| Metric {
        name: name.to_string(),
        title: title.to_string(),
        unit,
        better,
        about: about.to_string(),
        get: Get::Run(get),
    });
    let each = OPS.iter().flat_map(|&(op, of)| {
        OP_ROWS.iter().map(move |&(name, title, unit, better, about, get)| Metric {
            name: format!("{op}.{name}"),
            title: if name == "count" { plural(op) } else { format!("{op} {title}") },
            unit,
            better,
            about: format!("{about}, {}", plural(op)),
            get: Get::Op(of, get),
        })
    });
    whole.chain(each).collect()
}

fn plural(op: &str) -> String {
    format!("{op}{}", if op == "flush" { "es" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn names_are_unique_and_found() {
        let all = metrics();
        let mut names: Vec<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
        for metric in all {
            assert_eq!(find(&metric.name).unwrap().name, metric.name);
            assert_eq!(find(&metric.column()).unwrap().name, metric.name);
        }
        for (alias, name) in ALIASES {
            assert_eq!(find(alias).unwrap().name, *name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn a_part_of_a_name_is_answered_with_the_names() {
        assert_eq!(find("padding").unwrap_err(), "there is no metric `padding`; did you mean `waf.padding`?");
        assert!(find("wav").unwrap_err().contains("did you mean `waf`?"));
    }

    #[test]
    fn values_and_other_spellings() {
        let run = sample::run("ssd-tlc", 1);
        assert_eq!(metric("waf", &run), Some(2.97));
        assert_eq!(metric("p99.9.write", &run), metric("write.p99_9", &run));
        assert_eq!(metric("write.p99.9", &run), Some(run.write.latency.p99_9_ns as f64));
        assert_eq!(metric("p99.write", &run), metric("write.p99", &run));
        assert_eq!(metric("trim.p99", &run), None);
        assert_eq!(metric("life", &run), run.lifetime.years);
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest_name() {
        assert_eq!(
            find("write.p98").unwrap_err(),
            "there is no metric `write.p98`; did you mean `write.p95`?"
        );
        assert!(find("colour").unwrap_err().starts_with("there is no metric `colour`; some metrics: "));
    }
}
