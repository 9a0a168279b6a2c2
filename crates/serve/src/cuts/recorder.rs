//! A device that records what changes it.

use super::SharedJournal;
use super::journal::Kind;
use crate::served::Served;
use nvlab_controller::ControllerError;
use nvlab_lab::run::device::Observed;
use nvlab_units::Time;

/// The device under it, as it is.
pub(crate) struct Recorder {
    device: Box<dyn Served>,
    journal: SharedJournal,
}

impl Recorder {
    pub(crate) fn new(device: Box<dyn Served>, journal: SharedJournal) -> Recorder {
        Recorder { device, journal }
    }
}

impl Served for Recorder {
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
