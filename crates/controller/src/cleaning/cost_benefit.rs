//! Cost-benefit: the block with the greatest (1 - u) * age / (1 + u), u its live share, age that of its
//! youngest data in host writes (Rosenblum and Ousterhout, LFS: 1 to read the block, u to copy).
//!
//! Examines every closed block of the die: ages change with every write, so the blocks cannot be kept sorted.

use super::{Candidate, CleaningPolicy};
use crate::table::BlockTable;
use nvlab_units::BlockId;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct CostBenefit;

/// The benefit-to-cost ratio of a clean at `now`.
pub(super) fn benefit(block: &Candidate, now: u64) -> f64 {
    let (live, units) = (block.live as f64, block.units as f64);
    (units - live) * now.saturating_sub(block.birth) as f64 / (units + live)
}

pub(super) fn most_beneficial(blocks: impl Iterator<Item = Candidate>, now: u64) -> Option<Candidate> {
    blocks.max_by(|a, b| benefit(a, now).total_cmp(&benefit(b, now)))
}

pub(super) fn candidate(table: &BlockTable, block: BlockId) -> Candidate {
    let (live, birth) = (table.kept(block), table.birth(block));
    Candidate { index: block.0 as usize, units: table.units_per_block(), live, birth }
}

impl CleaningPolicy for CostBenefit {
    fn choose(&mut self, table: &BlockTable, die: u32, now: u64) -> Option<BlockId> {
        let gaining = table.closed(die).filter(|&block| table.gains(block));
        let victim = most_beneficial(gaining.map(|block| candidate(table, block)), now);
        victim.map(|block| BlockId(block.index as u32))
    }
}
