//! Cleaning, erasing, wear: carries out what the policies decide.
//!
//! A clean copies the live pages of a segment, in order, to the die's erased spare, which takes its place; when
//! the copies are done and recorded, the segment is erased and becomes the spare. Until then the die cannot clean
//! again: flushes that would need it stay in the buffer. A wear swap is the same, but the spare, which is worn,
//! takes the place of the least worn segment of the die: its data is cold, as it was rarely cleaned.

use super::durable::Completion;
use super::segments::{Moving, NO_SEGMENT, Pool};
use super::{Envy, NOTHING, Role};
use crate::cleaning::gathering::{self, Moves, Partition};
use crate::cleaning::{SegmentCleaning, choose_segment};
use nvlab_medium::Store;
use nvlab_units::{BlockId, Die, Ppa, Span, Ticket, Time};
use std::collections::VecDeque;

/// Table entries read together, so that their cache misses overlap.
const TOGETHER: usize = 64;

/// Why pages move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyCause {
    Clean,
    Transfer,
    Wear,
}

/// The state of a die.
#[derive(Clone, Debug)]
pub(super) struct DieState {
    /// The erased segment, or one whose erase is queued; none while `leaving`.
    pub spare: u32,
    /// The segment whose copies are queued, and their ticket on the die's lane.
    pub leaving: Option<(u32, Ticket)>,
    /// Operations queued and not known to be done (payload only).
    pub in_flight: VecDeque<Completion>,
}

impl Default for DieState {
    fn default() -> DieState {
        DieState { spare: NO_SEGMENT, leaving: None, in_flight: VecDeque::new() }
    }
}

impl<S: Store> Envy<S> {
    /// Cleans a segment of a pool; returns when that was possible (see [`Envy::flush_next`]).
    pub(super) fn clean(&mut self, at: Time, pool: u32, force: bool) -> Option<Time> {
        let die = self.pools[pool as usize].die;
        let now = self.spare_ready(at, die, force)?;
        let pages = self.nor.geometry().pages_per_block;
        let state = &self.pools[pool as usize];
        let full = state.closed.iter().map(|&segment| &self.segments[segment as usize]);
        let full = full.map(|segment| (segment.live, segment.birth));
        let choice = choose_segment(self.config.cleaning, full, pages, self.flushes);
        let index = choice.unwrap_or_else(|| panic!("no segment of pool {pool} gains space: {state:?}"));
        let victim = self.pools[pool as usize].closed.remove(index).expect("the segment chosen");
        let live = self.segments[victim as usize].live;
        let moves = self.plan_moves(now, pool, live);
        self.stats.cleans += 1;
        self.stats.clean_live_pages += live as u64;
        let target = self.begin_leaving(now, victim, self.begun, false);
        self.begun += 1;
        self.pools[pool as usize].active = target;
        let start = now.max(self.written);
        self.distribute(start, pool, victim, target, moves);
        self.left(die, victim);
        Some(start)
    }

    /// Records a clean of a segment with `live` pages and decides what moves.
    fn plan_moves(&mut self, at: Time, pool: u32, live: u32) -> Moves {
        let SegmentCleaning::Gathering(gathering) = self.config.cleaning else { return Moves::default() };
        let pages = self.nor.geometry().pages_per_block;
        let history = &mut self.pools[pool as usize].history;
        gathering::note_clean(&gathering, history, (live, pages), self.flushes);
        self.record_pool(at, pool);
        let partition = |pool: &Pool| Partition {
            size: pool.size,
            occupied: pool.occupied,
            limit: pool.limit,
            room: match pool.active {
                NO_SEGMENT => 0,
                active => pages - self.segments[active as usize].next,
            },
            history: pool.history,
        };
        let partitions: Vec<Partition> = self.pools.iter().map(partition).collect();
        gathering::plan(&gathering, &partitions, pool as usize, (live, pages), self.flushes)
    }

    /// Puts the spare of a die in the place of a segment, with this place in the order.
    fn begin_leaving(&mut self, at: Time, victim: u32, order: u64, in_place: bool) -> u32 {
        let die = self.die_of_segment(victim);
        let target = std::mem::replace(&mut self.dies[die.index()].spare, NO_SEGMENT);
        assert_ne!(target, NO_SEGMENT, "die {die} has no erased segment");
        let (pool, birth) = (self.segments[victim as usize].pool, self.segments[victim as usize].birth);
        let leaving = &mut self.segments[victim as usize];
        (leaving.role, leaving.partner, leaving.in_place) = (Role::Leaving, target, in_place);
        self.put_in_service(at, target, pool, order);
        self.segments[target as usize].birth = birth;
        // First the record that suffices: recovery derives the other from it.
        self.record_segment(at, victim);
        self.record_segment(at, target);
        target
    }

