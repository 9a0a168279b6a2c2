//! Several streams on one device.

use super::{ArrivalsResult, OpResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of several streams of requests. Rates are over its own time, from its beginning to its last completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantResult {
    /// Its name: a section of a job file, or the text of a workload.
    pub name: String,
    /// When it began, s since the run began.
    pub from_s: f64,
    /// When its last request was done, s.
    pub to_s: f64,
    /// Its reads.
    pub read: OpResult,
    /// Its writes.
    pub write: OpResult,
    /// Its trims.
    #[serde(default)]
    pub trim: OpResult,
    /// Its flushes.
    #[serde(default)]
    pub flush: OpResult,
    /// Whether it was served at the rate of its arrivals; `None` for a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsResult>,
}

impl TenantResult {
    /// Its kinds of requests with their names.
    pub fn ops(&self) -> [(&'static str, &OpResult); 4] {
        [("read", &self.read), ("write", &self.write), ("trim", &self.trim), ("flush", &self.flush)]
    }
}
