//! A device as a namespace, and its health.

use crate::served::{Counts, Drive, DriveError};
use nvlab_units::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a logical block. A device whose unit is larger says so as its preferred granularity; file systems made on the
/// same device over NBD can be mounted.
pub const BLOCK_BYTES: u32 = 512;

/// A device as a namespace.
pub struct Namespace {
    pub drive: Arc<Drive>,
    pub blocks: u64,
    /// Blocks that are best read and written together, starting at a multiple of that.
    pub unit_blocks: u16,
    pub uuid: [u8; 16],
    media_errors: AtomicU64,
    /// A write failed because the device is worn out.
    worn_out: AtomicBool,
}

/// What the health log tells of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Bits: 0 spare, 2 reliability, 3 read-only.
    pub warnings: u8,
    pub spare_percent: u8,
    /// Of the erases that the part is rated for, in percent; may exceed 100.
    pub used_percent: u8,
    pub read_bytes: u128,
    pub written_bytes: u128,
    pub reads: u128,
    pub writes: u128,
    pub power_cycles: u128,
    pub on_seconds: u64,
    pub unsafe_shutdowns: u128,
    pub media_errors: u128,
}

impl Namespace {
    /// The device with this number, from 1, in a subsystem.
    pub fn new(drive: Arc<Drive>, number: u32, nqn: &str) -> Namespace {
        let blocks = drive.capacity_bytes() / BLOCK_BYTES as u64;
        let unit_blocks = (drive.unit_bytes() / BLOCK_BYTES).clamp(1, u16::MAX as u32) as u16;
        let mut rng = Rng::stream(number as u64, nqn);
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&rng.bits().to_le_bytes());
        uuid[8..].copy_from_slice(&rng.bits().to_le_bytes());
        // Version 8: made in a way of its own; the variant of RFC 9562.
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        let (media_errors, worn_out) = Default::default();
        Namespace { drive, blocks, unit_blocks, uuid, media_errors, worn_out }
    }

    /// Counts an error of the device.
    pub fn count_error(&self, error: &DriveError) {
        match error {
            DriveError::Device(_) => {
                self.media_errors.fetch_add(1, Ordering::Relaxed);
            }
            DriveError::NoRoom(_) => self.worn_out.store(true, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Its health now.
    pub fn health(&self) -> Health {
        let counts = self.drive.counts();
        let Counts { wear, lost, .. } = &counts;
        let lived = self.drive.lived();
        let used =
            wear.filter(|wear| wear.rated > 0).map_or(0.0, |wear| 100.0 * wear.mean / wear.rated as f64);
        let read_only = lost.is_some() || self.worn_out.load(Ordering::Relaxed);
        let unreliable = read_only || used >= 100.0;
        Health {
            warnings: u8::from(read_only) | u8::from(unreliable) << 2 | u8::from(read_only) << 3,
            // The blocks that are left are not counted: a write fails when there are none.
            spare_percent: if read_only { 0 } else { 100 },
            // 255 stands for everything above.
            used_percent: used.min(255.0) as u8,
            read_bytes: lived.read_bytes as u128,
            written_bytes: lived.written_bytes as u128,
            reads: lived.reads as u128,
            writes: lived.writes as u128,
            power_cycles: lived.power_cycles as u128,
            on_seconds: lived.on_seconds,
            unsafe_shutdowns: lived.unsafe_shutdowns as u128,
            media_errors: self.media_errors.load(Ordering::Relaxed) as u128,
        }
    }
}

impl Health {
    /// Of a subsystem: the worst of each and the sum of counts.
    pub fn and(self, other: Health) -> Health {
        Health {
            warnings: self.warnings | other.warnings,
            spare_percent: self.spare_percent.min(other.spare_percent),
            used_percent: self.used_percent.max(other.used_percent),
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            power_cycles: self.power_cycles.max(other.power_cycles),
            on_seconds: self.on_seconds.max(other.on_seconds),
            unsafe_shutdowns: self.unsafe_shutdowns.max(other.unsafe_shutdowns),
            media_errors: self.media_errors + other.media_errors,
        }
    }
}
