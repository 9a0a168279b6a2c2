//! Caveats to the figures of a run: their precision, and what a lifetime does not include. Code that shows a figure
//! also shows its caveats.

use super::RunResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The run is reported as too short for a figure with a wider interval than this.
pub const EXACT: f64 = 0.02;

/// How exactly a run knows a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// The name of its metric.
    pub metric: String,
    /// Half of its 95 % interval over its value, from the spread of parts of the run; `None`: the run is too short to say. It does
    /// not contain how the device came to its state.
    pub within: Option<f64>,
}

/// The metrics of the lifetime of the flash, which should include the cost of cleaning.
const LIVES: [&str; 9] = [
    "lifetime",
    "lifetime.days",
    "lifetime.worst",
    "lifetime.bytes",
    "lifetime.dwpd",
    "data.lifetime",
    "data.endurance",
    "log.lifetime",
    "log.endurance",
];

/// True for the metrics of how long the flash lasts.
pub fn is_life(metric: &str) -> bool {
    LIVES.contains(&metric)
}

impl RunResult {
    /// The precision of the figure of a metric; `None` if it is not random.
    pub fn precision_of(&self, metric: &str) -> Option<&Precision> {
        self.precision.iter().find(|precision| precision.metric == metric)
    }

    /// What must be known before the figure of a metric is used.
    pub fn doubts(&self, metric: &str) -> Vec<String> {
        let short = self.precision_of(metric).and_then(too_short);
        let caveat = self.lifetime.caveat.clone().filter(|_| is_life(metric));
        caveat.into_iter().chain(short).collect()
    }
}

/// `± 8.1 %`.
pub fn plus_minus(within: f64) -> String {
    let decimals = if within < 0.1 { 1 } else { 0 };
    format!("± {:.decimals$} %", within * 100.0)
}

/// `± 8.1 %: too short`, if a figure is not known exactly enough.
fn too_short(precision: &Precision) -> Option<String> {
    match precision.within {
        Some(within) if within <= EXACT => None,
        Some(within) => Some(format!("{}: too short", plus_minus(within))),
        None => Some("too short to estimate its precision".to_string()),
    }
}
