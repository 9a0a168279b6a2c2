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
use nvlab_units::Time;

/// A die takes part in a round if its spare space is at least this much of what the dies have on average: sixteenths.
const SPARE_MIN: u64 = 15;
/// Programs a die may have more to do than the one with the least.
const QUEUE_MAX: u64 = 2;

/// The dies of a round of one host stream, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Round {
    dies: Vec<u32>,
    next: usize,
}

impl Round {
    pub fn new(dies: u32) -> Round {
        Round { dies: (0..dies).collect(), next: 0 }
    }

    /// Whose turn it is.
    #[inline]
    pub fn die(&self) -> u32 {
        self.dies[self.next]
    }

    /// Another die takes this turn.
    pub fn hand_to(&mut self, die: u32) {
        self.dies[self.next] = die;
    }
}

impl<S: Store> PageMap<S> {
    /// A page of a host stream was programmed: it is the next die's turn.
    #[inline]
    pub(super) fn pass_turn(&mut self, at: Time, stream: u32) -> Result<(), ControllerError> {
        let round = &mut self.rounds[stream as usize];
        round.next += 1;
        if round.next < round.dies.len() {
            return Ok(());
        }
        round.next = 0;
        if self.geometry.dies() == 1 {
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

    /// Chooses the dies of the next round. Those without room are cleaned for as if they took part, and so come back;
    /// but a die that has a block's worth more to do than the others is left alone until it has caught up.
    #[inline(never)]
    fn begin_round(&mut self, at: Time, stream: u32) -> Result<(), ControllerError> {
        let dies = self.geometry.dies();
        let program = self.array.nand().config().timing.program;
        let enough =
            (0..dies).map(|die| self.table.spare(die) as u64).sum::<u64>() * SPARE_MIN / (16 * dies as u64);
        let has_spare = |&die: &u32| self.table.spare(die) as u64 >= enough;
        let mut taking = std::mem::take(&mut self.rounds[stream as usize].dies);
        taking.clear();
        let (mut soonest, mut all_have_room) = (Time::MAX, true);
        for die in 0..dies {
            let has_room = self.has_room(die, stream);
            all_have_room &= has_room;
            if has_room && has_spare(&die) {
                taking.push(die);
                soonest = soonest.min(self.array.nand().idle_from(die));
            }
        }
        if taking.is_empty() {
            taking.extend((0..dies).filter(has_spare));
            soonest = taking.iter().map(|&die| self.array.nand().idle_from(die)).min().unwrap_or(at);
        }
        let soonest = soonest.max(at);
        let latest = soonest + program * QUEUE_MAX;
        taking.retain(|&die| self.array.nand().idle_from(die) <= latest);
        self.rounds[stream as usize].dies = taking;
        if all_have_room {
            return Ok(());
        }
        let latest = soonest + program * self.geometry.pages_per_block as u64;
        for die in 0..dies {
            if !self.has_room(die, stream) && self.array.nand().idle_from(die) <= latest {
                self.pace(at, die, self.geometry.units_per_page)?;
            }
        }
        Ok(())
    }
}
