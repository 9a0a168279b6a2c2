//! The place of a key, found once: for programs that look first and then insert or remove.

use super::bucket::Bucket;
use super::{PHashMap, Slot, Stripe, bucket};
use crate::collections::guard::RefMut;
use crate::collections::key::Key;
use crate::error::Result;
use crate::persist::{Brand, Persist};
use crate::tx::Tx;
use std::fmt;

/// The place of a key in a [`PHashMap`]. The bucket that it is in is borrowed for a change.
#[derive(Debug)]
pub enum Entry<'t, K, V, H: Brand> {
    /// The key is there.
    Occupied(OccupiedEntry<'t, K, V, H>),
    /// It is not.
    Vacant(VacantEntry<'t, K, V, H>),
}

/// Where a map's counts and chains are to be changed.
pub(super) struct Place<'t, K, V, H: Brand> {
    pub map: &'t PHashMap<K, V, H>,
    pub tx: &'t Tx<'t, H>,
    pub hash: u64,
    pub stripe: Option<Stripe>,
}

/// A key that is there, and its value.
pub struct OccupiedEntry<'t, K, V, H: Brand> {
    pub(super) place: Place<'t, K, V, H>,
    pub(super) slot: Slot<'t, K, V, H>,
}

/// Where a key may be inserted.
pub struct VacantEntry<'t, K, V, H: Brand> {
    pub(super) place: Place<'t, K, V, H>,
    pub(super) key: K,
    /// A free slot, if its chain has one.
    pub(super) free: Option<Slot<'t, K, V, H>>,
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> OccupiedEntry<'t, K, V, H> {
    /// The value.
    pub fn get(&self) -> &V {
        let (bucket, slot) = &self.slot;
        &bucket.entry(*slot).1
    }

    /// The value, for a change.
    pub fn get_mut(&mut self) -> &mut V {
        let (bucket, slot) = &mut self.slot;
        &mut bucket.entry_mut(*slot).1
    }

    /// The value, for a change as long as the transaction.
    pub fn into_mut(self) -> RefMut<'t, V> {
        RefMut::new(self.slot.0, self.slot.1)
    }

    /// Removes the entry and returns its value.
    pub fn remove(self) -> Result<V> {
        Ok(self.remove_entry()?.1)
    }

    pub(super) fn remove_entry(self) -> Result<(K, V)> {
        let Place { map, tx, hash, stripe } = self.place;
        let (mut bucket, slot) = self.slot;
        let entry = bucket.take(slot);
        let is_empty = bucket.is_empty();
        drop(bucket);
        if is_empty {
            map.prune(tx, hash)?;
        }
        map.count(tx, stripe, -1)?;
        Ok(entry)
    }
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> VacantEntry<'t, K, V, H> {
    /// Inserts the key with this value.
    pub fn insert(self, value: V) -> Result<()> {
        let Place { map, tx, hash, stripe } = self.place;
        match self.free {
            Some((mut bucket, slot)) => Bucket::put(&mut bucket, slot, bucket::tag(hash), self.key, value),
            None => map.put(tx, hash, self.key, value, true)?,
        }
        map.count(tx, stripe, 1)
    }
}

impl<K, V, H: Brand> fmt::Debug for OccupiedEntry<'_, K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OccupiedEntry")
    }
}

impl<K, V, H: Brand> fmt::Debug for VacantEntry<'_, K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VacantEntry")
    }
}
