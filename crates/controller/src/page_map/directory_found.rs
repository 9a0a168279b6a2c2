//! The map from its translation pages, at recovery: the newest whole directory, and the pages it names.

use super::PageMap;
use super::pieces::{Checkpoint, Found, Pieces, entries_of};
use super::recover::{First, damaged};
use super::spare::{self, Kind};
use crate::table::BlockState;
use nvlab_medium::Store;
use nvlab_units::{BlockId, Ppa, Time};
use std::collections::BTreeMap;

/// A directory being put together: its bytes, the units of it that were found, and the blocks of the medium they lie in.
struct Parts {
    bytes: Vec<u8>,
    found: Vec<bool>,
    blocks: Vec<BlockId>,
}

impl<S: Store> PageMap<S> {
    /// Reads the blocks of directories, and adopts the newest whole one with the log that it names. Its translation pages
    /// are not read now: a controller reads them when they are needed.
    pub(super) fn newest_directory(
        &mut self,
        now: &mut Time,
        firsts: &[First],
    ) -> Result<Option<Checkpoint>, String> {
        let is_one = |first: &First| matches!(first, First::Says(spare) if spare.kind == Kind::Checkpoint);
        let blocks = (0..).map(BlockId).zip(firsts).filter(|(_, first)| is_one(first));
        let blocks: Vec<BlockId> = blocks.map(|(block, _)| block).collect();
        let mut turns: BTreeMap<u64, Parts> = BTreeMap::new();
        for block in blocks {
            *now = self.read_block(*now, block);
            self.gather(block, &mut turns)?;
        }
        self.checkpoint.number = turns.keys().last().copied().unwrap_or(0);
        let pieces = self.checkpoint.pieces;
        for parts in turns.into_values().rev().filter(|parts| parts.found.iter().all(|found| *found)) {
            let Some(directory) = pieces.decode(0, &parts.bytes) else { continue };
            let checkpoint = self.adopt_directory(directory, parts.blocks)?;
            self.numbers.sequence = self.numbers.sequence.max(checkpoint.sequence());
            return Ok(Some(checkpoint));
        }
        Ok(None)
    }

    /// Adds the units of directories in a block of the medium to those found so far.
    fn gather(&mut self, block: BlockId, turns: &mut BTreeMap<u64, Parts>) -> Result<(), String> {
        let unit_bytes = self.geometry.unit_bytes as usize;
        let units = (self.checkpoint.pieces.pages_of_all() * self.geometry.units_per_page as u64) as usize;
        let mut data = vec![0; unit_bytes];
        for unit in self.written_units(block) {
            let Ok(spare) = spare::peek(self.array.nand(), unit, &mut data) else { continue };
            self.numbers.found_stamp(&spare);
            if spare.kind != Kind::Checkpoint || spare.lpa.index() >= units {
                continue;
            }
            if spare.damaged {
                return Err(damaged("a directory of the map", unit));
            }
            let parts = turns.entry(spare.sequence).or_insert_with(|| Parts {
                bytes: vec![0; units * unit_bytes],
                found: vec![false; units],
                blocks: Vec::new(),
            });
            parts.bytes[spare.lpa.index() * unit_bytes..][..unit_bytes].copy_from_slice(&data);
            parts.found[spare.lpa.index()] = true;
            if parts.blocks.last() != Some(&block) {
                parts.blocks.push(block);
            }
        }
        Ok(())
    }

    /// Adopts a directory that lies in these blocks of the medium, and the map it names.
    fn adopt_directory(
        &mut self,
        (moment, places): Found,
        members: Vec<BlockId>,
    ) -> Result<Checkpoint, String> {
        let blocks = self.mark_map(members);
        self.demand_mut().turn.adopt(blocks.into_iter());
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        for (page, place) in (0..).zip(places.into_iter().map(Ppa)) {
            let units = self.demand_mut().units(page);
            if place.0 as u64 >= self.geometry.units() {
                continue;
            }
            match spare::peek(self.array.nand(), self.array.place(place), &mut data) {
                Ok(spare) if spare.kind == Kind::Map && spare.lpa.0 == page && !spare.damaged => {}
                _ => return Err(damaged("a translation page of the map", place)),
            }
            self.map.load(units, entries_of(&data));
            self.place_page(page, place);
        }
        self.adopt_log();
        Ok(Checkpoint::new(Pieces::undivided(self.config.logical_units), vec![moment], Vec::new()))
    }

    /// The blocks with translation pages of the directory are those of the log.
    fn adopt_log(&mut self) {
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.demand_mut().log.live[block.0 as usize] == 0 {
                continue;
            }
            // A program in it failed before the cut: it is read like the others, but not used again.
            if self.table.state(block) != BlockState::Bad {
                self.table.set_state(block, BlockState::Map);
            }
            self.demand_mut().log.closed.push((block, None));
        }
    }

    /// Notes the entries that differ from those of the translation pages.
    pub(super) fn note_found(&mut self) -> Result<(), String> {
        let Some(demand) = &self.demand else { return Ok(()) };
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        for page in 0..demand.log.places.len() as u32 {
            let demand = self.demand_mut();
            let (units, place) = (demand.units(page), demand.log.places[page as usize]);
            match place {
                Ppa::NONE => data.fill(u8::MAX),
                place => {
                    let read = spare::peek(self.array.nand(), self.array.place(place), &mut data);
                    read.map_err(|_| damaged("a translation page of the map", place))?;
                }
            }
            for (lpa, known) in units.units().zip(entries_of(&data)) {
                if Ppa(known) != self.map.find(lpa) {
                    self.note_change(lpa);
                }
            }
        }
        Ok(())
    }

    /// Checks the invariants of the log; for tests.
    pub(super) fn check_log(&self) {
        let Some(demand) = &self.demand else { return };
        let mut live = vec![0; self.geometry.blocks() as usize];
        for &place in demand.log.places.iter().filter(|place| **place != Ppa::NONE) {
            live[self.block_of(place).0 as usize] += 1;
        }
        assert_eq!(live, demand.log.live);
        let closed = demand.log.closed.iter().map(|&(block, _)| block);
        let blocks: Vec<BlockId> = closed.chain(demand.log.open_blocks()).collect();
        for block in (0..self.geometry.blocks()).map(BlockId).filter(|block| live[block.0 as usize] > 0) {
            assert!(blocks.contains(&block), "{block:?} holds translation pages outside of the log");
        }
    }
}
