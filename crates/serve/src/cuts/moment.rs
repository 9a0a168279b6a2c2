//! When the power fails in a replay.

use super::journal::{Journal, Kind};
use nvlab_units::Rng;
use serde::{Deserialize, Serialize};

/// A power cut in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Number of the operation that is cut or is the last one, from 1.
    pub operation: u64,
    /// Right after its reply, rather than during it.
    pub after: bool,
    /// Seed of the device's random choices, and of the moment within the operation.
    pub seed: u64,
}

impl Moment {
    /// Number of the last operation that was answered before the cut; 0 for none.
    pub fn answered(&self) -> u64 {
        self.operation - u64::from(!self.after)
    }
}

/// Moments of a recording from operation `first` on, in order: `cuts` drawn uniformly during operations, and those during and
/// right after each flush; if these are more than `cuts`, `cuts` of them are drawn. Each has its own seed.
pub fn moments(journal: &Journal, first: u64, cuts: u64, seed: u64) -> Vec<Moment> {
    let mut rng = Rng::stream(seed, "moments");
    let count = (journal.len() + 1).saturating_sub(first);
    let during = |operation| (operation, false);
    let mut chosen: Vec<(u64, bool)> = match count {
        0 => Vec::new(),
        count => (0..cuts).map(|_| during(first + rng.below(count))).collect(),
    };
    let flushes = (first..=journal.len()).filter(|&number| journal.entry(number).kind == Kind::Flush);
    let mut boundaries: Vec<(u64, bool)> =
        flushes.flat_map(|number| [(number, false), (number, true)]).collect();
    while boundaries.len() as u64 > cuts {
        let number = rng.below(boundaries.len() as u64) as usize;
        boundaries.swap_remove(number);
    }
    chosen.append(&mut boundaries);
    chosen.sort_unstable();
    chosen.dedup();
    let moment =
        |(number, (operation, after))| Moment { operation, after, seed: seed.wrapping_add(number as u64) };
    chosen.into_iter().enumerate().map(moment).collect()
}
