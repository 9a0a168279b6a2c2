//! A device that a server offers.

use crate::served::Drive;
use std::sync::Arc;

/// A device under the name that clients ask for.
pub struct Export {
    /// The name; the first export is also the one without a name.
    pub name: String,
    /// Shared with the other front ends of the device.
    pub drive: Arc<Drive>,
}
