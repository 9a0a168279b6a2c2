//! Options of a log.

use crate::record::Headers;
use std::time::Duration;

/// Options of an open log; its existing records may have been written with other options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Sizes of the headers of new records.
    pub headers: Headers,
    /// Log only the bytes of a range that changed. Needs a copy of the old bytes, which transactions that can be
    /// undone have anyway; those without log whole ranges.
    pub diff: bool,
    /// Compress records with LZ4 if that makes them shorter.
    pub compress: bool,
    /// When and by whom the log is truncated.
    pub truncation: Truncation,
    /// Maximum time that opening the log after a crash should take. Background truncation begins early enough for
    /// that, even if the log is far from full. The time is estimated from the contents of the log, and from the times
    /// of syncs and truncations so far ([`super::Statistics::recovery_time`]): a goal, not a promise, since the load
    /// of the computer at that time is unknown; commits do not wait for it. [`Duration::MAX`]: only the space in the
    /// log counts.
    ///
    /// A page that is changed all the time is written once a truncation, so a short target costs throughput: 5 ms on
    /// a drive of some 8,000 syncs a second about a tenth of the commits (`docs/bench-durable.md`). One second, the
    /// default, causes at most a few truncations a second, each of which writes a page once; a log of any size is
    /// then recovered in about the time that a program takes to start.
    pub recovery_target: Duration,
    /// Debug mode: at each commit, compare the regions with the committed contents, and refuse a commit that changed
    /// bytes outside its ranges. Costs a copy of every region and a comparison at every commit.
    pub find_missed_ranges: bool,
    /// Maximum bytes of records of commits without flush that are held in memory.
    pub spool_bytes_max: usize,
}

/// When committed changes are applied to the segments, to free space in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// In a separate thread, when the log is filled to this percentage or recovering it would take as long as
    /// [`Options::recovery_target`], and by a clean stop: so the next opening has nothing to do.
    Background {
        /// Fill of the log, in percent of its capacity, below 100.
        at_percent: u8,
    },
    /// By the commit that finds no room. A clean stop leaves the records in the log to the next opening.
    WhenFull,
}

impl Default for Truncation {
    fn default() -> Truncation {
        Truncation::Background { at_percent: 50 }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            headers: Headers::Compact,
            diff: false,
            compress: false,
            truncation: Truncation::default(),
            recovery_target: Duration::from_secs(1),
            find_missed_ranges: false,
            spool_bytes_max: 1 << 20,
        }
    }
}
