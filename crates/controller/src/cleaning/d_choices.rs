//! d-choices: the block with the fewest live units among `d` closed ones drawn at random (Van Houdt,
//! SIGMETRICS 2013: d = 10 comes close to greedy without keeping the blocks sorted).

use super::CleaningPolicy;
use crate::table::{BlockState, BlockTable};
use nvlab_units::{BlockId, Die, Rng};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DChoices {
    d: u32,
    rng: Rng,
}

impl DChoices {
    /// `d` draws per choice.
    pub fn new(d: u32, seed: u64) -> DChoices {
        DChoices { d, rng: Rng::stream(seed, "d-choices") }
    }
}

impl CleaningPolicy for DChoices {
    fn choose(&mut self, table: &BlockTable, die: Die, _now: u64) -> Option<BlockId> {
        let blocks = table.blocks_per_die();
        let first = die.0 * blocks;
        let mut best: Option<BlockId> = None;
        let mut drawn = 0;
        // Blocks that are not closed are drawn again; there are few, so only tiny arrays reach the bound.
        for _ in 0..self.d.saturating_mul(8) {
            let block = BlockId(first + self.rng.below(blocks as u64) as u32);
            if table.state(block) != BlockState::Closed {
                continue;
            }
            if best.is_none_or(|best| table.kept(block) < table.kept(best)) {
                best = Some(block);
            }
            drawn += 1;
            if drawn == self.d {
                break;
            }
        }
        let best = best.filter(|&block| table.gains(block));
        best.or_else(|| table.closed(die).min_by_key(|&b| table.kept(b)).filter(|&b| table.gains(b)))
    }
}
