//! What the search for a key to be changed finds.

use super::bucket::{Bucket, tag};
use crate::collections::counter::Stripe;
use crate::collections::key::Key;
use crate::error::Result;
use crate::persist::{Brand, Persist};
use crate::pointer::{PBox, Write, write_node};
use crate::tx::Tx;
use std::num::NonZeroU64;

/// A bucket to be changed, and a slot of it.
pub(super) type Slot<'t, K, V, H> = (Write<'t, Bucket<K, V, H>>, usize);

/// The array of buckets: another one when the map has grown or was cleared.
pub(super) type Buckets = (Option<NonZeroU64>, u64);

/// What the search for a key found.
pub(super) struct Search<'t, K, V, H: Brand> {
    pub hash: u64,
    pub buckets: Buckets,
    pub stripe: Option<Stripe>,
    pub found: Option<Slot<'t, K, V, H>>,
    /// If the key is not there: where it may go.
    pub free: Option<Slot<'t, K, V, H>>,
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> Search<'t, K, V, H> {
    /// Walks along a chain.
    #[inline]
    pub fn walk(
        &mut self,
        tx: &'t Tx<'_, H>,
        first: NonZeroU64,
        mut is_equal: impl FnMut(&K) -> Result<bool>,
    ) -> Result<()> {
        let mut next = Some(first);
        while let Some(word) = next {
            let bucket = write_node::<Bucket<K, V, H>, H>(tx.raw, word)?;
            if let Some(slot) = bucket.find(tag(self.hash), &mut is_equal)? {
                (self.found, self.free) = (Some((bucket, slot)), None);
                return Ok(());
            }
            next = bucket.next.as_ref().map(PBox::word);
            if let (None, Some(slot)) = (&self.free, bucket.free()) {
                self.free = Some((bucket, slot));
            }
        }
        Ok(())
    }
}
