//! Lifetime of the flash of a device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the flash will be worn out at this workload's rate; of several media, the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lifetime {
    /// Years until the mean block reaches its rated cycles; `None` if nothing was programmed.
    pub years: Option<f64>,
    /// The same for the most worn block; `None` while the mean block has been erased fewer than ten times.
    pub years_worst_block: Option<f64>,
    /// Host bytes that may be written in total (TBW): at most rated cycles times the blocks' bytes are programmed for
    /// them. `None` if the host wrote nothing.
    pub host_bytes: Option<f64>,
    /// Full drive writes per day over five years that this allows.
    pub drive_writes_per_day: Option<f64>,
    /// Rated cycles of a block.
    pub rated_cycles: u32,
    /// Years the cells of the data medium keep what is written, if the part says so: `years` beyond that are of wear alone.
    #[serde(default)]
    pub retention_years: Option<u32>,
    /// Caveat to these figures: they do not include the cost of cleaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// Effects of wear levelling that had not begun in this run; the figures above include them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levelling: Option<LaterLevelling>,
}

/// Static wear levelling that begins after a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaterLevelling {
    /// The share of the rated cycles that the mean block will then have done, at least: if until then only blocks without cold
    /// data are erased.
    pub from_life_share: f64,
    /// Write amplification from then on, at most: cold data is moved, and may be found apart from other data afterwards.
    pub write_amplification: f64,
}

impl Lifetime {
    /// The years of retention, if the flash would be worn out only later.
    pub fn limited_by_retention(&self) -> Option<u32> {
        self.retention_years.filter(|&limit| self.years.is_some_and(|years| years > limit as f64))
    }
}
