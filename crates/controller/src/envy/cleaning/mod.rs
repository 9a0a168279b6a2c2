//! Which segment is cleaned, and which pages move to another partition. Policies decide, they never act.
//!
//! | policy | file | the victim |
//! |---|---|---|
//! | greedy | [`greedy`] | fewest live pages |
//! | FIFO | [`fifo`] | filled first |
//! | cost-benefit | [`cost_benefit`] | greatest (1-u) age / (1+u) |
//! | locality gathering | [`gathering`] | FIFO within its partition; pages move between partitions |

mod cost_benefit;
mod fifo;
pub(super) mod gathering;
mod greedy;

pub(super) use gathering::Moves;

use super::Cleaning;
use super::segments::{Pool, Segment};

/// The full segments of a pool, oldest first, as a policy sees them.
#[derive(Clone, Copy, Debug)]
struct Candidates<'a> {
    pool: &'a Pool,
    segments: &'a [Segment],
    pages: u32,
}

impl Candidates<'_> {
    /// Those whose cleaning gains space, with their index.
    fn gaining(&self) -> impl Iterator<Item = (usize, &Segment)> {
        let all = self.pool.closed.iter().map(|&segment| &self.segments[segment as usize]);
        all.enumerate().filter(|(_, segment)| segment.live < self.pages)
    }
}

/// The index, among the full segments of a pool, of the one to clean; `None` if no clean gains space.
pub(super) fn choose(
    cleaning: Cleaning,
    pool: &Pool,
    segments: &[Segment],
    pages: u32,
    now: u64,
) -> Option<usize> {
    let candidates = Candidates { pool, segments, pages };
    match cleaning {
        Cleaning::Greedy => greedy::choose(candidates),
        Cleaning::Fifo | Cleaning::Gathering(_) => fifo::choose(candidates),
        Cleaning::CostBenefit => cost_benefit::choose(candidates, now),
    }
}
