//! Figures of a log of recoverable memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of a log of recoverable memory. The writes of the run are its commits, their bytes those of the records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DurableResult {
    /// The device of the log: `flash`, `flash-disk`, `battery-ram`, `disk`, `hybrid`.
    pub log: String,
    /// Bytes of records the log takes before it is truncated, and bytes over which their wear is spread.
    pub log_bytes: u64,
    /// See `log_bytes`.
    pub usable_bytes: u64,
    /// Bytes of a transaction, mean: in its ranges, in its record, written to the device of the log.
    pub range_bytes: f64,
    /// See `range_bytes`.
    pub record_bytes: f64,
    /// See `range_bytes`.
    pub written_bytes: f64,
    /// Of those of its record, bytes that were written before the commit.
    #[serde(default)]
    pub ahead_bytes: f64,
    /// Of those, bytes that no commit used: another record came first, or they were stored again.
    #[serde(default)]
    pub ahead_wasted_bytes: f64,
    /// Bytes of all records over those the log takes.
    pub fills: f64,
    /// Times the log was truncated, and bytes that this wrote to the data.
    pub truncations: u64,
    /// See `truncations`.
    pub applied_bytes: u64,
    /// Where the time went.
    pub time: DurableTime,
}

/// Shares of the time of a run of transactions on recoverable memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DurableTime {
    /// The program: it computes, or waits for the next transaction.
    pub compute: f64,
    /// Compressing records.
    pub compress: f64,
    /// Decompressing what is applied.
    #[serde(default)]
    pub decompress: f64,
    /// Writing records and status to the log.
    pub write: f64,
    /// Erasing blocks of the log.
    pub erase: f64,
    /// Reading the log in order to apply it.
    pub read: f64,
    /// Writing what it changed to the data.
    pub apply: f64,
}
