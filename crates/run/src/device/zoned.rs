//! Zones over NAND, and their host, which has one write of a zone in flight.

use super::backing::{Backing, BuildError, nand};
use super::{
    ArrayInsides, Busy, Causes, Counters, Device, Fill, FlashInsides, Insides, Maps, Observed, RegionMap,
    Twin, Wrapper,
};
use nvlab_access::{Attached, BlockDevice};
use nvlab_controller::zoned::{ZoneMedia, ZoneStats};
use nvlab_controller::{Background, Controller, ControllerError, PageMap, Powered, RecoveryReport, ZoneMap};
use nvlab_design::{Design, Zoned};
use nvlab_medium::Store;
use nvlab_units::{Served, Span, Time};

/// Builds it, new from the factory or recovered; also returns when it is ready.
pub(super) fn build<B: Backing + ?Sized>(
    design: &Design,
    zoned: &Zoned,
    seed: u64,
    backing: &B,
) -> Result<(ZoneMap<B::Store>, Time), BuildError> {
    let nand = nand(backing, "nand", design.flash_config(seed), None)?;
    let config = zoned.config.clone();
    if backing.outlives_the_program() && config.buffer.is_some_and(|buffer| buffer.protected) {
        let why = "what its protected write buffer holds cannot be kept outside this program yet: set \
                   power.on_cut = \"lose-buffer\"";
        return Err(BuildError::Design(why.into()));
    }
    if backing.is_used() {
        let found = ZoneMap::recover(config, ZoneMedia::new(nand), Time::ZERO);
        let (map, report) = found.map_err(BuildError::Recovery)?;
        return Ok((map, Time::ZERO + report.time));
    }
    Ok((ZoneMap::new(config, nand).map_err(BuildError::Design)?, Time::ZERO))
}

fn causes(stats: &ZoneStats) -> Causes {
    Causes {
        host: stats.host_write_units,
        retire: stats.retire_units,
        map: stats.log_units,
        padding: stats.padding_units,
        ..Causes::default()
    }
}

impl<S: Store> Observed for ZoneMap<S> {
    fn counters(&self) -> Counters {
        let (causes, flash) = (causes(&self.stats()), self.nand().stats());
        Counters { host_units: causes.host, causes, erases: flash.erases, busy: Busy::of(&flash) }
    }
    fn reset_stats(&mut self) {
        ZoneMap::reset_stats(self);
    }
    /// Zones are always written in order.
    fn expect_scattered_fill(&mut self) {}
    fn zones(&self) -> Option<(u64, u64)> {
        let (config, unit) = (self.config(), Controller::unit_bytes(self) as u64);
        Some((config.size_units as u64 * unit, config.capacity_units as u64 * unit))
    }
    fn unit_bytes(&self) -> u32 {
        Controller::unit_bytes(self)
    }
    fn blocks(&self) -> u32 {
        self.nand().geometry().blocks()
    }
    fn maps(&self) -> Maps {
        Ok(vec![RegionMap::of_flash("data", &ArrayInsides::of_nand(self.nand()), self.regions())])
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        ZoneMap::buffered(self, at).map(|(used, room)| Fill { used, room, what: "pages" })
    }
    fn insides(&self, _span: Span) -> Insides<'_> {
        let stats = self.stats();
        Insides {
            retired_blocks: stats.retired_blocks,
            read_units: stats.host_read_units,
            unwritten_read_units: stats.unwritten_read_units,
            host_bytes: Some(stats.host_write_units * Observed::unit_bytes(self) as u64),
            memory_bytes: self.memory_bytes(),
            buffer_wait: stats.buffer_wait,
            flash: FlashInsides::of_nand(self.nand()),
            ..Insides::of(causes(&stats))
        }
    }
}

/// A device of zones as a host uses it: a write waits until the last one of its zone is done (the zone write lock of Linux), because
/// it must be at the write pointer when it arrives, unless writes are appended. A reset waits for the writes of its zone, and these for
/// the reset.
///
/// Waiting requests do not hold back those of other zones behind them.
pub(super) struct InTurn<C> {
    device: Attached<C>,
    /// Bytes of a zone.
    zone: u64,
    shift: Option<u32>,
    /// When the last write and the last reset of each zone end.
    written: Vec<Time>,
    reset: Vec<Time>,
    appends: bool,
}

