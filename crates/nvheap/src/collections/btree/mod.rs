//! A sorted map: a B-tree of nodes with at most fifteen entries.
//!
//! A map's anchor holds the top node and the number of levels of inner nodes. Nodes are separate objects. Inner ones are
//! searched in place where possible (`head.rs`); a node is changed as a whole, and a commit writes the words that differ.

mod edit;
mod entry;
mod head;
mod iter;
mod node;

pub use entry::{OccupiedTreeEntry, TreeEntry, VacantTreeEntry};
pub use iter::Range;

use super::counter::{Counter, Stripe};
use super::guard::{Ref, RefMut};
use super::key::Key;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::pointer::{PBox, Read, Room, Write, peek, read, words, write_node};
use crate::tx::Tx;
use head::{Head, Step};
use node::{Child, Entries, Inner};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroU64;
use std::ops::{Bound, RangeBounds, RangeFull};

/// A sorted map. See [`crate::collections`] for what its methods have in common.
#[repr(transparent)]
pub struct PBTreeMap<K, V, H: Brand> {
    anchor: PBox<Anchor<K, V, H>, H>,
}

#[derive(Debug)]
#[repr(C)]
struct Anchor<K, V, H: Brand> {
    top: Option<Child<K, V, H>>,
    /// Levels of inner nodes above the leaves.
    height: u64,
    count: Counter<H>,
}

/// No tree that fits in a heap is higher: every inner node has three children at least.
const HEIGHT_MAX: usize = 32;

// SAFETY: three fields, which are described; every pattern is a value.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for Anchor<K, V, H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.begin(".tree", 0, size_of::<Self>());
        shape.field::<Option<Child<K, V, H>>, H>("top", 0);
        shape.field::<u64, H>("height", offset_of!(Self, height));
        shape.field::<Counter<H>, H>("count", offset_of!(Self, count));
        shape.end();
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

// SAFETY: a pointer, with its layout.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for PBTreeMap<K, V, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.points_to::<Anchor<K, V, H>, H>("tree");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: passed on; the layout is that of the pointer.
        unsafe { <PBox<Anchor<K, V, H>, H> as Persist<H>>::is_valid(at.cast()) }
    }
}

impl<K, V, H: Brand> fmt::Debug for PBTreeMap<K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PBTreeMap")
    }
}

#[inline]
fn read_leaf<'t, K: Persist<H>, V: Persist<H>, H: Brand>(
    tx: &'t Tx<'_, H>,
    at: NonZeroU64,
) -> Result<Read<'t, Entries<K, V>>> {
    read::<_, H>(tx.raw, at)
}

#[inline]
fn read_inner<'t, K: Persist<H>, V: Persist<H>, H: Brand>(
    tx: &'t Tx<'_, H>,
    at: NonZeroU64,
) -> Result<Read<'t, Inner<K, V, H>>> {
    read::<_, H>(tx.raw, at)
}

/// Searches an inner node.
#[inline]
fn step<K: Persist<H>, V: Persist<H>, H: Brand>(
    tx: &Tx<'_, H>,
    at: NonZeroU64,
    compare: impl FnMut(&K) -> Result<Ordering>,
) -> Result<Step> {
    Head::<K, V, H>::step(tx, at, compare)
}

/// What a search reads of an inner node.
#[inline]
fn peek_inner<'a, K: Persist<H>, V: Persist<H>, H: Brand>(
    tx: &'a Tx<'_, H>,
    at: NonZeroU64,
    room: &'a mut Room<Head<K, V, H>>,
) -> Result<&'a Head<K, V, H>> {
    peek::<_, H>(tx.raw, at, room)
}

#[inline]
fn write_leaf<'t, K: Persist<H>, V: Persist<H>, H: Brand>(
    tx: &'t Tx<'_, H>,
    at: NonZeroU64,
) -> Result<Write<'t, Entries<K, V>>> {
    write_node::<_, H>(tx.raw, at)
}

#[inline]
fn write_inner<'t, K: Persist<H>, V: Persist<H>, H: Brand>(
    tx: &'t Tx<'_, H>,
    at: NonZeroU64,
) -> Result<Write<'t, Inner<K, V, H>>> {
    write_node::<_, H>(tx.raw, at)
}

/// The top node and the height, if there is one, and the count of this thread.
type Door = (Option<(NonZeroU64, usize)>, Option<Stripe>);

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: NonZeroU64,
    is_leaf: bool,
    position: usize,
}

/// The inner nodes on the way to a leaf, and the position of the child that was followed in each.
// Only what is used is ever stored: a path is made behind the fence of the commit before.
struct Path {
    nodes: [MaybeUninit<NonZeroU64>; HEIGHT_MAX],
    positions: [MaybeUninit<u8>; HEIGHT_MAX],
    len: usize,
}

impl Path {
    fn new() -> Path {
        let (nodes, positions) = ([MaybeUninit::uninit(); HEIGHT_MAX], [MaybeUninit::uninit(); HEIGHT_MAX]);
        Path { nodes, positions, len: 0 }
    }

