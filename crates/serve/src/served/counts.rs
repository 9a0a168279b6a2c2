//! The counts of a served device: requests, power cuts, wear.

use nvlab_run::device::{Counters, Observed};
use nvlab_run::meter::Totals;
use nvlab_units::{Span, Time};

/// A power cut and the recovery from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Operations begun before it.
    pub operations: u64,
    /// When the power failed, in the device's time.
    pub at: Time,
    /// Simulated time that the controller took to recover.
    pub recovery: Span,
}

/// Requests to a device and what it did, since the power came back last.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests, by kind, with their latency.
    pub totals: Totals,
    /// What the controller counts.
    pub device: Counters,
    /// Power cuts since the device was opened.
    pub cuts: u64,
    /// The latest of them.
    pub last_cut: Option<Cut>,
    /// When this was counted, in the device's time.
    pub now: Time,
    /// Why the device is lost, if it is.
    pub lost: Option<String>,
    /// Wear of its blocks; `None` if it is lost.
    pub wear: Option<Wear>,
}

/// Erases of blocks since they were new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// Erases of the least worn block.
    pub min: u32,
    /// Mean erases of a block.
    pub mean: f64,
    /// Erases of the most worn block.
    pub max: u32,
    /// Erases that the part is rated for.
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
