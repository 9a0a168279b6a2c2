//! Which die the host's next page goes to.
//!
//! The host's pages go round the dies, so that what is written together is read from all of them at once. Before each
//! round the dies are chosen that take part in it, a page each: those with room in an open or an erased block, with as
//! much spare space as the others (live data is spread evenly, so a block to clean costs the same everywhere, whatever
//! the pattern of the host's writes), and with no more to do than the others (nobody queues behind a die that cleans
//! while others are idle). Choosing costs a look at every die for each round: a constant for each page, unless most
//! dies cannot take part.
//!
//! Rejected: the best die for each page (a look at every die for each page); going round whatever happens (MQSim's static
//! allocation: with an even number of versions of every unit one after the other, all the newest ones lie on half of the
//! dies, and a die that cleans holds up the rest); moving live data from die to die (it crosses two channels, and placing
//! what the host writes suffices).

use super::PageMap;
use super::frontier::NO_BLOCK;
use crate::ControllerError;
use nvlab_medium::Store;
use nvlab_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A die takes part in a round if its spare space is at least this much of what the dies have on average: sixteenths.
const SPARE_MIN: i64 = 15;
/// Programs a die may have more to do than the one with the least.
const QUEUE_MAX: u64 = 2;
/// Programs a die with room has more to do than the one with the least when it is put aside: some more than [`QUEUE_MAX`],
/// so that it does not come and go with every page.
const QUEUE_FAR: u64 = 8;

/// What a look at a die found.
#[derive(Clone, Copy, Debug)]
struct Look {
    die: u32,
    has_room: bool,
    /// When it can begin a page: never if it is not to take part.
    ready: Time,
    idle: Time,
}

/// The dies of a round of one host stream, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Round {
    dies: Vec<u32>,
    next: usize,
    turn: u32,
    /// The dies looked at before each round, in order.
    near: Vec<Look>,
    /// The others: each has too much to do until the soonest of all is idle no earlier than this.
    far: BinaryHeap<Reverse<(Time, u32)>>,
    /// Those of the near ones that are cleaned for.
    roomless: Vec<u32>,
}

impl Round {
    pub fn new(dies: u32) -> Round {
        let look = |die| Look { die, has_room: true, ready: Time::ZERO, idle: Time::ZERO };
        Round {
            dies: (0..dies).collect(),
            next: 0,
            turn: 0,
            near: (0..dies).map(look).collect(),
            far: BinaryHeap::with_capacity(dies as usize),
            roomless: Vec::with_capacity(dies as usize),
        }
    }

    /// Whose turn it is.
    #[inline]
    pub fn die(&self) -> u32 {
        self.turn
    }

    /// Another die takes this turn.
    pub fn hand_to(&mut self, die: u32) {
        self.turn = die;
    }

    /// A die that is far no longer, if there is one when the soonest is idle from `soonest` on.
    #[inline]
    fn comes_near(&mut self, soonest: Time) -> Option<u32> {
        let &Reverse((look_at, die)) = self.far.peek()?;
        (look_at <= soonest).then(|| {
            self.far.pop();
            die
        })
    }

    /// Chooses among the near dies. True if some of them are too far or have no room.
    #[inline(always)]
    fn choose(&mut self, latest: Time) -> bool {
        self.dies.clear();
        self.dies.extend(self.near.iter().filter(|look| look.ready <= latest).map(|look| look.die));
        (self.next, self.turn) = (0, self.dies[0]);
        self.dies.len() < self.near.len()
    }

    /// Puts those aside that have too much to do. Those without room are cleaned for, unless they have a block's worth
    /// more to do than the soonest.
    fn part(&mut self, soonest: Time, program: Span, pages_per_block: u32) {
        let Round { near, far, roomless, .. } = self;
        near.retain(|look| {
            let block = pages_per_block as u64;
            let (limit, back) = if look.has_room { (QUEUE_FAR, QUEUE_MAX) } else { (block, block) };
            if look.idle > soonest + program * limit {
                far.push(Reverse((look.idle.before(program * back), look.die)));
                return false;
            }
            if !look.has_room {
                roomless.push(look.die);
            }
            true
        });
    }
}

