//! A generator whose distribution is known only at run time.

use super::Generator;
use crate::addresses::{Normal, Partly, SelfSimilar, Sequential, Shuffled, Uniform, ZipfAddresses, Zones};
use crate::block::BlockWorkload;
use std::ops::{Deref, DerefMut};

/// A generator of any distribution. It is used through the trait it dereferences to.
#[derive(Clone, Debug)]
pub enum AnyGenerator {
    /// Uniform addresses.
    Uniform(Generator<Uniform>),
    /// Every slot once per pass.
    Shuffled(Generator<Shuffled>),
    /// One after another.
    Sequential(Generator<Sequential>),
    /// Zipf.
    Zipf(Generator<ZipfAddresses>),
    /// Hot and cold zones.
    Zones(Generator<Zones>),
    /// Self-similar.
    SelfSimilar(Generator<SelfSimilar>),
    /// A bell around the middle.
    Normal(Generator<Normal>),
    /// Any, with sequential runs.
    Partly(Generator<Partly>),
}

impl Deref for AnyGenerator {
    type Target = dyn BlockWorkload;
    fn deref(&self) -> &Self::Target {
        match self {
            AnyGenerator::Uniform(generator) => generator,
            AnyGenerator::Shuffled(generator) => generator,
            AnyGenerator::Sequential(generator) => generator,
            AnyGenerator::Zipf(generator) => generator,
            AnyGenerator::Zones(generator) => generator,
            AnyGenerator::SelfSimilar(generator) => generator,
            AnyGenerator::Normal(generator) => generator,
            AnyGenerator::Partly(generator) => generator,
        }
    }
}

impl DerefMut for AnyGenerator {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            AnyGenerator::Uniform(generator) => generator,
            AnyGenerator::Shuffled(generator) => generator,
            AnyGenerator::Sequential(generator) => generator,
            AnyGenerator::Zipf(generator) => generator,
            AnyGenerator::Zones(generator) => generator,
            AnyGenerator::SelfSimilar(generator) => generator,
            AnyGenerator::Normal(generator) => generator,
            AnyGenerator::Partly(generator) => generator,
        }
    }
}
