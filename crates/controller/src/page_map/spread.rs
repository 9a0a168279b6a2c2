//! Which die the host's next page goes to.
//!
//! Host pages are distributed round-robin, so that data written together is read from all dies in parallel. Before each
//! round the participating dies are chosen, one page each: those with room in an open or an erased block, with as
//! much spare space as the others (this spreads live data evenly, so that cleaning a block costs the same everywhere,
//! whatever the pattern of the host's writes), and with no longer a queue than the others (no write queues behind a die
//! that cleans while others are idle). Choosing examines every die once per round: constant work per page, unless most
//! dies cannot take part.
//!
//! Rejected: the best die for each page (examines every die for each page); strict round-robin (MQSim's static
//! allocation: if an even number of versions of every unit are written one after the other, all the newest ones are on
//! half of the dies, and a die that cleans delays the rest); moving live data between dies (it crosses two channels,
//! and placing what the host writes suffices).

use super::PageMap;
use super::frontier::NO_BLOCK;
use crate::ControllerError;
use nvlab_medium::Store;
use nvlab_units::{Die, Span, Time};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A die takes part in a round if its spare space is at least this many sixteenths of the average of all dies.
const SPARE_MIN: i64 = 15;
/// Programs by which the queue of a participating die may exceed the shortest.
const QUEUE_MAX: u64 = 2;
/// Programs by which the queue of a die with room must exceed the shortest before it is set aside: some more than
/// [`QUEUE_MAX`], so that it does not come and go with every page.
const QUEUE_FAR: u64 = 8;

/// The state of a die when a round is chosen.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Look {
    die: Die,
    has_room: bool,
    /// When it can begin a page; [`Time::MAX`] if it must not take part.
    ready: Time,
    idle: Time,
}

/// The dies of one host stream's round, and the die whose turn it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Round {
    dies: Vec<Die>,
    next: usize,
    turn: Die,
    /// The dies examined before each round, in order.
    near: Vec<Look>,
    /// The others, set aside: each is too busy until the earliest idle time of all dies reaches this.
    far: BinaryHeap<Reverse<(Time, Die)>>,
    /// The near dies without room, which are cleaned.
    without_room: Vec<Die>,
}

impl Round {
    pub fn new(dies: u32) -> Round {
        let look = |die| Look { die, has_room: true, ready: Time::ZERO, idle: Time::ZERO };
        Round {
            dies: (0..dies).map(Die).collect(),
            next: 0,
            turn: Die(0),
            near: (0..dies).map(Die).map(look).collect(),
            far: BinaryHeap::with_capacity(dies as usize),
            without_room: Vec::with_capacity(dies as usize),
        }
    }

    /// The die whose turn it is.
    #[inline]
    pub fn die(&self) -> Die {
        self.turn
    }

    /// Passes this turn to another die.
    pub fn set_turn(&mut self, die: Die) {
        self.turn = die;
    }

    /// Removes a die from `far` that is no longer too busy, if the earliest idle time of all dies is `soonest`.
    #[inline]
    fn pop_ready(&mut self, soonest: Time) -> Option<Die> {
        let &Reverse((look_at, die)) = self.far.peek()?;
        (look_at <= soonest).then(|| {
            self.far.pop();
            die
        })
    }

    /// Chooses among the near dies. Returns true if some of them are too busy or have no room.
    #[inline(always)]
    fn choose(&mut self, latest: Time) -> bool {
        self.dies.clear();
        self.dies.extend(self.near.iter().filter(|look| look.ready <= latest).map(|look| look.die));
        (self.next, self.turn) = (0, self.dies[0]);
        self.dies.len() < self.near.len()
    }

