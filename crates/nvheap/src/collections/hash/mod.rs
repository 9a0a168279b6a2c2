//! A hash map: linear hashing (Litwin, VLDB 1980) with buckets of at most fifteen entries.
//!
//! A map of `n` buckets uses the hashes modulo 2^k, the greatest power of two not above `n`; the first buckets have
//! already been split. When an insertion finds its bucket full and the map is dense, the next bucket is split: a map
//! grows by one bucket at a time. If the map is not dense, a full bucket is chained.
//!
//! A map's anchor holds the array of buckets. Buckets are separate objects, read and changed as a whole.

mod bucket;
mod entry;
mod search;

pub use entry::{Entry, OccupiedEntry, VacantEntry};

use super::counter::{Counter, Stripe};
use super::guard::{Ref, RefMut};
use super::key::Key;
use super::order::SLOTS;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::pointer::{PBox, Read, read, words, write_node};
use crate::tx::Tx;
use crate::vec::PVec;
use bucket::{Bucket, tag};
use entry::Place;
use search::Search;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::mem::{ManuallyDrop, offset_of};
use std::num::NonZeroU64;

type Link<K, V, H> = Option<PBox<Bucket<K, V, H>, H>>;
type Door<K, V, H> = (ManuallyDrop<PVec<Link<K, V, H>, H>>, u64, Option<Stripe>);

/// A hash map. See [`crate::collections`] for what its methods have in common.
#[repr(transparent)]
pub struct PHashMap<K, V, H: Brand> {
    anchor: PBox<Anchor<K, V, H>, H>,
}

#[derive(Debug)]
#[repr(C)]
struct Anchor<K, V, H: Brand> {
    buckets: PVec<Link<K, V, H>, H>,
    seed: u64,
    count: Counter<H>,
}

/// A full bucket is split if there are more entries than this for each bucket.
const DENSE: usize = 9;

// SAFETY: three fields, which are described; every pattern is a value.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for Anchor<K, V, H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.begin(".hash", 0, size_of::<Self>());
        shape.field::<PVec<Link<K, V, H>, H>, H>("buckets", 0);
        shape.field::<u64, H>("seed", offset_of!(Self, seed));
        shape.field::<Counter<H>, H>("count", offset_of!(Self, count));
        shape.end();
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

// SAFETY: a pointer, with its layout.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for PHashMap<K, V, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.points_to::<Anchor<K, V, H>, H>("hash");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: passed on; the layout is that of the pointer.
        unsafe { <PBox<Anchor<K, V, H>, H> as Persist<H>>::is_valid(at.cast()) }
    }
}

impl<K, V, H: Brand> fmt::Debug for PHashMap<K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PHashMap")
    }
}

/// The bucket of a hash among so many.
#[inline]
fn number(hash: u64, buckets: usize) -> usize {
    let power = 1 << buckets.ilog2();
    let wide = hash as usize & (2 * power - 1);
    if wide < buckets { wide } else { wide & (power - 1) }
}

impl<K: Key<H>, V: Persist<H>, H: Brand> PHashMap<K, V, H> {
    /// An empty map.
    pub fn new(tx: &Tx<'_, H>) -> Result<Self> {
        let anchor = Anchor { buckets: PVec::new(), seed: tx.raw.core().identity, count: Counter::new() };
        Ok(PHashMap { anchor: PBox::new(tx, anchor)? })
    }

