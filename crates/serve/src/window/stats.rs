//! What a window counts.

use nvlab_controller::envy::stats::EnvyStats;

/// Counts since the window was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowStats {
    /// Userfaultfd taken from the kernel.
    pub faults: u64,
    /// Pages brought from the device.
    pub misses: u64,
    /// Stores to clean pages.
    pub first_stores: u64,
    /// Pages that were resident and only not mapped: after a restart, or by another process.
    pub minor: u64,
    /// Pages that left.
    pub evictions: u64,
    /// Pages stored to the device, by evictions and by `sync`.
    pub written_back: u64,
    /// Pages resident now.
    pub resident_pages: u64,
    /// Of these, pages newer than the device's.
    pub dirty_pages: u64,
    /// What the controller did.
    pub controller: EnvyStats,
}
