//! Random addresses with sequential runs between them (fio's `percentage_random` and `rw=randread:8`).

use super::{Addresses, Normal, Ranks, SelfSimilar, Sequential, Shuffled, Uniform, ZipfAddresses, Zones};
use crate::Op;
use nvlab_units::Rng;

/// Any distribution that sequential runs can be mixed into.
#[derive(Clone, Debug)]
pub enum AnyAddresses {
    /// Every slot equally likely, drawn with replacement.
    Uniform(Uniform),
    /// Every slot once per pass, in random order.
    Shuffled(Shuffled),
    /// Ascending, from the first slot again after the last.
    Sequential(Sequential),
    /// Skewed by rank.
    Zipf(ZipfAddresses),
    /// Shares of the accesses to shares of the space, such as hot/cold.
    Zones(Zones),
    /// 80/20 within 80/20.
    SelfSimilar(SelfSimilar),
    /// A bell around the middle of the space.
    Normal(Normal),
}

impl Addresses for AnyAddresses {
    fn slot(&mut self, op: Op, units: u64) -> u64 {
        match self {
            AnyAddresses::Uniform(addresses) => addresses.slot(op, units),
            AnyAddresses::Shuffled(addresses) => addresses.slot(op, units),
            AnyAddresses::Sequential(addresses) => addresses.slot(op, units),
            AnyAddresses::Zipf(addresses) => addresses.slot(op, units),
            AnyAddresses::Zones(addresses) => addresses.slot(op, units),
            AnyAddresses::SelfSimilar(addresses) => addresses.slot(op, units),
            AnyAddresses::Normal(addresses) => addresses.slot(op, units),
        }
    }

    fn passes(&self) -> bool {
        match self {
            AnyAddresses::Uniform(addresses) => addresses.passes(),
            AnyAddresses::Shuffled(addresses) => addresses.passes(),
            AnyAddresses::Sequential(addresses) => addresses.passes(),
            AnyAddresses::Zipf(addresses) => addresses.passes(),
            AnyAddresses::Zones(addresses) => addresses.passes(),
            AnyAddresses::SelfSimilar(addresses) => addresses.passes(),
            AnyAddresses::Normal(addresses) => addresses.passes(),
        }
    }

    fn ranks(&self) -> Option<Box<dyn Ranks>> {
        match self {
            AnyAddresses::Uniform(addresses) => addresses.ranks(),
            AnyAddresses::Shuffled(addresses) => addresses.ranks(),
            AnyAddresses::Sequential(addresses) => addresses.ranks(),
            AnyAddresses::Zipf(addresses) => addresses.ranks(),
            AnyAddresses::Zones(addresses) => addresses.ranks(),
            AnyAddresses::SelfSimilar(addresses) => addresses.ranks(),
            AnyAddresses::Normal(addresses) => addresses.ranks(),
        }
    }
}

/// Which requests go to a new place; the others follow the last request of their kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jumps {
    /// Each request with this probability, 0 to 1.
    Share(f64),
    /// One request in this many of its kind, at least 1.
    Every(u32),
}

/// Addresses of a distribution, with sequential runs between them.
#[derive(Clone, Debug)]
pub struct Partly {
    inner: AnyAddresses,
    jumps: Jumps,
    rng: Rng,
    /// The slot behind the last request, and how many requests follow it still, for each kind of request.
    runs: [(u64, u32); 4],
    slots: u64,
}

impl Partly {
    /// `inner` must be over the same `0..slots`. Panics on `Jumps::Every(0)`.
    pub fn new(slots: u64, inner: AnyAddresses, jumps: Jumps, seed: u64) -> Partly {
        assert!(jumps != Jumps::Every(0), "no request would go to a new address");
        Partly { inner, jumps, rng: Rng::stream(seed, "jumps"), runs: [(0, 0); 4], slots }
    }
}

impl Addresses for Partly {
    fn slot(&mut self, op: Op, units: u64) -> u64 {
        let (next, left) = self.runs[op as usize];
        let follows = match self.jumps {
            Jumps::Share(share) => !self.rng.chance(share),
            Jumps::Every(_) => left > 0,
        };
        let slot = match follows && next + units <= self.slots {
            true => next,
            false if follows => 0,
            false => self.inner.slot(op, units),
        };
        let left = match self.jumps {
            Jumps::Every(every) if !follows => every - 1,
            _ => left.saturating_sub(1),
        };
        self.runs[op as usize] = (slot + units, left);
        slot
    }

    /// A run goes over slots that the distribution has still to come to, and those behind one of its own.
    fn passes(&self) -> bool {
        false
    }

    /// None: a slot within a run depends on the one before.
    fn ranks(&self) -> Option<Box<dyn Ranks>> {
        None
    }
}
