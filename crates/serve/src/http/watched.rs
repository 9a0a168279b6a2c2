//! The object of a live page, a served device or a run, and its controls.

use crate::served::{Drive, View};

/// Something that a live page shows and controls: a served device, a window or a run.
pub trait Watched: Send + Sync {
    /// Its name on the page.
    fn name(&self) -> &str;
    /// Its state now, or a moment ago: the caller never waits for the device.
    fn view(&self) -> View;
    /// Does something to it; returns what was done, or why not.
    fn act(&self, action: Action) -> Result<String, String>;
}

/// What can be done from a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Cuts the power and recovers at once.
    Cut,
    /// No request is served until [`Action::Resume`]; the device's time stands still.
    Pause,
    /// Ends a pause; nothing if there was none.
    Resume,
    /// Requests per second of the device's time; `None`: as the workload says. For a run only.
    Rate(Option<f64>),
    /// Seconds of the device's time that pass in a second; `None`: as many as this machine can simulate. For a run only.
    Speed(Option<f64>),
}

impl Watched for Drive {
    fn name(&self) -> &str {
        Drive::name(self)
    }

    fn view(&self) -> View {
        Drive::view(self)
    }

    fn act(&self, action: Action) -> Result<String, String> {
        match action {
            Action::Cut => self.cut().map_err(|fault| fault.to_string()).map(|cut| {
                format!("the power failed after {} operations; recovered in {}", cut.operations, cut.recovery)
            }),
            Action::Pause => {
                self.pause();
                Ok("paused".into())
            }
            Action::Resume => {
                self.resume();
                Ok("resumed".into())
            }
            Action::Rate(_) | Action::Speed(_) => {
                Err("programs issue the requests of a served device; rate and speed apply only to runs"
                    .into())
            }
        }
    }
}
