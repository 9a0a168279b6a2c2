//! What a device looks like to those who watch it.

use super::Cut;
use nvlab_lab::run::device::{Counters, Observed};
use nvlab_lab::run::meter::Totals;
use nvlab_units::{Span, Time};

/// What a device looks like at a moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// A run that issues its own requests; otherwise a device that is served to programs.
    pub is_run: bool,
    /// Bytes for the host.
    pub capacity_bytes: u64,
    /// The device's time.
    pub now: Time,
    /// Requests since the power came back last.
    pub totals: Totals,
    /// Counts of the controller.
    pub counters: Counters,
    /// The inside of the device.
    pub inside: Inside,
    /// Every power cut.
    pub cuts: Vec<Cut>,
    /// Why the device is lost, if it is.
    pub lost: Option<String>,
    /// No request is served.
    pub paused: bool,
    /// The power can be cut.
    pub has_plug: bool,
    /// What a run is doing, and the part of it that is done.
    pub phase: Option<(String, f64)>,
    /// Requests per second of the device's time, if not as the workload says.
    pub rate: Option<f64>,
    /// Seconds of the device's time in a second; `None`: as many as this machine can simulate.
    pub speed: Option<f64>,
    /// It has ended.
    pub ended: bool,
}

/// What a map and the gauges of a page show.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// Units in the write buffer, and its room.
    pub buffer: Option<(u32, u32)>,
    /// For each block of the flash the share that is live.
    pub live: Option<Vec<f32>>,
    /// Erases of each block since it was new; empty without flash.
    pub cycles: Vec<u32>,
    /// The rated endurance of a block.
    pub rated: u32,
    /// Dies, each with equally many of the blocks.
    pub dies: u32,
    /// Blocks cleaned, and the live units that were in them.
    pub cleaned: (u64, u64),
    /// Units of a block.
    pub units_per_block: u32,
}

impl Inside {
    /// Of a device at `at`, which is not before its last operation; it ran for `span`.
    pub(crate) fn of(device: &mut dyn Observed, at: Time, span: Span) -> Inside {
        let (buffer, live) = (device.buffered(at), device.live_shares());
        let insides = device.insides(span);
        let cleaned = (insides.cleaned_blocks, insides.cleaned_live_units);
        let Some(flash) = insides.flash else { return Inside { buffer, live, cleaned, ..Inside::default() } };
        let data = &flash.data;
        Inside {
            buffer,
            live,
            cycles: data.cells.erase_counts().to_vec(),
            rated: data.cells.config.endurance.cycles,
            dies: data.geometry.dies(),
            cleaned,
            units_per_block: data.geometry.units_per_block(),
        }
    }
}
