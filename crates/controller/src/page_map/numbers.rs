//! The numbers that say, after a power cut, which of two versions is newer.

use super::spare::{Kind, Spare};
use nvlab_units::Lpa;
use serde::{Deserialize, Serialize};

/// The next numbers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Numbers {
    /// Of the next unit or trim of the host; a unit keeps it when it is moved.
    pub sequence: u64,
    /// Of the next unit that is programmed.
    pub stamp: u64,
}

impl Numbers {
    pub fn new() -> Numbers {
        Numbers { sequence: 1, stamp: 1 }
    }
    /// The stamp of a unit that is about to be programmed.
    #[inline(always)]
    pub fn take_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp - 1
    }
    /// The spare area of a unit of the controller's own that is about to be programmed.
    pub fn beside(&mut self, kind: Kind, lpa: Lpa, sequence: u64) -> Spare {
        Spare { kind, damaged: false, lpa, sequence, stamp: self.take_stamp() }
    }
    /// A write or trim with this number was found after a power cut.
    pub fn found_sequence(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence + 1);
    }
    /// A programmed unit was found after a power cut.
    pub fn found_stamp(&mut self, spare: &Spare) {
        self.stamp = self.stamp.max(spare.stamp + 1);
    }
}
