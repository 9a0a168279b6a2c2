//! A controller behind a link and a driver.

use crate::BlockDevice;
use nvlab_controller::{Background, Controller, ControllerError, Powered, RecoveryReport};
use nvlab_units::{Bus, Extent, Lpa, Rate, Served, Span, Time};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Link and front end between host and device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPath {
    /// Rate of the link towards the host; `None`: transfers take no time.
    pub rate: Option<Rate>,
    /// Rate of the link towards the device; `None`: transfers take no time.
    pub rate_write: Option<Rate>,
    /// True: one lane per direction; false: one for both.
    pub full_duplex: bool,
    /// Time the host's software and the link's protocol add to every request.
    pub overhead: Span,
    /// Time a request occupies the device's front end, which handles one request at a time.
    pub command: Span,
    /// The same of a write.
    pub command_write: Span,
}

/// A controller and the path between it and the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attached<C> {
    controller: C,
    path: HostPath,
    /// Not zero, so that divisions need no check: the compiler then omits what [`Controller::prefetch`] does not
    /// need.
    unit_bytes: NonZeroU64,
    /// log2 of the unit, if it is a power of two.
    shift: Option<u32>,
    up: Bus,
    down: Bus,
    /// When the front end can accept the next request.
    free_at: Time,
    unaligned_bytes: u64,
    scratch: Vec<u8>,
}

impl<C: Controller> Attached<C> {
    /// Puts a controller behind a path, idle at time 0.
    pub fn new(controller: C, path: HostPath) -> Attached<C> {
        let unit_bytes = NonZeroU64::new(controller.unit_bytes() as u64).expect("units of at least a byte");
        let shift = unit_bytes.is_power_of_two().then(|| unit_bytes.trailing_zeros());
        let (up, down, free_at) = (Bus::new(), Bus::new(), Time::ZERO);
        Attached {
            controller,
            path,
            unit_bytes,
            shift,
            up,
            down,
            free_at,
            unaligned_bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// The controller, to read its state and statistics.
    pub fn controller(&self) -> &C {
        &self.controller
    }
    /// The controller, to reset its statistics or cut its power.
    pub fn controller_mut(&mut self) -> &mut C {
        &mut self.controller
    }
    /// Gives up the path and returns the controller.
    pub fn into_controller(self) -> C {
        self.controller
    }
    /// Bytes written beyond those the host requested, because it wrote parts of units.
    pub fn unaligned_bytes(&self) -> u64 {
        self.unaligned_bytes
    }
    /// Resets the statistics of path and controller.
    pub fn reset_stats(&mut self) {
        self.unaligned_bytes = 0;
    }

    #[inline]
    fn units(&self, bytes: u64) -> u64 {
        match self.shift {
            Some(shift) => bytes >> shift,
            None => bytes / self.unit_bytes,
        }
    }

    #[inline]
    fn touched(&self, offset: u64, bytes: u32) -> Extent {
        let first = self.units(offset);
        extent(first, self.units(offset + bytes as u64 + self.unit_bytes.get() - 1))
    }

    /// The units of a range that is whole units; otherwise `None`.
    #[inline]
    fn whole(&self, offset: u64, bytes: u32) -> Option<Extent> {
        let unit = self.unit_bytes.get();
        let is_whole = match self.shift {
            Some(_) => (offset | bytes as u64) & (unit - 1) == 0,
            None => offset.is_multiple_of(unit) && (bytes as u64).is_multiple_of(unit),
        };
        let first = self.units(offset);
        is_whole.then(|| extent(first, first + self.units(bytes as u64)))
    }

    /// When the front end has accepted a request that was issued at `at` and occupies it for `command`.
    #[inline(always)]
    fn accept(&mut self, at: Time, command: Span) -> Time {
        let arrived = at + self.path.overhead;
        if command.is_zero() {
            return arrived;
        }
        self.free_at = arrived.max(self.free_at) + command;
        self.free_at
    }

    /// The controller and the link towards the host, as a function that sends bytes over it.
    #[inline(always)]
    fn sending(&mut self, now: Time) -> (&mut C, impl FnMut(Time, u64) -> Time) {
        let link = if self.path.full_duplex { &mut self.up } else { &mut self.down };
        let rate = self.path.rate;
        (&mut self.controller, move |at, bytes| cross(link, rate, (now, at), bytes))
    }

    /// The controller and the link towards the device, as a function that returns when the next bytes, sent from `at`
    /// on, have arrived.
    #[inline(always)]
    fn receiving(&mut self, now: Time, at: Time) -> (&mut C, impl FnMut(u64) -> Time) {
        let (link, rate) = (&mut self.down, self.path.rate_write);
        (&mut self.controller, move |bytes| cross(link, rate, (now, at), bytes))
    }

    /// Reads the units that a range covers only in part.
    #[cold]
    fn read_parts(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        let extent = self.touched(offset, bytes);
        if !C::KEEPS {
            return Ok(self.controller.read(at, extent, into)?.end);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(extent.count as usize * self.unit_bytes.get() as usize, 0);
        let served = self.controller.read(at, extent, &mut scratch);
        let lead = (offset - extent.start.0 as u64 * self.unit_bytes.get()) as usize;
        into[..bytes as usize].copy_from_slice(&scratch[lead..lead + bytes as usize]);
        self.scratch = scratch;
        Ok(served?.end)
    }

    /// Reads the units that a write covers only in part, merges and writes whole units.
    #[cold]
    fn write_parts(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let extent = self.touched(offset, bytes);
        let unit = self.unit_bytes.get() as usize;
        let keeps = !data.is_empty();
        let mut whole = std::mem::take(&mut self.scratch);
        whole.resize(if keeps { extent.count as usize * unit } else { 0 }, 0);
        let lead = (offset - extent.start.0 as u64 * self.unit_bytes.get()) as usize;
        let tail = !(lead + bytes as usize).is_multiple_of(unit);
        let mut ready = at;
        let last = extent.count - 1;
        for (partial, i) in [(lead > 0 || last == 0, 0), (tail && last > 0, last)] {
            if partial {
                let into = if keeps { &mut whole[i as usize * unit..][..unit] } else { &mut [][..] };
                let read = self.controller.read(at, Extent::one(extent.start + i), into)?;
                ready = ready.max(read.end);
            }
        }
        if keeps {
            whole[lead..lead + bytes as usize].copy_from_slice(data);
        }
        self.unaligned_bytes += extent.count as u64 * self.unit_bytes.get() - bytes as u64;
        let written = self.controller.write(ready, extent, &whole);
        self.scratch = whole;
        Ok(written?.end)
    }
}

/// When bytes that are ready at `at` have crossed a link; `now` is the time of the request.
#[inline(always)]
fn cross(link: &mut Bus, rate: Option<Rate>, (now, at): (Time, Time), bytes: u64) -> Time {
    rate.map_or(at, |rate| link.book(now, at, rate.transfer(bytes)).end)
}

/// The units from `first` to `end`; numbers beyond `u32` become an extent that is out of range on any device.
#[inline]
fn extent(first: u64, end: u64) -> Extent {
    if end > u32::MAX as u64 {
        return out_of_range(first, end);
    }
    Extent { start: Lpa(first as u32), count: (end - first) as u32 }
}

#[cold]
fn out_of_range(first: u64, end: u64) -> Extent {
    let numbered = |units: u64| units.min(u32::MAX as u64) as u32;
    Extent { start: Lpa(numbered(first)), count: numbered(end - first) }
}

impl<C: Controller> Background for Attached<C> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.controller.settle(upto);
    }
}

impl<C: Controller> Powered for Attached<C> {
    fn power_cycle(self, at: Time) -> Result<(Attached<C>, RecoveryReport), String> {
        let (controller, report) = self.controller.power_cycle(at)?;
        Ok((Attached::new(controller, self.path), report))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.power_down(at)
    }
    fn trims_last(&self) -> bool {
        self.controller.trims_last()
    }
}

impl<C: Controller> BlockDevice for Attached<C> {
    fn capacity_bytes(&self) -> u64 {
        self.controller.capacity_units() as u64 * self.unit_bytes.get()
    }

