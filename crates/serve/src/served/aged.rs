//! Bringing a new device to a state before it is served, as `nvlab run --precondition` does before it measures.
//!
//! What is written meanwhile reads as zeros, and it occupies the medium: [`nvlab_run::aged`]. It takes the time of the
//! modelled device, not that of the wall clock: the device's own clock goes on from there.

use crate::ServeError;
use nvlab_run::aged::AgeError;
use nvlab_run::prepared::Shelf;
use nvlab_run::{OnProgress, Preparation};

/// The state a new device is brought to.
pub struct Aging<'a> {
    /// What is written to it before it is served.
    pub preparation: Preparation,
    /// Prepared devices of earlier runs, to begin from one; `None`: always prepare.
    pub shelf: Option<&'a Shelf>,
    /// Told what is done; returns false to stop.
    pub on_progress: OnProgress<'a>,
}

impl From<AgeError> for ServeError {
    fn from(error: AgeError) -> ServeError {
        match error {
            AgeError::Build(error) => error.into(),
            AgeError::Workload(error) => ServeError::Options(error.to_string()),
            AgeError::Drive(error) => ServeError::Failed(format!("while preconditioning: {error}")),
        }
    }
}
