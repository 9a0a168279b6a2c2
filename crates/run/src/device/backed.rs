//! A page map whose protected write buffer outlives this process: its contents are kept in a [`Battery`], too.

use super::Wrapper;
use super::backing::{Backing, BuildError, PageMapOver, new_page_map};
use super::battery::Battery;
use nvlab_controller::page_map::{PageMapConfig, PageMapMedia, SlcCache};
use nvlab_controller::{Background, Controller, ControllerError, PageMap, Powered, RecoveryReport};
use nvlab_design::PageMapped;
use nvlab_medium::flash::Nand;
use nvlab_medium::{AnyStore, Store};
use nvlab_units::{Extent, Geometry, Lpa, Served, Time};

/// The name of the battery's medium.
const BATTERY: &str = "battery";

/// Media that keep bytes, in stores of any kind: whoever provides them, a device over them is compiled once.
pub type Media<'m> = dyn Backing<Store = AnyStore, PageMap = Backed<AnyStore>> + 'm;

/// The controller, and the battery of its buffer if that is protected.
pub struct Backed<S: Store> {
    map: PageMap<S>,
    battery: Option<Battery<S>>,
}

/// The battery of a protected buffer, if there is one.
fn battery<B: Backing<Store = AnyStore> + ?Sized>(
    media: &B,
    config: &PageMapConfig,
    geometry: &Geometry,
) -> Result<Option<Battery<AnyStore>>, BuildError> {
    let buffer = config.buffer.filter(|buffer| buffer.protected && media.outlives_the_program());
    let Some(buffer) = buffer else { return Ok(None) };
    let store = media.store(BATTERY, Battery::<AnyStore>::bytes(buffer.units, geometry))?;
    Ok(Some(Battery::new(store, buffer.units, geometry)))
}

impl PageMapOver<AnyStore> for Backed<AnyStore> {
    fn open<B: Backing<Store = AnyStore> + ?Sized>(
        media: &B,
        page: &PageMapped,
        seed: u64,
        nand: Nand<AnyStore>,
    ) -> Result<(Self, Time), BuildError> {
        let config = page.config(seed);
        let battery = battery(media, &config, nand.geometry())?;
        if !media.is_used() {
            return Ok((Backed { map: new_page_map(page, seed, nand)?, battery }, Time::ZERO));
        }
        let cache = page.cache.as_ref().map(|cache| cache.config);
        let mut found = PageMapMedia::new(nand);
        if let Some(battery) = &battery {
            battery.give(&mut found).map_err(|why| media.damaged(BATTERY, why))?;
        }
        let (backed, report) =
            Backed::recovered(config, cache, found, battery).map_err(BuildError::Recovery)?;
        Ok((backed, Time::ZERO + report.time))
    }
}

impl Backed<AnyStore> {
    /// A controller that was used without payload, over fresh media, at rest at `at`; returns also when it is ready.
    pub(crate) fn aged(media: &Media<'_>, map: PageMap, at: Time) -> Result<(Self, Time), BuildError> {
        let battery = battery(media, map.config(), map.nand().geometry())?;
        let store = media.array_store("nand", map.nand().geometry())?;
        let given = map.with_payload(store, at);
        let (map, ready) = given.map_err(|error| BuildError::Design(error.to_string()))?;
        Ok((Backed { map, battery }, ready))
    }
}

impl<S: Store> Backed<S> {
    /// A new controller, and the battery of its buffer.
    pub fn new(map: PageMap<S>, battery: Option<Battery<S>>) -> Backed<S> {
        Backed { map, battery }
    }

    /// Recovers a controller from media that were given what the battery holds ([`Battery::give`]).
    pub fn recovered(
        config: PageMapConfig,
        cache: Option<SlcCache>,
        media: PageMapMedia<S>,
        battery: Option<Battery<S>>,
    ) -> Result<(Backed<S>, RecoveryReport), String> {
        let (map, report) = PageMap::recover(config, cache, media, Time::ZERO)?;
        Backed { map, battery }.emptied(Time::ZERO, report)
    }

    /// Programs what the buffer held before the host is served, so that the battery need not hold it any more.
    fn emptied(
        mut self,
        at: Time,
        mut report: RecoveryReport,
    ) -> Result<(Backed<S>, RecoveryReport), String> {
        if let Some(battery) = &mut self.battery {
            let end = self.map.drain(at + report.time).map_err(|error| error.to_string())?;
            report.time = end.since(at);
            battery.clear();
        }
        Ok((self, report))
    }

    /// Keeps what was written from number `first` on in the battery.
    fn keep(&mut self, first: u64) {
        if let Some(battery) = &mut self.battery {
            self.map.held_since(first, |place, lpa, number, data| battery.keep(place, lpa, number, data));
        }
    }
}

impl<S: Store> Controller for Backed<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.map.capacity_units()
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(&self.map)
    }
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        self.map.read(at, extent, into)
    }
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        let first = self.map.sequence();
        let served = self.map.write(at, extent, data);
        self.keep(first);
        served
    }
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        self.map.read_in_pieces(at, extent, into, send)
    }
    fn write_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
        receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        let first = self.map.sequence();
        let served = self.map.write_in_pieces(at, extent, data, receive);
        self.keep(first);
        served
    }
    fn view(&self, extent: Extent) -> Option<&[u8]> {
        self.map.view(extent)
    }
    fn is_mapped(&self, lpa: Lpa) -> bool {
        self.map.is_mapped(lpa)
    }
    fn prefetch(&self, lpa: Lpa) {
        self.map.prefetch(lpa);
    }
    fn prefetch_writes(&self, lpas: impl Iterator<Item = Lpa>) {
        self.map.prefetch_writes(lpas);
    }
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        let before = self.map.sequence();
        let served = self.map.trim(at, extent);
        if let (Some(battery), true) = (&mut self.battery, self.map.sequence() > before) {
            battery.keep_trim(extent, before);
        }
        served
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.map.flush(at)
    }
}

impl<S: Store> Wrapper for Backed<S> {
    type Inner = PageMap<S>;
    fn inner(&self) -> &PageMap<S> {
        &self.map
    }
    fn inner_mut(&mut self) -> &mut PageMap<S> {
        &mut self.map
    }
}

impl<S: Store> Background for Backed<S> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.map.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.map.settle(upto);
    }
}

impl<S: Store> Powered for Backed<S> {
    fn power_cycle(self, at: Time) -> Result<(Self, RecoveryReport), String> {
        let (map, report) = self.map.power_cycle(at)?;
        Backed { map, battery: self.battery }.emptied(at, report)
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        let end = self.map.power_down(at)?;
        if let Some(battery) = &mut self.battery {
            battery.clear();
        }
        Ok(end)
    }
    fn trims_last(&self) -> bool {
        self.map.trims_last()
    }
}
