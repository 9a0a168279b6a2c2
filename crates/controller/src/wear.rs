//! Wear decisions shared by the controllers: which erased block is taken next, and which full block lags so far
//! behind that its data should move. The controller moves it.

use crate::table::BlockTable;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};

/// Erased blocks examined for the least or most worn: few are erased except on a new device.
const CANDIDATES: usize = 64;
/// Erases of a die between two checks of its wear.
pub(crate) const LOOK_EVERY: u32 = 16;

/// How the wear of a page map's blocks is evened out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WearLevelling {
    /// Host data goes to the erased block with the fewest erases, relocated data to the one with the most.
    pub dynamic: bool,
    /// When the erase counts of a die differ by more than this, the least worn full block is moved.
    pub static_threshold: Option<u32>,
}

impl WearLevelling {
    /// Which erased block is taken for relocated data. With static levelling, one that is worn beyond the threshold stays erased
    /// until cold data is moved into it.
    pub(crate) fn take_moved(&self) -> Take {
        self.static_threshold.map_or(Take::MostWorn, Take::MostWornWithin)
    }
}

/// State of static wear levelling: how much cold data there is, and how far the blocks that hold it lag behind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levelling {
    /// [`WearLevelling::static_threshold`].
    pub threshold: u32,
    /// Erases by which the most worn erased block leads the least worn one with cold data, on the die where the lead
    /// is largest.
    pub lead: u32,
    /// Share of the blocks that hold cold data only.
    pub cold: f64,
}

impl Levelling {
    /// The share of all programs spent on it once it has begun. A block takes cold data when it leads by the
    /// threshold and keeps it until the others lead by as much: for that many erases of the mean block, since in the
    /// end all are erased equally often. So per erase of each block, a fraction 1/threshold of those with cold data
    /// are moved.
    pub fn share(&self) -> f64 {
        (self.cold / self.threshold as f64).min(1.0 / LOOK_EVERY as f64)
    }
}

/// Which erased block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The least worn, for host data.
    LeastWorn,
    /// The most worn, for relocated data, which is likely to stay.
    MostWorn,
    /// The most worn of the blocks whose erase count exceeds the minimum by at most this. Relocated data may be hot:
    /// its block would then be erased soon, be the most worn again, and wear out alone.
    MostWornWithin(u32),
}

/// Puts the erased blocks of a new device, lowest first, in the order in which [`take_free`] takes the lowest first.
pub(crate) fn order_new<B>(free: &mut [B], dynamic: bool) {
    if dynamic {
        free.reverse();
    }
}

/// Takes an erased block from the last ones of a list; without dynamic wear levelling the one that was erased first, so
/// that all of them are used in turn. `erases` returns the erase count of a block. `None` if there is none.
pub(crate) fn take_free<B: Copy>(
    free: &mut Vec<B>,
    dynamic: bool,
    take: Take,
    erases: impl Fn(B) -> u32,
) -> Option<B> {
    if !dynamic {
        return (!free.is_empty()).then(|| free.remove(0));
    }
    let candidates = free.len().saturating_sub(CANDIDATES)..free.len();
    let pick = match take {
        Take::MostWorn => candidates.max_by_key(|&i| erases(free[i])),
        Take::MostWornWithin(limit) => {
            let least = candidates.clone().map(|i| erases(free[i])).min()?;
            candidates.filter(|&i| erases(free[i]) - least <= limit).max_by_key(|&i| erases(free[i]))
        }
        Take::LeastWorn => candidates.rev().min_by_key(|&i| erases(free[i])),
    };
    pick.map(|pick| free.swap_remove(pick))
}

/// The least worn of the blocks with `cold` data, if the most worn erased one, of `worn` erases, was erased more than `threshold`
/// times more often; `erases` returns the erase count of a block.
pub(crate) fn lagging(
    cold: impl Iterator<Item = BlockId>,
    worn: u32,
    threshold: u32,
    erases: impl Fn(BlockId) -> u32,
) -> Option<BlockId> {
    let least_worn = cold.min_by_key(|&block| erases(block))?;
    (worn.saturating_sub(erases(least_worn)) > threshold).then_some(least_worn)
}

/// The full blocks of a die that hold only cold data: data older than the host's last `logical_units` writes;
/// `sequence` is the number of all its writes. A block that lags although its data is hot will be erased soon,
/// without being moved.
pub(crate) fn cold(
    table: &BlockTable,
    die: Die,
    sequence: u64,
    logical_units: u32,
) -> impl Iterator<Item = BlockId> {
    let before = sequence.saturating_sub(logical_units as u64);
    table.closed(die).filter(move |&block| table.birth(block) <= before)
}
