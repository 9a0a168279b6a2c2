//! The configuration of a zoned controller: plain data, filled from a design.

use nvlab_medium::flash::{CellRules, FlashConfig};
use nvlab_units::{Geometry, Span};

/// A controller of zones over a NAND array.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneConfig {
    /// Zones the host sees.
    pub zones: u32,
    /// Units from the start of one zone to that of the next.
    pub size_units: u32,
    /// Units of a zone that can be written: whole pages, at most its blocks less a page.
    pub capacity_units: u32,
    /// Dies a zone is spread over, page by page; the dies of the array are divided into groups of so many.
    pub dies: u32,
    /// Zones that may be open at the same time; `None`: all.
    pub open_max: Option<u32>,
    /// Zones that may be open or closed at the same time; `None`: all.
    pub active_max: Option<u32>,
    /// Write buffer; `None`: a write is acknowledged when its pages are programmed, and a page is a unit.
    pub buffer: Option<ZoneBuffer>,
    /// The least worn erased blocks are taken first.
    pub wear_dynamic: bool,
    /// Whether a trim of whole zones resets them.
    pub trim: bool,
    /// Whether a unit's checksum is verified when the host reads it: on a mismatch it is unreadable. Only if the medium
    /// keeps payload.
    pub verify_reads: bool,
    /// Time of the controller itself per request, before it accesses the medium.
    pub overhead: Span,
}

/// The write buffer: pages being filled, and pages that wait for their program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneBuffer {
    /// Pages it has room for.
    pub pages: u32,
    /// It survives a power cut.
    pub protected: bool,
    /// Time to store a unit in it.
    pub store: Span,
}

/// Blocks of a new die that no zone needs: for those that fail and for the log of partly filled pages.
const RESERVE: u32 = 2;
/// The number of superblocks of a zone is kept in a byte.
const SUPERBLOCKS_MAX: u32 = 255;

impl ZoneConfig {
    /// Superblocks of a zone: a block of each of its dies.
    pub(super) fn superblocks(&self, geometry: &Geometry) -> u32 {
        // One page is left free (see the module).
        let pages = (self.capacity_units / geometry.units_per_page) as u64 + 1;
        pages.div_ceil(self.dies as u64 * geometry.pages_per_block as u64) as u32
    }

    /// Blocks of each die that the zones of a group take.
    pub fn blocks_per_die(&self, geometry: &Geometry) -> u64 {
        let groups = (geometry.dies() / self.dies).max(1);
        self.zones.div_ceil(groups) as u64 * self.superblocks(geometry) as u64
    }

    /// Checks that it can work on an array; otherwise returns the reason.
    pub fn check(&self, flash: &FlashConfig) -> Result<(), String> {
        let geometry = &flash.geometry;
        geometry.check()?;
        if flash.rules != CellRules::Nand {
            return Err(
                "zones are written page by page in order: the array must be NAND with that rule".into()
            );
        }
        if self.dies == 0 || !geometry.dies().is_multiple_of(self.dies) {
            return Err(format!("zones of {} dies do not divide an array of {}", self.dies, geometry.dies()));
        }
        if geometry.pages_per_block < 2 {
            return Err(
                "a zone leaves a page of its first block free: a block needs at least two pages".into()
            );
        }
        if self.capacity_units == 0 || !self.capacity_units.is_multiple_of(geometry.units_per_page) {
            return Err(format!(
                "a zone's capacity of {} units must be whole pages of {} units",
                self.capacity_units, geometry.units_per_page
            ));
        }
        if self.capacity_units > self.size_units || self.zones == 0 {
            return Err(format!(
                "{} zones of {} units cannot have a capacity of {} units each",
                self.zones, self.size_units, self.capacity_units
            ));
        }
        if self.zones as u64 * self.size_units as u64 >= u32::MAX as u64 {
            return Err(format!("{} zones have more units than can be numbered", self.zones));
        }
        if self.superblocks(geometry) > SUPERBLOCKS_MAX {
            return Err(format!("a zone takes more than {SUPERBLOCKS_MAX} blocks of a die: use more dies"));
        }
        let (taken, has) = (self.blocks_per_die(geometry), geometry.blocks_per_die as u64);
        if taken + RESERVE as u64 > has {
            return Err(format!(
                "{} zones take {taken} blocks of each die and {RESERVE} are kept in reserve, but a die has {has}",
                self.zones
            ));
        }
        self.check_limits(geometry)
    }

    fn check_limits(&self, geometry: &Geometry) -> Result<(), String> {
        let [open, active] = [self.open_max, self.active_max].map(|max| max.unwrap_or(self.zones));
        if open == 0 || active == 0 || self.open_max.is_some_and(|open| open > active) {
            return Err(format!(
                "{open} open and {active} active zones: at least one, and no more open than active"
            ));
        }
        match self.buffer {
            None if geometry.units_per_page > 1 => Err(format!(
                "a page has {} units: what a zone holds of a page being filled needs a write buffer",
                geometry.units_per_page
            )),
            Some(buffer) if buffer.pages <= active.min(self.zones) && geometry.units_per_page > 1 => {
                Err(format!(
                    "a write buffer of {} pages: each of {} active zones fills a page, and one more is programmed",
                    buffer.pages,
                    active.min(self.zones)
                ))
            }
            // A block of the log holds what they all have of a page being filled, and the record of a reset.
            Some(_)
                if geometry.units_per_page > 1 && active.min(self.zones) + 1 >= geometry.pages_per_block =>
            {
                Err(format!(
                    "{} active zones may fill more pages than a block of the log has: at most {}",
                    active.min(self.zones),
                    geometry.pages_per_block.saturating_sub(2)
                ))
            }
            Some(buffer) if buffer.pages == 0 => Err("a write buffer of no page".into()),
            _ => Ok(()),
        }
    }
}
