//! A design as a block device with its bytes: what is served over NBD and FUSE.
//!
//! The device is built from the same design and by the same controller as in a simulation; only its media keep what is
//! written, in mapped files. What is generic below is boxed here: one dynamic call for each request.
//!
//! | module | what |
//! |---|---|
//! | [`page_map`], [`ram_disk`] | a file for each kind of controller |
//! | [`state`] | the folder with the media |
//! | `battery` | what a protected write buffer holds, outside this process |
//! | [`drive`] | a device with a clock, a power plug and counts, for several clients |

mod battery;
pub mod drive;
pub mod page_map;
pub mod ram_disk;
pub mod state;

pub use drive::{Cut, Drive, DriveOptions, Due, Fault, Session, Zero};
pub use state::{DeviceState, Start};

use crate::WindowError;
use nvlab_controller::ControllerError;
use nvlab_lab::design::{Design, Ftl};
use nvlab_lab::run::device::Observed;
use nvlab_units::Time;

/// A block device with payload, as the serving edge needs it.
///
/// Offsets and lengths were checked against the capacity; they need not be aligned. An operation gives the time at which
/// it is done. After an error of [`Served::power_cycle`] the device is gone: nothing may be called any more.
pub trait Served: Send {
    /// Bytes.
    fn capacity_bytes(&self) -> u64;
    /// Bytes that are best read and written together.
    fn unit_bytes(&self) -> u32;
    /// Reads bytes.
    fn read(&mut self, at: Time, offset: u64, into: &mut [u8]) -> Result<Time, ControllerError>;
    /// Writes bytes.
    fn write(&mut self, at: Time, offset: u64, data: &[u8]) -> Result<Time, ControllerError>;
    /// Gives up the whole units inside a range.
    fn trim(&mut self, at: Time, offset: u64, bytes: u32) -> Result<Time, ControllerError>;
    /// Everything written before is durable at the end.
    fn flush(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// True if the unit with this byte holds something; otherwise it reads as zero.
    fn is_mapped(&self, offset: u64) -> bool;
    /// True if what was trimmed and flushed reads as zero for ever; otherwise trim is advice.
    fn trims_last(&self) -> bool;
    /// No power cut will come before `upto`.
    fn settle(&mut self, upto: Time);
    /// The power fails at `at` and comes back. Gives when the controller has found everything again.
    fn power_cycle(&mut self, at: Time) -> Result<Time, String>;
    /// The power will be switched off in good order.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// Its insides.
    fn observed(&self) -> &dyn Observed;
    /// Its insides, to reset counts.
    fn observed_mut(&mut self) -> &mut dyn Observed;
}

/// Builds the device of a design over its media: as new, or found again in them. The second value is when it is ready.
pub(crate) fn build(
    design: &Design,
    state: &DeviceState,
    seed: u64,
) -> Result<(Box<dyn Served>, Time), WindowError> {
    if nvlab_lab::run::device::pram::is_visited(design) {
        let why = format!("design {}: bast, hftl and fsms are simulated, not served", design.name);
        return Err(WindowError::Options(why));
    }
    match &design.ftl {
        Ftl::Blocks(_) | Ftl::Hftl(_) => unreachable!("built for a visitor"),
        Ftl::Page(page) => page_map::open(design, page, state, seed),
        Ftl::Envy(envy) => ram_disk::open(design, envy, state, seed),
    }
}
