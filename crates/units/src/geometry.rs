//! Addresses, and the shape of an array of erasable blocks.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};

/// A logical unit address: the number by which the host knows a mapping unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lpa(pub u32);

/// A physical unit address: where a mapping unit is stored. See [`Geometry`] for the numbering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ppa(pub u32);

/// A die of an array: what works on one operation at a time. Neighbouring dies are on different channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Die(pub u32);

/// What the numbers of units and dies have in common.
macro_rules! number {
    ($($name:ident),*) => {$(
        impl $name {
            /// Its place in a table with an entry for each.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

/// What addresses of units have besides: lengths are plain numbers.
macro_rules! address {
    ($($name:ident),*) => {$(
        impl $name {
            /// No unit: larger than the address of any.
            pub const NONE: $name = $name(u32::MAX);
        }

        impl Add<u32> for $name {
            type Output = $name;
            #[inline]
            fn add(self, units: u32) -> $name {
                $name(self.0 + units)
            }
        }

        impl Sub for $name {
            type Output = u32;
            #[inline]
            fn sub(self, first: $name) -> u32 {
                self.0 - first.0
            }
        }
    )*};
}

number!(Lpa, Ppa, Die);
address!(Lpa, Ppa);

/// An erase block of the whole array, numbered die by die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId(pub u32);

/// A run of consecutive logical units: lengths are passed here, never inferred from the length of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// First unit of the run.
    pub start: Lpa,
    /// Length in units.
    pub count: u32,
}

impl Extent {
    /// One unit.
    #[inline]
    pub const fn one(start: Lpa) -> Extent {
        Extent { start, count: 1 }
    }
    /// The unit after the last one, as a `u64` so that it cannot overflow.
    #[inline]
    pub const fn end(self) -> u64 {
        self.start.0 as u64 + self.count as u64
    }
    /// The units, ascending.
    pub fn units(self) -> impl Iterator<Item = Lpa> {
        (0..self.count).map(move |i| self.start + i)
    }
}

/// The shape of an array of erase blocks, as a controller sees it.
///
/// A *page* here is what one program operation writes: chips or planes that always work in lockstep, and the
/// pages of one word line programmed in one shot, are one page (eNVy: one byte from each of 256 chips is a
/// page of 256 B; a TLC die with 4 planes of 16 KiB: 3 x 4 x 16 KiB = 192 KiB). A *unit* is what the map
/// translates; a page holds one or more.
///
/// Numbering: `unit = ((die * blocks_per_die + block) * pages_per_block + page) * units_per_page + slot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Buses between controller and dies.
    pub channels: u32,
    /// Dies (or banks) on each channel; each works independently.
    pub dies_per_channel: u32,
    /// Erase blocks of one die.
    pub blocks_per_die: u32,
    /// Pages (program operations) in one block.
    pub pages_per_block: u32,
    /// Mapping units in one page.
    pub units_per_page: u32,
    /// Bytes of one mapping unit.
    pub unit_bytes: u32,
}

impl Geometry {
    /// Dies of the whole array.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }
    /// Every die.
    pub fn all_dies(&self) -> impl Iterator<Item = Die> + use<> {
        (0..self.dies()).map(Die)
    }
    /// Every die, round robin from `first` on.
    pub fn dies_from(&self, first: Die) -> impl Iterator<Item = Die> + Clone + use<> {
        let dies = self.dies();
        (0..dies).map(move |i| Die((first.0 + i) % dies))
    }
    /// The die after this one, round robin.
    #[inline]
    pub const fn after(&self, die: Die) -> Die {
        Die(if die.0 + 1 == self.dies() { 0 } else { die.0 + 1 })
    }
    /// Erase blocks of the whole array.
    pub const fn blocks(&self) -> u32 {
        self.dies() * self.blocks_per_die
    }
    /// Mapping units per erase block.
    #[inline]
    pub const fn units_per_block(&self) -> u32 {
        self.pages_per_block * self.units_per_page
    }
    /// Mapping units of the whole array.
    pub const fn units(&self) -> u64 {
        self.blocks() as u64 * self.units_per_block() as u64
    }
    /// Bytes of one page (one program operation).
    pub const fn page_bytes(&self) -> u64 {
        self.units_per_page as u64 * self.unit_bytes as u64
    }
    /// Bytes of one erase block.
    pub const fn block_bytes(&self) -> u64 {
        self.units_per_block() as u64 * self.unit_bytes as u64
    }
    /// Capacity of the array in bytes, without spare areas.
    pub const fn bytes(&self) -> u64 {
        self.units() * self.unit_bytes as u64
    }
    /// The block that holds a unit.
    #[inline]
    pub const fn block_of(&self, unit: Ppa) -> BlockId {
        BlockId(unit.0 / self.units_per_block())
    }
    /// The die that holds a block.
    #[inline]
    pub const fn die_of(&self, block: BlockId) -> Die {
        Die(block.0 / self.blocks_per_die)
    }
    /// The blocks of a die.
    pub fn blocks_of(&self, die: Die) -> impl Iterator<Item = BlockId> + use<> {
        let blocks = self.blocks_per_die;
        (die.0 * blocks..(die.0 + 1) * blocks).map(BlockId)
    }
    /// The channel a die is attached to: neighbouring dies are on different channels.
    #[inline]
    pub const fn channel_of(&self, die: Die) -> u32 {
        die.0 % self.channels
    }
    /// The first unit of a block.
    #[inline]
    pub const fn first_unit(&self, block: BlockId) -> Ppa {
        Ppa(block.0 * self.units_per_block())
    }

    /// Checks that the array is not empty and a `u32` can number its units; otherwise returns the reason.
    pub fn check(&self) -> Result<(), String> {
        for (value, name) in [
            (self.channels, "channels"),
            (self.dies_per_channel, "dies per channel"),
            (self.blocks_per_die, "blocks per die"),
            (self.pages_per_block, "pages per block"),
            (self.units_per_page, "units per page"),
            (self.unit_bytes, "unit bytes"),
        ] {
            if value == 0 {
                return Err(format!("{name} must be at least 1"));
            }
        }
        let units = [self.dies_per_channel, self.blocks_per_die, self.pages_per_block, self.units_per_page]
            .iter()
            .try_fold(self.channels as u64, |product, &factor| product.checked_mul(factor as u64));
        match units {
            Some(units) if units < u32::MAX as u64 => Ok(()),
            _ => Err(format!(
                "the array has more than {} units of {} B; use a larger unit",
                u32::MAX - 1,
                self.unit_bytes
            )),
        }
    }
}

/// Division of 32 bits by a constant as one multiplication, without a special case.
///
/// With `m = (2^64 - r) / d`, where `1 <= r <= d`, `(n + 1) m / 2^64` is `(n + 1) / d` less `(n + 1) r / (d 2^64)`.
/// That term is positive and at most `1 / d`, since `(n + 1) r` is at most 2^64: so the whole part is that of
/// `n / d`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Divider(u64);

impl Divider {
    /// Prepares the division by `divisor`, which must not be 0.
    pub const fn new(divisor: u32) -> Divider {
        Divider(u64::MAX / divisor as u64)
    }
    /// `number / divisor`, rounded down.
    #[inline]
    pub const fn divide(self, number: u32) -> u32 {
        ((self.0 as u128 * (number as u128 + 1)) >> 64) as u32
    }
}

/// The address arithmetic of a geometry for hot paths: the same results without division.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Layout {
    by_block: Divider,
    by_page: Divider,
    by_die: Divider,
    units_per_block: u32,
    units_per_page: u32,
}

impl Layout {
    /// The layout of a geometry that passed [`Geometry::check`].
    pub const fn new(geometry: &Geometry) -> Layout {
        Layout {
            by_block: Divider::new(geometry.units_per_block()),
            by_page: Divider::new(geometry.units_per_page),
            by_die: Divider::new(geometry.blocks_per_die),
            units_per_block: geometry.units_per_block(),
            units_per_page: geometry.units_per_page,
        }
    }
    /// See [`Geometry::block_of`].
    #[inline]
    pub const fn block_of(&self, unit: Ppa) -> BlockId {
        BlockId(self.by_block.divide(unit.0))
    }
    /// See [`Geometry::die_of`].
    #[inline]
    pub const fn die_of(&self, block: BlockId) -> Die {
        Die(self.by_die.divide(block.0))
    }
    /// The block, and the number of the unit within it.
    #[inline]
    pub const fn split_block(&self, unit: Ppa) -> (BlockId, u32) {
        let block = self.block_of(unit);
        (block, unit.0 - block.0 * self.units_per_block)
    }
    /// The block, the page within it, and the slot within the page.
    #[inline]
    pub const fn split(&self, unit: Ppa) -> (BlockId, u32, u32) {
        let (block, within) = self.split_block(unit);
        let page = self.by_page.divide(within);
        (block, page, within - page * self.units_per_page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_blocks_and_dies_are_numbered_in_order() {
        let g = Geometry {
            channels: 2,
            dies_per_channel: 2,
            blocks_per_die: 3,
            pages_per_block: 4,
            units_per_page: 2,
            unit_bytes: 4096,
        };
        assert_eq!((g.dies(), g.blocks(), g.units(), g.bytes()), (4, 12, 96, 96 * 4096));
        assert_eq!(g.block_of(Ppa(95)), BlockId(11));
        assert_eq!(g.die_of(BlockId(11)), Die(3));
        assert_eq!(g.all_dies().map(|die| g.channel_of(die)).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(g.first_unit(BlockId(2)), Ppa(16));
        let layout = Layout::new(&g);
        for unit in (0..96).map(Ppa) {
            let (block, page, slot) = layout.split(unit);
            assert_eq!(g.first_unit(block).0 + page * g.units_per_page + slot, unit.0);
            assert_eq!((layout.block_of(unit), layout.die_of(block)), (g.block_of(unit), g.die_of(block)));
        }
        assert!(Geometry { unit_bytes: 0, ..g }.check().is_err());
        assert!(Geometry { blocks_per_die: u32::MAX, ..g }.check().unwrap_err().contains("larger unit"));
    }

    #[test]
    fn dividers_divide() {
        for divisor in [1, 2, 3, 7, 256, 36_864, 65_535, u32::MAX] {
            let divider = Divider::new(divisor);
            for number in [0, 1, divisor - 1, divisor, divisor.saturating_add(1), 1 << 31, u32::MAX] {
                assert_eq!(divider.divide(number), number / divisor, "{number} / {divisor}");
            }
        }
    }
}
