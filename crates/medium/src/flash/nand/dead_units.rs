//! Sets of stale unit versions, as left by trims.
//!
//! Per block, a list of units while there are few, otherwise a bit per unit: a trim of the whole device takes an
//! eighth of a byte per unit and about 64 B per block, wherever its units are. Rejected: *runs of units*, of which a
//! randomly written device has as many as units.

use super::Nand;
use crate::Store;
use nvlab_units::{BlockId, Ppa};
use std::collections::BTreeMap;

/// Chosen so that a list takes at most as many bytes as the bits, even when its capacity has just doubled.
const UNITS_PER_LISTED: u32 = 64;
/// Bytes of an entry of the map and of what it allocates.
const BLOCK_BYTES: u64 = 64;

/// A stale version of a unit: its address, and the life of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dead {
    pub(super) unit: Ppa,
    pub(super) block: BlockId,
    pub(super) erases: u32,
}

#[derive(Clone, Debug)]
enum Units {
    /// Numbers within the block, in any order, each at most twice.
    Few(Vec<u32>),
    /// One bit per unit.
    Many(Box<[u64]>),
}

/// The dead units of a block, in one of its lives.
#[derive(Clone, Debug)]
struct OfBlock {
    erases: u32,
    units: Units,
}

/// Stale versions of units, each in one life of its block.
#[derive(Clone, Debug, Default)]
pub struct DeadUnits {
    blocks: BTreeMap<u32, OfBlock>,
    /// Those in pages not yet programmed: few.
    pub(super) staged: Vec<Dead>,
}

impl DeadUnits {
    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.staged.is_empty()
    }

    /// Memory used, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let of_block = |block: &OfBlock| match &block.units {
            Units::Few(list) => 4 * list.capacity() as u64,
            Units::Many(words) => 8 * words.len() as u64,
        };
        let staged = (self.staged.capacity() * size_of::<Dead>()) as u64;
        staged + self.blocks.values().map(|block| BLOCK_BYTES + of_block(block)).sum::<u64>()
    }
}

impl OfBlock {
    fn add(&mut self, unit: u32, units_per_block: u32) {
        match &mut self.units {
            Units::Few(list) if (list.len() as u32) < units_per_block / UNITS_PER_LISTED => list.push(unit),
            Units::Few(list) => {
                let mut words = vec![0; units_per_block.div_ceil(64) as usize].into_boxed_slice();
                let all = list.iter().copied().chain([unit]);
                all.for_each(|unit| words[unit as usize / 64] |= 1 << (unit % 64));
                self.units = Units::Many(words);
            }
            Units::Many(words) => words[unit as usize / 64] |= 1 << (unit % 64),
        }
    }

    fn take(&mut self) -> Option<u32> {
        match &mut self.units {
            Units::Few(list) => list.pop(),
            Units::Many(words) => {
                let at = words.iter().position(|&word| word != 0)?;
                let bit = words[at].trailing_zeros();
                words[at] &= words[at] - 1;
                Some(at as u32 * 64 + bit)
            }
        }
    }
}

impl<S: Store> Nand<S> {
    /// Adds the current version at `unit` ([`Nand::dead`]).
    pub fn add_dead(&self, dead: &mut DeadUnits, unit: Ppa) {
        let version = self.dead(unit);
        if !self.holds_page_of(version) {
            return dead.staged.push(version);
        }
        let Dead { block, erases, .. } = version;
        let none = || OfBlock { erases, units: Units::Few(Vec::new()) };
        let of_block = dead.blocks.entry(block.0).or_insert_with(none);
        if of_block.erases != erases {
            // Versions of an earlier life no longer exist.
            *of_block = none();
        }
        of_block.add(unit.0 - self.geometry().first_unit(block).0, self.geometry().units_per_block());
    }

    /// Removes and returns one version that still exists.
    pub(super) fn take_dead(&self, dead: &mut DeadUnits) -> Option<Ppa> {
        while let Some(mut first) = dead.blocks.first_entry() {
            let block = BlockId(*first.key());
            let is_there = self.cells.erase_count(block) == first.get().erases;
            match first.get_mut().take().filter(|_| is_there) {
                Some(unit) => return Some(Ppa(self.geometry().first_unit(block).0 + unit)),
                None => first.remove(),
            };
        }
        None
    }
}
