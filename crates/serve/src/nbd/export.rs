//! A device that a server offers.

use crate::served::Drive;
use std::sync::Arc;

/// A device and its name.
pub struct Export {
    /// The name; the first export is also the one without a name.
    pub name: String,
    /// The device.
    pub drive: Arc<Drive>,
}
