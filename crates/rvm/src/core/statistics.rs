//! Statistics of a log since it was opened.

use std::time::Duration;

/// What the program and the log did since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Commits that waited until they were durable.
    pub flush_commits: u64,
    /// Commits that returned before they were durable.
    pub no_flush_commits: u64,
    /// Transactions undone by an abort, or dropped without a commit.
    pub aborts: u64,
    /// Ranges in committed transactions, after coalescing.
    pub ranges: u64,
    /// Bytes in those ranges, changed or not.
    pub range_bytes: u64,
    /// Bytes of their records, headers included.
    pub logged_bytes: u64,
    /// Bytes written ahead of commits, and those of them that no commit used: their transaction was undone, another record came
    /// first, or the program stored something else.
    pub ahead_bytes: u64,
    /// Those of them that no commit used.
    pub ahead_wasted_bytes: u64,
    /// Bytes of the records that give segments their numbers.
    pub name_bytes: u64,
    /// Times the log was forced: one may serve many commits.
    pub forces: u64,
    /// Truncations, in the background or not.
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
