//! The map from its pieces, at recovery: which pieces count, and which of their entries still hold.

use super::PageMap;
use super::pieces::{Checkpoint, Moment};
use super::recover::{First, damaged};
use super::spare::{self, Kind};
use crate::table::BlockState;
use nvlab_medium::Store;
use nvlab_units::{BlockId, Lpa, Ppa, Time};

impl<S: Store> PageMap<S> {
    /// Reads the newest of each piece into the map, back to the last complete turn, whose blocks it marks. The pieces of a
    /// later turn, which was not completed, shorten this recovery; their blocks are erased.
    pub(super) fn newest_checkpoint(
        &mut self,
        now: &mut Time,
        firsts: &[First],
    ) -> Result<Option<Checkpoint>, String> {
        let number = |first: &First| match first {
            First::Says(spare) if spare.kind == Kind::Checkpoint => Some(spare.sequence),
            _ => None,
        };
        let mut numbers: Vec<u64> = firsts.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        self.checkpoint.number = numbers.last().copied().unwrap_or(0);
        let mut moments: Vec<Option<Moment>> = vec![None; self.checkpoint.pieces.count as usize];
        while let Some(turn) = numbers.pop() {
            let blocks: Vec<BlockId> = (0..firsts.len() as u32)
                .map(BlockId)
                .filter(|block| number(&firsts[block.0 as usize]) == Some(turn))
                .collect();
            if let Some(trimmed_since) = self.read_turn(now, &blocks, turn, &mut moments)? {
                self.adopt_blocks(blocks);
                let moments = moments.into_iter().flatten().collect();
                let checkpoint = Checkpoint::new(self.checkpoint.pieces, moments, trimmed_since);
                self.numbers.sequence = self.numbers.sequence.max(checkpoint.sequence());
                return Ok(Some(checkpoint));
            }
        }
        self.map.forget_all();
        Ok(None)
    }

    /// Marks the blocks of the medium that hold the last complete turn.
    fn adopt_blocks(&mut self, mut members: Vec<BlockId>) {
        // A bad block is read like the others, but not used again.
        members.retain(|&block| !self.array.nand().cells().is_bad(block));
        self.checkpoint.blocks = self.mark_map(members);
    }

    /// Marks the blocks that these blocks of the medium belong to as the map's, and returns them.
    pub(super) fn mark_map(&mut self, members: Vec<BlockId>) -> Vec<BlockId> {
        let mut blocks: Vec<BlockId> =
            members.into_iter().map(|member| self.array.block_with(member)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.iter().for_each(|&block| self.table.set_state(block, BlockState::Map));
        blocks
    }

    /// Reads the pieces of a turn, those that no later turn has into the map. If all are whole, returns the units that a later turn
    /// has trimmed, and where this one has them.
    fn read_turn(
        &mut self,
        now: &mut Time,
        blocks: &[BlockId],
        turn: u64,
        moments: &mut [Option<Moment>],
    ) -> Result<Option<Vec<(Lpa, Ppa)>>, String> {
        let places = self.find_turn(now, blocks, turn)?;
        let (pieces, unit_bytes) = (self.checkpoint.pieces, self.geometry.unit_bytes as usize);
        let per_piece = (pieces.pages * self.geometry.units_per_page) as usize;
        let mut bytes = vec![0; per_piece * unit_bytes];
        let (mut all, mut trimmed_since) = (true, Vec::new());
        for ((piece, places), moment) in (0..pieces.count).zip(places.chunks(per_piece)).zip(moments) {
            let whole = bytes.chunks_mut(unit_bytes).zip(places).all(|(data, &place)| {
                place != Ppa::NONE && spare::peek(self.array.nand(), place, data).is_ok()
            });
            let found = whole.then(|| pieces.decode(piece, &bytes[..places.len() * unit_bytes])).flatten();
            let Some((of_piece, map)) = found else {
                all = false;
                continue;
            };
            let units = pieces.units(piece);
            if moment.is_none() {
                self.map.load(units, map.into_iter());
                *moment = Some(of_piece);
            } else {
                let before = units.units().zip(map.into_iter().map(Ppa));
                let is_trimmed = |lpa, before| self.map.find(lpa) == Ppa::NONE && before != Ppa::NONE;
                trimmed_since.extend(before.filter(|&(lpa, before)| is_trimmed(lpa, before)));
            }
        }
        Ok(all.then_some(trimmed_since))
    }

    /// Where each unit of a turn is, [`Ppa::NONE`] if it is missing.
    fn find_turn(&mut self, now: &mut Time, blocks: &[BlockId], turn: u64) -> Result<Vec<Ppa>, String> {
        let units = self.checkpoint.pieces.pages_of_all() * self.geometry.units_per_page as u64;
        let mut places = vec![Ppa::NONE; units as usize];
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        for &block in blocks {
            *now = self.read_block(*now, block);
            for unit in self.written_units(block) {
                let Ok(spare) = spare::peek(self.array.nand(), unit, &mut data) else { continue };
                // A piece may be the last that was programmed: stamps go on behind its own.
                self.numbers.found_stamp(&spare);
                if spare.kind == Kind::Checkpoint && spare.sequence == turn {
                    if spare.damaged {
                        return Err(damaged("a checkpoint of the map", unit));
                    }
                    if let Some(place) = places.get_mut(spare.lpa.index()) {
                        *place = unit;
                    }
                }
            }
        }
        Ok(places)
    }

    /// Adopts the map as it was read from a checkpoint, where its blocks have not been erased since; other entries are
    /// removed.
    pub(super) fn adopt(&mut self, checkpoint: &Checkpoint, firsts: &[First]) {
        for lpa in (0..self.config.logical_units).map(Lpa) {
            let unit = self.map.forget(lpa);
            if unit.0 as u64 >= self.geometry.units() {
                continue;
            }
            let (nand, place) = (self.array.nand(), self.array.place(unit));
            let block = nand.geometry().block_of(place);
            let same = match firsts[block.0 as usize] {
                First::Erased => false,
                First::Unreadable => true,
                First::Says(spare) => spare.stamp < checkpoint.moment_of(lpa).stamp,
            };
            let page = (place - nand.geometry().first_unit(block)) / self.geometry.units_per_page;
            if same && page < nand.pages_written(block) && self.is_newer_claim(checkpoint, unit, lpa) {
                self.map.claim(lpa, unit);
            }
        }
    }

    /// If two pieces claim that a physical unit holds different logical units, the younger is right.
    fn is_newer_claim(&self, checkpoint: &Checkpoint, unit: Ppa, lpa: Lpa) -> bool {
        let stamp_of = |lpa: Lpa| checkpoint.moment_of(lpa).stamp;
        match self.map.owner(unit) {
            Lpa::NONE => true,
            other => stamp_of(other) < stamp_of(lpa),
        }
    }
}
