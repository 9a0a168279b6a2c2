//! Statistics: what the log counts, and what is counted here because only C programs ask for it.

use crate::offsets::from_bytes;
use crate::types::{STATISTICS_ID, rvm_length_t, rvm_statistics_t};
use libc::timeval;
use nvlab_rvm::Statistics;
use std::time::Duration;

const FLUSH_MS: [u64; 9] = [25, 50, 100, 250, 500, 1000, 2500, 5000, 10000];
const TRUNCATION_S: [u64; 4] = [1, 10, 100, 500];
const BYTES: [u64; 12] = [0, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
const COUNTS: [u64; 5] = [0, 5, 10, 50, 100];

/// Adds a value to a histogram with these upper bounds.
fn add(histogram: &mut [rvm_length_t], bounds: &[u64], value: u64) {
    histogram[bounds.partition_point(|&bound| bound < value)] += 1;
}

fn merge(into: &mut [rvm_length_t], from: &mut [rvm_length_t]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into += std::mem::take(from);
    }
}

fn time(duration: Duration) -> timeval {
    timeval { tv_sec: duration.as_secs() as libc::time_t, tv_usec: duration.subsec_micros().into() }
}

/// Counts from `rvm_initialize` on.
#[derive(Debug)]
pub(crate) struct Counters {
    record: Box<Record>,
    /// The log's own counters at the last truncation.
    before: Statistics,
    flush_time: Duration,
    flush_time_before: Duration,
    truncation_time: Duration,
    overlap: u64,
    overlap_before: u64,
    no_flush_bytes: u64,
    /// Truncations by `rvm_truncate`.
    asked_truncations: u64,
}

struct Record(rvm_statistics_t);

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("rvm_statistics_t").finish_non_exhaustive()
    }
}

impl Counters {
    pub fn new(recovered: bool) -> Counters {
        // SAFETY: all-zero is a valid record.
        let mut record: rvm_statistics_t = unsafe { std::mem::zeroed() };
        record.struct_id = STATISTICS_ID;
        record.tot_recovery = recovered.into();
        Counters {
            record: Box::new(Record(record)),
            before: Statistics::default(),
            flush_time: Duration::ZERO,
            flush_time_before: Duration::ZERO,
            truncation_time: Duration::ZERO,
            overlap: 0,
            overlap_before: 0,
            no_flush_bytes: 0,
            asked_truncations: 0,
        }
    }

    fn counts(&mut self) -> &mut rvm_statistics_t {
        &mut self.record.0
    }

    pub fn aborted(&mut self) {
        self.counts().n_abort += 1;
    }

    /// A transaction was committed: lengths of its ranges as declared, and its ranges and bytes after coalescing. `took`
    /// is how long the flush took, if there was one.
    pub fn committed(&mut self, declared: &[usize], coalesced: (usize, usize), took: Option<Duration>) {
        let (ranges, bytes) = coalesced;
        let overlap = (declared.iter().sum::<usize>() - bytes) as u64;
        let joined = (declared.len() - ranges) as u64;
        self.overlap += overlap;
        let counts = self.counts();
        for &length in declared {
            add(&mut counts.range_lengths, &BYTES, length as u64);
        }
        add(&mut counts.range_overlaps, &BYTES, overlap);
        add(&mut counts.range_elims, &COUNTS, joined);
        counts.n_range_elim += joined as rvm_length_t;
        match took {
            Some(took) => {
                counts.n_flush_commit += 1;
                counts.n_flush += 1;
                self.flushed(took);
            }
            None => {
                counts.n_no_flush_commit += 1;
                counts.n_no_flush += 1;
                self.no_flush_bytes += bytes as u64;
            }
        }
    }

    /// The program asked for a flush.
    pub fn asked_to_flush(&mut self, took: Duration) {
        self.counts().n_rvm_flush += 1;
        self.flushed(took);
    }

    fn flushed(&mut self, took: Duration) {
        self.flush_time += took;
        self.no_flush_bytes = 0;
        let counts = self.counts();
        counts.n_no_flush = 0;
        counts.last_flush_time = took.as_millis() as rvm_length_t;
        add(&mut counts.flush_times, &FLUSH_MS, took.as_millis() as u64);
    }

    /// The log was truncated because the program asked, unless it was empty: what was counted so far belongs to the past.
    /// `before` and `now` are the log's own counters.
    pub fn truncated(&mut self, took: Duration, before: Statistics, now: Statistics) {
        self.asked_truncations += now.truncations - before.truncations;
        self.truncation_time += took;
        (self.flush_time_before, self.overlap_before) = (self.flush_time, self.overlap);
        (self.before, self.no_flush_bytes) = (now, 0);
        let counts = self.counts();
        counts.n_no_flush = 0;
        counts.tot_rvm_truncate += 1;
        counts.last_truncation_time = took.as_secs() as rvm_length_t;
        add(&mut counts.tot_truncation_times, &TRUNCATION_S, took.as_secs());
        counts.tot_abort += std::mem::take(&mut counts.n_abort);
        counts.tot_flush_commit += std::mem::take(&mut counts.n_flush_commit);
        counts.tot_no_flush_commit += std::mem::take(&mut counts.n_no_flush_commit);
        counts.tot_flush += std::mem::take(&mut counts.n_flush);
        counts.tot_rvm_flush += std::mem::take(&mut counts.n_rvm_flush);
        counts.tot_range_elim += std::mem::take(&mut counts.n_range_elim);
        merge(&mut counts.tot_flush_times, &mut counts.flush_times);
        merge(&mut counts.tot_range_lengths, &mut counts.range_lengths);
        merge(&mut counts.tot_range_elims, &mut counts.range_elims);
        merge(&mut counts.tot_range_overlaps, &mut counts.range_overlaps);
    }

    /// The record now, given the log's own counters, its capacity in bytes and the transactions that have not ended.
    pub fn record(&mut self, log: Statistics, capacity: u64, uncommitted: usize) -> rvm_statistics_t {
        let percent = (log.live_bytes * 100 / capacity) as rvm_length_t;
        let counts = self.counts();
        counts.log_dev_max = counts.log_dev_max.max(percent);
        let written = |of: &Statistics| of.logged_bytes + of.name_bytes;
        rvm_statistics_t {
            n_uncommit: uncommitted as rvm_length_t,
            no_flush_length: from_bytes(self.no_flush_bytes),
            log_dev_cur: percent,
            log_written: from_bytes(log.live_bytes),
            tot_log_written: from_bytes(written(&self.before)),
            flush_time: time(self.flush_time - self.flush_time_before),
            tot_flush_time: time(self.flush_time_before),
            tot_truncation_time: time(self.truncation_time),
            range_overlap: from_bytes(self.overlap - self.overlap_before),
            tot_range_overlap: from_bytes(self.overlap_before),
            tot_async_truncation: log.truncations - self.asked_truncations,
            ..self.record.0
        }
    }
}
