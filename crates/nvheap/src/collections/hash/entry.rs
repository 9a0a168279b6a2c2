//! The place of a key, found once: for programs that look first and then insert or remove.

use super::bucket::Bucket;
use super::search::{Buckets, Slot};
use super::{PHashMap, Stripe, bucket};
use crate::collections::key::Key;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist};
use crate::pointer::{PBox, is_value_of, write_node};
use crate::tx::Tx;
use std::fmt;

/// The place of a key in a [`PHashMap`]. Its bucket is borrowed mutably.
#[derive(Debug)]
pub enum Entry<'t, K, V, H: Brand> {
    /// The map has the key.
    Occupied(OccupiedEntry<'t, K, V, H>),
    /// The map does not have the key.
    Vacant(VacantEntry<'t, K, V, H>),
}

/// Where a map's counts and chains are to be changed.
pub(super) struct Place<'t, K, V, H: Brand> {
    pub map: &'t PHashMap<K, V, H>,
    pub tx: &'t Tx<'t, H>,
    pub hash: u64,
    pub buckets: Buckets,
    pub stripe: Option<Stripe>,
}

/// An existing key and its value.
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

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> Place<'t, K, V, H> {
    /// True if the map has had the same buckets since the search. No block is reused in the transaction that frees
    /// it.
    #[inline]
    fn is_as_it_was(&self) -> Result<bool> {
        if !self.tx.raw.has_changed(self.map.anchor.word())? {
            return Ok(true);
        }
        Ok(self.map.door(self.tx)?.0.state() == self.buckets)
    }

    /// Whether the map still leads to a bucket that is borrowed.
    #[cold]
    fn leads_to(&self, bucket: &Bucket<K, V, H>) -> Result<bool> {
        let (buckets, ..) = self.map.door(self.tx)?;
        let mut next = PHashMap::first(self.tx, &buckets, self.hash)?;
        while let Some(word) = next {
            if is_value_of(self.tx.raw, bucket, word)? {
                return Ok(true);
            }
            let other = write_node::<Bucket<K, V, H>, H>(self.tx.raw, word)?;
            next = other.next.as_ref().map(PBox::word);
        }
        Ok(false)
    }
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> OccupiedEntry<'t, K, V, H> {
    /// The value.
    pub fn get(&self) -> &V {
        let (bucket, slot) = &self.slot;
        &bucket.entry(*slot).1
    }

    /// The value, borrowed mutably.
    pub fn get_mut(&mut self) -> &mut V {
        let (bucket, slot) = &mut self.slot;
        &mut bucket.entry_mut(*slot).1
    }

    /// Removes the entry and returns its value.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the map was cleared meanwhile.
    pub fn remove(self) -> Result<V> {
        if !self.place.is_as_it_was()? && !self.place.leads_to(&self.slot.0)? {
            let why = "a map was cleared while an entry of it was in use".into();
            return Err(self.place.tx.raw.doom(Error::Invalid(why)));
        }
        Ok(self.remove_entry()?.1)
    }

    pub(super) fn remove_entry(self) -> Result<(K, V)> {
        let Place { map, tx, hash, stripe, .. } = self.place;
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
    /// Inserts the key with this value; replaces the value if the key was inserted since the search.
    pub fn insert(self, value: V) -> Result<()> {
        // A free slot is borrowed, so its chain has not changed. Nothing says so of a chain without one.
        if self.free.is_some() && self.place.is_as_it_was()? {
            return self.insert_now(value);
        }
        let VacantEntry { place: Place { map, tx, .. }, key, free } = self;
        drop(free);
        map.insert(tx, key, value).map(drop)
    }

    /// The same right after the search.
    #[inline]
    pub(super) fn insert_now(self, value: V) -> Result<()> {
        let Place { map, tx, hash, stripe, .. } = self.place;
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
