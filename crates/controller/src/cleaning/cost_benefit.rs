//! Cost-benefit: the block with the greatest (1 - u) * age / (1 + u), u its live share, age that of its
//! youngest data in host writes (Rosenblum and Ousterhout, LFS: 1 to read the block, u to copy).
//!
//! Examines every closed block of the die: ages change with every write, so the blocks cannot be kept sorted.

use super::CleaningPolicy;
use crate::table::BlockTable;
use nvlab_units::BlockId;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct CostBenefit;

/// The benefit-to-cost ratio of cleaning a block at `now`.
pub fn benefit(table: &BlockTable, block: BlockId, now: u64) -> f64 {
    let units = table.units_per_block() as f64;
    let live = table.kept(block) as f64;
    (units - live) * now.saturating_sub(table.birth(block)) as f64 / (units + live)
}

impl CleaningPolicy for CostBenefit {
    fn choose(&mut self, table: &BlockTable, die: u32, now: u64) -> Option<BlockId> {
        let gaining = table.closed(die).filter(|&block| table.gains(block));
        gaining.max_by(|&a, &b| benefit(table, a, now).total_cmp(&benefit(table, b, now)))
    }
}
