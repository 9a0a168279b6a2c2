//! A counter without contention: each thread adds to its own stripe.

use crate::error::Result;
use crate::persist::{Brand, Persist, Shape};
use crate::pointer::{PBox, write};
use crate::tx::Tx;
use std::num::NonZeroU64;

const STRIPES: usize = 8;

/// A part of the count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stripe(NonZeroU64);

impl Stripe {
    /// That which a counter's word leads to.
    #[inline]
    pub fn of(word: u64) -> Option<Stripe> {
        NonZeroU64::new(word).map(Stripe)
    }

    #[inline]
    pub fn add<H: Brand>(self, tx: &Tx<'_, H>, more: i64) -> Result<()> {
        let mut count = write::<u64, H>(tx.raw, self.0)?;
        // A stripe may lose what others have added.
        *count = count.wrapping_add_signed(more);
        Ok(())
    }
}

/// The number of entries of a map. Part of its anchor.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Counter<H: Brand> {
    stripes: [Option<PBox<u64, H>>; STRIPES],
}

impl<H: Brand> Counter<H> {
    pub fn new() -> Self {
        Counter { stripes: [const { None }; STRIPES] }
    }

    /// The word of this thread's stripe.
    #[inline]
    pub fn mine(tx: &Tx<'_, H>) -> usize {
        tx.raw.context.slot % STRIPES
    }

    /// The stripe of this thread, if it exists.
    #[inline]
    pub fn stripe(&self, tx: &Tx<'_, H>) -> Option<Stripe> {
        self.stripes[Self::mine(tx)].as_ref().map(|stripe| Stripe(stripe.word()))
    }

    /// Adds to the stripe of this thread; creates it if it does not exist, checked again under the write borrow.
    pub fn add(&mut self, tx: &Tx<'_, H>, more: i64) -> Result<()> {
        if let Some(stripe) = self.stripe(tx) {
            return stripe.add(tx, more);
        }
        self.stripes[Self::mine(tx)] = Some(PBox::new(tx, more as u64)?);
        Ok(())
    }

    /// Reads all stripes.
    pub fn sum(&self, tx: &Tx<'_, H>) -> Result<u64> {
        let mut sum = 0_u64;
        for stripe in self.stripes.iter().flatten() {
            sum = sum.wrapping_add(*stripe.read(tx)?);
        }
        Ok(sum)
    }
}

// SAFETY: pointers only.
unsafe impl<H: Brand> Persist<H> for Counter<H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.begin(".counter", STRIPES as u32, size_of::<Self>());
        shape.field::<[Option<PBox<u64, H>>; STRIPES], H>("stripes", 0);
        shape.end();
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}
