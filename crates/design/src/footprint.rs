//! Bytes of this computer's memory needed to simulate media, and the tables common to several controllers. Tables of
//! only one kind of controller are counted by its kind.

use nvlab_medium::flash::{FlashConfig, Nand};
use nvlab_medium::pcm::{Pcm, PcmConfig};
use nvlab_units::{Geometry, Lane};

/// How much of their payload media store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    Nothing,
    /// What will be written; the amount is unknown.
    AsWritten,
    /// In memory, and the whole device will be written.
    All,
}

impl Payload {
    /// `bytes` if payload is stored at all.
    pub(super) fn kept(self, bytes: u64) -> u64 {
        if self == Payload::Nothing { 0 } else { bytes }
    }
    /// `bytes` if they are all written.
    pub(super) fn written(self, bytes: u64) -> u64 {
        if self == Payload::All { bytes } else { 0 }
    }
}

/// Bytes of a lane, with the work queued on it.
pub const LANE: u64 = size_of::<Lane>() as u64 + 256;

/// Tables of any array of flash.
pub fn array(flash: &FlashConfig, slc: bool, payload: Payload) -> u64 {
    let geometry = &flash.geometry;
    // Erases, whether bad, cycles it endures; pages programmed; whether in SLC mode, and erases of that.
    let block = 4 + 1 + 4 * flash.faults.wear_out as u64 + 4 + 5 * slc as u64;
    let kept = payload.written(Nand::<()>::store_bytes(geometry));
    geometry.blocks() as u64 * block + geometry.dies() as u64 * LANE + kept
}

/// Tables of a controller with a cleaner: live units, state, age, place in lists, erased ones.
pub fn blocks(geometry: &Geometry, lists: u64) -> u64 {
    geometry.blocks() as u64 * (4 + 1 + 8 + 8 + 4) + geometry.dies() as u64 * lists * 8
}

/// The wear of its lines, and its banks.
pub fn pcm(config: &PcmConfig, payload: Payload) -> u64 {
    let lines = config.wear.map_or(0, |wear| config.capacity_bytes.div_ceil(wear.line_bytes as u64));
    let kept = payload.written(Pcm::<()>::store_bytes(config));
    4 * lines + config.banks as u64 * LANE + kept
}
