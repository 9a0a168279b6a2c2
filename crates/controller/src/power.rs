//! Background work, power cuts and recovery: what every controller has, and every wrapper around one must pass on.
//!
//! Every method is required, so a wrapper that forgets one does not compile. The rules of a power cut are those of the
//! crate: see its first lines.

use crate::ControllerError;
use nvlab_units::{Span, Time};

/// Something with background work: a controller, or what stands in front of one.
pub trait Background {
    /// When everything queued will be done; a promise (see [`nvlab_units::Lane::finish`]). An error: what was accepted
    /// cannot be finished.
    fn idle_at(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// No power cut will come before `upto`: undo records of operations finished by then may be dropped. Only media that
    /// keep bytes have such records.
    fn settle(&mut self, upto: Time);
}

/// Something whose power can fail.
pub trait Powered: Background + Sized {
    /// The power fails at `at` and comes back. The media must keep bytes. An error: the contents are lost for good.
    fn power_cycle(self, at: Time) -> Result<(Self, RecoveryReport), String>;
    /// Prepares for an orderly power-off; returns when the power may be switched off.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// True if what was trimmed and flushed reads as zero for ever; otherwise a trim is advisory.
    fn trims_last(&self) -> bool;
}

/// What a recovery after a power cut took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// How long the host waited.
    pub time: Span,
    /// Pages of NAND that were read; of a separate log array none are counted.
    pub nand_reads: u64,
}
