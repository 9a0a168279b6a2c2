//! Why a request was not served.

use nvlab_controller::ControllerError;
use thiserror::Error;

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriveError {
    /// It reaches past the end.
    #[error("it reaches past the end of the device")]
    Range,
    /// What was asked cannot be done quickly, and only that was wanted.
    #[error("the device cannot do this quickly")]
    NotFast,
    /// The device has no room left: it is worn out.
    #[error("{0}")]
    NoRoom(ControllerError),
    /// The device failed this request.
    #[error("{0}")]
    Device(ControllerError),
    /// The power failed since this client came.
    #[error("the power failed")]
    PowerLost,
    /// The device did not come back after a power cut.
    #[error("the device is lost: {0}")]
    Lost(String),
}

impl From<ControllerError> for DriveError {
    fn from(error: ControllerError) -> DriveError {
        match error {
            ControllerError::EndOfLife { .. } => DriveError::NoRoom(error),
            ControllerError::OutOfRange { .. } | ControllerError::OutsideWindow { .. } => DriveError::Range,
            _ => DriveError::Device(error),
        }
    }
}