impl<C: Controller + Observed + 'static> InTurn<C> {
    /// Panics if the device has no zones.
    pub fn new(device: Attached<C>) -> InTurn<C> {
        let (zone, _) = Observed::zones(&device).expect("a device of zones");
        let zones = (device.capacity_bytes() / zone) as usize;
        let shift = zone.is_power_of_two().then(|| zone.trailing_zeros());
        let idle = vec![Time::ZERO; zones];
        InTurn { device, zone, shift, written: idle.clone(), reset: idle, appends: false }
    }

    /// The zone of a byte; past the last one that, of which the device refuses the request.
    #[inline]
    fn zone_of(&self, offset: u64) -> usize {
        let zone = match self.shift {
            Some(shift) => offset >> shift,
            None => offset / self.zone,
        };
        (zone as usize).min(self.written.len() - 1)
    }
}

impl<C: Controller + Observed + 'static> BlockDevice for InTurn<C> {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }
    #[inline(always)]
    fn read(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        self.device.read(at, offset, bytes, into)
    }
    #[inline(always)]
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        let zone = self.zone_of(offset);
        let after = if self.appends { self.reset[zone] } else { self.written[zone].max(self.reset[zone]) };
        let served = self.device.write(at.max(after), offset, bytes, data)?;
        self.written[zone] = self.written[zone].max(served.end);
        Ok(served)
    }
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError> {
        let zones = self.zone_of(offset)..=self.zone_of((offset + bytes as u64).saturating_sub(1));
        let after = zones.clone().fold(at, |after, zone| after.max(self.written[zone]).max(self.reset[zone]));
        let served = self.device.trim(after, offset, bytes)?;
        zones.for_each(|zone| self.reset[zone] = self.reset[zone].max(served.end));
        Ok(served)
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.device.flush(at)
    }
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.device.view(offset, bytes)
    }
    #[inline]
    fn wants_payload(&self) -> bool {
        self.device.wants_payload()
    }
    #[inline]
    fn prefetch(&self, offset: u64) {
        self.device.prefetch(offset);
    }
    #[inline]
    fn prefetch_writes(&self, offsets: impl Iterator<Item = u64>) {
        self.device.prefetch_writes(offsets);
    }
}

impl<C: Controller + Observed + 'static> Background for InTurn<C> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.device.settle(upto);
    }
}

impl<C: Controller + Observed + 'static> Powered for InTurn<C> {
    fn power_cycle(self, at: Time) -> Result<(Self, RecoveryReport), String> {
        let (device, report) = self.device.power_cycle(at)?;
        Ok((InTurn { appends: self.appends, ..InTurn::new(device) }, report))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.power_down(at)
    }
    fn trims_last(&self) -> bool {
        self.device.trims_last()
    }
}

impl<C: Controller + Observed + 'static> Wrapper for InTurn<C> {
    type Inner = Attached<C>;
    fn inner(&self) -> &Attached<C> {
        &self.device
    }
    fn inner_mut(&mut self) -> &mut Attached<C> {
        &mut self.device
    }
    fn reset_stats(&mut self) {
        Wrapper::reset_stats(&mut self.device);
    }
    fn expect_appends(&mut self, appends: bool) {
        self.appends = appends;
    }
    fn unit_bytes(&self) -> u32 {
        Wrapper::unit_bytes(&self.device)
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        Wrapper::insides(&self.device, span)
    }
    fn maps(&self) -> Maps {
        Wrapper::maps(&self.device)
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        Wrapper::buffered(&mut self.device, at)
    }
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        Wrapper::page_map(&self.device)
    }
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        Wrapper::twin(&self.device, requests, flushes)
    }
}

impl<C: Controller + Observed + 'static> Device for InTurn<C> {
    const KEEPS: bool = C::KEEPS;

    fn is_mapped(&self, offset: u64) -> bool {
        Device::is_mapped(&self.device, offset)
    }
}
