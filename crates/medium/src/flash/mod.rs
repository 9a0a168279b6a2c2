//! Flash arrays: blocks of pages that must be erased before they are written again.
//!
//! [`config`] is the datasheet as data; [`cells`] is what all flash arrays share: wear, endurance, faults,
//! bad blocks, lanes; [`nand`] and [`nor`] are the two sets of rules for writing.
//!
//! There are two kinds of operation. *Foreground*: a caller waits (a host read), the end is the result. *Background*:
//! programs, relocation reads and erases are queued on their die and return a ticket; a foreground read
//! suspends them where the part allows it. See decision 0001 and [`nvlab_units::Lane`].

pub mod cells;
mod channel;
pub mod config;
mod modes;
pub mod nand;
pub mod nor;
mod planes;
mod programmed;
mod retry;
mod slowing;

pub use cells::{Cells, FlashStats, SlcOperations};
pub use config::{
    BitErrors, CellRules, Endurance, Faults, FlashConfig, FlashTiming, PlaneReads, Registers, SlcMode,
};
pub use nand::{Nand, SPARE_BYTES};
pub use nor::{Nor, NorConfig};
pub use slowing::Slowing;
