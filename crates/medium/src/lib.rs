//! What memory cells can do, and what they forbid: flash (NAND, NOR), PCM, RAM and disk.
//!
//! A medium obeys its datasheet: it takes the time the datasheet says, on lanes that can be busy
//! ([`nvlab_units::Lane`]); it wears; it fails as its fault model says; it refuses, in every build, what the
//! cells cannot do ([`MediumError`]); and it loses, tears or keeps what a power cut finds ([`PowerCut`]). It
//! knows nothing of maps, cleaning or hosts.
//!
//! Time is an argument, completion is the result; nothing here has a clock. Bytes are kept in a [`Store`];
//! with `()` there are none and the same code only tells the time.
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

pub use error::MediumError;
pub use start_gap::{StartGap, StartGapConfig};
pub use store::{MemStore, Store};

use nvlab_units::{Served, Time};

/// A medium whose bytes can be overwritten where they are.
///
/// No order is promised between writes that overlap in time, and a write is durable (where the medium is) at
/// its end, not before.
pub trait InPlace {
    /// False if no bytes are kept: see [`Store::KEEPS`].
    const KEEPS: bool;
    /// Bytes.
    fn capacity(&self) -> u64;
    /// Bytes (aligned) a power cut never tears apart: an aligned write of so many is old or new afterwards. A
    /// controller that changes its tables in place refuses a memory that promises less than an entry.
    fn atomic_bytes(&self) -> u32 {
        1
    }
    /// Reads `bytes` at `offset`. `into` receives them if a store is kept; otherwise it may be empty.
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError>;
    /// Writes `bytes` at `offset`. `data` holds them if a store is kept; otherwise it may be empty.
    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError>;
    /// Writes `new` at `offset`, where the caller knows that `old` lies: so a medium that programs only what
    /// differs knows what that is, even if it keeps no bytes. The lengths are the same.
    fn update(&mut self, at: Time, offset: u64, old: &[u8], new: &[u8]) -> Result<Served, MediumError> {
        assert_eq!(old.len(), new.len(), "{} B are to replace {} B", new.len(), old.len());
        self.write(at, offset, new.len() as u64, if Self::KEEPS { new } else { &[] })
    }
}

/// A medium that can lose its power.
pub trait PowerCut {
    /// No cut will come before `upto`: what was done by then need not be remembered as undoable.
    fn settle(&mut self, upto: Time);
    /// The power fails at `at` and comes back: what was done by then stays, what had not begun is dropped,
    /// what was under way is torn. Lanes are idle afterwards. Volatile contents are gone.
    fn cut(&mut self, at: Time);
}
