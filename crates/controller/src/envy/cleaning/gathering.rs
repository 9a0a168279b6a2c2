//! Locality gathering: pages move between neighbouring partitions until the product of cleaning frequency and
//! cleaning cost is the same for all (section 4.3), which is the optimum of the constant-utilisation model.
//!
//! At each clean the partition's product is compared with the average of all. Above it, pages move out: the first
//! live ones of the victim (cold) to the next partition, the last ones (hot) to the previous one. Below it, pages
//! move in: from the hot end of the next partition and the cold beginning of the previous one. "To bring their
//! products closer to the average" applies to both: pages move out only to a neighbour whose product is lower and in
//! only from one whose product is higher. (Moving to and from either neighbour, a mixed start took several times as
//! long: 2.9 instead of 2.2 after 500 overwrites, 10/90, partitions of one segment of 128 pages.) How many: the
//! free space the clean gains, times [`Gathering::step`], times the relative excess, divided among the neighbours;
//! never more than [`Gathering::step_max`] of a segment, nor than fits.
//!
//! The order matters: pages from the next partition are colder than the rest and are put in front of the victim's
//! pages, all others are appended.
//!
//! Self-start. All partitions begin equal, and only noise in the products breaks the symmetry; with large
//! segments there is little noise, and a dead band of 5 % suppresses it. The default is no dead band: gathering
//! then starts by itself even at 65,536 pages per segment (16 segments per partition, 10/90, from a scrambled start:
//! cost 2.53 at first, 2.31 after 20 overwrites of the space, 2.23 after 40, 2.10 after 100, 2.00 after 140, still
//! falling). At 1024 pages it has converged after 600 overwrites (0.73). [`Gathering::exchange`] moves pages
//! regardless of the products; at one segment per partition it cost more than it gained (4.5 instead of 4 at
//! 50/50 with 1 %), so it is 0 by default.
//!
//! Frequency is one over the smoothed interval between cleans, or over the time since the last one if that is
//! longer, per segment of the partition. A partition cleaned less than twice has no interval yet: its product counts
//! in the average as anything between zero and its maximum, and pages move only if the direction is certain.
//! Counted as zero, as in an earlier version, every partition that is cleaned early is above the average and loses
//! pages: that undid a sorted start (5/95, partitions of one segment: 6 to 11 % above the ideal split for hundreds
//! of overwrites).

use super::super::segments::{History, Pool, Segment};
use super::super::{Envy, Gathering, NO_SEGMENT};
use crate::envy::Cleaning;
use nvlab_medium::Store;
use nvlab_units::Time;

/// Pages that move to another partition at a clean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Moves {
    /// To the previous partition (hotter), from the end of the victim.
    pub to_lower: u32,
    /// To the next partition (colder), from the beginning of the victim.
    pub to_higher: u32,
    /// From the beginning of the previous partition.
    pub from_lower: u32,
    /// From the end of the next partition.
    pub from_higher: u32,
}

impl<S: Store> Envy<S> {
    /// Records a clean of a segment with `live` pages and decides what moves.
    pub(in super::super) fn plan_moves(&mut self, at: Time, pool: u32, live: u32) -> Moves {
        let Cleaning::Gathering(gathering) = self.config.cleaning else { return Moves::default() };
        let pages = self.nor.geometry().pages_per_block;
        note_clean(&mut self.pools[pool as usize].history, &gathering, (live, pages), self.flushes);
        self.record_pool(at, pool);
        plan(&gathering, &self.pools, &self.segments, pool as usize, (live, pages), self.flushes)
    }
}

fn note_clean(history: &mut History, gathering: &Gathering, (live, pages): (u32, u32), now: u64) {
    let smooth = |old: f64, new: f64| match old {
        0.0 => new,
        old => gathering.smoothing * old + (1.0 - gathering.smoothing) * new,
    };
    if history.cleaned_at > 0 {
        history.interval = smooth(history.interval, (now - history.cleaned_at) as f64);
    }
    history.cost = smooth(history.cost, live as f64 / (pages - live) as f64);
    history.cleaned_at = now;
}

/// Frequency times cost, per segment of a partition.
fn product(pool: &Pool, now: u64) -> f64 {
    let History { interval, cost, cleaned_at } = pool.history;
    if interval == 0.0 {
        return 0.0;
    }
    cost / interval.max((now - cleaned_at) as f64) / pool.size as f64
}

/// The maximum of the product, which is all that is known of a partition cleaned less than twice in `now` flushes.
fn product_max(pool: &Pool, pages: u32, now: u64) -> f64 {
    if pool.history.interval > 0.0 {
        return product(pool, now);
    }
    let cost = pool.occupied as f64 / (pool.size * pages - pool.occupied) as f64;
    2.0 * cost / now.max(1) as f64 / pool.size as f64
}

/// How far the product of a partition is from the average, relative to it; 0 if partitions with unknown products could
/// reverse the sign.
fn excess(pools: &[Pool], own: usize, pages: u32, now: u64) -> f64 {
    let average =
        |product: &dyn Fn(&Pool) -> f64| pools.iter().map(product).sum::<f64>() / pools.len() as f64;
    let least = average(&|pool| product(pool, now));
    let most = average(&|pool| product_max(pool, pages, now));
    match product(&pools[own], now) {
        0.0 => 0.0,
        mine if mine > most => mine / most - 1.0,
        mine if mine < least => mine / least - 1.0,
        _ => 0.0,
    }
}

fn plan(
    gathering: &Gathering,
    pools: &[Pool],
    segments: &[Segment],
    own: usize,
    (live, pages): (u32, u32),
    now: u64,
) -> Moves {
    let mut moves = Moves::default();
    if pools.len() == 1 {
        return moves;
    }
    let excess = excess(pools, own, pages, now);
    let (before, after) = (own.checked_sub(1).map(|lower| &pools[lower]), pools.get(own + 1));
    let neighbours = before.is_some() as u32 + after.is_some() as u32;
    let gain = (pages - live) as f64;
    let wanted = if excess.abs() > gathering.dead_band { gathering.step * gain * excess.abs() } else { 0.0 };
    let each = wanted.min(gathering.step_max * pages as f64) as u32 / neighbours;
    let exchange = (gathering.exchange * pages as f64) as u32;
    let mine = product(&pools[own], now);
    let out = |pool: &Pool| {
        let eased = excess > 0.0 && product_max(pool, pages, now) < mine;
        exchange + if eased { each } else { 0 }
    };
    let into = |pool: &Pool| {
        let eased = excess < 0.0 && product(pool, now) > mine;
        exchange + if eased { each } else { 0 }
    };
    let room_in = |pool: &Pool| match pool.active {
        NO_SEGMENT => 0,
        active => (pages - segments[active as usize].next).min(pool.limit.saturating_sub(pool.occupied)),
    };
    moves.to_lower = before.map_or(0, |pool| out(pool).min(room_in(pool)).min(live / 2));
    moves.to_higher = after.map_or(0, |pool| out(pool).min(room_in(pool)).min(live / 2));
    // Pages moving in must fit, and the clean must still gain space.
    let left = pools[own].occupied - moves.to_lower - moves.to_higher;
    let stays = live - moves.to_lower - moves.to_higher;
    let room = pools[own].limit.saturating_sub(left).min((pages - stays) / 2);
    moves.from_lower = before.map_or(0, |pool| into(pool).min(room / neighbours));
    moves.from_higher = after.map_or(0, |pool| into(pool).min(room / neighbours));
    moves
}