    // Always inlined: with many kinds of controllers the compiler stops inlining it on its own, which costs a read 15 %.
    #[inline(always)]
    fn read(
        &mut self,
        at: Time,
        offset: u64,
        bytes: u32,
        into: &mut [u8],
    ) -> Result<Served, ControllerError> {
        let start = self.accept(at, self.path.command);
        let Some(extent) = self.whole(offset, bytes) else {
            let end = self.read_parts(start, offset, bytes, into)?;
            return Ok(Served { start, end: self.sending(at).1(end, bytes as u64) });
        };
        let (controller, send) = self.sending(at);
        Ok(Served { start, end: controller.read_in_pieces(start, extent, into, send)?.end })
    }

    #[inline(always)]
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        let start = self.accept(at, self.path.command_write);
        let Some(extent) = self.whole(offset, bytes) else {
            let arrived = self.receiving(at, start).1(bytes as u64);
            return Ok(Served { start, end: self.write_parts(arrived, offset, bytes, data)? });
        };
        let (controller, receive) = self.receiving(at, start);
        Ok(Served { start, end: controller.write_in_pieces(start, extent, data, receive)?.end })
    }

    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError> {
        let start = self.accept(at, self.path.command);
        let first = self.units(offset + self.unit_bytes.get() - 1);
        let end = self.units(offset + bytes as u64);
        if first >= end {
            return Ok(Served { start, end: start });
        }
        Ok(Served { start, end: self.controller.trim(start, extent(first, end))?.end })
    }

    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        let start = self.accept(at, self.path.command);
        Ok(Served { start, end: self.controller.flush(start)?.end })
    }

    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.controller.view(self.whole(offset, bytes)?)
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.controller.prefetch(Lpa(self.units(offset) as u32));
    }

    #[inline]
    fn prefetch_writes(&self, offsets: impl Iterator<Item = u64>) {
        self.controller.prefetch_writes(offsets.map(|offset| Lpa(self.units(offset) as u32)));
    }
}
