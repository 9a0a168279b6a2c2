//! One in-place memory shared by a controller and a driver in front of it: a board has one PRAM (system 003
//! slide 16), whose wear, price and bandwidth count once.
//!
//! The controller's own tables are at its beginning, the rest is free for the driver. The controller owns the memory
//! and lends it to the driver, so that a power cut, or a copy of the device, covers everything.

use crate::{Background, Controller, ControllerError, Powered, RecoveryReport};
use nvlab_medium::{InPlace, PowerCut};
use nvlab_units::checksum::crc32c;
use nvlab_units::{Extent, Lpa, Served, Time};

/// A controller with an in-place memory.
pub trait BesidePram: Controller {
    /// The type of the memory.
    type Pram: InPlace + PowerCut;
    /// The memory.
    fn pram(&self) -> &Self::Pram;
    /// The memory, to use its free part.
    fn pram_mut(&mut self) -> &mut Self::Pram;
    /// Bytes from the beginning that the controller uses itself.
    fn pram_taken(&self) -> u64;
}

/// A controller that does not use the memory itself, and the memory.
#[derive(Clone, Debug)]
pub struct Beside<C, P> {
    /// The controller.
    pub controller: C,
    /// The memory.
    pub pram: P,
}

impl<C: Controller, P: InPlace + PowerCut> BesidePram for Beside<C, P> {
    type Pram = P;
    fn pram(&self) -> &P {
        &self.pram
    }
    fn pram_mut(&mut self) -> &mut P {
        &mut self.pram
    }
    fn pram_taken(&self) -> u64 {
        0
    }
}

/// The memory has no background work that the host would wait for.
impl<C: Background, P: PowerCut> Background for Beside<C, P> {
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.idle_at(at)
    }
    fn settle(&mut self, upto: Time) {
        self.controller.settle(upto);
        self.pram.settle(upto);
    }
}

impl<C: Powered, P: PowerCut> Powered for Beside<C, P> {
    fn power_cycle(mut self, at: Time) -> Result<(Self, RecoveryReport), String> {
        self.pram.cut(at);
        let (controller, report) = self.controller.power_cycle(at)?;
        Ok((Beside { controller, pram: self.pram }, report))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller.power_down(at)
    }
    fn trims_last(&self) -> bool {
        self.controller.trims_last()
    }
}

impl<C: Controller, P: PowerCut> Controller for Beside<C, P> {
    const KEEPS: bool = C::KEEPS;

    fn capacity_units(&self) -> u32 {
        self.controller.capacity_units()
    }
    fn unit_bytes(&self) -> u32 {
        self.controller.unit_bytes()
    }
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError> {
        self.controller.read(at, extent, into)
    }
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError> {
        self.controller.write(at, extent, data)
    }
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        self.controller.read_in_pieces(at, extent, into, send)
    }
    fn write_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
        receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        self.controller.write_in_pieces(at, extent, data, receive)
    }
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError> {
        self.controller.trim(at, extent)
    }
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError> {
        self.controller.flush(at)
    }
    fn view(&self, extent: Extent) -> Option<&[u8]> {
        self.controller.view(extent)
    }
    fn is_mapped(&self, lpa: Lpa) -> bool {
        self.controller.is_mapped(lpa)
    }
    fn prefetch(&self, lpa: Lpa) {
        self.controller.prefetch(lpa);
    }
    fn prefetch_writes(&self, lpas: impl Iterator<Item = Lpa>) {
        self.controller.prefetch_writes(lpas);
    }
}

/// Table entries in PRAM are at most this long and never cross a multiple of it.
const ENTRY_BYTES: u32 = 8;

/// Refuses a memory in which a power cut can tear entries; `why` names the user that needs them whole.
pub(crate) fn check_atomic(pram: &impl InPlace, why: &str) -> Result<(), String> {
    let atomic = pram.atomic_bytes();
    if atomic >= ENTRY_BYTES {
        return Ok(());
    }
    Err(format!(
        "{why}: aligned writes of {ENTRY_BYTES} B must be atomic in a power cut, this memory guarantees {atomic} B"
    ))
}

/// The header of a table in PRAM: magic, fields, crc32c of these.
pub(crate) fn header<const BYTES: usize>(magic: [u8; 8], fields: &[u32]) -> [u8; BYTES] {
    let (mut bytes, crc_at) = ([0; BYTES], BYTES - 4);
    bytes[..8].copy_from_slice(&magic);
    for (bytes, field) in bytes[8..crc_at].chunks_mut(4).zip(fields) {
        bytes.copy_from_slice(&field.to_le_bytes());
    }
    let crc = crc32c(&[&bytes[..crc_at]]);
    bytes[crc_at..].copy_from_slice(&crc.to_le_bytes());
    bytes
}
