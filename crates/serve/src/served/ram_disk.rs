//! An eNVy memory as a RAM disk, with payload.

use super::Served;
use super::state::{DeviceState, Start};
use crate::WindowError;
use crate::mapped_store::MappedStore;
use nvlab_access::{BlockDevice, RamDisk};
use nvlab_controller::envy::recover::{Media, erase_counts};
use nvlab_controller::envy::{Envy, EnvyConfig};
use nvlab_controller::{Controller, ControllerError};
use nvlab_lab::design::{self, Design};
use nvlab_lab::run::device::Observed;
use nvlab_medium::PowerCut;
use nvlab_medium::flash::Nor;
use nvlab_medium::ram::Ram;
use nvlab_units::{Span, Time};

type Device = RamDisk<Envy<MappedStore>>;

/// The disk, and how to find it again.
struct EnvyDisk {
    /// `None` while the power is off.
    device: Option<Device>,
    config: EnvyConfig,
    overhead: Span,
}

/// Builds it, or finds it again.
pub(super) fn open(
    design: &Design,
    envy: &design::Envy,
    state: &DeviceState,
    seed: u64,
) -> Result<(Box<dyn Served>, Time), WindowError> {
    let config = envy.config(design);
    let (nor, sram) = (envy.nor_config(design, seed), envy.ram_config(design, seed));
    let geometry = nor.flash.geometry;
    let nor_store = state.medium("nor", Nor::<MappedStore>::store_bytes(&geometry))?;
    let sram = Ram::new(sram.clone(), state.medium("sram", sram.capacity_bytes)?);
    let overhead = design.path.overhead_host;
    let mut disk = EnvyDisk { device: None, config: config.clone(), overhead };
    let mut ready = Time::ZERO;
    if state.start() == Start::Fresh {
        let memory = Envy::new(config, Nor::new(nor, nor_store), sram).map_err(WindowError::Options)?;
        disk.device = Some(RamDisk::new(memory, overhead));
    } else {
        let erases = erase_counts(&config, &geometry, &sram).map_err(WindowError::Recovery)?;
        let media = Media { nor: Nor::reopen(nor, nor_store, &erases), sram };
        ready = disk.recover(media, Time::ZERO).map_err(WindowError::Recovery)?;
    }
    Ok((Box::new(disk), ready))
}

impl EnvyDisk {
    fn device(&mut self) -> &mut Device {
        self.device.as_mut().expect("a device with power")
    }

    fn with_power(&self) -> &Device {
        self.device.as_ref().expect("a device with power")
    }

    fn recover(&mut self, media: Media<MappedStore>, at: Time) -> Result<Time, String> {
        let (mut memory, report) = Envy::recover(self.config.clone(), media, at)?;
        let ready = at + report.time;
        memory.settle(ready);
        self.device = Some(RamDisk::new(memory, self.overhead));
        Ok(ready)
    }
}

impl Served for EnvyDisk {
    fn capacity_bytes(&self) -> u64 {
        self.with_power().capacity_bytes()
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self.with_power().window())
    }
    fn read(&mut self, at: Time, offset: u64, into: &mut [u8]) -> Result<Time, ControllerError> {
        self.device().read(at, offset, into.len() as u32, into).map(|served| served.end)
    }
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError> {
        self.device().write(at, offset, data.len() as u32, data).map(|served| served.end)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError> {
        self.device().trim(at, offset, bytes).map(|served| served.end)
    }
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device().flush(at).map(|served| served.end)
    }
    fn is_mapped(&self, offset: u64) -> bool {
        let memory = self.with_power().window();
        memory.is_mapped((offset / Controller::unit_bytes(memory) as u64) as u32)
    }
    fn trims_last(&self) -> bool {
        true
    }
    fn settle(&mut self, upto: Time) {
        self.device().window_mut().settle(upto);
    }
    fn power_cycle(&mut self, at: Time) -> Result<Time, String> {
        let mut media = self.device.take().expect("a device with power").into_window().into_media();
        media.cut(at);
        self.recover(media, at)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let end = self.device().window_mut().idle_at(at);
        self.settle(end);
        Ok(end)
    }
    fn observed(&self) -> &dyn Observed {
        self.with_power()
    }
    fn observed_mut(&mut self) -> &mut dyn Observed {
        self.device()
    }
}
