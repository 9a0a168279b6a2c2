//! Statistics of a log since it was opened.

use std::time::Duration;

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Commits that waited until they were durable.
    pub flush_commits: u64,
    /// Commits that did not.
    pub no_flush_commits: u64,
    /// Transactions that were undone.
    pub aborts: u64,
    /// Ranges in committed transactions, after coalescing.
    pub ranges: u64,
    /// Bytes in those ranges.
    pub range_bytes: u64,
    /// Bytes of records, headers included.
    pub logged_bytes: u64,
    /// Bytes written ahead of commits, and those of them that no commit used: their transaction was undone, another record came
    /// first, or the program stored something else.
    pub ahead_bytes: u64,
    /// See `ahead_bytes`.
    pub ahead_wasted_bytes: u64,
    /// Bytes of records that name segments.
    pub name_bytes: u64,
    /// Forces of the log.
    pub forces: u64,
    /// Truncations.
    pub truncations: u64,
    /// Bytes that truncations wrote to segments.
    pub applied_bytes: u64,
    /// Bytes that truncations decompressed.
    pub decompressed_bytes: u64,
    /// Bytes between head and tail of the log now.
    pub live_bytes: u64,
    /// How long recovery of the log would take now, as estimated for [`super::Options::recovery_target`].
    pub recovery_time: Duration,
}