impl<S: Store> PageMap<S> {
    /// A page of a host stream was programmed: it is the next die's turn.
    #[inline]
    pub(super) fn pass_turn(&mut self, at: Time, stream: u32) -> Result<(), ControllerError> {
        let round = &mut self.rounds[stream as usize];
        round.next += 1;
        if let Some(&die) = round.dies.get(round.next) {
            round.turn = die;
            return Ok(());
        }
        if self.geometry.dies() == 1 {
            round.next = 0;
            return Ok(());
        }
        self.begin_round(at, stream)
    }

    /// A page of a frontier was programmed before it was full.
    pub(super) fn pass_turn_of(&mut self, at: Time, index: u32) -> Result<(), ControllerError> {
        let (die, stream) = (index / self.streams, index % self.streams);
        match self.rounds.get(stream as usize) {
            Some(round) if round.die() == die => self.pass_turn(at, stream),
            _ => Ok(()),
        }
    }

    /// True if a host stream can place a page on a die without waiting for the cleaner.
    pub(super) fn has_room(&self, die: u32, stream: u32) -> bool {
        let open = self.frontiers[(die * self.streams + stream) as usize].block != NO_BLOCK;
        open || self.erased_blocks(die) > self.left_to_cleaner()
    }

    #[inline(always)]
    fn look(&self, die: u32, stream: u32, enough: i64) -> Look {
        let (has_room, idle) = (self.has_room(die, stream), self.array.nand().idle_from(die));
        let takes_part = has_room && self.table.spare()[die as usize] >= enough;
        Look { die, has_room, ready: if takes_part { idle } else { Time::MAX }, idle }
    }

    /// Looks at every near die again.
    #[inline(always)]
    fn look_at_near(&self, near: &mut [Look], stream: u32, enough: i64) -> Time {
        near.iter_mut().fold(Time::MAX, |soonest, look| {
            *look = self.look(look.die, stream, enough);
            soonest.min(look.ready)
        })
    }

    /// Chooses the dies of the next round. Those without room are cleaned for as if they took part, and so come back;
    /// but a die that has a block's worth more to do than the others is left alone until it has caught up.
    #[inline(never)]
    fn begin_round(&mut self, at: Time, stream: u32) -> Result<(), ControllerError> {
        let spare = self.table.spare();
        let enough = self.table.spare_of_all() * SPARE_MIN / (16 * spare.len() as i64);
        let mut near = std::mem::take(&mut self.rounds[stream as usize].near);
        let mut soonest = self.look_at_near(&mut near, stream, enough);
        while let Some(die) = self.rounds[stream as usize].comes_near(soonest.max(at)) {
            let look = self.look(die, stream, enough);
            near.insert(near.partition_point(|other| other.die < die), look);
            soonest = soonest.min(look.ready);
        }
        if soonest == Time::MAX {
            // None has room: whoever has spare space is cleaned at once.
            let spare = self.table.spare();
            let has_spare = near.iter_mut().filter(|look| spare[look.die as usize] >= enough);
            has_spare.for_each(|look| look.ready = look.idle);
            soonest = near.iter().map(|look| look.ready).min().unwrap_or(at);
        }
        let soonest = soonest.max(at);
        let program = self.array.nand().config().timing.program;
        let round = &mut self.rounds[stream as usize];
        round.near = near;
        if !round.choose(soonest + program * QUEUE_MAX) {
            return Ok(());
        }
        round.part(soonest, program, self.geometry.pages_per_block);
        let mut roomless = std::mem::take(&mut round.roomless);
        let paced = roomless.drain(..).try_for_each(|die| self.pace(at, die, self.geometry.units_per_page));
        self.rounds[stream as usize].roomless = roomless;
        paced
    }
}
