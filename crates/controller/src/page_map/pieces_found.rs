//! The map from its pieces, at recovery: which pieces count, and which of their entries still hold.

use super::pieces::{Checkpoint, Found};
use super::recover::{First, damaged};
use super::spare::{self, Kind};
use super::{NOTHING, PageMap};
use crate::table::BlockState;
use nvlab_medium::Store;
use nvlab_units::{BlockId, Ppa, Time};

impl<S: Store> PageMap<S> {
    /// Reads back the newest of each piece, back to the last complete turn, whose blocks it marks. The pieces of a later
    /// turn, which was not completed, shorten this recovery; their blocks are erased.
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
        let mut newest: Vec<Option<Found>> = vec![None; self.checkpoint.pieces.count as usize];
        let mut trimmed_since = Vec::new();
        while let Some(turn) = numbers.pop() {
            let blocks: Vec<BlockId> = (0..firsts.len() as u32)
                .map(BlockId)
                .filter(|block| number(&firsts[block.0 as usize]) == Some(turn))
                .collect();
            let found = self.read_turn(now, &blocks, turn)?;
            let complete = found.iter().all(Option::is_some);
            for ((number, piece), found) in (0..).zip(&mut newest).zip(found) {
                if let (true, Some((_, newer)), Some((_, older))) = (complete, &*piece, &found) {
                    let entries = self.checkpoint.pieces.units(number).zip(newer.iter().zip(older));
                    let trimmed =
                        entries.filter(|(_, (now, before))| **now == NOTHING && **before != NOTHING);
                    trimmed_since.extend(trimmed.map(|(lpa, (_, &before))| (lpa, Ppa(before))));
                }
                *piece = piece.take().or(found);
            }
            if complete {
                self.adopt_blocks(blocks);
                let found = newest.into_iter().flatten().collect();
                let checkpoint = Checkpoint::new(self.checkpoint.pieces, found, trimmed_since);
                self.sequence = self.sequence.max(checkpoint.sequence());
                return Ok(Some(checkpoint));
            }
        }
        Ok(None)
    }

    /// Marks the blocks of the medium that hold the last complete turn.
    fn adopt_blocks(&mut self, mut members: Vec<BlockId>) {
        // A bad block is read like the others, but not used again.
        members.retain(|&block| !self.array.nand().cells().is_bad(block));
        let mut blocks: Vec<BlockId> =
            members.into_iter().map(|block| self.array.block_with(block)).collect();
        blocks.sort_unstable_by_key(|block| block.0);
        blocks.dedup();
        blocks.iter().for_each(|&block| self.table.set_state(block, BlockState::Map));
        self.checkpoint.blocks = blocks;
    }

    /// Reads the pieces of a turn; `None` for those that are not whole.
    fn read_turn(
        &mut self,
        now: &mut Time,
        blocks: &[BlockId],
        turn: u64,
    ) -> Result<Vec<Option<Found>>, String> {
        let unit_bytes = self.geometry.unit_bytes as usize;
        let pieces = self.checkpoint.pieces;
        let mut bytes = vec![0; (pieces.pages_of_all() * self.geometry.page_bytes()) as usize];
        let per_piece = (pieces.pages * self.geometry.units_per_page) as usize;
        let mut left: Vec<u32> =
            (0..pieces.count).map(|piece| pieces.pages_of(piece) * self.geometry.units_per_page).collect();
        let mut data = vec![0; unit_bytes];
        for &block in blocks {
            *now = self.read_block(*now, block);
            for unit in self.written_units(block) {
                let Ok(spare) = spare::peek(self.array.nand(), unit, &mut data) else { continue };
                // A piece may be the last that was programmed: stamps go on behind its own.
                self.stamp = self.stamp.max(spare.stamp + 1);
                if spare.kind == Kind::Checkpoint && spare.sequence == turn {
                    if spare.damaged {
                        return Err(damaged("a checkpoint of the map", unit));
                    }
                    let number = spare.lpa as usize;
                    let Some(place) = bytes.get_mut(number * unit_bytes..(number + 1) * unit_bytes) else {
                        continue;
                    };
                    place.copy_from_slice(&data);
                    let left = &mut left[number / per_piece];
                    *left = left.saturating_sub(1);
                }
            }
        }
        let found = (0..pieces.count).zip(bytes.chunks(per_piece * unit_bytes)).zip(left);
        Ok(found
            .map(|((piece, bytes), left)| (left == 0).then(|| pieces.decode(piece, bytes)).flatten())
            .collect())
    }

    /// Adopts the map of a checkpoint, where its blocks have not been erased since.
    pub(super) fn adopt(&mut self, checkpoint: &Checkpoint, firsts: &[First]) {
        for (lpa, &unit) in checkpoint.map.iter().enumerate() {
            if unit as u64 >= self.geometry.units() {
                continue;
            }
            let (nand, place) = (self.array.nand(), self.array.place(Ppa(unit)));
            let block = nand.geometry().block_of(place);
            let same = match firsts[block.0 as usize] {
                First::Erased => false,
                First::Unreadable => true,
                First::Says(spare) => spare.stamp < checkpoint.moment_of(lpa as u32).stamp,
            };
            let page = (place.0 - nand.geometry().first_unit(block).0) / self.geometry.units_per_page;
            if same && page < nand.pages_written(block) && self.is_newer_claim(checkpoint, unit, lpa as u32) {
                self.unmap_other_owner(Ppa(unit), lpa as u32);
                self.l2p[lpa] = unit;
                self.p2l[unit as usize] = lpa as u32;
            }
        }
    }

    /// Of two pieces that say that a physical unit holds different logical units, the younger is right.
    fn is_newer_claim(&self, checkpoint: &Checkpoint, unit: u32, lpa: u32) -> bool {
        let stamp_of = |lpa: u32| checkpoint.moment_of(lpa).stamp;
        match self.p2l[unit as usize] {
            NOTHING => true,
            other => stamp_of(other) < stamp_of(lpa),
        }
    }
}
