//! What makes a medium overwritable: maps, cleaning, wear levelling, recovery.
//!
//! A [`Controller`] serves logical units; it owns its medium and knows its rules. It has no clock: every call
//! passes the time at which it happens and returns when it will be done. Background work (cleaning, erases) is
//! queued on the medium's lanes and uses their idle time.
//!
//! Durability. The order of writes between two flushes is undefined. After a power cut every unit reads as the newest
//! version that was flushed, or as a newer one that was written; never as a torn one, except on memories used in
//! place whose units are longer than their atomic write size ([`scm`]). A trimmed unit reads as zero; after a power
//! cut that is guaranteed only if the controller journals trims, otherwise it may read as an earlier version.
//!
//! | module | what |
//! |---|---|
//! | [`page_map`] | any logical page to any physical page; a cache of blocks in SLC mode |
//! | [`hftl`] | a page map kept in PRAM: nothing to scan after a power cut |
//! | [`block_map`] | a page at a fixed offset in its block: pure block mapping, BAST, FAST, SLC log over MLC data |
//! | [`cached`] | a cache of lines in DRAM in front of any of them: blocks as the words of a memory |
//! | [`bare_ram`] | a memory as blocks, without a map |
//! | [`envy`] | NOR flash and battery-backed SRAM as a word-addressable memory |
//! | [`zoned`] | zones written in order and erased whole: no map of units, no cleaning |
//! | [`scm`] | memories used in place, each behind a controller of its own: no map at all |
//! | [`fsms`] | in front of any of them: stores the metadata of a FAT file system in PRAM |
//! | [`pram`] | the memory that `fsms` shares with the controller behind it |
//! | [`region`] | what the blocks and segments of a device hold, for the live page
//! | [`power`] | background work, power cuts and recovery of all of them |
//! | `cleaning` | which block is cleaned next: one file per policy |
//! | `table` | the blocks of an array: live units, state |

pub mod bare_ram;
pub mod block_map;
pub mod cached;
mod cleaning;
pub mod envy;
pub mod fsms;
pub mod hftl;
pub mod page_map;
pub mod power;
pub mod pram;
pub mod region;
pub mod scm;
mod spare;
mod table;
mod wear;
pub mod zoned;

pub use block_map::BlockMap;
pub use cached::Cached;
pub use envy::Envy;
pub use fsms::Fsms;
pub use hftl::Hftl;
pub use page_map::PageMap;
pub use power::{Background, Powered, RecoveryReport};
pub use pram::{Beside, BesidePram};
pub use region::{Region, Use};
pub use scm::Scm;
pub use zoned::{ZoneMap, Zoned};

use nvlab_medium::MediumError;
use nvlab_units::{Die, Extent, Lpa, Served, Time};
use thiserror::Error;

/// Why a controller did not serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControllerError {
    /// The request reaches past the logical capacity.
    #[error("units {} to {} are out of range: the device ends at {capacity}", extent.start, extent.end())]
    OutOfRange {
        /// The requested units.
        extent: Extent,
        /// Logical units of the device.
        capacity: u32,
    },
    /// The unit's data can no longer be corrected.
    #[error("unit {lpa} is unreadable: {source}")]
    Unreadable {
        /// The logical unit.
        lpa: Lpa,
        /// The error of the medium.
        source: MediumError,
    },
    /// The unit cannot be written.
    #[error("unit {lpa} cannot be written: {source}")]
    Unwritable {
        /// The logical unit.
        lpa: Lpa,
        /// The error of the medium.
        source: MediumError,
    },
    /// No erased block is left and cleaning gains none: the device is read-only from now on.
    #[error(
        "die {die} has no erased block left ({bad} of {blocks} blocks are bad): the device has reached its end of life"
    )]
    EndOfLife {
        /// The die.
        die: Die,
        /// Its bad blocks.
        bad: u32,
        /// Its blocks.
        blocks: u32,
    },
    /// A zone refuses the request.
    #[error("zone {zone}: {source}")]
    Zone {
        /// The zone.
        zone: u32,
        /// Why.
        source: zoned::ZoneError,
    },
    /// The bytes lie outside a memory window.
    #[error("{bytes} B at {offset} are out of range: the memory ends at {capacity}")]
    OutsideWindow {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u32,
        /// Bytes of the window.
        capacity: u64,
    },
    /// The memory that holds the controller's metadata fails.
    #[error("the memory of the controller's metadata failed: {source}")]
    Metadata {
        /// The error of the medium.
        source: MediumError,
    },
    /// A transaction is already open: only one may be open at a time.
    #[error("a transaction is already open: commit or abort it first")]
    TransactionOpen,
    /// No transaction is open.
    #[error("no transaction is open: begin one first")]
    NoTransaction,
    /// The transaction has changed as many pages as it may. Nothing was stored; it can be committed or aborted.
    #[error("the transaction has changed {pages} pages, the maximum (transaction_pages)")]
    TransactionFull {
        /// Pages one transaction may change.
        pages: u32,
    },
}

