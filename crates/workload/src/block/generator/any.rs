//! A generator whose distribution is known only at run time.

use super::{Generator, ZoneWriter};
use crate::addresses::{Normal, Partly, SelfSimilar, Sequential, Shuffled, Uniform, ZipfAddresses, Zones};
use crate::block::BlockWorkload;
use std::ops::{Deref, DerefMut};

/// A generator of any distribution. It is used through the trait it dereferences to.
#[derive(Clone, Debug)]
pub enum AnyGenerator {
    /// Every slot equally likely.
    Uniform(Generator<Uniform>),
    /// Every slot once per pass.
    Shuffled(Generator<Shuffled>),
    /// Ascending, again from the first slot after the last.
    Sequential(Generator<Sequential>),
    /// Skewed by rank.
    Zipf(Generator<ZipfAddresses>),
    /// Hot and cold zones.
    Zones(Generator<Zones>),
    /// 80/20 within 80/20.
    SelfSimilar(Generator<SelfSimilar>),
    /// A bell around the middle.
    Normal(Generator<Normal>),
    /// Any of the others, interrupted by sequential runs.
    Partly(Generator<Partly>),
    /// At the write pointers of zones.
    InZones(ZoneWriter),
}

/// Calls a method of a generator of any distribution.
macro_rules! each {
    ($any:expr, $generator:ident => $call:expr) => {
        match $any {
            AnyGenerator::Uniform($generator) => $call,
            AnyGenerator::Shuffled($generator) => $call,
            AnyGenerator::Sequential($generator) => $call,
            AnyGenerator::Zipf($generator) => $call,
            AnyGenerator::Zones($generator) => $call,
            AnyGenerator::SelfSimilar($generator) => $call,
            AnyGenerator::Normal($generator) => $call,
            AnyGenerator::Partly($generator) => $call,
            AnyGenerator::InZones($generator) => $call,
        }
    };
}

impl AnyGenerator {
    /// Takes its end away: it goes on as if it was asked for again and again. If it `restarts`, even at the end of simulated time: its
    /// requests then come as if at the beginning.
    pub fn go_on(&mut self, restarts: bool) {
        each!(self, generator => generator.go_on(restarts));
    }

    /// True if it ends before it has been everywhere in its region, and would begin again at the beginning of that.
    pub fn leaves_rest(&self) -> bool {
        match self {
            AnyGenerator::Sequential(generator) => generator.leaves_rest(),
            _ => false,
        }
    }
}

impl Deref for AnyGenerator {
    type Target = dyn BlockWorkload;
    fn deref(&self) -> &Self::Target {
        each!(self, generator => generator)
    }
}

impl DerefMut for AnyGenerator {
    fn deref_mut(&mut self) -> &mut Self::Target {
        each!(self, generator => generator)
    }
}
