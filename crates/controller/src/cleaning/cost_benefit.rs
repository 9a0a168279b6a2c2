//! Cost-benefit: the block with the greatest (1 - u) * age / (1 + u), u its live share, age that of its
//! youngest data in host writes (Rosenblum and Ousterhout, LFS: 1 to read the block, u to copy).
//!
//! Examines every closed block of the die: ages change with every write, so the blocks cannot be kept sorted.

use super::CleaningPolicy;
use crate::table::BlockTable;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CostBenefit;

/// The benefit-to-cost ratio of cleaning `live` of `units` whose youngest data is of this age.
pub(super) fn benefit(units: u32, live: u32, age: u64) -> f64 {
    let (units, live) = (units as f64, live as f64);
    (units - live) * age as f64 / (units + live)
}

pub(super) fn of(table: &BlockTable, block: BlockId, now: u64) -> f64 {
    benefit(table.units_per_block(), table.kept(block), now.saturating_sub(table.birth(block)))
}

impl CleaningPolicy for CostBenefit {
    fn choose(&mut self, table: &BlockTable, die: Die, now: u64) -> Option<BlockId> {
        let gaining = table.closed(die).filter(|&block| table.gains(block));
        gaining.max_by(|&a, &b| of(table, a, now).total_cmp(&of(table, b, now)))
    }
}