    /// Notes that all copies out of a segment are queued.
    pub(super) fn left(&mut self, die: Die, victim: u32) {
        let segment = &self.segments[victim as usize];
        assert_eq!(segment.live, 0, "segment {victim}: {segment:?}");
        self.dies[die.index()].leaving = Some((victim, self.nor.last(die)));
        self.leaving += 1;
    }

    /// Copies the live pages of a victim: the first to the next pool, the last to the previous one, the others
    /// to the target; also copies the pages moving in from the neighbours.
    fn distribute(&mut self, at: Time, pool: u32, victim: u32, target: u32, moves: Moves) {
        let mut moving = std::mem::take(&mut self.moving);
        if moves.from_higher > 0 {
            // Colder than the pages here, so in front.
            self.gather_last(pool + 1, moves.from_higher, &mut moving);
            self.copy(at, target, &moving, CopyCause::Transfer);
            moving.clear();
        }
        self.gather(victim, &mut moving);
        let (head, tail) = (moves.to_higher as usize, moves.to_lower as usize);
        let middle = moving.len() - tail;
        if head > 0 {
            self.copy(at, self.pools[pool as usize + 1].active, &moving[..head], CopyCause::Transfer);
        }
        if tail > 0 {
            self.copy(at, self.pools[pool as usize - 1].active, &moving[middle..], CopyCause::Transfer);
        }
        self.copy(at, target, &moving[head..middle], CopyCause::Clean);
        moving.clear();
        if moves.from_lower > 0 {
            self.gather_first(pool - 1, moves.from_lower, &mut moving);
            self.copy(at, target, &moving, CopyCause::Transfer);
            moving.clear();
        }
        self.moving = moving;
    }

    /// The live pages of a segment, in order.
    pub(super) fn gather(&self, segment: u32, moving: &mut Vec<Moving>) {
        let first = self.layout_first(segment) as usize;
        let owners = &self.p2l[first..][..self.segments[segment as usize].next as usize];
        let mut base = first as u32;
        for owners in owners.chunks(TOGETHER) {
            let mut mapped = [NOTHING; TOGETHER];
            for (mapped, &owner) in mapped.iter_mut().zip(owners) {
                *mapped = self.location(owner);
            }
            for ((&mapped, &owner), from) in mapped.iter().zip(owners).zip(base..) {
                if mapped == from {
                    moving.push(Moving { from, owner });
                }
            }
            base += owners.len() as u32;
        }
    }

    /// The last, hottest live pages of a pool, in order.
    fn gather_last(&self, pool: u32, count: u32, moving: &mut Vec<Moving>) {
        let state = &self.pools[pool as usize];
        let active = Some(state.active).filter(|&active| active != NO_SEGMENT);
        let Some(segment) = active.or_else(|| state.closed.back().copied()) else { return };
        moving.extend(self.live_pages(segment).rev().take(count as usize));
        moving.reverse();
    }

    /// The first, coldest live pages of a pool, in order.
    fn gather_first(&self, pool: u32, count: u32, moving: &mut Vec<Moving>) {
        let state = &self.pools[pool as usize];
        let active = Some(state.active).filter(|&active| active != NO_SEGMENT);
        let Some(segment) = state.closed.front().copied().or(active) else { return };
        moving.extend(self.live_pages(segment).take(count as usize));
    }

    fn live_pages(&self, segment: u32) -> impl DoubleEndedIterator<Item = Moving> {
        let first = self.layout_first(segment);
        let pages = first..first + self.segments[segment as usize].next;
        let page = |from| Moving { from, owner: self.p2l[from as usize] };
        pages.map(page).filter(|page| self.location(page.owner) == page.from)
    }

    /// Queues copies of pages of one segment to another that has room for them.
    pub(super) fn copy(&mut self, at: Time, target: u32, moving: &[Moving], cause: CopyCause) {
        let count = moving.len() as u32;
        if count == 0 {
            return;
        }
        let pool = self.segments[target as usize].pool;
        let first = self.layout_first(target) + self.segments[target as usize].next;
        for (moving, to) in moving.iter().zip(first..) {
            let source = self.segment_of(moving.from) as usize;
            self.segments[source].live -= 1;
            let from_pool = self.segments[source].pool;
            if from_pool != pool {
                self.pools[from_pool as usize].occupied -= 1;
                self.pools[pool as usize].occupied += 1;
            }
            self.p2l[to as usize] = moving.owner;
            self.set_location(moving.owner, to);
        }
        let segment = &mut self.segments[target as usize];
        segment.next += count;
        segment.live += count;
        let pages = self.nor.geometry().pages_per_block;
        assert!(segment.next <= pages, "segment {target} of {pages} pages: {segment:?}");
        let transfer = self.transfer();
        let last = if S::KEEPS {
            self.program_copies(at, moving, first)
        } else {
            self.nor.program_pages(at, Ppa(first), count, transfer, &[]).expect("pages that are erased")
        };
        self.crossed(self.segment_of(moving[0].from), target, last);
        self.segments[target as usize].last = last;
        self.count(cause, count, transfer + self.nor.program_time(BlockId(target)));
    }

