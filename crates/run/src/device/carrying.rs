//! A device under a workload that may carry no bytes, whether its media keep any or not.

use super::{Counters, Device, Fill, Insides, Maps, Observed, Twin};
use nvlab_access::{Attached, BlockDevice};
use nvlab_controller::{Background, ControllerError, PageMap, Powered, RecoveryReport};
use nvlab_units::{Lpa, Served, Span, Time};

/// A device whose media may store bytes: if they do and the workload carries none, zeros are written and what is read is
/// dropped. If they keep none, calls go straight to the device.
pub struct Carrying<D> {
    device: D,
    zeros: Vec<u8>,
    left: Vec<u8>,
}

impl<D: Device> Carrying<D> {
    /// Wraps a device.
    pub fn new(device: D) -> Carrying<D> {
        Carrying { device, zeros: Vec::new(), left: Vec::new() }
    }
    /// The device.
    pub fn into_inner(self) -> D {
        self.device
    }
}

impl<D: Device> BlockDevice for Carrying<D> {
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
        if !D::KEEPS || !into.is_empty() {
            return self.device.read(at, offset, bytes, into);
        }
        self.left.resize(bytes as usize, 0);
        self.device.read(at, offset, bytes, &mut self.left)
    }
    #[inline(always)]
    fn write(&mut self, at: Time, offset: u64, bytes: u32, data: &[u8]) -> Result<Served, ControllerError> {
        if !D::KEEPS {
            return self.device.write(at, offset, bytes, data);
        }
        // A cut comes after all requests: what is done by now need not be undone.
        self.device.settle(at);
        if !data.is_empty() {
            return self.device.write(at, offset, bytes, data);
        }
        self.zeros.resize(self.zeros.len().max(bytes as usize), 0);
        self.device.write(at, offset, bytes, &self.zeros[..bytes as usize])
    }
    #[inline]
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Served, ControllerError> {
        self.device.trim(at, offset, bytes)
    }
    #[inline]
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.device.flush(at)
    }
    fn view(&self, offset: u64, bytes: u32) -> Option<&[u8]> {
        self.device.view(offset, bytes)
    }
    #[inline]
    fn wants_payload(&self) -> bool {
        D::KEEPS
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

impl<D: Device> Background for Carrying<D> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.device.settle(upto);
    }
}

impl<D: Device> Powered for Carrying<D> {
    fn power_cycle(self, at: Time) -> Result<(Self, RecoveryReport), String> {
        let (device, report) = self.device.power_cycle(at)?;
        Ok((Carrying::new(device), report))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.power_down(at)
    }
    fn trims_last(&self) -> bool {
        self.device.trims_last()
    }
}

impl<D: Device> Observed for Carrying<D> {
    fn counters(&self) -> Counters {
        self.device.counters()
    }
    fn reset_stats(&mut self) {
        self.device.reset_stats();
    }
    fn expect_scattered_fill(&mut self) {
        self.device.expect_scattered_fill();
    }
    fn unit_bytes(&self) -> u32 {
        self.device.unit_bytes()
    }
    fn blocks(&self) -> u32 {
        self.device.blocks()
    }
    fn insides(&self, span: Span) -> Insides<'_> {
        self.device.insides(span)
    }
    fn maps(&self) -> Maps {
        self.device.maps()
    }
    fn buffered(&mut self, at: Time) -> Option<Fill> {
        self.device.buffered(at)
    }
    fn is_log_full(&self) -> Option<bool> {
        self.device.is_log_full()
    }
    fn rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.device.rest(at)
    }
    fn page_map(&self) -> Option<&Attached<PageMap>> {
        self.device.page_map()
    }
    fn twin(&self, requests: &[u32], flushes: bool) -> Option<Twin> {
        self.device.twin(requests, flushes)
    }
    fn split(&mut self, twin: &Twin, member: &mut dyn FnMut(Lpa, u32) -> Option<Lpa>) -> bool {
        self.device.split(twin, member)
    }
}

impl<D: Device> Device for Carrying<D> {
    const KEEPS: bool = D::KEEPS;

    fn is_mapped(&self, offset: u64) -> bool {
        self.device.is_mapped(offset)
    }
}
