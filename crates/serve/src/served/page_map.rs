//! A page map over NAND, behind its link, with payload.

use super::Served;
use super::battery::Battery;
use super::state::{DeviceState, Start};
use crate::WindowError;
use crate::mapped_store::MappedStore;
use nvlab_access::{Attached, BlockDevice, HostPath};
use nvlab_controller::page_map::{Media, PageMapConfig};
use nvlab_controller::{ControllerError, PageMap};
use nvlab_lab::design::{Design, PageMapped};
use nvlab_lab::run::device::Observed;
use nvlab_medium::flash::Nand;
use nvlab_units::{Extent, Time};

type Device = Attached<PageMap<MappedStore>>;

/// The device, and how to find it again.
struct PageMapDevice {
    /// `None` while the power is off.
    device: Option<Device>,
    config: PageMapConfig,
    page: PageMapped,
    path: HostPath,
    unit_bytes: u64,
    /// Of a protected write buffer.
    battery: Option<Battery>,
}

/// Builds it, or finds it again.
pub(super) fn open(
    design: &Design,
    page: &PageMapped,
    state: &DeviceState,
    seed: u64,
) -> Result<(Box<dyn Served>, Time), WindowError> {
    let (config, flash) = (page.config(seed), design.flash_config(seed));
    let geometry = flash.geometry;
    let path = nvlab_lab::run::device::link(design);
    let store = state.medium("nand", Nand::<MappedStore>::store_bytes(&geometry))?;
    let protected = config.buffer.filter(|buffer| buffer.protected);
    let battery = protected.map(|buffer| {
        let (unit, per_page) = (geometry.unit_bytes, geometry.units_per_page);
        let store = state.medium("battery", Battery::bytes(buffer.units, unit, per_page))?;
        Ok::<_, WindowError>(Battery::new(store, buffer.units, unit, per_page))
    });
    let mut served = PageMapDevice {
        device: None,
        path,
        unit_bytes: geometry.unit_bytes as u64,
        battery: battery.transpose()?,
        config: config.clone(),
        page: page.clone(),
    };
    let mut ready = Time::ZERO;
    if state.start() == Start::Fresh {
        let nand = match page.slc_mode() {
            Some(mode) => Nand::new(flash, store).with_slc_mode(mode),
            None => Nand::new(flash, store),
        };
        let map = PageMap::new(config, nand).and_then(|map| page.with_cache(map));
        let map = map.map_err(WindowError::Options)?;
        served.device = Some(Attached::new(map, path));
    } else {
        let mut media = Media::new(Nand::reopen(flash, store, page.slc_mode()));
        if let Some(battery) = &served.battery {
            battery.give(&mut media);
        }
        ready = served.recover(media, Time::ZERO).map_err(WindowError::Recovery)?;
    }
    Ok((Box::new(served), ready))
}

impl PageMapDevice {
    fn device(&mut self) -> &mut Device {
        self.device.as_mut().expect("a device with power")
    }

    fn with_power(&self) -> &Device {
        self.device.as_ref().expect("a device with power")
    }

    /// Finds everything again. What a protected buffer held is programmed before the host is served, so that the
    /// battery need not hold it any more.
    fn recover(&mut self, media: Media<MappedStore>, at: Time) -> Result<Time, String> {
        let (map, report) = PageMap::recover(self.config.clone(), media, at)?;
        let mut map = self.page.with_cache(map)?;
        let mut ready = at + report.time;
        if let Some(battery) = &mut self.battery {
            ready = map.power_down(ready).map_err(|error| error.to_string())?;
            battery.clear();
        }
        map.settle(ready);
        self.device = Some(Attached::new(map, self.path));
        Ok(ready)
    }

    /// The battery keeps the units a write touched; the first was number `first`.
    fn keep(&mut self, offset: u64, bytes: u64, first: u64) {
        let Some(battery) = &mut self.battery else { return };
        let map = self.device.as_ref().expect("a device with power").controller();
        let start = offset / self.unit_bytes;
        let end = (offset + bytes).div_ceil(self.unit_bytes);
        // A write that failed wrote the first of them.
        for (lpa, sequence) in (start as u32..end as u32).zip(first..map.sequence()) {
            battery.keep(lpa, sequence, |into| {
                // What was programmed meanwhile and cannot be read is lost with or without a battery.
                if let Err(error) = map.peek(lpa, into) {
                    eprintln!("nvlab: unit {lpa} was written and cannot be read: {error}");
                }
            });
        }
    }
}

impl Served for PageMapDevice {
    fn capacity_bytes(&self) -> u64 {
        self.with_power().capacity_bytes()
    }
    fn unit_bytes(&self) -> u32 {
        self.unit_bytes as u32
    }
    fn read(&mut self, at: Time, offset: u64, into: &mut [u8]) -> Result<Time, ControllerError> {
        self.device().read(at, offset, into.len() as u32, into).map(|served| served.end)
    }
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError> {
        let first = self.with_power().controller().sequence();
        let served = self.device().write(at, offset, data.len() as u32, data);
        self.keep(offset, data.len() as u64, first);
        served.map(|served| served.end)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError> {
        let before = self.with_power().controller().sequence();
        let served = self.device().trim(at, offset, bytes);
        let after = self.with_power().controller().sequence();
        let (start, end) = (offset.div_ceil(self.unit_bytes), (offset + bytes as u64) / self.unit_bytes);
        if let (Some(battery), true) = (&mut self.battery, after > before) {
            battery.keep_trim(Extent { start: start as u32, count: (end - start) as u32 }, before);
        }
        served.map(|served| served.end)
    }
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device().flush(at).map(|served| served.end)
    }
    fn is_mapped(&self, offset: u64) -> bool {
        self.with_power().controller().is_mapped((offset / self.unit_bytes) as u32)
    }
    fn trims_last(&self) -> bool {
        self.config.trim && self.config.checkpoint_units.is_some()
    }
    fn settle(&mut self, upto: Time) {
        self.device().controller_mut().settle(upto);
    }
    fn power_cycle(&mut self, at: Time) -> Result<Time, String> {
        let map = self.device.take().expect("a device with power").into_controller();
        self.recover(map.power_cut(at), at)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let map = self.device().controller_mut();
        let end = map.power_down(at)?;
        let end = map.idle_at(end);
        map.settle(end);
        if let Some(battery) = &mut self.battery {
            battery.clear();
        }
        Ok(end)
    }
    fn observed(&self) -> &dyn Observed {
        self.with_power()
    }
    fn observed_mut(&mut self) -> &mut dyn Observed {
        self.device()
    }
}
