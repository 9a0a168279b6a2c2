//! A design built: controller over medium, behind its path.

use crate::design::Design;
use nvlab_access::{Attached, BlockDevice, HostPath};
use nvlab_controller::PageMap;
use nvlab_medium::flash::Nand;

/// A device that only tells the time.
pub type Device = Attached<PageMap<()>>;

/// Counts a meter follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Units the host wrote.
    pub host_units: u64,
    /// Units programmed for whatever cause.
    pub programmed_units: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// A device whose insides can be counted.
pub trait Observed: BlockDevice {
    /// What it counted so far.
    fn counters(&self) -> Counters;
}

impl Observed for Device {
    fn counters(&self) -> Counters {
        let (map, nand) = (self.controller().stats(), self.controller().nand().stats());
        let programmed_units = map.host_write_units
            + map.clean_units
            + map.wear_units
            + map.retire_units
            + map.map_units
            + map.padding_units;
        Counters { host_units: map.host_write_units, programmed_units, erases: nand.erases }
    }
}

/// Builds the device a design describes, new from the factory.
pub fn build(design: &Design, seed: u64) -> Result<Device, String> {
    let map = PageMap::new(design.page_map_config(seed), Nand::new(design.flash_config(seed), ()))?;
    let path = HostPath {
        rate: design.path.rate,
        full_duplex: design.path.kind.full_duplex(),
        overhead: design.path.overhead_host + design.path.overhead_device,
    };
    Ok(Attached::new(map, path))
}
