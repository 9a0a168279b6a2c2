//! Flash that emulates a disk: sectors are written whole, each byte costs its program and its share of an erase.
//! Other costs of the emulation, and the bus, are not included (system 001 slide 25: the most favourable flash disk).
//!
//! The host keeps the sector at the tail of the log, so that only writes cost time; reads pass the array at its rate.

use super::clock::{Activity, Clock, power_failed};
use nvlab_medium::flash::NorConfig;
use nvlab_rvm::Store;
use nvlab_units::Span;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
struct Device {
    bytes: Mutex<Vec<u8>>,
    config: NorConfig,
    sector_bytes: u64,
    /// Steps of reads and programs.
    read: AtomicU64,
    programmed: AtomicU64,
    written: AtomicU64,
    clock: Clock,
}

/// A flash disk. Clones are the same device.
#[derive(Clone, Debug)]
pub struct FlashDisk(Arc<Device>);

impl FlashDisk {
    /// A disk of `bytes` on an array, all zero.
    pub fn new(config: NorConfig, sector_bytes: u32, bytes: u64, clock: Clock) -> FlashDisk {
        let sector_bytes = sector_bytes as u64;
        let bytes = vec![0; bytes.next_multiple_of(sector_bytes) as usize];
        FlashDisk(Arc::new(Device {
            bytes: Mutex::new(bytes),
            config,
            sector_bytes,
            read: AtomicU64::new(0),
            programmed: AtomicU64::new(0),
            written: AtomicU64::new(0),
            clock,
        }))
    }

    /// Bytes written, in whole sectors.
    pub fn written(&self) -> u64 {
        self.0.written.load(Relaxed)
    }

    /// Steps of the array that reads took, and writes.
    pub fn steps(&self) -> [u64; 2] {
        [&self.0.read, &self.0.programmed].map(|steps| steps.load(Relaxed))
    }

    /// The array.
    pub fn config(&self) -> &NorConfig {
        &self.0.config
    }

    /// Takes note of the steps of the array for whole rows of a gang, and returns their time.
    fn take(&self, steps: &AtomicU64, bytes: u64, step: Span) -> Span {
        let count = bytes.div_ceil(self.0.config.flash.geometry.page_bytes());
        steps.fetch_add(count, Relaxed);
        step * count
    }

    fn range(&self, offset: u64, bytes: usize) -> io::Result<std::ops::Range<usize>> {
        self.0.clock.check()?;
        let start = offset as usize;
        match start.checked_add(bytes) {
            Some(end) if end as u64 <= self.len()? => Ok(start..end),
            _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }
}

impl Store for FlashDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.bytes.lock().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let range = self.range(offset, into.len())?;
        let took = self.take(&self.0.read, into.len() as u64, self.0.config.flash.timing.read[0]);
        into.copy_from_slice(&self.0.bytes.lock().unwrap_or_else(PoisonError::into_inner)[range]);
        self.0.clock.spend(Activity::Read, took);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let range = self.range(offset, data.len())?;
        let (sector, flash) = (self.0.sector_bytes, &self.0.config.flash);
        let sectors = (range.end as u64).div_ceil(sector) - offset / sector;
        let bytes = if data.is_empty() { 0 } else { sectors * sector };
        let erase = flash.timing.erase.ps() as u128 * bytes as u128 / flash.geometry.block_bytes() as u128;
        let erase = Span::from_ps(u64::try_from(erase).unwrap_or(u64::MAX));
        self.0.clock.spend(Activity::Erase, erase);
        let end = self.0.clock.now() + self.take(&self.0.programmed, bytes, flash.timing.program);
        self.0.clock.until(Activity::Write, end).map_err(|_| power_failed())?;
        self.0.bytes.lock().unwrap_or_else(PoisonError::into_inner)[range].copy_from_slice(data);
        self.0.written.fetch_add(bytes, Relaxed);
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn sync(&self) -> io::Result<()> {
        self.0.clock.check()
    }
}