impl ControllerError {
    /// Fails if units lie outside a device of `capacity` units.
    #[inline]
    pub(crate) fn check_extent(extent: Extent, capacity: u32) -> Result<(), ControllerError> {
        match extent.end() <= capacity as u64 {
            true => Ok(()),
            false => Err(ControllerError::OutOfRange { extent, capacity }),
        }
    }

    /// Fails if bytes lie outside a memory window of `capacity` bytes.
    pub fn check_window(offset: u64, bytes: u32, capacity: u64) -> Result<(), ControllerError> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(ControllerError::OutsideWindow { offset, bytes, capacity }),
        }
    }
}

/// [`Controller::read_in_pieces`] of a controller that transfers a request as a whole.
#[inline(always)]
fn read_in_one<C: Controller>(
    controller: &mut C,
    at: Time,
    extent: Extent,
    into: &mut [u8],
    mut send: impl FnMut(Time, u64) -> Time,
) -> Result<Served, ControllerError> {
    let Served { start, end } = controller.read(at, extent, into)?;
    Ok(Served { start, end: send(end, extent.count as u64 * controller.unit_bytes() as u64) })
}

/// [`Controller::write_in_pieces`] of a controller that needs the whole request before it begins.
#[inline(always)]
fn write_in_one<C: Controller>(
    controller: &mut C,
    extent: Extent,
    data: &[u8],
    mut receive: impl FnMut(u64) -> Time,
) -> Result<Served, ControllerError> {
    let arrived = receive(extent.count as u64 * controller.unit_bytes() as u64);
    controller.write(arrived, extent, data)
}

/// A device of logical units. Every method is required: a wrapper must decide about each.
pub trait Controller: Powered {
    /// False if its medium keeps no bytes: payload is then ignored, and reads fill no buffer.
    const KEEPS: bool;
    /// Logical units the host may address.
    fn capacity_units(&self) -> u32;
    /// Bytes of one unit.
    fn unit_bytes(&self) -> u32;
    /// Reads units; `into` receives them if the medium keeps payload. It may be empty if the medium keeps none, or if
    /// [`Controller::view`] is used to access it. Units never written read as zero.
    fn read(&mut self, at: Time, extent: Extent, into: &mut [u8]) -> Result<Served, ControllerError>;
    /// Writes units; durable after the next flush (or at once, if the write buffer is protected or absent).
    fn write(&mut self, at: Time, extent: Extent, data: &[u8]) -> Result<Served, ControllerError>;
    /// [`Controller::read`] for a link that transfers a request piece by piece: `send` is called with the time at
    /// which a piece is available and its bytes, in the order of addresses, and returns when the piece is at the
    /// host. The read ends when the last one is. By default a request is one piece, sent when all of it is available.
    #[inline(always)]
    fn read_in_pieces(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
        send: impl FnMut(Time, u64) -> Time,
    ) -> Result<Served, ControllerError> {
        read_in_one(self, at, extent, into, send)
    }
    /// [`Controller::write`] behind a link that delivers a request piece by piece: `receive` returns when the next so
    /// many bytes of the request, which is sent from `at` on, have arrived. By default a request is one piece.
    #[inline(always)]
    fn write_in_pieces(
        &mut self,
        _at: Time,
        extent: Extent,
        data: &[u8],
        receive: impl FnMut(u64) -> Time,
    ) -> Result<Served, ControllerError> {
        write_in_one(self, extent, data, receive)
    }
    /// Declares that the contents of units are no longer needed.
    fn trim(&mut self, at: Time, extent: Extent) -> Result<Served, ControllerError>;
    /// Everything written before is durable when the flush ends.
    fn flush(&mut self, at: Time) -> Result<Served, ControllerError>;
    /// Units in place in this process's memory, without spending time: from the first on, as many as are contiguous, at
    /// least one. `None`: they must be read into a buffer, or cannot be read.
    fn view(&self, extent: Extent) -> Option<&[u8]>;
    /// True if the unit is mapped; otherwise it reads as zero.
    fn is_mapped(&self, lpa: Lpa) -> bool;
    /// Prefetches the map entry of a unit that will be written or read soon, ideally about 30 requests from now.
    fn prefetch(&self, lpa: Lpa);
    /// Prefetches, all at once, the state of the old versions of units that will be written next. Call
    /// [`Controller::prefetch`] for each of them first.
    fn prefetch_writes(&self, lpas: impl Iterator<Item = Lpa>);
}
