//! Distributions of addresses over numbered slots: which block, page or record comes next.

mod normal;
mod partly;
mod scatter;
mod self_similar;
mod sequential;
mod shuffled;
mod uniform;
mod zipf;
mod zones;

pub use normal::Normal;
pub use partly::{AnyAddresses, Jumps, Partly};
pub use scatter::Scatter;
pub use self_similar::SelfSimilar;
pub use sequential::Sequential;
pub use shuffled::Shuffled;
pub use uniform::Uniform;
pub use zipf::ZipfAddresses;
pub(crate) use zones::hot;
pub use zones::{Zone, Zones};

use crate::Op;
use nvlab_units::Rng;

/// A distribution of addresses over the slots `0..slots`.
pub trait Addresses {
    /// The next slot, for an operation on `units` consecutive slots.
    fn slot(&mut self, op: Op, units: u64) -> u64;

    /// True if it goes over all slots before it comes back to one.
    fn passes(&self) -> bool {
        false
    }

    /// A copy of it that draws other ranks than this one will; `None` if a slot depends on those before it.
    fn ranks(&self) -> Option<Box<dyn Ranks>> {
        None
    }
}

/// A distribution that draws every slot anew: first a rank, neighbours among which are about equally likely, then the slot
/// of this rank.
pub trait Ranks: std::fmt::Debug {
    /// Draws the next rank, from 0.
    fn rank(&mut self) -> u64;

    /// The generator that `rank` draws from; a copy set apart draws other ranks.
    fn rng(&mut self) -> &mut Rng;

    /// The slot of `rank`; every slot has exactly one rank.
    fn slot_of(&self, rank: u64) -> u64;

    /// True if the slot of a rank has its number: neighbours in rank lie side by side.
    fn is_in_order(&self) -> bool {
        false
    }

    /// True if all ranks are equally likely, and in order.
    fn is_uniform(&self) -> bool {
        false
    }
}

impl<R: Ranks + Clone + 'static> Addresses for R {
    #[inline]
    fn slot(&mut self, _op: Op, _units: u64) -> u64 {
        let rank = self.rank();
        self.slot_of(rank)
    }

    fn ranks(&self) -> Option<Box<dyn Ranks>> {
        let mut other = self.clone();
        *other.rng() = other.rng().apart();
        Some(Box::new(other))
    }
}
