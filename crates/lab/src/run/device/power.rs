//! The power of a device fails and comes back, or is switched off in good order.

use super::Observed;
use nvlab_access::{Attached, BlockDevice};
use nvlab_controller::{Controller, ControllerError};
use nvlab_units::{Span, Time};

/// What it took a controller to find everything again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mounted {
    /// How long the host waited.
    pub time: Span,
    /// Pages of NAND that were read.
    pub nand_reads: u64,
}

/// A controller whose power can fail.
pub trait Powered: Controller + Observed + Sized {
    /// The power fails at `at` and comes back. Its media must keep bytes. An error: it is gone for good.
    fn power_cycle(self, at: Time) -> Result<(Self, Mounted), String>;
    /// The power will be switched off in good order; gives when it may be.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.idle_at(at)
    }
    /// True if the unit holds something; otherwise it reads as zero.
    fn is_mapped(&self, unit: u32) -> bool;
    /// True if what was trimmed and flushed reads as zero for ever; otherwise trim is advice.
    fn trims_last(&self) -> bool;
}

/// A block device as a design describes it, whatever its controller.
pub trait Device: BlockDevice + Observed + Sized {
    /// True if its media keep what is written.
    const KEEPS: bool;
    /// The power fails at `at` and comes back. Its media must keep bytes. An error: it is gone for good.
    fn power_cycle(self, at: Time) -> Result<(Self, Mounted), String>;
    /// The power will be switched off in good order; gives when it may be.
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError>;
    /// True if the unit with this byte holds something; otherwise it reads as zero.
    fn is_mapped(&self, offset: u64) -> bool;
    /// True if what was trimmed and flushed reads as zero for ever; otherwise trim is advice.
    fn trims_last(&self) -> bool;
}

impl<C: Powered> Device for Attached<C> {
    const KEEPS: bool = C::KEEPS;

    fn power_cycle(self, at: Time) -> Result<(Self, Mounted), String> {
        let path = self.path();
        let (controller, mounted) = self.into_controller().power_cycle(at)?;
        Ok((Attached::new(controller, path), mounted))
    }
    fn power_down(&mut self, at: Time) -> Result<Time, ControllerError> {
        self.controller_mut().power_down(at)
    }
    fn is_mapped(&self, offset: u64) -> bool {
        let controller = self.controller();
        controller.is_mapped((offset / Controller::unit_bytes(controller) as u64) as u32)
    }
    fn trims_last(&self) -> bool {
        self.controller().trims_last()
    }
}
