//! A device of any kind as the serving edge needs it: over its media, with a plug, behind one dynamic call per request.

use super::backed::Backed;
use super::{BuildError, Carrying, Device, Media, Observed, Visit, build, link};
use crate::aged::{self, AgeError};
use crate::drive::DriveError;
use crate::preparation::Preparation;
use crate::result::Precondition;
use crate::run_plan::OnProgress;
use nvlab_access::Attached;
use nvlab_controller::{ControllerError, PageMap};
use nvlab_design::Design;
use nvlab_units::Time;

/// A block device with payload, as the serving edge needs it.
///
/// Offsets and lengths were checked against the capacity; they need not be aligned. An operation returns the time at
/// which it ends. After an error of [`ServedDevice::power_cycle`] the device is lost: nothing may be called any more.
pub trait ServedDevice: Send {
    /// Bytes.
    fn capacity_bytes(&self) -> u64;
    /// Bytes that are best read and written together.
    fn unit_bytes(&self) -> u32;
    /// Reads bytes; `into` may be empty if [`ServedDevice::view`] shows them.
    fn read(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8]) -> Result<Time, ControllerError>;
    /// The bytes in place, without a copy ([`nvlab_access::BlockDevice::view`]).
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]>;
    /// Writes bytes.
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError>;
    /// Discards the whole units inside a range.
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError>;
    /// Everything written before is durable at the end.
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// True if the unit with this byte holds something; otherwise it reads as zero.
    fn is_mapped(&self, offset: u64) -> bool;
    /// True if trimmed and flushed units read as zero for ever; otherwise trim is a hint.
    fn trims_last(&self) -> bool;
    /// No power cut will come before `upto`: undo records of operations finished by then may be dropped.
    fn settle(&mut self, upto: Time);
    /// The power fails at `at` and comes back. Returns when the controller has recovered.
    fn power_cycle(&mut self, at: Time) -> Result<Time, String>;
    /// Prepares for power-off in good order.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// Its state and counts.
    fn observed(&self) -> &dyn Observed;
    /// The same, mutable, to reset counts.
    fn observed_mut(&mut self) -> &mut dyn Observed;
}

/// A device, and when it is ready.
pub struct Built {
    /// The device.
    pub device: Box<dyn ServedDevice>,
    /// When its host may use it.
    pub ready: Time,
    /// How it was prepared, if it was.
    pub prepared: Option<Precondition>,
}

impl Built {
    fn new(mut device: impl Device + Send + 'static, ready: Time) -> Built {
        device.settle(ready);
        Built { device: Box::new(Plugged(Some(device))), ready, prepared: None }
    }
}

/// Builds the device of a design over its media: new, or recovered from them. A new one is brought to a state by writing to it, if
/// one is named.
pub fn over(
    design: &Design,
    seed: u64,
    media: &Media<'_>,
    aging: Option<(Preparation, OnProgress<'_>)>,
) -> Result<Built, AgeError> {
    build(design, seed, media, Plug { design, aging })?
}

/// The device of a page map that was used without payload ([`aged::page_map`]), over fresh media and at rest at `at`.
pub fn over_aged(design: &Design, media: &Media<'_>, map: PageMap, at: Time) -> Result<Built, BuildError> {
    let (map, ready) = Backed::aged(media, map, at)?;
    Ok(Built::new(Attached::new(map, link(design)), ready))
}

/// Puts a device behind its plug.
struct Plug<'d, 'a> {
    design: &'d Design,
    aging: Option<(Preparation, OnProgress<'a>)>,
}

impl Visit for Plug<'_, '_> {
    type Output = Result<Built, AgeError>;
    fn visit<D: Device + Send + 'static>(self, device: D, ready: Time) -> Self::Output {
        let Some((preparation, on_progress)) = self.aging else { return Ok(Built::new(device, ready)) };
        let mut device = Carrying::new(device);
        let (report, ready) = aged::prepare(&mut device, self.design, &preparation, on_progress)?;
        let mut device = device.into_inner();
        let down = device.power_down(ready);
        let down = down.map_err(|source| DriveError::Unfinished { at: ready, source })?;
        Ok(Built { prepared: Some(report), ..Built::new(device, down) })
    }
}

/// A device; `None` while its power is off.
struct Plugged<D>(Option<D>);

impl<D> Plugged<D> {
    fn device(&self) -> &D {
        self.0.as_ref().expect("a device with power")
    }
    fn device_mut(&mut self) -> &mut D {
        self.0.as_mut().expect("a device with power")
    }
}

impl<D: Device + Send> ServedDevice for Plugged<D> {
    fn capacity_bytes(&self) -> u64 {
        self.device().capacity_bytes()
    }
    fn unit_bytes(&self) -> u32 {
        self.device().unit_bytes()
    }
    fn read(&mut self, at: Time, offset: u64, bytes: u32, into: &mut [u8]) -> Result<Time, ControllerError> {
        self.device_mut().read(at, offset, bytes, into).map(|served| served.end)
    }
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.device().view(offset, bytes)
    }
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError> {
        self.device_mut().write(at, offset, data.len() as u32, data).map(|served| served.end)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError> {
        self.device_mut().trim(at, offset, bytes).map(|served| served.end)
    }
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device_mut().flush(at).map(|served| served.end)
    }
    fn is_mapped(&self, offset: u64) -> bool {
        self.device().is_mapped(offset)
    }
    fn trims_last(&self) -> bool {
        self.device().trims_last()
    }
    fn settle(&mut self, upto: Time) {
        self.device_mut().settle(upto);
    }
    fn power_cycle(&mut self, at: Time) -> Result<Time, String> {
        let device = self.0.take().expect("a device with power");
        let (mut device, mounted) = device.power_cycle(at)?;
        let ready = at + mounted.time;
        device.settle(ready);
        self.0 = Some(device);
        Ok(ready)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let end = self.device_mut().power_down(at)?;
        self.settle(end);
        Ok(end)
    }
    fn observed(&self) -> &dyn Observed {
        self.device()
    }
    fn observed_mut(&mut self) -> &mut dyn Observed {
        self.device_mut()
    }
}
