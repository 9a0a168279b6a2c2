//! The machinery below the safe interface: shared state, commits, forces, truncation, recovery, memory.

mod ahead;
mod batch;
mod changed;
mod changes;
mod commit;
mod force;
mod memory;
mod open;
mod options;
mod pages;
mod ranges;
mod recovery;
mod recovery_time;
mod state;
mod statistics;
mod transaction;
mod truncate;
mod view;
mod wake_ups;
mod write_through;

pub use commit::Flush;
pub use memory::{Memory, PAGE_BYTES};
pub use options::{Options, Truncation};
pub use recovery::Recovery;
pub(crate) use state::Core;
pub use statistics::Statistics;
pub use transaction::{RawTransaction, Restore};
pub use view::View;
