//! The configuration of a cache of lines: plain data, filled from a design.

use nvlab_medium::ram::{Backup, RamConfig};
use nvlab_units::Span;

/// A cache of lines in front of a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedConfig {
    /// Line size in bytes: a power of two, and a whole number of units of the controller below.
    pub line_bytes: u32,
    /// Lines of a set: at most 255.
    pub ways: u32,
    /// Sets: a power of two.
    pub sets: u32,
    /// Dirty lines above which lines are written back.
    pub dirty_lines_max: u32,
    /// Lines fetched ahead of a program that strides through memory; 0: none.
    pub prefetch_lines: u32,
    /// Maximum number of lines being written back to the controller below at the same time.
    pub write_backs: u32,
    /// Bytes per access of a processor.
    pub word_bytes: u32,
    /// The link and its protocol, for each access of a word: both directions and the transfer of the word.
    pub control: Span,
}

impl CachedConfig {
    /// Lines of the cache.
    pub fn frames(&self) -> u32 {
        self.sets.saturating_mul(self.ways)
    }

    /// Bytes of memory it needs: the lines, and a mark per line.
    pub fn ram_bytes(&self) -> u64 {
        self.frames() as u64 * (self.line_bytes as u64 + MARK_BYTES)
    }

    /// Checks that it works in this memory, in front of a device with units of this size; otherwise returns the
    /// reason.
    pub fn check(&self, ram: &RamConfig, unit_bytes: u32) -> Result<(), String> {
        ram.check()?;
        if !self.line_bytes.is_power_of_two() || !self.line_bytes.is_multiple_of(unit_bytes.max(1)) {
            return Err(format!(
                "a line of {} B: it must be a power of two and a whole number of units of {unit_bytes} B",
                self.line_bytes
            ));
        }
        if !self.sets.is_power_of_two() || self.ways == 0 || self.ways > 255 {
            return Err(format!(
                "{} sets of {} lines: the sets must be a power of two, the lines of a set from 1 to 255",
                self.sets, self.ways
            ));
        }
        if !self.word_bytes.is_power_of_two() || self.word_bytes > self.line_bytes {
            return Err(format!(
                "words of {} B: the word size must be a power of two that divides a line of {} B",
                self.word_bytes, self.line_bytes
            ));
        }
        if self.dirty_lines_max == 0 || self.write_backs == 0 {
            return Err("at least one dirty line and one write-back must be allowed".into());
        }
        if self.prefetch_lines >= self.sets {
            return Err(format!(
                "{} prefetched lines: must be fewer than the {} sets, or they evict each other",
                self.prefetch_lines, self.sets
            ));
        }
        let needed = self.ram_bytes();
        match needed <= ram.capacity_bytes {
            true => Ok(()),
            false => Err(format!("{} B of memory are too small for {needed} B of lines", ram.capacity_bytes)),
        }
    }
}

/// Bytes of the mark stored per line: 0, or the number of the dirty line in the frame plus 1.
pub(super) const MARK_BYTES: u64 = 4;

/// How long a memory, and the device below, can work after power has failed.
pub(super) fn hold(backup: Backup) -> Span {
    match backup {
        Backup::None => Span::ZERO,
        Backup::Battery { hold } => hold.unwrap_or(Span::from_ps(u64::MAX)),
        Backup::Capacitor { hold } => hold,
    }
}