    #[inline]
    fn push(&mut self, node: NonZeroU64, position: usize) {
        self.nodes[self.len].write(node);
        self.positions[self.len].write(position as u8);
        self.len += 1;
    }

    fn len(&self) -> usize {
        self.len
    }

    fn pop(&mut self) -> Option<(NonZeroU64, usize)> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: both were pushed.
        Some(unsafe { (self.nodes[self.len].assume_init(), self.positions[self.len].assume_init().into()) })
    }
}

impl<K: Key<H>, V: Persist<H>, H: Brand> PBTreeMap<K, V, H> {
    /// An empty map.
    pub fn new(tx: &Tx<'_, H>) -> Result<Self> {
        let anchor = Anchor { top: None, height: 0, count: Counter::new() };
        Ok(PBTreeMap { anchor: PBox::new(tx, anchor)? })
    }

    /// The way in: the top node and the height, and the count of this thread.
    #[inline(always)]
    fn door(&self, tx: &Tx<'_, H>) -> Result<Door> {
        self.anchor.trust(tx)?;
        let stripe = offset_of!(Anchor<K, V, H>, count) / 8 + Counter::<H>::mine(tx);
        let indices = [0, offset_of!(Anchor<K, V, H>, height) / 8, stripe];
        let [top, height, stripe] = words::<Anchor<K, V, H>, H, 3>(tx.raw, self.anchor.word(), indices)?;
        if height > HEIGHT_MAX as u64 {
            return Err(tx.raw.distrust(Error::damaged(0, format!("a tree of {height} levels"))));
        }
        Ok((NonZeroU64::new(top).map(|top| (top, height as usize)), Stripe::of(stripe)))
    }

    fn top(&self, tx: &Tx<'_, H>) -> Result<Option<(NonZeroU64, usize)>> {
        Ok(self.door(tx)?.0)
    }

    /// Adds to the number of entries.
    #[inline]
    fn count(&self, tx: &Tx<'_, H>, stripe: Option<Stripe>, more: i64) -> Result<()> {
        match stripe {
            Some(stripe) => stripe.add(tx, more),
            None => self.anchor.write(tx)?.count.add(tx, more),
        }
    }

