//! What a recording that is too short can mean.
//!
//! Repeated, it writes its units again in the order in which it wrote them: they die together, and little is moved. What the recorded
//! program would have done next is not known. The other end is that nothing is known of the order: as many bytes, written unit by
//! unit in random order, beside what the recording never writes.

use super::aged::{self, AgeError};
use super::device;
use super::{OnProgress, Preparation};
use crate::design::Design;
use crate::prepared::Shelf;
use crate::result::{PassResult, Precondition};
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
    let Some(pass) = report.pass.filter(PassResult::is_too_short) else { return Ok(report) };
    let share = pass.distinct_bytes as f64 / design.capacity_bytes() as f64;
    let state = Preparation { span: Some(share.min(preparation.fill)), idle: Span::ZERO, ..*preparation };
    let shuffled = match aged::is_page_map(design) {
        true => aged::page_map(design, &state, shelf, on_progress)?.report,
        false => {
            let mut device = device::any(design, state.seed, None)?;
            aged::prepare(&mut *device, design, &state, on_progress)?.0
        }
    };
    let [repeated, shuffled] = [&report, &shuffled].map(|report| report.last_windows[1]);
    Ok(Precondition { bounds: Some([repeated.min(shuffled), repeated.max(shuffled)]), ..report })
}
