//! Segments and the pools they belong to.
//!
//! A *pool* is a set of segments that share one write pointer: a partition of locality gathering, otherwise all
//! segments of a die. A pool is within one die and keeps its number of segments: a clean moves data to the die's
//! erased spare, which takes the place of the segment the data came from.

use super::config::pool_margin;
use super::{EnvyConfig, NOTHING};
use crate::cleaning::gathering::History;
use nvlab_units::{Die, Geometry, Ticket};
use std::collections::VecDeque;

/// No segment.
pub(super) const NO_SEGMENT: u32 = u32::MAX;

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Erased, or its erase is queued: the spare of its die, or not yet used.
    Erased,
    /// Holds data of its pool, and may receive more.
    InService,
    /// Its live pages are being moved to `partner`; then it is erased.
    Leaving,
}

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub role: Role,
    pub pool: u32,
    /// Live pages, including shadows of a transaction.
    pub live: u32,
    /// Pages programmed, or whose program is queued.
    pub next: u32,
    /// Pages known to be programmed (payload only).
    pub done: u32,
    /// The last program queued, on the lane of its die.
    pub last: Ticket,
    /// Position in the order in which segments were begun.
    pub order: u64,
    /// When the youngest data was written, as the number of pages flushed before.
    pub birth: u64,
    pub erases: u32,
    /// Its erase is not known to be done: it may have to be erased again.
    pub erasing: bool,
    /// Where a leaving segment's pages go.
    pub partner: u32,
    /// The partner takes over the position in the order: a wear swap, not a clean.
    pub in_place: bool,
    /// Found erased by a recovery and not yet verified: its pages are blank unless the medium is damaged.
    pub unseen: bool,
    /// Copies out of it that are not known to be done (payload only).
    pub pinned: u32,
}

impl Segment {
    pub fn new(erases: u32) -> Segment {
        Segment {
            role: Role::Erased,
            pool: NOTHING,
            live: 0,
            next: 0,
            done: 0,
            last: Ticket::default(),
            order: 0,
            birth: 0,
            erases,
            erasing: false,
            partner: NO_SEGMENT,
            in_place: false,
            unseen: false,
            pinned: 0,
        }
    }
}

/// A live page being moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub from: u32,
    pub owner: u32,
}

/// Segments that share a write pointer.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub die: Die,
    /// Its number of segments.
    pub size: u32,
    /// The segment being filled.
    pub active: u32,
    /// The full segments, oldest first.
    pub closed: VecDeque<u32>,
    /// The segments not yet used.
    pub fresh: Vec<u32>,
    /// Live pages in its segments, and pages in the buffer that will return to it.
    pub occupied: u32,
    /// The maximum of `occupied`, so that a clean can always gain space.
    pub limit: u32,
    pub history: History,
}

/// Empty pools. Neighbouring pools are on different dies, so that hot data is spread; the segments of a die are
/// divided among its pools as evenly as possible.
pub(super) fn pools(config: &EnvyConfig, geometry: &Geometry) -> Vec<Pool> {
    let (dies, per_die, segments) =
        (geometry.dies(), config.pools_per_die(geometry), geometry.blocks_per_die - 1);
    let pool = |number: u32| {
        let place = number / dies;
        let size = segments * (place + 1) / per_die - segments * place / per_die;
        Pool {
            die: Die(number % dies),
            size,
            active: NO_SEGMENT,
            closed: VecDeque::with_capacity(size as usize + 1),
            fresh: Vec::new(),
            occupied: 0,
            limit: size * geometry.pages_per_block - pool_margin(geometry),
            history: History::default(),
        }
    };
    (0..per_die * dies).map(pool).collect()
}
