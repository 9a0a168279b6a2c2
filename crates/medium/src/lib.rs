//! Memory media and their rules: flash (NAND, NOR), PCM, RAM and disk.
//!
//! A medium obeys its datasheet: operations take the stated time, on lanes that can be busy ([`nvlab_units::Lane`]);
//! cells wear and fail according to the fault model; operations the cells cannot do are rejected in every build
//! ([`MediumError`]); and a power cut loses, tears or keeps data ([`PowerCut`]). A medium knows nothing about maps,
//! cleaning or hosts.
//!
//! Time is an argument, completion is the result; nothing here has a clock. Bytes are kept in a [`Store`]; with `()`
//! there are none, and the same code computes only the timing.
//!
//! | module | what | capability |
//! |---|---|---|
//! | [`flash`] | NAND and NOR arrays: erase before write | [`PowerCut`] |
//! | [`pcm`] | phase-change (and spin-torque) memory, wear per line | [`InPlace`], [`PowerCut`] |
//! | [`start_gap`] | wear levelling of lines, in front of an in-place medium | [`InPlace`], [`PowerCut`] |
//! | [`ram`] | DRAM and SRAM, volatile or battery-backed | [`InPlace`], [`PowerCut`] |
//! | [`disk`] | seek, rotation, transfer | [`InPlace`], [`PowerCut`] |
//! | [`store`] | where bytes are kept | |
//! | [`banks`], [`tally`] | word access times, interleaved banks; counts of operations | |

mod any_store;
pub mod banks;
pub mod disk;
pub mod error;
pub mod flash;
pub mod pcm;
pub mod ram;
pub mod start_gap;
pub mod store;
pub mod tally;
mod undo;

pub use any_store::AnyStore;
pub use error::MediumError;
pub use start_gap::{StartGap, StartGapConfig};
pub use store::{MemStore, Store, is_zero};

use nvlab_units::{Served, Time};

/// A medium whose bytes can be overwritten in place.
///
/// The order of writes that overlap in time is undefined, and a write is durable (if the medium is) at its end,
/// not before.
pub trait InPlace {
    /// False if no bytes are kept: see [`Store::KEEPS`].
    const KEEPS: bool;
    /// Capacity in bytes.
    fn capacity(&self) -> u64;
    /// The size of an aligned write that a power cut never tears: afterwards it is entirely old or entirely new. A
    /// controller that updates its tables in place rejects a memory that guarantees less than the size of an entry.
    fn atomic_bytes(&self) -> u32 {
        1
    }
    /// Reads `bytes` at `offset`. `into` receives them if bytes are kept; otherwise it may be empty.
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError>;
    /// Writes `bytes` at `offset`. `data` holds them if bytes are kept; otherwise it may be empty.
    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError>;
    /// Writes `new` at `offset`, which the caller knows to hold `old`: this tells a medium that programs only
    /// differing words which ones differ, even if it keeps no bytes. Both have the same length.
    fn update(&mut self, at: Time, offset: u64, old: &[u8], new: &[u8]) -> Result<Served, MediumError> {
        assert_eq!(old.len(), new.len(), "{} B are to replace {} B", new.len(), old.len());
        self.write(at, offset, new.len() as u64, if Self::KEEPS { new } else { &[] })
    }
    /// Keeps the banks that hold the bytes at `offset` busy until `until`: the rows opened by an access stay open
    /// until their data has been transferred, and accesses to other rows of these banks wait. No effect on a medium
    /// without banks.
    #[inline]
    fn hold(&mut self, _offset: u64, _bytes: u64, _until: Time) {}
    /// Prefetches the simulator's state of the bytes at `offset`, which will be written soon.
    #[inline]
    fn prefetch(&self, _offset: u64) {}
}

/// Where an access goes: in the cells, and in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Address of the first cell.
    pub cells: u64,
    /// Offset of the first byte in the store.
    pub kept: u64,
}

/// A memory whose store may keep bytes in a different order than its cells: wear levelling moves lines between cells,
/// while their contents stay in place in the store, next to their neighbours. Time, wear and tearing follow the
/// cells.
///
/// The caller keeps three rules, so that a cut leaves the same contents as it would in the cells:
/// 1. Consecutive bytes in the cells are consecutive in the store, within one line. Both addresses have the same
///    offset in the line.
/// 2. A line in the store is written through other cells only after every write through the previous cells is done.
/// 3. The new place of a line is durable before any write to the line in its new cells starts.
pub trait Placed: InPlace {
    /// Reads, as [`InPlace::read`].
    fn read_at(&mut self, at: Time, place: Place, bytes: u64, into: &mut [u8])
    -> Result<Served, MediumError>;
    /// Writes, as [`InPlace::write`].
    fn write_at(&mut self, at: Time, place: Place, bytes: u64, data: &[u8]) -> Result<Served, MediumError>;
    /// Writes `new` over `old`, as [`InPlace::update`].
    fn update_at(&mut self, at: Time, place: Place, old: &[u8], new: &[u8]) -> Result<Served, MediumError>;
    /// Copies cells to other cells, which takes time and wears them; nothing moves in the store. The old contents of
    /// the target cells are unknown: as many words are assumed to differ as without payload. Returns the write.
    fn move_cells(&mut self, at: Time, from: u64, to: u64, bytes: u64) -> Result<Served, MediumError>;
}

/// A medium that can lose power.
pub trait PowerCut {
    /// No cut will come before `upto`: undo records of operations finished by then may be dropped.
    fn settle(&mut self, upto: Time);
    /// The power fails at `at` and returns: operations done by then stay, those not begun are dropped, those in
    /// progress are torn. Afterwards the lanes are idle and volatile contents are lost.
    fn cut(&mut self, at: Time);
}