    /// Sets dies that are too busy aside. Dies without room are cleaned, unless their queue is a block's worth longer
    /// than the shortest.
    fn part(&mut self, soonest: Time, program: Span, pages_per_block: u32) {
        let Round { near, far, without_room, .. } = self;
        near.retain(|look| {
            let block = pages_per_block as u64;
            let (limit, back) = if look.has_room { (QUEUE_FAR, QUEUE_MAX) } else { (block, block) };
            if look.idle > soonest + program * limit {
                far.push(Reverse((look.idle.before(program * back), look.die)));
                return false;
            }
            if !look.has_room {
                without_room.push(look.die);
            }
            true
        });
    }
}

impl<S: Store> PageMap<S> {
    /// Passes the turn to the next die after a page of a host stream was programmed.
    #[inline]
    pub(super) fn pass_turn(&mut self, at: Time, stream: u32) -> Result<(), ControllerError> {
        let round = &mut self.writers.rounds[stream as usize];
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

    /// Passes the turn after a page of a frontier was programmed before it was full.
    pub(super) fn pass_turn_of(&mut self, at: Time, index: u32) -> Result<(), ControllerError> {
        let (die, stream) = (self.writers.die_of(index), self.writers.stream_of(index));
        match self.writers.rounds.get(stream as usize) {
            Some(round) if round.die() == die => self.pass_turn(at, stream),
            _ => Ok(()),
        }
    }

    /// True if a host stream can place a page on a die without waiting for the cleaner.
    pub(super) fn has_room(&self, die: Die, stream: u32) -> bool {
        let open = self.writers[self.writers.of(die, stream)].block != NO_BLOCK;
        open || self.erased_blocks(die) > self.left_to_cleaner()
    }

    #[inline(always)]
    fn look(&self, die: Die, stream: u32, enough: i64) -> Look {
        let (has_room, idle) = (self.has_room(die, stream), self.array.nand().idle_from(die));
        let takes_part = has_room && self.table.spare()[die.index()] >= enough;
        Look { die, has_room, ready: if takes_part { idle } else { Time::MAX }, idle }
    }

    /// Updates the state of every near die; returns when the first is ready.
    #[inline(always)]
    fn look_at_near(&self, near: &mut [Look], stream: u32, enough: i64) -> Time {
        near.iter_mut().fold(Time::MAX, |soonest, look| {
            *look = self.look(look.die, stream, enough);
            soonest.min(look.ready)
        })
    }

    /// Chooses the dies of the next round. Dies without room are cleaned at the pace of a participant, so that they get
    /// room again; but a die whose queue is a block's worth longer than the others is left alone until it has caught
    /// up.
    #[inline(never)]
    fn begin_round(&mut self, at: Time, stream: u32) -> Result<(), ControllerError> {
        let spare = self.table.spare();
        let enough = self.table.spare_of_all() * SPARE_MIN / (16 * spare.len() as i64);
        let mut near = std::mem::take(&mut self.writers.rounds[stream as usize].near);
        let mut soonest = self.look_at_near(&mut near, stream, enough);
        while let Some(die) = self.writers.rounds[stream as usize].pop_ready(soonest.max(at)) {
            let look = self.look(die, stream, enough);
            near.insert(near.partition_point(|other| other.die < die), look);
            soonest = soonest.min(look.ready);
        }
        if soonest == Time::MAX {
            // No die has room: those with spare space are cleaned at once.
            let spare = self.table.spare();
            let has_spare = near.iter_mut().filter(|look| spare[look.die.index()] >= enough);
            has_spare.for_each(|look| look.ready = look.idle);
            soonest = near.iter().map(|look| look.ready).min().unwrap_or(at);
        }
        let soonest = soonest.max(at);
        let program = self.array.nand().config().program_time();
        let round = &mut self.writers.rounds[stream as usize];
        round.near = near;
        if !round.choose(soonest + program * QUEUE_MAX) {
            return Ok(());
        }
        round.part(soonest, program, self.geometry.pages_per_block);
        let mut without_room = std::mem::take(&mut round.without_room);
        let paced =
            without_room.drain(..).try_for_each(|die| self.pace(at, die, self.geometry.units_per_page));
        self.writers.rounds[stream as usize].without_room = without_room;
        paced
    }
}
