//! The write buffer: pages being filled, and pages that wait for their program.
//!
//! Pages are programmed in the order in which they were filled, so a writer that needs room waits for the oldest of them. A
//! page that is being filled keeps its room for as long as its zone is not written on: there is room for that of every
//! active zone. Timing needs no more. With payload, a protected buffer also keeps what a power cut would leave in it.

use super::config::ZoneBuffer;
use nvlab_medium::Store;
use nvlab_medium::flash::Nand;
use nvlab_units::{Die, Ticket, Time};
use std::collections::VecDeque;

/// Some units of a page, of a zone of a protected buffer.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The zone's generation.
    pub generation: u64,
    /// The first unit.
    pub unit: u32,
    admitted: Time,
    /// A reset of the zone is durable from here on.
    until: Time,
    pub data: Vec<u8>,
    queued: Option<(Die, Ticket)>,
}

/// What a protected buffer holds after a power cut, zone by zone.
pub(super) type Surviving = Vec<(u32, Held)>;

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    config: Option<ZoneBuffer>,
    /// Programs of pages: those from `first` on, `queued` of them, around the ring, may not be done.
    ring: Vec<(Die, Ticket)>,
    first: usize,
    queued: usize,
    /// Pages being filled.
    filling: usize,
    /// By zone; only of a protected buffer, with payload.
    held: Vec<VecDeque<Held>>,
    /// No power cut occurs before this time.
    settled: Time,
    /// The zone whose programmed units are dropped next.
    swept: usize,
}

impl Buffer {
    pub fn new(config: Option<ZoneBuffer>, zones: u32, keeps: bool) -> Buffer {
        let pages = config.map_or(0, |buffer| buffer.pages as usize);
        let holds = keeps && config.is_some_and(|buffer| buffer.protected);
        Buffer {
            config,
            ring: vec![(Die(0), Ticket::default()); pages],
            first: 0,
            queued: 0,
            filling: 0,
            held: vec![VecDeque::new(); if holds { zones as usize } else { 0 }],
            settled: Time::ZERO,
            swept: 0,
        }
    }

    #[inline]
    pub fn config(&self) -> Option<ZoneBuffer> {
        self.config
    }
    pub fn is_protected(&self) -> bool {
        self.config.is_some_and(|buffer| buffer.protected)
    }

    /// Takes room for a page that will be filled; returns when there is some.
    #[inline]
    pub fn begin_page<S: Store>(&mut self, nand: &mut Nand<S>, at: Time) -> Time {
        let mut now = at;
        while self.queued + self.filling >= self.ring.len() && self.queued > 0 {
            let (die, ticket) = self.ring[self.first];
            now = nand.finish(die, ticket, now);
            self.first = if self.first + 1 == self.ring.len() { 0 } else { self.first + 1 };
            self.queued -= 1;
        }
        self.filling += 1;
        now.max(at)
    }

    /// The program of a page that was being filled is queued.
    #[inline]
    pub fn page_queued(&mut self, die: Die, ticket: Ticket) {
        let last = self.first + self.queued;
        let last = if last >= self.ring.len() { last - self.ring.len() } else { last };
        self.ring[last] = (die, ticket);
        self.queued += 1;
        self.filling -= 1;
    }

    /// A page that was being filled is not needed any more.
    pub fn page_dropped(&mut self) {
        self.filling -= 1;
    }

    /// Pages that take room at `at`, and how many there is room for.
    pub fn fill<S: Store>(&self, nand: &mut Nand<S>, at: Time) -> Option<(u32, u32)> {
        self.config?;
        let queued = (0..self.queued).map(|nth| self.ring[(self.first + nth) % self.ring.len()]);
        let waiting = queued.filter(|&(die, ticket)| !nand.is_done(die, ticket, at)).count();
        Some(((waiting + self.filling) as u32, self.ring.len() as u32))
    }

    /// No power cut occurs before `upto`.
    pub fn settle<S: Store>(&mut self, nand: &mut Nand<S>, upto: Time) {
        self.settled = self.settled.max(upto);
        if !self.held.is_empty() {
            self.swept = (self.swept + 1) % self.held.len();
            self.release(nand, self.swept as u32, self.settled);
        }
    }

    /// Keeps units admitted at `admitted` (payload only).
    pub fn hold(&mut self, zone: u32, generation: u64, unit: u32, admitted: Time, data: &[u8]) {
        if let Some(held) = self.held.get_mut(zone as usize) {
            let data = data.to_vec();
            held.push_back(Held { generation, unit, admitted, until: Time::MAX, data, queued: None });
        }
    }

    /// The program of all units held of a zone is queued.
    pub fn held_queued(&mut self, zone: u32, generation: u64, die: Die, ticket: Ticket) {
        let Some(held) = self.held.get_mut(zone as usize) else { return };
        let waits = |held: &&mut Held| held.queued.is_none() && held.generation == generation;
        held.iter_mut().rev().take_while(waits).for_each(|held| held.queued = Some((die, ticket)));
    }

    /// The zone's reset is durable from `until` on.
    pub fn held_until(&mut self, zone: u32, until: Time) {
        let Some(held) = self.held.get_mut(zone as usize) else { return };
        held.iter_mut().for_each(|held| held.until = held.until.min(until));
    }

    /// Drops what is programmed of a zone for sure, as no power cut comes before `at`.
    pub fn release<S: Store>(&mut self, nand: &mut Nand<S>, zone: u32, at: Time) {
        let sure = at.min(self.settled.max(nand.latest()));
        let Some(held) = self.held.get_mut(zone as usize) else { return };
        while held.front().is_some_and(|first| first.is_over(nand, sure)) {
            held.pop_front();
        }
    }

    /// What a protected buffer will hold after a power cut at `at`, which the array has not seen yet: of each zone everything from
    /// the first unit on that is not programmed. What is programmed behind that would be beyond the write pointer.
    pub fn survive<S: Store>(self, nand: &mut Nand<S>, at: Time) -> Surviving {
        let mut surviving = Surviving::new();
        for (zone, held) in (0..).zip(self.held) {
            let rest = held.into_iter().skip_while(|held| held.is_over(nand, at));
            surviving.extend(rest.filter(|held| held.admitted <= at).map(|held| (zone, held)));
        }
        surviving
    }
}

impl Held {
    /// True if it is programmed at `at`, or its zone was reset.
    fn is_over<S: Store>(&self, nand: &mut Nand<S>, at: Time) -> bool {
        self.until <= at || self.queued.is_some_and(|(die, ticket)| nand.is_done(die, ticket, at))
    }
}
