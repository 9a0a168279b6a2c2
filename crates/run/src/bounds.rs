//! Bounds on what a recording that is too short can show.
//!
//! Repeated, it writes its units again in the order of the recording: they die together, and little is moved. What
//! the program would have done next is not known. The other extreme is that it continues anywhere: the whole contents
//! of the device are written unit by unit, in random order.

use super::aged::{self, AgeError};
use super::device;
use crate::preparation::Preparation;
use crate::prepared::Shelf;
use crate::result::Precondition;
use crate::run_plan::OnProgress;
use nvlab_design::Design;
use nvlab_units::Span;

/// Adds the bounds of its write amplification to how a device was prepared, if that was by a recording too short to say; the second
/// is that of another device.
pub(super) fn with_bounds(
    report: Precondition,
    design: &Design,
    preparation: &Preparation,
    shelf: Option<&Shelf>,
    on_progress: OnProgress<'_>,
) -> Result<Precondition, AgeError> {
    if !report.pass.is_some_and(|pass| pass.is_too_short()) {
        return Ok(report);
    }
    let state = Preparation { span: Some(preparation.fill), idle: Span::ZERO, ..*preparation };
    let anywhere = match aged::is_page_map(design) {
        true => aged::page_map(design, &state, shelf, on_progress)?.report,
        false => {
            let mut device = device::any(design, state.seed, None)?;
            aged::prepare(&mut *device, design, &state, on_progress)?.0
        }
    };
    let bounds = [&report, &anywhere].map(|report| report.last_windows[1]);
    Ok(Precondition { bounds: Some(bounds), ..report })
}