    #[inline]
    fn anchor<'t>(&'t self, tx: &'t Tx<'_, H>) -> Result<Read<'t, Anchor<K, V, H>>> {
        self.anchor.read(tx)
    }

    /// The first bucket of a hash.
    #[inline(always)]
    fn first(tx: &Tx<'_, H>, buckets: &PVec<Link<K, V, H>, H>, hash: u64) -> Result<Option<NonZeroU64>> {
        if buckets.is_empty() {
            return Ok(None);
        }
        buckets.word(tx, number(hash, buckets.len())).map(NonZeroU64::new)
    }

    /// What a search needs of the anchor: the array, the seed, and the count of this thread.
    #[inline(always)]
    fn door(&self, tx: &Tx<'_, H>) -> Result<Door<K, V, H>> {
        self.anchor.trust(tx)?;
        let stripe = offset_of!(Anchor<K, V, H>, count) / 8 + Counter::<H>::mine(tx);
        let indices = [0, 1, 2, offset_of!(Anchor<K, V, H>, seed) / 8, stripe];
        let [block, len, capacity, seed, stripe] =
            words::<Anchor<K, V, H>, H, 5>(tx.raw, self.anchor.word(), indices)?;
        Ok((PVec::lent([block, len, capacity]), seed, Stripe::of(stripe)))
    }

    /// Finds a key and its value; calls `found` with its bucket and slot.
    fn look<R>(
        &self,
        tx: &Tx<'_, H>,
        query: &K::Query,
        found: impl FnOnce(&Bucket<K, V, H>, usize) -> R,
    ) -> Result<Option<R>> {
        let (buckets, seed, _) = self.door(tx)?;
        let hash = K::hash_query(query, seed);
        let Some(first) = Self::first(tx, &buckets, hash)? else { return Ok(None) };
        let mut bucket = read::<Bucket<K, V, H>, H>(tx.raw, first)?;
        loop {
            if let Some(slot) =
                bucket.find(tag(hash), |key| Ok(key.compare(tx, query)? == Ordering::Equal))?
            {
                return Ok(Some(found(&bucket, slot)));
            }
            let next = match &bucket.next {
                Some(next) => next.read(tx)?,
                None => return Ok(None),
            };
            bucket = next;
        }
    }

    /// Finds the bucket of a key, for a change; and the count of this thread.
    #[inline]
    fn find<'t>(
        &'t self,
        tx: &'t Tx<'_, H>,
        query: impl FnOnce(u64) -> Result<u64>,
        is_equal: impl FnMut(&K) -> Result<bool>,
    ) -> Result<Search<'t, K, V, H>> {
        let (buckets, seed, stripe) = self.door(tx)?;
        let hash = query(seed)?;
        let mut search = Search { hash, buckets: buckets.state(), stripe, found: None, free: None };
        if let Some(first) = Self::first(tx, &buckets, hash)? {
            search.walk(tx, first, is_equal)?;
        }
        Ok(search)
    }

    /// Adds to the number of entries.
    #[inline]
    fn count(&self, tx: &Tx<'_, H>, stripe: Option<Stripe>, more: i64) -> Result<()> {
        match stripe {
            Some(stripe) => stripe.add(tx, more),
            None => self.anchor.write(tx)?.count.add(tx, more),
        }
    }

    /// The number of entries. Conflicts with concurrent transactions that insert or remove.
    pub fn len(&self, tx: &Tx<'_, H>) -> Result<usize> {
        Ok(self.anchor(tx)?.count.sum(tx)? as usize)
    }

    /// True if it has no entries.
    pub fn is_empty(&self, tx: &Tx<'_, H>) -> Result<bool> {
        Ok(self.len(tx)? == 0)
    }

    /// The value of a key.
    pub fn get<'t>(&'t self, tx: &'t Tx<'_, H>, query: &K::Query) -> Result<Option<Ref<'t, V>>> {
        self.look(tx, query, |bucket, slot| Ref::copy(tx.raw, &bucket.entry(slot).1))
    }

    /// True if the map has the key.
    pub fn contains_key(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<bool> {
        Ok(self.look(tx, query, |_, _| ())?.is_some())
    }

    /// The value of a key, borrowed mutably.
    pub fn get_mut<'t>(&'t self, tx: &'t Tx<'_, H>, query: &K::Query) -> Result<Option<RefMut<'t, V>>> {
        let is_equal = |key: &K| Ok(key.compare(tx, query)? == Ordering::Equal);
        let search = self.find(tx, |seed| Ok(K::hash_query(query, seed)), is_equal)?;
        Ok(search.found.map(|(bucket, slot)| RefMut::new(bucket, slot)))
    }

    /// The value of a key, borrowed mutably; inserted first if the key does not exist.
    pub fn get_or_insert_with<'t>(
        &'t self,
        tx: &'t Tx<'_, H>,
        key: K,
        value: impl FnOnce() -> Result<V>,
    ) -> Result<RefMut<'t, V>>
    where
        K: Borrow<K::Query> + Copy,
    {
        if let Some(found) = self.get_mut(tx, key.borrow())? {
            return Ok(found);
        }
        // No bucket is borrowed while it is made.
        let value = value()?;
        self.insert(tx, key, value)?;
        let found = self.get_mut(tx, key.borrow())?;
        found.ok_or_else(|| tx.raw.doom(Error::Invalid("a key that is not equal to itself".into())))
    }

    /// The place of a key. It is looked up only once, whatever is done with it, unless the map changes in between:
    ///
    /// ```
    /// # use nvlab_nvheap::{Brand, PHashMap, Result, Tx, collections::Entry};
    /// # fn toggle<H: Brand>(map: &PHashMap<u64, u64, H>, tx: &Tx<'_, H>, key: u64) -> Result<()> {
    /// match map.entry(tx, key)? {
    ///     Entry::Occupied(found) => found.remove().map(drop),
    ///     Entry::Vacant(free) => free.insert(1),
    /// }
    /// # }
    /// ```
    pub fn entry<'t>(&'t self, tx: &'t Tx<'_, H>, key: K) -> Result<Entry<'t, K, V, H>> {
        let is_equal = |other: &K| Ok(other.compare_keys(tx, &key)? == Ordering::Equal);
        let Search { hash, buckets, stripe, found, free } =
            self.find(tx, |seed| key.hash_key(tx, seed), is_equal)?;
        let place = Place { map: self, tx, hash, buckets, stripe };
        Ok(match found {
            Some(slot) => Entry::Occupied(OccupiedEntry { place, slot }),
            None => Entry::Vacant(VacantEntry { place, key, free }),
        })
    }

    /// Inserts an entry. If the key exists, replaces its value and returns the old one.
    pub fn insert(&self, tx: &Tx<'_, H>, key: K, value: V) -> Result<Option<V>> {
        match self.entry(tx, key)? {
            Entry::Occupied(mut found) => Ok(Some(std::mem::replace(found.get_mut(), value))),
            Entry::Vacant(free) => free.insert_now(value).map(|()| None),
        }
    }

    /// Inserts an entry whose key does not exist yet. `may_split`: the map may grow first.
    fn put(&self, tx: &Tx<'_, H>, hash: u64, key: K, value: V, may_split: bool) -> Result<()> {
        let buckets = self.anchor(tx)?.buckets.len();
        if buckets == 0 {
            self.anchor.write(tx)?.buckets.push(tx, None)?;
            return self.put(tx, hash, key, value, may_split);
        }
        let index = number(hash, buckets);
        let Some(first) = self.anchor(tx)?.buckets.read(tx, index)?.as_ref().map(PBox::word) else {
            let mut bucket = Bucket::new();
            bucket.put(0, tag(hash), key, value);
            *self.anchor(tx)?.buckets.write(tx, index)? = Some(PBox::new(tx, bucket)?);
            return Ok(());
        };
        let mut bucket = write_node::<Bucket<K, V, H>, H>(tx.raw, first)?;
        loop {
            if let Some(slot) = bucket.free() {
                bucket.put(slot, tag(hash), key, value);
                return Ok(());
            }
            let next = match &bucket.next {
                Some(next) => next.write(tx)?,
                None => break,
            };
            bucket = next;
        }
        if may_split && self.len(tx)? > buckets * DENSE {
            drop(bucket);
            self.split(tx)?;
            return self.put(tx, hash, key, value, false);
        }
        let mut next = Bucket::new();
        next.put(0, tag(hash), key, value);
        bucket.next = Some(PBox::new(tx, next)?);
        Ok(())
    }

    /// Adds a bucket, and moves to it its part of the bucket that held the hashes of both.
    #[cold]
    fn split(&self, tx: &Tx<'_, H>) -> Result<()> {
        let (old, seed) = {
            let mut anchor = self.anchor.write(tx)?;
            let buckets = anchor.buckets.len();
            anchor.buckets.push(tx, None)?;
            let old = buckets - (1 << buckets.ilog2());
            let old = anchor.buckets.write(tx, old)?.take();
            (old, anchor.seed)
        };
        let Some(first) = old else { return Ok(()) };
        let mut entries = Vec::new();
        let mut bucket = first.write(tx)?;
        loop {
            for slot in 0..SLOTS {
                if bucket.is_used(slot) {
                    entries.push(bucket.take(slot));
                }
            }
            let next = match &bucket.next {
                Some(next) => next.write(tx)?,
                None => break,
            };
            bucket = next;
        }
        drop(bucket);
        drop(first);
        for (key, value) in entries {
            let hash = key.hash_key(tx, seed)?;
            self.put(tx, hash, key, value, false)?;
        }
        Ok(())
    }

    /// Removes an entry and returns its value.
    pub fn remove(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<Option<V>> {
        Ok(self.remove_entry(tx, query)?.map(|(_, value)| value))
    }

    /// Removes an entry and returns it.
    pub fn remove_entry(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<Option<(K, V)>> {
        self.take(
            tx,
            |seed| Ok(K::hash_query(query, seed)),
            |key| Ok(key.compare(tx, query)? == Ordering::Equal),
        )
    }

    fn take(
        &self,
        tx: &Tx<'_, H>,
        query: impl FnOnce(u64) -> Result<u64>,
        is_equal: impl FnMut(&K) -> Result<bool>,
    ) -> Result<Option<(K, V)>> {
        let Search { hash, buckets, stripe, found, .. } = self.find(tx, query, is_equal)?;
        let place = Place { map: self, tx, hash, buckets, stripe };
        found.map(|slot| OccupiedEntry { place, slot }.remove_entry()).transpose()
    }

    /// Removes empty buckets from a chain.
    #[cold]
    fn prune(&self, tx: &Tx<'_, H>, hash: u64) -> Result<()> {
        let anchor = self.anchor(tx)?;
        let mut link = anchor.buckets.write(tx, number(hash, anchor.buckets.len()))?;
        while let Some(bucket) = &*link {
            let mut bucket = bucket.write(tx)?;
            if !bucket.is_empty() {
                break;
            }
            let next = bucket.next.take();
            drop(bucket);
            drop(std::mem::replace(&mut *link, next));
        }
        let Some(first) = &*link else { return Ok(()) };
        let mut bucket = first.write(tx)?;
        loop {
            let next = match &bucket.next {
                Some(next) => next.write(tx)?,
                None => return Ok(()),
            };
            if next.is_empty() {
                let mut next = next;
                let after = next.next.take();
                drop(next);
                drop(std::mem::replace(&mut bucket.next, after));
            } else {
                bucket = next;
            }
        }
    }

    /// All entries, in arbitrary order. Changes made during the iteration may or may not be seen; an entry that moves
    /// may be seen twice or not at all.
    pub fn iter<'t>(&'t self, tx: &'t Tx<'_, H>) -> impl Iterator<Item = Result<(Ref<'t, K>, Ref<'t, V>)>> {
        let (mut index, mut ready) = (0, Vec::new());
        std::iter::from_fn(move || {
            while ready.is_empty() {
                match self.entries(tx, index, &mut ready) {
                    Ok(true) => index += 1,
                    Ok(false) => return None,
                    Err(error) => {
                        index = usize::MAX;
                        return Some(Err(error));
                    }
                }
            }
            ready.pop().map(Ok)
        })
    }

    /// Appends the entries of a chain; false if there is none of this number.
    fn entries<'t>(
        &'t self,
        tx: &'t Tx<'_, H>,
        index: usize,
        into: &mut Vec<(Ref<'t, K>, Ref<'t, V>)>,
    ) -> Result<bool> {
        let anchor = self.anchor(tx)?;
        if index >= anchor.buckets.len() {
            return Ok(false);
        }
        let first = anchor.buckets.read(tx, index)?;
        let mut bucket = match &*first {
            Some(first) => first.read(tx)?,
            None => return Ok(true),
        };
        loop {
            for slot in (0..SLOTS).filter(|&slot| bucket.is_used(slot)) {
                let entry = bucket.entry(slot);
                into.push((Ref::copy(tx.raw, &entry.0), Ref::copy(tx.raw, &entry.1)));
            }
            let next = match &bucket.next {
                Some(next) => next.read(tx)?,
                None => return Ok(true),
            };
            bucket = next;
        }
    }

    /// All keys, in arbitrary order.
    pub fn keys<'t>(&'t self, tx: &'t Tx<'_, H>) -> impl Iterator<Item = Result<Ref<'t, K>>> {
        self.iter(tx).map(|entry| entry.map(|(key, _)| key))
    }

    /// All values, in arbitrary order.
    pub fn values<'t>(&'t self, tx: &'t Tx<'_, H>) -> impl Iterator<Item = Result<Ref<'t, V>>> {
        self.iter(tx).map(|entry| entry.map(|(_, value)| value))
    }

    /// Removes the entries for which `keep` returns false.
    pub fn retain(&self, tx: &Tx<'_, H>, mut keep: impl FnMut(&K, &V) -> bool) -> Result<()> {
        let (mut index, mut chain) = (0, Vec::new());
        while self.entries(tx, index, &mut chain)? {
            for (key, value) in chain.drain(..) {
                if !keep(&key, &value) {
                    let hash = |seed| key.hash_key(tx, seed);
                    self.take(tx, hash, |other| Ok(other.compare_keys(tx, &key)? == Ordering::Equal))?;
                }
            }
            index += 1;
        }
        Ok(())
    }

    /// Removes all entries.
    pub fn clear(&self, tx: &Tx<'_, H>) -> Result<()> {
        let mut anchor = self.anchor.write(tx)?;
        let seed = anchor.seed;
        *anchor = Anchor { buckets: PVec::new(), seed, count: Counter::new() };
        Ok(())
    }
}
