//! A device that records the operations that change it.

use super::journal::{Journal, Kind};
use crate::served::{Drive, ServedDevice};
use nvlab_controller::ControllerError;
use nvlab_run::device::Observed;
use nvlab_units::Time;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recording that is shared: a device writes it while others look at it.
#[derive(Clone, Debug, Default)]
pub struct SharedJournal(Arc<Mutex<Journal>>);

impl SharedJournal {
    /// Has everything recorded that changes a device, which must not have been used yet.
    pub fn record(&self, drive: Drive) -> Drive {
        drive.wrapped(|device| Box::new(Recorder { device, journal: self.clone() }))
    }

    /// The recording so far; operations wait as long as it is held.
    pub fn lock(&self) -> MutexGuard<'_, Journal> {
        // Every change to it is one push: it is consistent after a panic, too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the recording; later operations begin another.
    pub fn take(&self) -> Journal {
        std::mem::take(&mut *self.lock())
    }
}

struct Recorder {
    device: Box<dyn ServedDevice>,
    journal: SharedJournal,
}

impl ServedDevice for Recorder {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }
    fn unit_bytes(&self) -> u32 {
        self.device.unit_bytes()
    }
    fn read(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8]) -> Result<Time, ControllerError> {
        self.device.read(at, offset, bytes, into)
    }
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.device.view(offset, bytes)
    }
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError> {
        let end = self.device.write(at, offset, data)?;
        self.journal.lock().push(Kind::Write, at, offset, data.len() as u32, data);
        Ok(end)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError> {
        let end = self.device.trim(at, offset, bytes)?;
        self.journal.lock().push(Kind::Trim, at, offset, bytes, &[]);
        Ok(end)
    }
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError> {
        let end = self.device.flush(at)?;
        self.journal.lock().push(Kind::Flush, at, 0, 0, &[]);
        Ok(end)
    }
    fn is_mapped(&self, offset: u64) -> bool {
        self.device.is_mapped(offset)
    }
    fn trims_last(&self) -> bool {
        self.device.trims_last()
    }
    fn settle(&mut self, upto: Time) {
        self.device.settle(upto);
    }
    fn power_cycle(&mut self, at: Time) -> Result<Time, String> {
        self.device.power_cycle(at)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.power_down(at)
    }
    fn observed(&self) -> &dyn Observed {
        self.device.observed()
    }
    fn observed_mut(&mut self) -> &mut dyn Observed {
        self.device.observed_mut()
    }
}
