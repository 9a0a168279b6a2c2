//! Cost of the media of a run's design.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the media cost, USD, without controller, board and margin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// All media; `None` if a price is missing.
    pub total_usd: Option<f64>,
    /// Per GiB the host can address.
    pub usd_per_gib: Option<f64>,
    /// Each medium.
    pub parts: Vec<PricePart>,
}

/// What one medium costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PricePart {
    /// Its name in the design.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What it costs, USD; `None` if its price is missing.
    pub usd: Option<f64>,
}
