//! A device with a hook in front of it: a test makes it panic there, or wait.

use nvlab_controller::ControllerError;
use nvlab_run::device::Observed;
use nvlab_serve::served::ServedDevice;
use nvlab_units::Time;

/// What is asked of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Read,
    Write,
    IsMapped,
}

/// The device, and what is called first, with the offset.
pub struct Hooked<F> {
    pub device: Box<dyn ServedDevice>,
    pub hook: F,
}

impl<F: Fn(What, u64) + Send> ServedDevice for Hooked<F> {
    fn read(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8]) -> Result<Time, ControllerError> {
        (self.hook)(What::Read, offset);
        self.device.read(at, offset, bytes, into)
    }
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError> {
        (self.hook)(What::Write, offset);
        self.device.write(at, offset, data)
    }
    fn is_mapped(&self, offset: u64) -> bool {
        (self.hook)(What::IsMapped, offset);
        self.device.is_mapped(offset)
    }
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }
    fn unit_bytes(&self) -> u32 {
        self.device.unit_bytes()
    }
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.device.view(offset, bytes)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError> {
        self.device.trim(at, offset, bytes)
    }
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.flush(at)
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
