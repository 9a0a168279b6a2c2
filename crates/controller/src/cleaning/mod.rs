//! Victim selection for cleaning. A policy decides, it never acts.
//!
//! | policy | file | the victim | source |
//! |---|---|---|---|
//! | greedy | [`greedy`] | fewest live units | |
//! | FIFO | [`fifo`] | filled first | eNVy section 4.4 |
//! | windowed greedy | [`windowed_greedy`] | fewest live among those filled first | Hu et al. 2009 |
//! | cost-benefit | [`cost_benefit`] | greatest (1-u) age / (1+u) | Rosenblum and Ousterhout, LFS |
//! | d-choices | [`d_choices`] | fewest live among d drawn at random | Van Houdt 2013 |
//! | locality gathering | [`gathering`] | FIFO in its partition; pages move between partitions | eNVy section 4.3 |
//!
//! Over the many blocks of a page map a [`CleaningPolicy`] is notified of every change ([`Cleaning`]). The few segments
//! of an eNVy pool are examined when one is to be cleaned ([`SegmentCleaning`]).

pub mod cost_benefit;
pub mod d_choices;
pub mod fifo;
pub mod gathering;
pub mod greedy;
mod list;
pub mod windowed_greedy;

use crate::table::BlockTable;
use cost_benefit::CostBenefit;
use d_choices::DChoices;
use fifo::Fifo;
use gathering::Gathering;
use greedy::Greedy;
use nvlab_units::{BlockId, Die};
use serde::{Deserialize, Serialize};
use windowed_greedy::WindowedGreedy;

/// Which block of a page map is cleaned next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cleaning {
    /// The block with the fewest live units.
    Greedy,
    /// The block that was filled first.
    Fifo,
    /// Greatest (1 - u) * age / (1 + u) (Rosenblum and Ousterhout, LFS).
    CostBenefit,
    /// The emptiest of `d` blocks drawn at random (Van Houdt, SIGMETRICS 2013).
    DChoices {
        /// Blocks drawn.
        d: u32,
    },
    /// The emptiest of the `window` blocks filled first (Hu et al., SYSTOR 2009).
    WindowedGreedy {
        /// Blocks examined.
        window: u32,
    },
}

/// Which segment of an eNVy pool is cleaned next, and where flushed pages go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SegmentCleaning {
    /// The segment with the fewest live pages (section 4.2).
    Greedy,
    /// The segment that was filled first.
    Fifo,
    /// Greatest (1 - u) * age / (1 + u) (Rosenblum and Ousterhout, LFS).
    CostBenefit,
    /// Locality gathering between partitions, FIFO within (sections 4.3 and 4.4).
    Gathering(Gathering),
}

impl SegmentCleaning {
    /// Locality gathering with the defaults; 16 segments per partition is the paper's hybrid, 1 its pure
    /// locality gathering.
    pub const fn gathering(partition_segments: u32) -> SegmentCleaning {
        SegmentCleaning::Gathering(Gathering::new(partition_segments))
    }
}

/// Chooses blocks to clean. Hooks default to nothing.
pub trait CleaningPolicy {
    /// A block was filled and may now be chosen.
    fn closed(&mut self, _table: &BlockTable, _block: BlockId) {}
    /// A unit of a closed block died.
    fn lost(&mut self, _table: &BlockTable, _block: BlockId) {}
    /// A closed block is about to be emptied, for whatever reason, and may no longer be chosen.
    fn taken(&mut self, _table: &BlockTable, _block: BlockId) {}
    /// The closed block of `die` to clean, at time `now` in host units written; `None` if cleaning no block
    /// would gain space.
    fn choose(&mut self, table: &BlockTable, die: Die, now: u64) -> Option<BlockId>;
}

/// A policy, chosen at run time; dispatch is one predictable branch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Policy {
    /// See [`greedy`].
    Greedy(Greedy),
    /// See [`fifo`].
    Fifo(Fifo),
    /// See [`windowed_greedy`].
    WindowedGreedy(WindowedGreedy),
    /// See [`cost_benefit`].
    CostBenefit(CostBenefit),
    /// See [`d_choices`].
    DChoices(DChoices),
}

macro_rules! each {
    ($self:ident, $policy:ident => $call:expr) => {
        match $self {
            Policy::Greedy($policy) => $call,
            Policy::Fifo($policy) => $call,
            Policy::WindowedGreedy($policy) => $call,
            Policy::CostBenefit($policy) => $call,
            Policy::DChoices($policy) => $call,
        }
    };
}

impl Policy {
    /// The policy a design specifies, for `dies` dies.
    pub fn new(cleaning: Cleaning, table: &BlockTable, dies: u32, seed: u64) -> Policy {
        match cleaning {
            Cleaning::Greedy => Policy::Greedy(Greedy::new(table, dies)),
            Cleaning::Fifo => Policy::Fifo(Fifo::new(table, dies)),
            Cleaning::WindowedGreedy { window } => {
                Policy::WindowedGreedy(WindowedGreedy::new(table, dies, window))
            }
            Cleaning::CostBenefit => Policy::CostBenefit(CostBenefit),
            Cleaning::DChoices { d } => Policy::DChoices(DChoices::new(d, seed)),
        }
    }
}

