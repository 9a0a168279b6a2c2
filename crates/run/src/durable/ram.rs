//! Battery-backed memory for logs. The part's times count, or none: system 001 switches the delays of its emulator
//! off (slide 26).

use super::clock::{Activity, Clock};
use nvlab_medium::ram::{Ram, RamConfig};
use nvlab_medium::{InPlace, MediumError, MemStore, PowerCut};
use nvlab_rvm::Store;
use nvlab_units::Time;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A memory.
#[derive(Debug)]
pub struct RamStore {
    ram: Mutex<Ram<MemStore>>,
    delays: bool,
    clock: Clock,
}

impl RamStore {
    /// `bytes` of a memory, all zero.
    pub fn new(config: RamConfig, bytes: u64, delays: bool, clock: Clock) -> RamStore {
        assert!(bytes <= config.capacity_bytes, "{bytes} B of a memory of {} B", config.capacity_bytes);
        let ram = Ram::new(RamConfig { capacity_bytes: bytes, ..config }, MemStore::new(bytes));
        RamStore { ram: Mutex::new(ram), delays, clock }
    }

    fn ram(&self) -> io::Result<MutexGuard<'_, Ram<MemStore>>> {
        self.clock.check()?;
        Ok(self.ram.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn took(&self, activity: Activity, end: Time) {
        if self.delays {
            self.clock.spend(activity, end.since(self.clock.now()));
        }
    }
}

fn failed(error: MediumError) -> io::Error {
    io::Error::other(error.to_string())
}

impl Store for RamStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.ram()?.capacity())
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let served = self.ram()?.read(self.clock.now(), offset, into.len() as u64, into).map_err(failed)?;
        self.took(Activity::Read, served.end);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut ram = self.ram()?;
        let served = ram.write(self.clock.now(), offset, data.len() as u64, data).map_err(failed)?;
        ram.settle(served.end);
        self.took(Activity::Write, served.end);
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn sync(&self) -> io::Result<()> {
        self.clock.check()
    }
}
