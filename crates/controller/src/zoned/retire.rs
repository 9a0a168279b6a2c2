//! Blocks that fail: others take their place, or zones have to do with fewer.

use super::layout::Place;
use super::{ZoneMap, ZoneState};
use crate::ControllerError;
use crate::spare::{self, Kind, Spare};
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_medium::flash::cells::SLC_LEVEL;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Die, Ppa, Time};

impl<S: Store> ZoneMap<S> {
    /// Takes another block in place of one whose page failed: copies the pages before that, and retires the block. Without an
    /// erased block on the die, nothing changes.
    pub(super) fn replace(&mut self, at: Time, zone: u32, place: Place) -> Result<(), ControllerError> {
        let old = self.move_pages(at, zone, place)?;
        self.pool.retire(&mut self.nand, at, old);
        Ok(())
    }

    /// Takes another block for a member and copies the pages before `place.page` to it; returns the block it had.
    pub(super) fn move_pages(&mut self, at: Time, zone: u32, place: Place) -> Result<u32, ControllerError> {
        let (index, die) = (self.index(zone, place.member), self.layout.die(zone, place.member));
        let old = self.blocks[index];
        let moved = loop {
            match self.pool.take(&self.nand, die) {
                Ok(fresh) if self.copy_pages(at, die, (old, fresh), place.page) => break Ok(fresh),
                Ok(fresh) => _ = self.pool.retire(&mut self.nand, at, fresh),
                Err(refused) => break Err(refused),
            }
        };
        self.shrink_empty(self.layout.group(zone));
        self.blocks[index] = moved?;
        Ok(old)
    }

    /// Copies the first pages of a block to another; false if a program failed.
    fn copy_pages(&mut self, at: Time, die: Die, (from, to): (u32, u32), pages: u32) -> bool {
        let per_page = self.geometry.units_per_page;
        let mut reads = [0; SLC_LEVEL as usize + 1];
        for slot in (0..per_page).step_by(self.nand.units_per_read() as usize) {
            reads[self.nand.level(slot) as usize] += pages;
        }
        if pages > 0 {
            self.nand.relocation_reads(at, die, &reads, pages * per_page);
        }
        for page in 0..pages {
            let (mut data, mut spare) = (Vec::new(), Vec::new());
            if S::KEEPS {
                self.copy_of(BlockId(from), page, &mut data, &mut spare);
            }
            let payload = if S::KEEPS { Payload::new(&data, &spare) } else { Payload::default() };
            match self.nand.program(at, BlockId(to), page, 1, payload, false) {
                Ok(_) => self.stats.retire_units += per_page as u64,
                Err(MediumError::ProgramFailed(_)) => return false,
                Err(other) => panic!("block {to} broke a rule of the medium: {other}"),
            }
        }
        true
    }

    /// Payload and spare areas of a copy of a page.
    fn copy_of(&mut self, block: BlockId, page: u32, data: &mut Vec<u8>, spares: &mut Vec<u8>) {
        let first = self.geometry.first_unit(block) + page * self.geometry.units_per_page;
        let bytes = self.geometry.unit_bytes as usize;
        for slot in 0..self.geometry.units_per_page {
            data.resize(data.len() + bytes, 0);
            let from = data.len() - bytes;
            // A unit that is damaged stays so; nothing else is unreadable among the pages of a zone.
            let found = spare::peek(&self.nand, first + slot, &mut data[from..]);
            let stamp = self.take_stamp();
            let spare = found.map_or(
                Spare { kind: Kind::Padding, damaged: true, lpa: nvlab_units::Lpa::NONE, sequence: 0, stamp },
                |found| Spare { stamp, ..found },
            );
            spares.extend_from_slice(&spare.encode(&data[from..]));
        }
    }

    /// True if a die of a group has too few erased blocks.
    pub(super) fn is_short(&self, group: u32) -> bool {
        self.layout.dies_of(group).any(|die| self.pool.is_short(group, die))
    }

    /// An empty zone has to do with a superblock less.
    pub(super) fn shrink(&mut self, zone: u32) {
        let state = &mut self.zones[zone as usize];
        state.superblocks -= 1;
        state.capacity = self.config.capacity_units.min(self.layout.units_in(state.superblocks));
        self.pool.claimed[self.layout.group(zone) as usize] -= 1;
        if self.zones[zone as usize].superblocks == 0 {
            self.states.set(zone, ZoneState::Offline);
        }
    }

    /// Lets the empty zones of a group do with the blocks there are, the last zone first.
    pub(super) fn shrink_empty(&mut self, group: u32) {
        while self.is_short(group) {
            let mut zones = (0..self.zones.len() as u32).rev();
            let may =
                |&zone: &u32| self.layout.group(zone) == group && self.states.of(zone) == ZoneState::Empty;
            let Some(zone) = zones.find(may) else { break };
            self.shrink(zone);
        }
    }

    /// The spare areas of the first and the last unit of a page that is complete. The page is read at `at`; `end` is when the last
    /// one arrives.
    pub(super) fn page_spares(
        &mut self,
        at: Time,
        block: BlockId,
        page: u32,
        end: &mut Time,
    ) -> Option<[Spare; 2]> {
        let first = self.geometry.first_unit(block) + page * self.geometry.units_per_page;
        let last = first + (self.geometry.units_per_page - 1);
        let (arrived, read) = self.nand.read_spare(at, last);
        *end = (*end).max(arrived);
        let alone = |bytes: [u8; SPARE_BYTES]| Spare::alone(&bytes);
        let last = alone(read.ok()?)?;
        let spare = |unit: Ppa| self.nand.spare(unit).ok().and_then(alone);
        Some([spare(first)?, last])
    }
}
