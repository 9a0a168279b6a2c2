//! The text of the workload: `'iozone mode=random-write record=4KiB file=16MiB fill=50%'`, and making it for a device.

use super::{FatType, Iozone, IozoneConfig, Mode, Sync, record};
use crate::WorkloadError;
use crate::words::Words;
use nvlab_units::quantity::{self, exact_bytes};

/// The first word of the text.
pub const KIND: &str = "iozone";
const KEYS: [&str; 9] = ["mode", "record", "file", "fat", "cluster", "fill", "cache", "sync", "span"];
const SECTOR_BYTES: u64 = 512;
/// A cluster fits in one request; fatgen103 allows 32 KiB everywhere and 64 KiB on most systems.
const CLUSTER_BYTES_MAX: u64 = 32 << 10;
/// Requests are recorded in memory, so their number is limited.
const RECORDS_MAX: u64 = 1 << 22;

impl IozoneConfig {
    /// Reads a text such as `'iozone mode=rewrite record=512 file=4MiB sync=close'`.
    pub fn parse(whole: &str) -> Result<IozoneConfig, WorkloadError> {
        let words = Words::new(whole, &KEYS, &[])?;
        let default = IozoneConfig::default();
        let modes = Mode::ALL.map(|(name, _)| name).join(", ");
        let mode = match words.value("mode") {
            None => default.mode,
            Some(name) => match Mode::ALL.into_iter().find(|&(known, _)| known == name) {
                Some((_, mode)) => mode,
                None => return Err(words.wrong("mode", &modes)),
            },
        };
        let bytes = |key, default| Ok(words.quantity(key, quantity::bytes)?.unwrap_or(default));
        let record_bytes = bytes("record", default.record_bytes as u64)?;
        if record_bytes == 0 || record_bytes > 1 << 20 || !record_bytes.is_multiple_of(SECTOR_BYTES) {
            return Err(words.wrong("record", "a multiple of 512 B, at most 1 MiB"));
        }
        let file_bytes = bytes("file", default.file_bytes)?;
        let records = file_bytes / record_bytes;
        if !file_bytes.is_multiple_of(record_bytes)
            || !(1..=RECORDS_MAX).contains(&records)
            || file_bytes >> 32 > 0
        {
            return Err(
                words.wrong("file", "whole records, at least one, at most 4 Mi of them, less than 4 GiB")
            );
        }
        let cluster_bytes = bytes("cluster", default.cluster_bytes as u64)?;
        if !cluster_bytes.is_power_of_two() || !(SECTOR_BYTES..=CLUSTER_BYTES_MAX).contains(&cluster_bytes) {
            return Err(words.wrong("cluster", "a power of two from 512 B to 32 KiB"));
        }
        let fat = match words.value("fat") {
            None => None,
            Some("12") => Some(FatType::Fat12),
            Some("16") => Some(FatType::Fat16),
            Some("32") => Some(FatType::Fat32),
            Some(_) => return Err(words.wrong("fat", "12, 16 or 32")),
        };
        Ok(IozoneConfig {
            mode,
            record_bytes: record_bytes as u32,
            file_bytes,
            fat,
            cluster_bytes: cluster_bytes as u32,
            fill: words.quantity("fill", quantity::fraction)?.unwrap_or(default.fill),
            cache_bytes: bytes("cache", default.cache_bytes)?,
            sync: match words.value("sync") {
                None => default.sync,
                Some("record") => Sync::Record,
                Some("close") => Sync::Close,
                Some(_) => return Err(words.wrong("sync", "record or close")),
            },
            span: words.quantity("span", quantity::bytes)?,
        })
    }

    /// The workload on a device of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<Iozone, WorkloadError> {
        let refuse = |reason: String| Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason });
        let volume = self.span.unwrap_or(capacity) / SECTOR_BYTES * SECTOR_BYTES;
        if volume > capacity {
            let (volume, capacity) = (exact_bytes(volume), exact_bytes(capacity));
            return refuse(format!(
                "its volume of {volume} reaches past the device, which ends at {capacity}"
            ));
        }
        if self.file_bytes >= volume {
            let (file, volume) = (exact_bytes(self.file_bytes), exact_bytes(volume));
            return refuse(format!("a file of {file} does not fit into a volume of {volume}"));
        }
        match record::record(self, volume, seed) {
            Ok(iozone) => Ok(iozone),
            Err(error) => refuse(format!("the FAT file system refuses: {error}")),
        }
    }
}
