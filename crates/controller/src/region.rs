//! State of the regions of a medium, for the live page: the blocks of a flash array, the segments of eNVy.
//!
//! It is derived from a controller's own tables on request; no operation pays for it.

use nvlab_units::geometry::Divider;

/// What a region is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nothing: erased, or its erase is queued.
    Erased,
    /// Data of the host.
    Data,
    /// A log of overwrites, to be merged with the data.
    Log,
    /// Its live units are being moved away.
    Emptying,
    /// The controller's own data: a checkpoint of the map.
    Map,
    /// Nothing any more: it is bad.
    Retired,
}

impl Use {
    /// Every use, in the order of the numbers that the live page uses.
    pub const ALL: [Use; 6] = [Use::Erased, Use::Data, Use::Log, Use::Emptying, Use::Map, Use::Retired];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Use::Erased => "erased",
            Use::Data => "data",
            Use::Log => "log",
            Use::Emptying => "being emptied",
            Use::Map => "map",
            Use::Retired => "retired",
        }
    }
}

/// A region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Units in it that are the newest version of a logical unit.
    pub live: u32,
    /// What it is used for.
    pub used: Use,
}

/// Counts live units by their addresses, region by region.
pub(crate) struct Tally {
    by_region: Divider,
    regions: Vec<Region>,
}

impl Tally {
    /// Regions of `units` units each; erased until they are said to be something else.
    pub fn new(regions: u32, units: u32) -> Tally {
        let erased = Region { live: 0, used: Use::Erased };
        Tally { by_region: Divider::new(units), regions: vec![erased; regions as usize] }
    }

    /// The unit at this address is live.
    #[inline]
    pub fn live(&mut self, address: u32) {
        self.regions[self.by_region.divide(address) as usize].live += 1;
    }

    /// A region is used for this.
    pub fn used(&mut self, region: u32, used: Use) {
        self.regions[region as usize].used = used;
    }

    /// The regions.
    pub fn done(self) -> Vec<Region> {
        self.regions
    }
}
