//! Statistics of a trace: the figures of `nvlab trace info`, and its first rows for `nvlab trace head`.
//!
//! Addresses of different volumes are different blocks. Skew is measured in written blocks of 4 KiB; a write
//! that overlaps a block counts as one write of it.

mod blocks;
#[cfg(test)]
mod tests;

use crate::columns::Columns;
use crate::{Op, Request};
use blocks::{BlockCounts, Intervals};
use nvlab_units::Span;
use nvlab_units::quantity::display_bytes;
use std::collections::BTreeMap;
use std::fmt;

/// The block size in which skew is measured.
pub const BLOCK_BYTES: u64 = 4096;
const MINUTE_PS: u64 = 60_000_000_000_000;

/// Count and size of the reads, writes or trims of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpInfo {
    /// How many there are.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
}

/// What `nvlab trace info` prints of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceInfo {
    /// The format it was first read from.
    pub origin: String,
    /// Requests of all kinds, flushes included.
    pub requests: u64,
    /// Those of them that read.
    pub reads: OpInfo,
    /// Those that write.
    pub writes: OpInfo,
    /// Those that trim.
    pub trims: OpInfo,
    /// Those that flush: they have no bytes.
    pub flushes: u64,
    /// From the first request to the last.
    pub duration: Span,
    /// Volumes with at least one request.
    pub volumes: u64,
    /// Bytes that are accessed at least once, over all volumes.
    pub footprint_bytes: u64,
    /// Bytes that are written at least once, in whole blocks of 4 KiB.
    pub written_bytes: u64,
    /// The byte after the last, on the volume that reaches furthest.
    pub end_bytes: u64,
    /// Mean size of reads, writes and trims.
    pub size_mean_bytes: f64,
    /// Median size of reads, writes and trims.
    pub size_p50_bytes: u32,
    /// Largest size of a read, write or trim.
    pub size_max_bytes: u32,
    /// Share of reads and writes that begin where the previous one of the same kind and volume ended.
    pub sequential_share: f64,
    /// Share of block writes that go to the most written 20 % of the written blocks; 0.2 is even.
    pub hot_share: f64,
    /// The exponent of the Zipf distribution that makes the counts of written blocks most likely; `None` if
    /// too few are written to say.
    pub zipf_theta: Option<f64>,
    /// Mean time from one request to the next.
    pub gap_mean: Span,
    /// 99 of 100 gaps are no longer.
    pub gap_p99: Span,
    /// Requests per second over the whole trace.
    pub rate_mean: f64,
    /// Requests per second in the busiest minute.
    pub rate_peak_minute: f64,
}

impl TraceInfo {
    /// Examines every request once. Memory is proportional to the footprint and the number of requests (8 B each).
    pub fn of(columns: &Columns) -> TraceInfo {
        let mut info = TraceInfo { origin: columns.origin.format.clone(), ..TraceInfo::default() };
        let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
        let mut touched = Intervals::default();
        let mut written = BlockCounts::default();
        let starts = volume_starts(columns);
        let mut last_end = vec![[u64::MAX; 2]; columns.volumes().len()];
        let mut has_requests = vec![false; columns.volumes().len()];
        let mut sequential = 0u64;
        let mut run = (0u32, 0u64);
        for request in columns.iter() {
            has_requests[request.volume as usize] = true;
            info.count(request);
            if request.op == Op::Flush {
                continue;
            }
            // Equal sizes come in runs: one map lookup per run.
            if request.bytes != run.0 {
                *sizes.entry(run.0).or_default() += run.1;
                run = (request.bytes, 0);
            }
            run.1 += 1;
            let start = starts[request.volume as usize].wrapping_add(request.offset);
            let end = start.wrapping_add(request.bytes as u64);
            touched.add(start, end);
            if request.op == Op::Write {
                written.add(start / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
            }
            if request.op != Op::Trim {
                let end = &mut last_end[request.volume as usize][request.op as usize];
                sequential += u64::from(*end == request.offset);
                *end = request.end();
            }
        }
        *sizes.entry(run.0).or_default() += run.1;
        sizes.remove(&0);
        info.requests = columns.len() as u64;
        info.volumes = has_requests.iter().filter(|&&has| has).count() as u64;
        info.footprint_bytes = touched.total();
        info.sequential_share = share(sequential, info.reads.requests + info.writes.requests);
        info.set_sizes(&sizes);
        info.set_times(columns.at_ps());
        let counts = written.into_sorted_counts();
        info.written_bytes = counts.len() as u64 * BLOCK_BYTES;
        info.hot_share = blocks::hot_share(&counts);
        info.zipf_theta = blocks::zipf_theta(&counts);
        info
    }

    fn count(&mut self, request: Request) {
        let of_op = match request.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Trim => &mut self.trims,
            Op::Flush => {
                self.flushes += 1;
                return;
            }
        };
        of_op.requests += 1;
        of_op.bytes += request.bytes as u64;
        self.end_bytes = self.end_bytes.max(request.end());
    }

