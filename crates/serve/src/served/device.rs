//! Builds the device that is served, from its design and its state.

use super::aged::Aging;
use super::state::DeviceState;
use crate::ServeError;
use nvlab_design::Design;
use nvlab_run::aged::{self, Aged};
use nvlab_run::device::served::{self, Built};
use nvlab_workload::Serves;

/// Builds the device of a design over its media: new, or recovered from them; a new one is brought to a state.
pub(crate) fn build(
    design: &Design,
    state: &DeviceState,
    aging: Option<Aging<'_>>,
) -> Result<Built, ServeError> {
    if let Serves::Zones(_) = design.ftl.kind().serves() {
        let why = "zones are simulated, and not served yet: no client would learn of them, and most writes would fail";
        return Err(ServeError::Options(format!("{}: {why}", design.name)));
    }
    let built = match aging {
        Some(aging) if aged::is_page_map(design) => {
            let Aged { device, report, ready } =
                aged::page_map(design, &aging.preparation, aging.shelf, aging.on_progress)?;
            let built = served::over_aged(design, state, device.into_controller(), ready);
            built.map(|built| Built { prepared: Some(report), ..built }).map_err(ServeError::from)
        }
        aging => {
            state.will_be_written(aging.is_some());
            let aging = aging.map(|aging| (aging.preparation, aging.on_progress));
            served::over(design, state.seed(), state, aging).map_err(ServeError::from)
        }
    };
    built.map_err(|error| state.blame(error))
}
