//! Options of a log.

use crate::record::Headers;
use std::time::Duration;

/// Options of an open log; what is in the log may have been written with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Sizes of the headers of new records.
    pub headers: Headers,
    /// Log only the bytes of a range that changed. Needs a copy of the old ones, as transactions that can be undone have
    /// anyway; those without log whole ranges.
    pub diff: bool,
    /// Compress records with LZ4 where that makes them shorter.
    pub compress: bool,
    /// When the log is truncated.
    pub truncation: Truncation,
    /// How long opening the log after a crash is to take at most. Truncation in the background begins in time for that, even if the log
    /// is far from full. It is estimated from what the log holds, and from what syncs and truncations have taken so far
    /// ([`super::Statistics::recovery_time`]): a goal, not a promise, since what else the machine does then nobody knows; commits do not
    /// wait for it. [`Duration::MAX`]: only the space in the log counts.
    ///
    /// A page that is changed all the time is written once a truncation, so a short target costs throughput: 5 ms on a drive of some
    /// 8,000 syncs a second about a tenth of the commits (`docs/bench-durable.md`). One second, the default, makes at most a few
    /// truncations a second, each of which writes a page once; a log of any size is then recovered in about the time that a program
    /// takes to start.
    pub recovery_target: Duration,
    /// Debug mode: at each commit, compare the regions with what was committed, and refuse a commit that changed
    /// bytes outside its ranges. Costs a copy of every region and a comparison at every commit.
    pub find_missed_ranges: bool,
    /// Bytes of records of commits without flush that are kept in memory at most.
    pub spool_bytes_max: usize,
}

/// When committed changes are applied to the segments, so that the log can take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// In a thread of its own, when the log is filled to so many percent or recovering it would take as long as
    /// [`Options::recovery_target`], and by a clean stop: so the next opening has nothing to do.
    Background {
        /// Percent of the capacity, below 100.
        at_percent: u8,
    },
    /// By the commit that finds no room. A clean stop leaves what is in the log to the next opening.
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
