//! What a served device counts.

use nvlab_lab::run::device::{Counters, Observed};
use nvlab_lab::run::meter::Totals;
use nvlab_units::{Span, Time};

/// A power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Operations asked before.
    pub operations: u64,
    /// The device's time.
    pub at: Time,
    /// What the controller took to find everything again.
    pub recovery: Span,
}

/// What was asked of a device and what it did, since the power came.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests by kind.
    pub totals: Totals,
    /// What the controller counted.
    pub device: Counters,
    /// Power cuts.
    pub cuts: u64,
    /// The last of them.
    pub last_cut: Option<Cut>,
    /// The device's time.
    pub now: Time,
    /// Why the device is lost, if it is.
    pub lost: Option<String>,
    /// Of its blocks; `None` if it is lost.
    pub wear: Option<Wear>,
}

/// Erases of blocks since they were new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// Of the block with the fewest.
    pub min: u32,
    /// Of all on average.
    pub mean: f64,
    /// Of the block with the most.
    pub max: u32,
    /// What blocks are rated for.
    pub rated: u32,
}

impl Wear {
    /// Of the flash of a device that ran for `span`; zeros without flash.
    pub(super) fn of(observed: &dyn Observed, span: Span) -> Wear {
        let Some(flash) = observed.insides(span).flash else { return Wear::default() };
        let cycles = flash.data.cells.erase_counts();
        Wear {
            min: cycles.iter().copied().min().unwrap_or(0),
            mean: cycles.iter().map(|&count| count as f64).sum::<f64>() / cycles.len().max(1) as f64,
            max: cycles.iter().copied().max().unwrap_or(0),
            rated: flash.data.cells.config.endurance.cycles,
        }
    }
}
