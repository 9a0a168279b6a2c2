//! The place of a key, found once: for programs that look first and then insert or remove.

use super::edit::{insert_at, remove_at};
use super::head::Step;
use super::node::{Entries, Inner};
use super::{PBTreeMap, Path, Stripe, peek_inner, step, write_inner, write_leaf};
use crate::collections::key::Key;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist};
use crate::pointer::{Room, Write};
use crate::tx::Tx;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;

/// The place of a key in a [`PBTreeMap`]. Its node is borrowed mutably.
#[derive(Debug)]
pub enum TreeEntry<'t, K, V, H: Brand> {
    /// The map has the key.
    Occupied(OccupiedTreeEntry<'t, K, V, H>),
    /// The map does not have the key.
    Vacant(VacantTreeEntry<'t, K, V, H>),
}

/// A map, and the search for a node in it.
struct Place<'t, K, V, H: Brand> {
    map: &'t PBTreeMap<K, V, H>,
    tx: &'t Tx<'t, H>,
    stripe: Option<Stripe>,
    /// The reads of the search, if all of the way is among them: the anchor and the inner nodes. What the transaction had changed
    /// before is not.
    way: Option<Range<usize>>,
}

/// The node of an existing key.
enum Held<'t, K, V, H: Brand> {
    Leaf(Write<'t, Entries<K, V>>),
    Inner(Write<'t, Inner<K, V, H>>),
}

/// An existing key and its value.
pub struct OccupiedTreeEntry<'t, K, V, H: Brand> {
    place: Place<'t, K, V, H>,
    held: Held<'t, K, V, H>,
    at: NonZeroU64,
    position: usize,
}

/// A leaf, where it is, and a position in it.
type LeafPlace<'t, K, V> = (Write<'t, Entries<K, V>>, NonZeroU64, usize);

/// Where a key may be inserted.
pub struct VacantTreeEntry<'t, K, V, H: Brand> {
    place: Place<'t, K, V, H>,
    key: K,
    /// None in an empty map.
    leaf: Option<LeafPlace<'t, K, V>>,
}

/// Finds the place of a key.
pub(super) fn entry<'t, K: Key<H>, V: Persist<H>, H: Brand>(
    map: &'t PBTreeMap<K, V, H>,
    tx: &'t Tx<'t, H>,
    key: K,
) -> Result<TreeEntry<'t, K, V, H>> {
    let first = tx.raw.reads();
    let (top, stripe) = map.door(tx)?;
    let mut is_read = !tx.raw.has_changed(map.anchor.word())?;
    let place = |is_read: bool| {
        let way = is_read.then(|| first..tx.raw.reads());
        Place { map, tx, stripe, way }
    };
    let Some((mut at, height)) = top else {
        return Ok(TreeEntry::Vacant(VacantTreeEntry { place: place(is_read), key, leaf: None }));
    };
    for _ in 0..height {
        match step::<K, V, H>(tx, at, |other| other.compare_keys(tx, &key))? {
            Step::Found(position) => {
                let place = place(false);
                let held = Held::Inner(write_inner::<K, V, H>(tx, at)?);
                return Ok(TreeEntry::Occupied(OccupiedTreeEntry { place, held, at, position }));
            }
            Step::Below(_, child, is_node_read) => (at, is_read) = (child, is_read && is_node_read),
        }
    }
    let place = place(is_read);
    let leaf = write_leaf::<K, V, H>(tx, at)?;
    Ok(match leaf.search(|other| other.compare_keys(tx, &key))? {
        Ok(position) => {
            TreeEntry::Occupied(OccupiedTreeEntry { place, held: Held::Leaf(leaf), at, position })
        }
        Err(position) => TreeEntry::Vacant(VacantTreeEntry { place, key, leaf: Some((leaf, at, position)) }),
    })
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> Place<'t, K, V, H> {
    /// Whether nothing on the way has changed since the search, as far as that is known without going there: it leads to the same node.
    #[inline]
    fn is_as_it_was(&self) -> bool {
        self.way.as_ref().is_some_and(|way| self.tx.raw.are_unchanged(way.clone()))
    }

    /// The way to a node that is on that to a key; `None` if the map has been cleared since it was found.
    #[cold]
    fn way_to(&self, node: NonZeroU64, key: &K) -> Result<Option<Path>> {
        let Some((mut at, height)) = self.map.top(self.tx)? else { return Ok(None) };
        let mut path = Path::new();
        while at != node && path.len() < height {
            let mut room = Room::new();
            let inner = peek_inner::<K, V, H>(self.tx, at, &mut room)?;
            let (Ok(position) | Err(position)) =
                inner.keys.search(|other| other.compare_keys(self.tx, key))?;
            path.push(at, position);
            at = inner.child(self.tx, position)?;
        }
        Ok((at == node).then_some(path))
    }

    /// The same where it is known to lead there.
    #[cold]
    fn path_to(&self, node: NonZeroU64, key: &K) -> Result<Path> {
        self.way_to(node, key)?.ok_or_else(|| {
            let why = "a map was cleared while an entry of it was in use".into();
            self.tx.raw.doom(Error::Invalid(why))
        })
    }
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> OccupiedTreeEntry<'t, K, V, H> {
    /// The value.
    pub fn get(&self) -> &V {
        match &self.held {
            Held::Leaf(leaf) => leaf.value(self.position),
            Held::Inner(inner) => inner.entries.value(self.position),
        }
    }

    /// The value, borrowed mutably.
    pub fn get_mut(&mut self) -> &mut V {
        match &mut self.held {
            Held::Leaf(leaf) => leaf.value_mut(self.position),
            Held::Inner(inner) => inner.entries.value_mut(self.position),
        }
    }

    /// Removes the entry and returns its value.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the map was cleared meanwhile.
    pub fn remove(self) -> Result<V> {
        let OccupiedTreeEntry { place, held, at, position } = self;
        let &Place { map, tx, stripe, .. } = &place;
        let removed = match held {
            Held::Leaf(leaf) => {
                if !place.is_as_it_was() {
                    place.path_to(at, leaf.key(position))?;
                }
                remove_at(map, tx, |key| place.path_to(at, key), None, (leaf, at), position)?
            }
            Held::Inner(inner) => {
                let path = place.path_to(at, inner.entries.key(position))?;
                drop(inner);
                let height = map.top(tx)?.map_or(0, |(_, height)| height);
                super::edit::remove_inner(map, tx, path, (at, position), height)?
            }
        };
        map.count(tx, stripe, -1)?;
        Ok(removed.1)
    }
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> VacantTreeEntry<'t, K, V, H> {
    /// Inserts the key with this value; replaces the value if the key was inserted since the search.
    pub fn insert(self, value: V) -> Result<()> {
        let VacantTreeEntry { place, key, leaf } = self;
        if let Some((leaf, at, position)) = leaf
            && (place.is_as_it_was() || place.way_to(at, &key)?.is_some())
        {
            // It is borrowed, so it has not changed.
            insert_at(place.map, place.tx, |key| place.path_to(at, key), leaf, position, key, value)?;
            return place.map.count(place.tx, place.stripe, 1);
        }
        place.map.insert(place.tx, key, value).map(drop)
    }
}

impl<K, V, H: Brand> fmt::Debug for OccupiedTreeEntry<'_, K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OccupiedTreeEntry")
    }
}

impl<K, V, H: Brand> fmt::Debug for VacantTreeEntry<'_, K, V, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VacantTreeEntry")
    }
}