    /// The entry of a key.
    fn find(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<Option<Place>> {
        let Some((mut at, height)) = self.top(tx)? else { return Ok(None) };
        for _ in 0..height {
            match step::<K, V, H>(tx, at, |key| key.compare(tx, query))? {
                Step::Found(position) => return Ok(Some(Place { node: at, is_leaf: false, position })),
                Step::Below(_, child, _) => at = child,
            }
        }
        let mut room = Room::new();
        let leaf = peek::<Entries<K, V>, H>(tx.raw, at, &mut room)?;
        let found = leaf.search(|key| key.compare(tx, query))?;
        Ok(found.ok().map(|position| Place { node: at, is_leaf: true, position }))
    }

    /// Calls `with` with the node's entries.
    #[inline]
    fn with<R>(&self, tx: &Tx<'_, H>, place: Place, with: impl FnOnce(&Entries<K, V>) -> R) -> Result<R> {
        Ok(match place.is_leaf {
            true => with(&*read_leaf::<K, V, H>(tx, place.node)?),
            false => with(&read_inner::<K, V, H>(tx, place.node)?.entries),
        })
    }

    fn lend<'t>(&'t self, tx: &'t Tx<'_, H>, place: Place) -> Result<RefMut<'t, V>> {
        Ok(match place.is_leaf {
            true => RefMut::new(write_leaf::<K, V, H>(tx, place.node)?, place.position),
            false => RefMut::new(write_inner::<K, V, H>(tx, place.node)?, place.position),
        })
    }

    /// The number of entries. Conflicts with concurrent transactions that insert or remove.
    pub fn len(&self, tx: &Tx<'_, H>) -> Result<usize> {
        Ok(self.anchor.read(tx)?.count.sum(tx)? as usize)
    }

    /// True if it has no entries.
    pub fn is_empty(&self, tx: &Tx<'_, H>) -> Result<bool> {
        Ok(self.len(tx)? == 0)
    }

    /// The value of a key.
    pub fn get<'t>(&'t self, tx: &'t Tx<'_, H>, query: &K::Query) -> Result<Option<Ref<'t, V>>> {
        let Some(place) = self.find(tx, query)? else { return Ok(None) };
        self.with(tx, place, |entries| Ref::copy(tx.raw, entries.value(place.position))).map(Some)
    }

    /// The value of a key, borrowed mutably.
    pub fn get_mut<'t>(&'t self, tx: &'t Tx<'_, H>, query: &K::Query) -> Result<Option<RefMut<'t, V>>> {
        self.find(tx, query)?.map(|place| self.lend(tx, place)).transpose()
    }

    /// True if the map has the key.
    pub fn contains_key(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<bool> {
        Ok(self.find(tx, query)?.is_some())
    }

    /// The place of a key, to inspect and change it with a single search. Its node is borrowed mutably, even if
    /// nothing is changed.
    ///
    /// ```
    /// # use nvlab_nvheap::{Brand, Heap, Options, PBTreeMap, Persist};
    /// use nvlab_nvheap::collections::TreeEntry;
    /// # struct Names;
    /// # impl Brand for Names { type Root = Root; }
    /// # #[derive(Persist)]
    /// # #[persist(heap = Names)]
    /// # #[repr(C)]
    /// # struct Root { map: PBTreeMap<u64, u64, Names> }
    /// # let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let at = folder.path().join("heap");
    /// # let heap = Heap::<Names>::create(at, Options::default(), |tx| Ok(Root { map: PBTreeMap::new(tx)? })).unwrap();
    /// # let root = heap.root().unwrap();
    /// # heap.transaction(|tx| {
    /// # let map = &root.read(tx)?.map;
    /// match map.entry(tx, 5)? {
    ///     TreeEntry::Occupied(found) => drop(found.remove()?),
    ///     TreeEntry::Vacant(free) => free.insert(1)?,
    /// }
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn entry<'t>(&'t self, tx: &'t Tx<'_, H>, key: K) -> Result<TreeEntry<'t, K, V, H>> {
        entry::entry(self, tx, key)
    }

    /// Inserts an entry. If the key exists, replaces its value and returns the old one.
    pub fn insert(&self, tx: &Tx<'_, H>, key: K, value: V) -> Result<Option<V>> {
        edit::insert(self, tx, key, value)
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
        self.insert(tx, key, value()?)?;
        let found = self.get_mut(tx, key.borrow())?;
        found.ok_or_else(|| tx.raw.doom(Error::Invalid("a key that is not equal to itself".into())))
    }

    /// Removes an entry and returns its value.
    pub fn remove(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<Option<V>> {
        Ok(self.remove_entry(tx, query)?.map(|(_, value)| value))
    }

    /// Removes an entry and returns it.
    pub fn remove_entry(&self, tx: &Tx<'_, H>, query: &K::Query) -> Result<Option<(K, V)>> {
        edit::remove(self, tx, |key| key.compare(tx, query))
    }

    /// The first entry.
    pub fn first_key_value<'t>(&'t self, tx: &'t Tx<'_, H>) -> Result<Option<(Ref<'t, K>, Ref<'t, V>)>> {
        self.iter(tx).next().transpose()
    }

    /// The last entry.
    pub fn last_key_value<'t>(&'t self, tx: &'t Tx<'_, H>) -> Result<Option<(Ref<'t, K>, Ref<'t, V>)>> {
        self.iter(tx).next_back().transpose()
    }

    /// Removes the first entry and returns it.
    pub fn pop_first(&self, tx: &Tx<'_, H>) -> Result<Option<(K, V)>> {
        let Some((first, _)) = self.first_key_value(tx)? else { return Ok(None) };
        edit::remove(self, tx, |key| key.compare_keys(tx, &first))
    }

    /// Removes the last entry and returns it.
    pub fn pop_last(&self, tx: &Tx<'_, H>) -> Result<Option<(K, V)>> {
        let Some((last, _)) = self.last_key_value(tx)? else { return Ok(None) };
        edit::remove(self, tx, |key| key.compare_keys(tx, &last))
    }

    /// All entries in the order of their keys. Changes made during the iteration may or may not be seen.
    pub fn iter<'t>(&'t self, tx: &'t Tx<'_, H>) -> Range<'t, K, V, H, RangeFull>
    where
        RangeFull: RangeBounds<K::Query>,
    {
        Range::new(self, tx, ..)
    }

    /// The entries whose keys lie in a range.
    pub fn range<'t, R: RangeBounds<K::Query>>(
        &'t self,
        tx: &'t Tx<'_, H>,
        range: R,
    ) -> Range<'t, K, V, H, R> {
        Range::new(self, tx, range)
    }

    /// All keys in order.
    pub fn keys<'t>(&'t self, tx: &'t Tx<'_, H>) -> impl DoubleEndedIterator<Item = Result<Ref<'t, K>>> {
        self.iter(tx).map(|entry| entry.map(|(key, _)| key))
    }

    /// All values in the order of their keys.
    pub fn values<'t>(&'t self, tx: &'t Tx<'_, H>) -> impl DoubleEndedIterator<Item = Result<Ref<'t, V>>> {
        self.iter(tx).map(|entry| entry.map(|(_, value)| value))
    }

    /// Removes the entries for which `keep` returns false.
    pub fn retain(&self, tx: &Tx<'_, H>, mut keep: impl FnMut(&K, &V) -> bool) -> Result<()> {
        let mut last: Option<Ref<'_, K>> = None;
        loop {
            let from = last.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(&**key));
            let Some((key, value)) = iter::after(self, tx, from)? else { return Ok(()) };
            if !keep(&key, &value) {
                edit::remove(self, tx, |other| other.compare_keys(tx, &key))?;
            }
            last = Some(key);
        }
    }

    /// Removes all entries.
    pub fn clear(&self, tx: &Tx<'_, H>) -> Result<()> {
        *self.anchor.write(tx)? = Anchor { top: None, height: 0, count: Counter::new() };
        Ok(())
    }
}
