//! The counts of a memory window: faults, evictions, resident pages.

use nvlab_controller::envy::stats::EnvyStats;

/// What happened since the window was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowStats {
    /// Page faults that the kernel reported, of all kinds.
    pub faults: u64,
    /// Faults on absent pages: each loads one from the device.
    pub misses: u64,
    /// Faults by the first store to a clean page.
    pub first_stores: u64,
    /// Faults on resident pages that were only not mapped: after a restart, or by another process.
    pub minor: u64,
    /// Pages given up to make room, clean or dirty.
    pub evictions: u64,
    /// Pages stored to the device, by evictions and by `sync`.
    pub written_back: u64,
    /// Pages in memory now.
    pub resident_pages: u64,
    /// Resident pages that are newer than the device's copy.
    pub dirty_pages: u64,
    /// What the modelled controller counts.
    pub controller: EnvyStats,
}
