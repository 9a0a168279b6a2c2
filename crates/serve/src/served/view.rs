//! What a device looks like to those who watch it.

use super::Cut;
use nvlab_run::device::{Counters, Fill, Maps, Observed};
use nvlab_run::meter::Totals;
use nvlab_units::{Span, Time};

/// The state of a device or a run at a moment, for a page.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// A run that issues its own requests; otherwise a device that is served to programs.
    pub is_run: bool,
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// When this was so, in the device's time.
    pub now: Time,
    /// Requests since the power came back last.
    pub totals: Totals,
    /// What the controller counts.
    pub counters: Counters,
    /// Maps, buffer and cleaning, where the device has them.
    pub inside: Inside,
    /// Power cuts since it was opened, oldest first.
    pub cuts: Vec<Cut>,
    /// Why the device is lost, if it is.
    pub lost: Option<String>,
    /// True while no request is served.
    pub paused: bool,
    /// Whether the power can be cut from the page.
    pub has_plug: bool,
    /// Whether it can be paused and resumed.
    pub has_pause: bool,
    /// Whether the rate of its requests can be changed.
    pub has_rate: bool,
    /// What a run is doing, and the part of it that is done.
    pub phase: Option<(String, f64)>,
    /// By how many requests per second the queue in front of the device of a run grows; 0 if it does not.
    pub queue_growth: f64,
    /// Requests per second of the device's time, if not as the workload says.
    pub rate: Option<f64>,
    /// Seconds of the device's time in a second; `None`: as many as this machine can simulate.
    pub speed: Option<f64>,
    /// Further figures, each with its label.
    pub figures: Vec<(&'static str, u64)>,
    /// Nothing will change any more.
    pub ended: bool,
}

/// Maps, gauges and cleaning of a device, as a page shows them.
#[derive(Clone, Debug)]
pub struct Inside {
    /// Fill of the write buffer; `None` without one.
    pub buffer: Option<Fill>,
    /// The maps of the device, or why there are none.
    pub maps: Maps,
    /// Units moved to make room: by cleaning, merges, folds and moves between partitions.
    pub moved_units: u64,
    /// Blocks cleaned, and the live units that were in them.
    pub cleaned: (u64, u64),
}

impl Default for Inside {
    fn default() -> Inside {
        Inside { buffer: None, maps: Err("the device is not ready yet"), moved_units: 0, cleaned: (0, 0) }
    }
}

impl Inside {
    /// Of a device at `at`, which is not before its last operation; it ran for `span`.
    pub(crate) fn of(device: &mut dyn Observed, at: Time, span: Span) -> Inside {
        let (buffer, maps) = (device.buffered(at), device.maps());
        let insides = device.insides(span);
        let causes = &insides.causes;
        Inside {
            buffer,
            maps,
            moved_units: causes.clean + causes.merge + causes.fold + causes.transfer,
            cleaned: (insides.cleaned_blocks, insides.cleaned_live_units),
        }
    }

    /// Units of a block of the map of the data; 0 without one.
    pub(crate) fn units_per_block(&self) -> u32 {
        let held = self.maps.iter().flatten().find_map(|map| map.held.as_ref());
        held.map_or(0, |held| held.units)
    }
}
