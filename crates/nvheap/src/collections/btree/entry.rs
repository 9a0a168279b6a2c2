//! The place of a key, found once: for programs that look first and then insert or remove.

use super::edit::{insert_at, remove_at};
use super::node::{Entries, Inner};
use super::{PBTreeMap, Path, Stripe, peek_inner, write_inner, write_leaf};
use crate::collections::key::Key;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist};
use crate::pointer::{Room, Write};
use crate::tx::Tx;
use std::fmt;
use std::num::NonZeroU64;

/// The place of a key in a [`PBTreeMap`]. Its node is borrowed mutably.
#[derive(Debug)]
pub enum TreeEntry<'t, K, V, H: Brand> {
    /// The map has the key.
    Occupied(OccupiedTreeEntry<'t, K, V, H>),
    /// The map does not have the key.
    Vacant(VacantTreeEntry<'t, K, V, H>),
}

/// A map and the path to a node, as found by the search.
struct Place<'t, K, V, H: Brand> {
    map: &'t PBTreeMap<K, V, H>,
    tx: &'t Tx<'t, H>,
    stripe: Option<Stripe>,
    path: Path,
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
    let (top, stripe) = map.door(tx)?;
    let mut place = Place { map, tx, stripe, path: Path::new() };
    let Some((mut at, height)) = top else {
        return Ok(TreeEntry::Vacant(VacantTreeEntry { place, key, leaf: None }));
    };
    for _ in 0..height {
        let mut room = Room::new();
        let inner = peek_inner::<K, V, H>(tx, at, &mut room)?;
        match inner.keys.search(|other| other.compare_keys(tx, &key))? {
            Ok(position) => {
                let held = Held::Inner(write_inner::<K, V, H>(tx, at)?);
                return Ok(TreeEntry::Occupied(OccupiedTreeEntry { place, held, at, position }));
            }
            Err(position) => {
                place.path.push(at, position);
                at = inner.child(tx, position)?;
            }
        }
    }
    let leaf = write_leaf::<K, V, H>(tx, at)?;
    Ok(match leaf.search(|other| other.compare_keys(tx, &key))? {
        Ok(position) => {
            TreeEntry::Occupied(OccupiedTreeEntry { place, held: Held::Leaf(leaf), at, position })
        }
        Err(position) => TreeEntry::Vacant(VacantTreeEntry { place, key, leaf: Some((leaf, at, position)) }),
    })
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand> Place<'t, K, V, H> {
    /// Whether the way still leads to a node. As long as that is borrowed, only [`PBTreeMap::clear`] takes it out of the map; other
    /// nodes may have been split or merged.
    #[inline]
    fn leads_to(&self, node: NonZeroU64) -> Result<bool> {
        let tx = self.tx.raw;
        let mut above = self.path.steps().iter().map(|&(step, _)| step);
        match tx.has_changed(self.map.anchor.word())?
            || above.try_fold(false, |any, step| Ok::<_, Error>(any || tx.has_changed(step)?))?
        {
            false => Ok(true),
            true => self.still_leads_to(node),
        }
    }

    /// The same by going there again.
    #[cold]
    fn still_leads_to(&self, node: NonZeroU64) -> Result<bool> {
        let Some((mut at, _)) = self.map.top(self.tx)? else { return Ok(false) };
        for &(step, position) in self.path.steps() {
            let mut room = Room::new();
            if at != step {
                return Ok(false);
            }
            let inner = peek_inner::<K, V, H>(self.tx, at, &mut room)?;
            if position > inner.keys.len() {
                return Ok(false);
            }
            at = inner.child(self.tx, position)?;
        }
        Ok(at == node)
    }

    /// The way to a node that is on that to a key; `None` if the map has been cleared since it was found.
    #[cold]
    fn way_to(&self, node: NonZeroU64, key: &K) -> Result<Option<Path>> {
        let Some((mut at, height)) = self.map.top(self.tx)? else { return Ok(None) };
        let mut path = Path::new();
        while at != node && path.steps().len() < height {
            let mut room = Room::new();
            let inner = peek_inner::<K, V, H>(self.tx, at, &mut room)?;
            let (Ok(position) | Err(position)) =
                inner.keys.search(|other| other.compare_keys(self.tx, key))?;
            path.push(at, position);
            at = inner.child(self.tx, position)?;
        }
        Ok((at == node).then_some(path))
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
        let OccupiedTreeEntry { mut place, held, at, position } = self;
        if !place.leads_to(at)? {
            let key = match &held {
                Held::Leaf(leaf) => leaf.key(position),
                Held::Inner(inner) => inner.entries.key(position),
            };
            place.path = place.way_to(at, key)?.ok_or_else(|| {
                let why = "a map was cleared while an entry of it was in use".into();
                place.tx.raw.doom(Error::Invalid(why))
            })?;
        }
        let Place { map, tx, stripe, path } = place;
        let removed = match held {
            Held::Leaf(leaf) => remove_at(map, tx, path, None, (leaf, at), position)?,
            Held::Inner(inner) => {
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
            && place.leads_to(at)?
        {
            // It is borrowed, so it has not changed.
            insert_at(place.map, place.tx, place.path, leaf, position, key, value)?;
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
