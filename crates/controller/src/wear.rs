//! What controllers over an array of blocks ask of its wear: which erased block is taken next, and which full
//! block lags so far behind that its data should move. They decide nothing else; who moves, moves.

use crate::table::BlockTable;
use nvlab_units::BlockId;

/// Erased blocks looked at for the least or most worn: few are erased except on a new device.
const CANDIDATES: usize = 64;
/// Erases of a die between two looks at its wear.
pub(crate) const LOOK_EVERY: u32 = 16;

/// Which end of the wear an erased block is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The least worn, for what the host writes.
    LeastWorn,
    /// The most worn, for what was moved and is likely to stay.
    MostWorn,
}

/// The place of the erased block to take, among the last of `free` of them; `erases` counts those of the block
/// at a place. `None` if there is none.
#[inline]
pub(crate) fn pick_free(free: usize, take: Take, erases: impl Fn(usize) -> u32) -> Option<usize> {
    let candidates = free.saturating_sub(CANDIDATES)..free;
    match take {
        Take::MostWorn => candidates.max_by_key(|&i| erases(i)),
        Take::LeastWorn => candidates.rev().min_by_key(|&i| erases(i)),
    }
}

/// The least worn full block of a die, if the most worn block of the die was erased more than `threshold` times
/// more; `erases` counts those of a block.
pub(crate) fn lagging(
    erases: impl Fn(BlockId) -> u32,
    table: &BlockTable,
    die: u32,
    threshold: u32,
) -> Option<BlockId> {
    let most = table.die_blocks(die).map(&erases).max().unwrap_or(0);
    let least_worn = table.closed(die).min_by_key(|&block| erases(block))?;
    (most - erases(least_worn) > threshold).then_some(least_worn)
}