    fn set_sizes(&mut self, sizes: &BTreeMap<u32, u64>) {
        let count: u64 = sizes.values().sum();
        let sum: f64 = sizes.iter().map(|(&bytes, &count)| bytes as f64 * count as f64).sum();
        self.size_mean_bytes = if count > 0 { sum / count as f64 } else { 0.0 };
        let mut seen = 0;
        let median = sizes.iter().find(|(_, count)| {
            seen += **count;
            seen * 2 >= sizes.values().sum::<u64>()
        });
        self.size_p50_bytes = median.map_or(0, |(&bytes, _)| bytes);
        self.size_max_bytes = sizes.keys().next_back().copied().unwrap_or(0);
    }

    fn set_times(&mut self, at_ps: &[u64]) {
        let (Some(&first), Some(&last)) = (at_ps.first(), at_ps.last()) else { return };
        self.duration = Span::from_ps(last - first);
        let mut gaps: Vec<u64> = at_ps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if gaps.is_empty() {
            return;
        }
        self.gap_mean = Span::from_ps((last - first) / gaps.len() as u64);
        let index = (gaps.len() * 99).div_ceil(100) - 1;
        self.gap_p99 = Span::from_ps(*gaps.select_nth_unstable(index).1);
        if last == first {
            return;
        }
        self.rate_mean = at_ps.len() as f64 / self.duration.seconds();
        // A trace shorter than a minute has no busiest minute.
        if last - first < MINUTE_PS {
            self.rate_peak_minute = self.rate_mean;
            return;
        }
        let minutes = at_ps.chunk_by(|a, b| (a - first) / MINUTE_PS == (b - first) / MINUTE_PS);
        self.rate_peak_minute = minutes.map(|minute| minute.len()).max().unwrap_or(0) as f64 / 60.0;
    }
}

/// Where each volume begins in one common address space. Volumes of more than 16 EiB in total would overlap.
fn volume_starts(columns: &Columns) -> Vec<u64> {
    let mut ends = vec![0u64; columns.volumes().len()];
    for request in columns.iter() {
        let end = &mut ends[request.volume as usize];
        *end = (*end).max(request.end());
    }
    let mut next = 0u64;
    let start_of = |end: u64| {
        let start = next;
        next = next.wrapping_add(end).checked_next_multiple_of(BLOCK_BYTES).unwrap_or(0);
        start
    };
    ends.into_iter().map(start_of).collect()
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for TraceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: String| writeln!(f, "{name:<14}{text}");
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        line("format", self.origin.clone())?;
        line("requests", format!("{} in {}", self.requests, long_time(self.duration)))?;
        for (name, op) in [("reads", self.reads), ("writes", self.writes), ("trims", self.trims)] {
            let of_all = percent(share(op.requests, self.requests));
            line(name, format!("{} ({of_all}), {}", op.requests, display_bytes(op.bytes)))?;
        }
        line("flushes", self.flushes.to_string())?;
        line("volumes", self.volumes.to_string())?;
        let (touched, written) = (display_bytes(self.footprint_bytes), display_bytes(self.written_bytes));
        line(
            "footprint",
            format!("{touched} touched, {written} written, up to {}", display_bytes(self.end_bytes)),
        )?;
        let sizes = [self.size_mean_bytes as u64, self.size_p50_bytes as u64, self.size_max_bytes as u64];
        let [mean, median, max] = sizes.map(display_bytes);
        line("size", format!("mean {mean}, p50 {median}, max {max}"))?;
        line("sequential", percent(self.sequential_share))?;
        let theta =
            self.zipf_theta.map_or(String::new(), |theta| format!("; similar to Zipf with theta {theta:.2}"));
        line(
            "skew",
            format!("{} of writes go to 20 % of the written blocks{theta}", percent(self.hot_share)),
        )?;
        line("gap", format!("mean {}, p99 {}", self.gap_mean, self.gap_p99))?;
        line("rate", format!("mean {:.1}/s, busiest minute {:.1}/s", self.rate_mean, self.rate_peak_minute))
    }
}

/// Shows long times in hours and days.
fn long_time(span: Span) -> String {
    match span.seconds() {
        seconds if seconds >= 2.0 * 86400.0 => format!("{:.1} d", seconds / 86400.0),
        seconds if seconds >= 2.0 * 3600.0 => format!("{:.1} h", seconds / 3600.0),
        seconds if seconds >= 300.0 => format!("{:.1} min", seconds / 60.0),
        _ => span.to_string(),
    }
}

/// Names of the columns of [`head`], for programs.
pub const HEAD_COLUMNS: [&str; 6] = ["time_s", "op", "offset", "bytes", "volume", "fua"];

/// The first `count` requests as rows of a table with [`HEAD_COLUMNS`].
pub fn head(columns: &Columns, count: usize) -> Vec<[String; 6]> {
    let row = |request: Request| {
        let (seconds, rest) = (request.at.ns() / 1_000_000_000, request.at.ns() % 1_000_000_000);
        [
            format!("{seconds}.{rest:09}"),
            request.op.to_string(),
            request.offset.to_string(),
            request.bytes.to_string(),
            columns.volumes()[request.volume as usize].clone(),
            if request.fua { "yes" } else { "" }.to_owned(),
        ]
    };
    columns.iter().take(count).map(row).collect()
}
