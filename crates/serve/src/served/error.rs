//! The errors of a request to a served device.

use nvlab_controller::ControllerError;
use thiserror::Error;

/// Why a request failed; each front end has its own error number for it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriveError {
    /// The range ends beyond the device.
    #[error("it extends past the end of the device")]
    Range,
    /// It cannot be done quickly, and was requested only if quick.
    #[error("the device cannot do this quickly")]
    NotFast,
    /// The device has no space left: it is worn out.
    #[error("{0}")]
    NoRoom(ControllerError),
    /// The controller failed this request only.
    #[error("{0}")]
    Device(ControllerError),
    /// The model's time is over ([`nvlab_units::Time::is_over`]).
    #[error(
        "simulated time exceeded its maximum of 213 days: restart the device, which then starts again at 0; what --state \
         stores is kept"
    )]
    TimeIsOver,
    /// The power failed since the session began.
    #[error("power failed")]
    PowerLost,
    /// The device is lost: it did not recover, or its controller panicked.
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