    fn count(&mut self, cause: CopyCause, pages: u32, each: Span) {
        let (count, time) = match cause {
            CopyCause::Clean => (&mut self.stats.clean_pages, &mut self.stats.clean_time),
            CopyCause::Transfer => (&mut self.stats.transfer_pages, &mut self.stats.transfer_time),
            CopyCause::Wear => (&mut self.stats.wear_pages, &mut self.stats.wear_time),
        };
        *count += pages as u64;
        time.add_many(each, pages as u64);
    }

    pub(super) fn die_of_segment(&self, segment: u32) -> Die {
        self.layout.die_of(BlockId(segment))
    }

    /// Ensures that a die has its spare; returns when that was possible. `None`: the copies out of a segment
    /// are not done at `at`, and `force` is not set.
    pub(super) fn spare_ready(&mut self, at: Time, die: Die, force: bool) -> Option<Time> {
        let mut now = at;
        while let Some((segment, ticket)) = self.dies[die.index()].leaving {
            if force {
                now = self.wait_for_leaving(segment, die, ticket, now);
            } else if !self.has_left(segment, die, ticket, now) {
                return None;
            }
            self.erase(now, segment);
        }
        Some(now)
    }

    /// Erases, on every die, the segment whose copies are done.
    pub(super) fn erase_left(&mut self, at: Time) {
        for die in self.nor.geometry().all_dies() {
            self.spare_ready(at, die, false);
        }
    }

    /// Queues the erase of an emptied segment, which becomes the spare of its die.
    pub(super) fn erase(&mut self, at: Time, number: u32) {
        let die = self.die_of_segment(number);
        let segment = &mut self.segments[number as usize];
        assert_eq!((segment.live, segment.pinned), (0, 0), "segment {number}: {segment:?}");
        let in_place = segment.in_place;
        (segment.role, segment.partner, segment.in_place) = (Role::Erased, NO_SEGMENT, false);
        (segment.next, segment.done, segment.erasing) = (0, 0, S::KEEPS);
        segment.erases += 1;
        self.record_segment(at, number);
        self.queue_erase(at, number);
        self.dies[die.index()].spare = number;
        if self.dies[die.index()].leaving.take().is_some() {
            self.leaving -= 1;
        }
        if !in_place {
            self.level_wear(at, die, number);
        }
    }

    /// Queues the erase itself, after all records are written.
    pub(super) fn queue_erase(&mut self, at: Time, number: u32) {
        let die = self.die_of_segment(number);
        self.stats.erase_time += self.nor.erase_time(BlockId(number));
        let erased = self.nor.erase(at.max(self.written), BlockId(number));
        let ticket = erased.expect("an erase of a part without faults");
        if S::KEEPS {
            self.dies[die.index()].in_flight.push_back(Completion::erase(ticket, number));
        }
        self.stats.erases += 1;
    }

    /// If a segment just cleaned is much more worn than the least worn of its die, moves the data of the latter,
    /// which is the coldest, there.
    fn level_wear(&mut self, at: Time, die: Die, oldest: u32) {
        let Some(spread) = self.config.wear_spread else { return };
        let segments = self.nor.geometry().blocks_of(die).map(|block| block.0);
        let in_service = segments.filter(|&segment| self.segments[segment as usize].role == Role::InService);
        let Some(youngest) = in_service.min_by_key(|&segment| self.segments[segment as usize].erases) else {
            return;
        };
        let (old, young) = (&self.segments[oldest as usize], &self.segments[youngest as usize]);
        if old.erases - young.erases.min(old.erases) <= spread {
            return;
        }
        let target = self.begin_leaving(at, youngest, young.order, true);
        let pool = &mut self.pools[self.segments[youngest as usize].pool as usize];
        match pool.closed.iter_mut().find(|closed| **closed == youngest) {
            Some(closed) => *closed = target,
            None if pool.active == youngest => pool.active = target,
            None => panic!("segment {youngest} is not in its pool: {pool:?}"),
        }
        let mut moving = std::mem::take(&mut self.moving);
        self.gather(youngest, &mut moving);
        self.copy(at.max(self.written), target, &moving, CopyCause::Wear);
        moving.clear();
        self.moving = moving;
        self.left(die, youngest);
        self.stats.wear_swaps += 1;
    }
}
