//! Where the units of a zone are: arithmetic only.
//!
//! A zone lies on the dies of its group. It has *members*: `dies` blocks, one on each, are a superblock, and superblock
//! after superblock is filled, page by page in turn. The last page of member 0 stays free: a block whose erase was torn
//! has something there, so that a recovery can tell a zone whose reset had begun.

use super::config::ZoneConfig;
use nvlab_units::geometry::Divider;
use nvlab_units::{Die, Geometry, Lpa};

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub dies: u32,
    pub pages_per_block: u32,
    pub units_per_page: u32,
    pub size_units: u32,
    /// The number of the free page, if it were counted.
    free: u32,
    groups: u32,
    by_size: Divider,
    by_page: Divider,
    by_die: Divider,
    by_block: Divider,
    by_group: Divider,
}

/// A page of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub member: u32,
    pub page: u32,
}

impl Layout {
    pub fn new(config: &ZoneConfig, geometry: &Geometry) -> Layout {
        let groups = geometry.dies() / config.dies;
        Layout {
            dies: config.dies,
            pages_per_block: geometry.pages_per_block,
            units_per_page: geometry.units_per_page,
            size_units: config.size_units,
            free: (geometry.pages_per_block - 1) * config.dies,
            groups,
            by_size: Divider::new(config.size_units),
            by_page: Divider::new(geometry.units_per_page),
            by_die: Divider::new(config.dies),
            by_block: Divider::new(geometry.pages_per_block),
            by_group: Divider::new(groups),
        }
    }

    /// The zone of a unit, and the unit's number in it.
    #[inline(always)]
    pub fn split(&self, lpa: Lpa) -> (u32, u32) {
        let zone = self.by_size.divide(lpa.0);
        (zone, lpa.0 - zone * self.size_units)
    }

    /// The first unit of a zone.
    #[inline]
    pub fn start(&self, zone: u32) -> Lpa {
        Lpa(zone * self.size_units)
    }

    /// The page of a unit, and its slot there.
    #[inline(always)]
    pub fn page_of(&self, unit: u32) -> (u32, u32) {
        let page = self.by_page.divide(unit);
        (page, unit - page * self.units_per_page)
    }

    /// Where a page of a zone is.
    #[inline(always)]
    pub fn place(&self, page: u32) -> Place {
        let raw = page + (page >= self.free) as u32;
        let row = self.by_die.divide(raw);
        let superblock = self.by_block.divide(row);
        let member = superblock * self.dies + (raw - row * self.dies);
        Place { member, page: row - superblock * self.pages_per_block }
    }

    /// The number of a member's page; `None` past its last one.
    pub fn number(&self, member: u32, page: u32) -> Option<u32> {
        let (superblock, die) = (member / self.dies, member % self.dies);
        let raw = (superblock * self.pages_per_block + page) * self.dies + die;
        (page < self.pages_per_block && raw != self.free).then(|| raw - (raw > self.free) as u32)
    }

    /// The group of dies of a zone.
    #[inline]
    pub fn group(&self, zone: u32) -> u32 {
        zone - self.by_group.divide(zone) * self.groups
    }

    /// How many groups there are.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The group of a die.
    pub fn group_of(&self, die: Die) -> u32 {
        die.0 / self.dies
    }

    /// The dies of a group.
    pub fn dies_of(&self, group: u32) -> impl Iterator<Item = Die> + use<> {
        let dies = self.dies;
        (group * dies..(group + 1) * dies).map(Die)
    }

    /// The die of a zone's member.
    #[inline]
    pub fn die(&self, zone: u32, member: u32) -> Die {
        Die(self.group(zone) * self.dies + member % self.dies)
    }

    /// Units that so many superblocks hold.
    pub fn units_in(&self, superblocks: u32) -> u32 {
        let pages = superblocks as u64 * (self.dies * self.pages_per_block) as u64;
        u32::try_from(pages.saturating_sub(1) * self.units_per_page as u64).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Span;

    #[test]
    fn pages_are_dealt_to_the_dies_and_the_last_of_the_first_block_is_left_out() {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 2,
            blocks_per_die: 9,
            pages_per_block: 3,
            units_per_page: 2,
            unit_bytes: 512,
        };
        let config = ZoneConfig {
            zones: 6,
            size_units: 32,
            capacity_units: 22,
            dies: 2,
            open_max: None,
            active_max: None,
            buffer: None,
            wear_dynamic: true,
            trim: true,
            verify_reads: false,
            overhead: Span::ZERO,
        };
        let layout = Layout::new(&config, &geometry);
        assert_eq!(config.superblocks(&geometry), 2);
        assert_eq!(layout.units_in(2), 22);
        let places: Vec<(u32, u32)> =
            (0..11).map(|page| layout.place(page)).map(|place| (place.member, place.page)).collect();
        let all = [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (2, 0), (3, 0), (2, 1), (3, 1), (2, 2), (3, 2)];
        assert_eq!(places, all);
        for (number, (member, page)) in (0..).zip(all) {
            assert_eq!(layout.number(member, page), Some(number));
        }
        assert_eq!((layout.number(0, 2), layout.number(1, 3)), (None, None));
        assert_eq!(layout.split(Lpa(70)), (2, 6));
        assert_eq!([layout.die(3, 0), layout.die(3, 3), layout.die(2, 2)], [Die(2), Die(3), Die(0)]);
    }
}