impl CleaningPolicy for Policy {
    fn closed(&mut self, table: &BlockTable, block: BlockId) {
        each!(self, policy => policy.closed(table, block))
    }
    #[inline]
    fn lost(&mut self, table: &BlockTable, block: BlockId) {
        each!(self, policy => policy.lost(table, block))
    }
    fn taken(&mut self, table: &BlockTable, block: BlockId) {
        each!(self, policy => policy.taken(table, block))
    }
    fn choose(&mut self, table: &BlockTable, die: Die, now: u64) -> Option<BlockId> {
        each!(self, policy => policy.choose(table, die, now))
    }
}

/// The index of the segment to clean, among the full ones of a pool of `pages` each, given as (live pages, birth), oldest
/// first; `None` if no clean gains space.
pub(crate) fn choose_segment(
    cleaning: SegmentCleaning,
    full: impl Iterator<Item = (u32, u64)>,
    pages: u32,
    now: u64,
) -> Option<usize> {
    let mut gaining = full.enumerate().filter(|&(_, (live, _))| live < pages);
    let benefit = |&(_, (live, birth)): &_| cost_benefit::benefit(pages, live, now.saturating_sub(birth));
    let victim = match cleaning {
        SegmentCleaning::Greedy => gaining.min_by_key(|&(_, (live, _))| live),
        SegmentCleaning::Fifo | SegmentCleaning::Gathering(_) => gaining.next(),
        SegmentCleaning::CostBenefit => gaining.max_by(|a, b| benefit(a).total_cmp(&benefit(b))),
    };
    victim.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::BlockState;
    use nvlab_units::Rng;

    /// Every policy, driven at random, against the definition computed from the whole table.
    #[test]
    fn choices_match_their_definitions() {
        let (dies, blocks, units) = (2, 24, 16);
        let kinds = [
            Cleaning::Greedy,
            Cleaning::Fifo,
            Cleaning::WindowedGreedy { window: 5 },
            Cleaning::CostBenefit,
            Cleaning::DChoices { d: 4000 },
        ];
        for kind in kinds {
            let mut table = BlockTable::new(dies, blocks, units, 1);
            let mut policy = Policy::new(kind, &table, dies, 1);
            let mut order: Vec<BlockId> = Vec::new();
            let mut rng = Rng::new(9);
            for now in 1..20_000u64 {
                let block = BlockId(rng.below((dies * blocks) as u64) as u32);
                match table.state(block) {
                    BlockState::Free => {
                        (0..units).for_each(|_| table.gain(block));
                        table.set_birth(block, now);
                        table.set_state(block, BlockState::Closed);
                        policy.closed(&table, block);
                        order.push(block);
                    }
                    _ if table.live(block) > 0 && rng.chance(0.95) => {
                        if table.lose(block) {
                            policy.lost(&table, block);
                        }
                    }
                    _ => {
                        let die = Die(rng.below(dies as u64) as u32);
                        let Some(victim) = policy.choose(&table, die, now) else {
                            let gains = |&b: &BlockId| table.die_of(b) == die && table.gains(b);
                            assert!(!order.iter().any(gains), "{kind:?} finds no victim");
                            continue;
                        };
                        check(kind, &table, &order, die, now, victim);
                        policy.taken(&table, victim);
                        let live = table.live(victim);
                        table.lose_many(victim, live);
                        table.set_state(victim, BlockState::Free);
                        order.retain(|&b| b != victim);
                    }
                }
            }
            assert!(order.len() > 4, "{kind:?}");
        }
    }

    fn check(kind: Cleaning, table: &BlockTable, order: &[BlockId], die: Die, now: u64, victim: BlockId) {
        let mine: Vec<BlockId> =
            order.iter().copied().filter(|b| table.die_of(*b) == die && table.gains(*b)).collect();
        let fewest = |blocks: &[BlockId]| blocks.iter().map(|&b| table.live(b)).min().unwrap();
        match kind {
            Cleaning::Greedy | Cleaning::DChoices { .. } => assert_eq!(table.live(victim), fewest(&mine)),
            Cleaning::Fifo => assert_eq!(victim, mine[0]),
            Cleaning::WindowedGreedy { window } => {
                let all: Vec<BlockId> = order.iter().copied().filter(|b| table.die_of(*b) == die).collect();
                let first = &all[..all.len().min(window as usize)];
                let gaining: Vec<BlockId> = first.iter().copied().filter(|&b| table.gains(b)).collect();
                match gaining.is_empty() {
                    true => {
                        assert_eq!(victim, mine[0], "the oldest block, if none in the window gains space")
                    }
                    false => {
                        assert!(gaining.contains(&victim), "{victim:?} is not among {gaining:?}");
                        assert_eq!(table.live(victim), fewest(&gaining));
                    }
                }
            }
            Cleaning::CostBenefit => {
                let value = |b: BlockId| cost_benefit::of(table, b, now);
                let best = mine.iter().map(|&b| value(b)).fold(0.0, f64::max);
                assert!(value(victim) >= best, "{} < {best}", value(victim));
            }
        }
    }
}
