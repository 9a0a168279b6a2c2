//! What a window counts.

use nvlab_controller::envy::stats::EnvyStats;

/// Counts since the window was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowStats {
    /// Page faults read from the kernel.
    pub faults: u64,
    /// Pages loaded from the device.
    pub misses: u64,
    /// Stores to clean pages.
    pub first_stores: u64,
    /// Faults on resident pages that were only not mapped: after a restart, or by another process.
    pub minor: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Pages stored to the device, by evictions and by `sync`.
    pub written_back: u64,
    /// Pages resident now.
    pub resident_pages: u64,
    /// Of these, pages newer than the device's.
    pub dirty_pages: u64,
    /// The controller's counts.
    pub controller: EnvyStats,
}
