//! Devices in a known state for other purposes than a run: to be served.
//!
//! There is no workload to prepare the device with. Writes of one unit, uniformly distributed over the part that is
//! to be steady, take its place. A page map is prepared without payload, as for a run, and shares its stored devices
//! with runs of `uniform` writes of a unit; any other device is written in place ([`prepare`]).

use super::device::{BuildError, Carrying, any};
use super::drive::{DeviceUnderTest, DriveError};
use super::{kept, precondition};
use crate::plan::source::{Source, own_of, workload_key};
use crate::preparation::{Preparation, State};
use crate::prepared::Shelf;
use crate::result::Precondition;
use crate::run_plan::OnProgress;
use nvlab_access::Attached;
use nvlab_controller::PageMap;
use nvlab_design::Design;
use nvlab_units::Time;
use nvlab_workload::{AnyBlockWorkload, BlockWorkload, Work, WorkloadError};
use std::sync::Arc;
use thiserror::Error;

/// The unit that a `uniform` workload writes unless told otherwise.
const UNIT_BYTES: u32 = 4096;

/// Why a device cannot be brought to its state.
#[derive(Debug, Error)]
pub enum AgeError {
    /// It cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It failed a request.
    #[error("while preconditioning: {0}")]
    Drive(#[from] DriveError),
    /// It cannot be written so.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

/// A page map in its state.
pub struct Aged {
    /// The device.
    pub device: Attached<PageMap>,
    /// How it was prepared.
    pub report: Precondition,
    /// When its time of idleness is over.
    pub ready: Time,
}

/// True if the device of a design is prepared without payload ([`page_map`]).
pub fn is_page_map(design: &Design) -> bool {
    kept::is_kept(design)
}

/// The writes that bring a device to its state, and their text.
fn writes(
    design: &Design,
    preparation: &Preparation,
) -> Result<(Arc<Source>, Option<AnyBlockWorkload>), WorkloadError> {
    let text = match design.ftl.unit_bytes() {
        UNIT_BYTES => "uniform".to_string(),
        bytes => format!("uniform bs={bytes}B"),
    };
    let source = Source::read(&text, None)?;
    let own = own_of(design, &source, preparation)?.and_then(Work::requests);
    Ok((source, own))
}

/// The page map of a design in a state, without payload; kept on the shelf, or taken from there. `on_progress` returns false
/// to stop.
pub fn page_map(
    design: &Design,
    preparation: &Preparation,
    shelf: Option<&Shelf>,
    on_progress: OnProgress<'_>,
) -> Result<Aged, AgeError> {
    let (source, mut own) = writes(design, preparation)?;
    let own = own.as_mut().map(|own| &mut **own as &mut dyn BlockWorkload);
    let seed = preparation.device_seed(preparation.seed);
    let Some(shelf) = shelf.filter(|_| preparation.state != State::Fresh) else {
        let device = any::plain_page_map(design, seed)?;
        return prepared(device, preparation, own, kept::Begin::default(), on_progress);
    };
    let keys = kept::Keys::new(design, preparation, &workload_key(&source), own.as_deref());
    keys.begin(shelf, |device, begin| {
        let own = own.map(|own| own as &mut dyn BlockWorkload);
        let device = match device {
            Some(device) => device,
            None => any::plain_page_map(design, seed)?,
        };
        prepared(device, preparation, own, begin, on_progress)
    })
}

/// Says whose writes they were.
fn by_units(report: Precondition) -> Precondition {
    Precondition { writes: report.writes.map(|_| "uniform writes of a unit".to_string()), ..report }
}

/// Brings a page map to a state, or finds it there.
fn prepared(
    device: Attached<PageMap>,
    preparation: &Preparation,
    own: Option<&mut dyn BlockWorkload>,
    begin: kept::Begin<'_>,
    on_progress: OnProgress<'_>,
) -> Result<Aged, AgeError> {
    let mut device = Carrying::new(device);
    let (report, ready) = begin.prepared(&mut device, preparation, own, on_progress)?;
    let report = by_units(report);
    Ok(Aged { device: device.into_inner(), report, ready: ready + preparation.idle })
}

/// Brings a new device of any design to a state, by writing to it ([`Carrying`] zeros if it keeps what is written). Returns how it
/// was prepared, and when its time of idleness is over.
pub fn prepare(
    device: &mut dyn DeviceUnderTest,
    design: &Design,
    preparation: &Preparation,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), AgeError> {
    let (_, mut own) = writes(design, preparation)?;
    let own = own.as_mut().map(|own| &mut **own as &mut dyn BlockWorkload);
    let (report, ready) = precondition::precondition(device, preparation, own, on_progress)?;
    Ok((by_units(report), ready + preparation.idle))
}
