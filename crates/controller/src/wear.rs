//! Wear decisions shared by the controllers: which erased block is taken next, and which full block lags so far
//! behind that its data should move. Moving it is left to the controller.

use crate::table::BlockTable;
use nvlab_units::BlockId;

/// Erased blocks examined for the least or most worn: few are erased except on a new device.
const CANDIDATES: usize = 64;
/// Erases of a die between two checks of its wear.
pub(crate) const LOOK_EVERY: u32 = 16;

/// Which erased block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The least worn, for host data.
    LeastWorn,
    /// The most worn, for relocated data, which is likely to stay.
    MostWorn,
}

/// The index of the erased block to take, among the last of `free` blocks; `erases` returns the erase count of the
/// block at an index. `None` if there is none.
#[inline]
pub(crate) fn pick_free(free: usize, take: Take, erases: impl Fn(usize) -> u32) -> Option<usize> {
    let candidates = free.saturating_sub(CANDIDATES)..free;
    match take {
        Take::MostWorn => candidates.max_by_key(|&i| erases(i)),
        Take::LeastWorn => candidates.rev().min_by_key(|&i| erases(i)),
    }
}

/// The least worn full block of a die, if the most worn block of the die was erased more than `threshold` times
/// more often; `erases` returns the erase count of a block.
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
