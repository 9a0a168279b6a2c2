//! A block device of a design whose power can fail, with any controller.

use super::Observed;
use nvlab_access::{Attached, BlockDevice, RamDisk};
use nvlab_controller::{Controller, Envy, Powered};
use nvlab_medium::Store;
use nvlab_units::Lpa;

/// A block device as a design describes it, with any controller.
pub trait Device: BlockDevice + Observed + Powered {
    /// True if its media keep what is written.
    const KEEPS: bool;
    /// True if the unit with this byte holds something; otherwise it reads as zero.
    fn is_mapped(&self, offset: u64) -> bool;
}

fn holds(controller: &impl Controller, offset: u64) -> bool {
    controller.is_mapped(Lpa((offset / controller.unit_bytes() as u64) as u32))
}

impl<C: Controller + Observed + 'static> Device for Attached<C> {
    const KEEPS: bool = C::KEEPS;

    fn is_mapped(&self, offset: u64) -> bool {
        holds(self.controller(), offset)
    }
}

impl<S: Store> Device for RamDisk<Envy<S>> {
    const KEEPS: bool = S::KEEPS;

    fn is_mapped(&self, offset: u64) -> bool {
        holds(self.window(), offset)
    }
}
