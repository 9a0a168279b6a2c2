//! A design as a block device with its bytes: what is served over NBD and FUSE.
//!
//! The device is built from the same design and by the same controller as in a simulation; only its media keep what is
//! written, in mapped files. A device of any kind is boxed behind one dynamic call per request ([`ServedDevice`]).
//!
//! | module | what |
//! |---|---|
//! | `device` | from a design and a state to its device |
//! | `aged` | a new device in the state of one that was used |
//! | `state` | the folder with the media |
//! | [`drive`] | a device with a clock, a power plug and counts, for several clients |
//! | `view` | what it looks like to those who watch it |
//! | `counts`, `life` | its counts since the power came back, and over its life |
//! | `lateness`, `error` | how late its replies were; why it does not serve a request |

mod aged;
mod counts;
mod device;
pub mod drive;
mod error;
#[cfg(test)]
mod killed;
mod lateness;
mod life;
mod state;
mod view;

pub use aged::Aging;
pub use counts::{Counts, Cut, Wear};
pub(crate) use device::build;
pub use drive::{Drive, DriveOptions, Due, Session, Zero};
pub use error::DriveError;
pub use lateness::Lateness;
pub use nvlab_run::device::ServedDevice;
use nvlab_run::device::served::Built;
pub use state::{DeviceState, Start};
pub use view::{Inside, View};
