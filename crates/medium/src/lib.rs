//! What memory cells can do, and what they forbid: flash (NAND, NOR), PCM, RAM and disk.
//!
//! A medium obeys its datasheet: operations take the time it states, on lanes that can be busy
//! ([`nvlab_units::Lane`]); cells wear and fail according to the fault model; operations the cells cannot do are
//! refused in every build ([`MediumError`]); and a power cut loses, tears or keeps data ([`PowerCut`]). A medium
//! knows nothing of maps, cleaning or hosts.
//!
//! Time is an argument, completion is the result; nothing here has a clock. Bytes are kept in a [`Store`];
//! with `()` there are none, and the same code computes only the timing.
//!
//! | module | what | capability |
//! |---|---|---|
//! | [`flash`] | NAND and NOR arrays: erase before write | [`PowerCut`] |
//! | [`pcm`] | phase-change (and spin-torque) memory, wear per line | [`InPlace`], [`PowerCut`] |
//! | [`start_gap`] | wear levelling of lines in front of any of them | [`InPlace`], [`PowerCut`] |
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
    /// controller that updates its tables in place refuses a memory that promises less than the size of an entry.
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
    /// Keeps the banks that hold the bytes at `offset` busy until `until`: the rows that an access has opened stay open until
    /// their data have left, and accesses to other rows of these banks wait. A medium without banks does nothing.
    #[inline]
    fn hold(&mut self, _offset: u64, _bytes: u64, _until: Time) {}
    /// Prefetches what this program keeps about the bytes at `offset`, which will be written soon.
    #[inline]
    fn prefetch(&self, _offset: u64) {}
}

/// Where an access goes, and where the store keeps what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Address of the first cell.
    pub cells: u64,
    /// Offset of the first byte in the store.
    pub kept: u64,
}

/// A memory whose store may keep bytes in another order than its cells: wear levelling moves lines from cell to cell, and what
/// they hold stays where it is in the store, beside its neighbours. Time, wear and what a power cut tears follow the cells.
///
/// The caller keeps three rules, so that a cut leaves what it would leave in the cells:
/// 1. Bytes in a row in the cells are in a row in the store, within one line. Both addresses have the same place in the line.
/// 2. A line in the store is written through other cells only at times when every write to it through the cells before is done.
/// 3. Where lines are is durable before any write to a line in its new cells begins.
pub trait Placed: InPlace {
    /// Reads, as [`InPlace::read`].
    fn read_at(&mut self, at: Time, place: Place, bytes: u64, into: &mut [u8])
    -> Result<Served, MediumError>;
    /// Writes, as [`InPlace::write`].
    fn write_at(&mut self, at: Time, place: Place, bytes: u64, data: &[u8]) -> Result<Served, MediumError>;
    /// Writes `new` over `old`, as [`InPlace::update`].
    fn update_at(&mut self, at: Time, place: Place, old: &[u8], new: &[u8]) -> Result<Served, MediumError>;
    /// Reads cells and writes what they hold to others, which takes time and wears them; nothing moves in the store. What the
    /// others held is not known: as many words differ as are assumed to without payload. Returns the write.
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
