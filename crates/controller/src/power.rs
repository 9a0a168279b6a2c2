//! Background work, power cuts and recovery: implemented by every controller, and passed on by every wrapper around
//! one.
//!
//! Every method is required, so a wrapper that forgets one does not compile. The rules of a power cut are in the
//! documentation of the crate.

use crate::ControllerError;
use nvlab_units::{Span, Time};

/// Something with background work: a controller, or a layer in front of one.
pub trait Background {
    /// When everything queued will be done; a promise (see [`nvlab_units::Lane::finish`]). An error: accepted work
    /// cannot be finished.
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// No power cut will occur before `upto`: undo records of operations finished by then may be dropped. Only media
    /// that store bytes have such records.
    fn settle(&mut self, upto: Time);
}

/// A device whose power can fail.
pub trait Powered: Background + Sized {
    /// The power fails at `at` and returns. The media must store bytes. An error: the contents are lost for good.
    fn power_cycle(self, at: Time) -> Result<(Self, RecoveryReport), String>;
    /// Prepares for an orderly power-off; returns when the power may be switched off.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// True if trimmed units read as zero for good after a flush. Otherwise a trim is a hint: after a power cut, a trimmed unit reads as
    /// zero or as a version that it had, not always the last.
    fn trims_last(&self) -> bool;
}

/// Cost of a recovery after a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Time until the device served requests again.
    pub time: Span,
    /// Pages of NAND read; those of a separate log array are not counted.
    pub nand_reads: u64,
}
