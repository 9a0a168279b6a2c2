//! The figures of a map that is read on demand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of a map that is read from flash on demand. It is looked up once for each translation page a request
/// touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapResult {
    /// Look-ups for reads and writes, and those of them that found the page in memory.
    pub reads: u64,
    /// See `reads`.
    pub read_hits: u64,
    /// See `reads`.
    pub writes: u64,
    /// See `reads`.
    pub write_hits: u64,
    /// Of the hits, those in the host's memory.
    pub host_hits: u64,
    /// Translation pages read from flash: for requests, and to be rewritten.
    pub loaded: u64,
    /// See `loaded`.
    pub loaded_to_rewrite: u64,
    /// Translation pages programmed: changed ones from memory, those of units that moved, and to free blocks of the map.
    pub written_back: u64,
    /// See `written_back`.
    pub rewritten: u64,
    /// See `written_back`.
    pub moved: u64,
    /// Seconds that reads waited for the map, and that unbuffered writes did, in total.
    pub read_wait_s: f64,
    /// See `read_wait_s`.
    pub write_wait_s: f64,
}

impl MapResult {
    /// Share of look-ups that found their page; 0 without look-ups.
    pub fn hit_share(&self) -> f64 {
        (self.read_hits + self.write_hits) as f64 / (self.reads + self.writes).max(1) as f64
    }
}
