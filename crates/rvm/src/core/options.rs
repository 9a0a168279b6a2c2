//! How a log is used.

use crate::record::Headers;

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
    /// Debug mode: at each commit, compare the regions with what was committed, and refuse a commit that changed
    /// bytes outside its ranges. Costs a copy of every region and a comparison at every commit.
    pub find_missed_ranges: bool,
    /// Bytes of records of commits without flush that are kept in memory at most.
    pub spool_bytes_max: usize,
}

/// When committed changes are applied to the segments, so that the log can take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// In a thread of its own, when the log is filled to so many percent, and by a clean stop: so the next opening has nothing to do.
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
            find_missed_ranges: false,
            spool_bytes_max: 1 << 20,
        }
    }
}
