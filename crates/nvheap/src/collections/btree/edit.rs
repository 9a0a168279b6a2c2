//! Insertion and removal.

use super::head::Step;
use super::node::{Child, ENTRIES_MIN, Entries, Inner, MERGED_MAX, Node, SPLIT};
use super::{PBTreeMap, Path, peek_inner, step, write_inner, write_leaf};
use crate::collections::key::Key;
use crate::error::Result;
use crate::persist::{Brand, Persist};
use crate::pointer::{Room, Write, write};
use crate::tx::Tx;
use std::cmp::Ordering;
use std::num::NonZeroU64;

/// Inserts an entry, or replaces that of an equal key, whose value it returns.
pub(super) fn insert<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    key: K,
    value: V,
) -> Result<Option<V>> {
    let (top, stripe) = map.door(tx)?;
    let Some((mut at, height)) = top else {
        let mut leaf = Entries::new();
        leaf.insert(0, key, value);
        map.anchor.write(tx)?.top = Some(Child::leaf(tx, leaf)?);
        return map.count(tx, stripe, 1).map(|()| None);
    };
    let mut path = Path::new();
    for _ in 0..height {
        match step::<K, V, H>(tx, at, |other| other.compare_keys(tx, &key))? {
            Step::Found(position) => {
                return Ok(Some(write_inner::<K, V, H>(tx, at)?.entries.replace(position, key, value).1));
            }
            Step::Below(position, child, _) => {
                path.push(at, position);
                at = child;
            }
        }
    }
    let mut leaf = write_leaf::<K, V, H>(tx, at)?;
    match leaf.search(|other| other.compare_keys(tx, &key))? {
        Ok(position) => return Ok(Some(leaf.replace(position, key, value).1)),
        Err(position) => insert_at(map, tx, |_| Ok(path), leaf, position, key, value)?,
    }
    map.count(tx, stripe, 1).map(|()| None)
}

/// Inserts an entry at a position of a leaf, to which `path` finds the way of a key if it has to be split. It is not counted.
#[inline]
pub(super) fn insert_at<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    path: impl FnOnce(&K) -> Result<Path>,
    mut leaf: Write<'_, Entries<K, V>>,
    position: usize,
    key: K,
    value: V,
) -> Result<()> {
    if !leaf.is_full() {
        leaf.insert(position, key, value);
        return Ok(());
    }
    let mut path = path(&key)?;
    let (mut right, raised) = split(&mut *leaf, Entries::new());
    match position.checked_sub(SPLIT + 1) {
        None => leaf.insert(position, key, value),
        Some(position) => right.insert(position, key, value),
    };
    drop(leaf);
    raise(map, tx, &mut path, raised, Child::leaf(tx, right)?)
}

/// Moves the upper half of a full node to an empty one; the entry between them rises.
fn split<K, V, N: Node<K, V>>(left: &mut N, mut right: N) -> (N, (K, V)) {
    let (mut key, mut value, side) = left.pop_back();
    right.put_first(side);
    while left.entries().len() > SPLIT {
        let (next_key, next_value, side) = left.pop_back();
        right.push_front(key, value, side);
        (key, value) = (next_key, next_value);
    }
    (right, (key, value))
}

/// Puts an entry and the child behind it into the last node of a path.
fn raise<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    path: &mut Path,
    mut entry: (K, V),
    mut child: Child<K, V, H>,
) -> Result<()> {
    while let Some((at, position)) = path.pop() {
        let mut inner = write_inner::<K, V, H>(tx, at)?;
        if !inner.entries.is_full() {
            inner.insert(position, entry.0, entry.1, Some(child));
            return Ok(());
        }
        let (mut right, raised) = split(&mut *inner, Inner::new(None));
        match position.checked_sub(SPLIT + 1) {
            None => inner.insert(position, entry.0, entry.1, Some(child)),
            Some(position) => right.insert(position, entry.0, entry.1, Some(child)),
        }
        (entry, child) = (raised, Child::inner(tx, right)?);
    }
    let mut anchor = map.anchor.write(tx)?;
    let mut top = Inner::new(anchor.top.take());
    top.insert(0, entry.0, entry.1, Some(child));
    anchor.top = Some(Child::inner(tx, top)?);
    anchor.height += 1;
    Ok(())
}

/// Removes the entry whose key `compare` finds equal.
pub(super) fn remove<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    mut compare: impl FnMut(&K) -> Result<Ordering>,
) -> Result<Option<(K, V)>> {
    let (top, stripe) = map.door(tx)?;
    let Some((mut at, height)) = top else { return Ok(None) };
    let mut path = Path::new();
    for _ in 0..height {
        match step::<K, V, H>(tx, at, &mut compare)? {
            Step::Found(position) => {
                let removed = remove_inner(map, tx, path, (at, position), height)?;
                return map.count(tx, stripe, -1).map(|()| Some(removed));
            }
            Step::Below(position, child, _) => {
                path.push(at, position);
                at = child;
            }
        }
    }
    let leaf = write_leaf::<K, V, H>(tx, at)?;
    let Ok(position) = leaf.search(&mut compare)? else { return Ok(None) };
    let removed = remove_at(map, tx, |_| Ok(path), None, (leaf, at), position)?;
    map.count(tx, stripe, -1).map(|()| Some(removed))
}

/// Removes the entry at a position of the inner node at the end of a path. It is not counted.
pub(super) fn remove_inner<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    mut path: Path,
    found: (NonZeroU64, usize),
    height: usize,
) -> Result<(K, V)> {
    let (mut at, mut position) = found;
    while path.len() < height {
        let mut room = Room::new();
        let inner = peek_inner::<K, V, H>(tx, at, &mut room)?;
        // Below the entry, the way leads to the last one before it.
        if at != found.0 {
            position = inner.keys.len();
        }
        path.push(at, position);
        at = inner.child(tx, position)?;
    }
    let leaf = write_leaf::<K, V, H>(tx, at)?;
    let position = last(tx, &leaf)?;
    remove_at(map, tx, |_| Ok(path), Some(found), (leaf, at), position)
}

/// The position of the last entry of a leaf, which is not the top. Only in a damaged tree has it none.
fn last<K: Key<H>, V: Persist<H>, H: Brand>(tx: &Tx<'_, H>, leaf: &Entries<K, V>) -> Result<usize> {
    leaf.len().checked_sub(1).ok_or_else(|| damaged(tx))
}

/// Removes the entry at a position of a leaf; or it takes the place of `found`, an entry of an inner node on the way, which is
/// removed. `path` finds the way of a key to the leaf if it has to be merged. It is not counted.
#[inline]
pub(super) fn remove_at<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    path: impl FnOnce(&K) -> Result<Path>,
    found: Option<(NonZeroU64, usize)>,
    (mut leaf, at): (Write<'_, Entries<K, V>>, NonZeroU64),
    position: usize,
) -> Result<(K, V)> {
    let (mut key, mut value, _) = leaf.remove(position);
    if let Some((node, position)) = found {
        (key, value) = write_inner::<K, V, H>(tx, node)?.entries.replace(position, key, value);
    }
    let is_short = leaf.len() < ENTRIES_MIN;
    drop(leaf);
    if is_short {
        refill(map, tx, &mut path(&key)?, at)?;
    }
    Ok((key, value))
}

#[cold]
fn damaged<H: Brand>(tx: &Tx<'_, H>) -> crate::Error {
    tx.raw.distrust(crate::Error::damaged(0, "a node of a tree has too few entries"))
}

/// The node `at` at the end of a path has too few entries.
fn refill<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    path: &mut Path,
    at: NonZeroU64,
) -> Result<()> {
    let Some((mut parent, position)) = path.pop() else { return Ok(()) };
    let mut is_short = balance::<K, V, H, Entries<K, V>>(tx, parent, position, at)?;
    while is_short {
        let Some((above, position)) = path.pop() else {
            // The top needs no more than one entry; without any, its only child takes its place.
            let mut inner = write_inner::<K, V, H>(tx, parent)?;
            if inner.entries.len() == 0 {
                let only = inner.take_first();
                drop(inner);
                let mut anchor = map.anchor.write(tx)?;
                let old = std::mem::replace(&mut anchor.top, only);
                anchor.height -= 1;
                drop(anchor);
                drop(old);
            }
            return Ok(());
        };
        is_short = balance::<K, V, H, Inner<K, V, H>>(tx, above, position, parent)?;
        parent = above;
    }
    Ok(())
}

/// Merges the child `at`, which is at a position of its parent, with a neighbour, or takes entries from it; true if the parent
/// has too few entries afterwards.
fn balance<K: Key<H>, V: Persist<H>, H: Brand, N: Node<K, V> + Persist<H>>(
    tx: &Tx<'_, H>,
    parent: NonZeroU64,
    position: usize,
    at: NonZeroU64,
) -> Result<bool> {
    let mut inner = write_inner::<K, V, H>(tx, parent)?;
    if inner.entries.len() == 0 {
        return Err(damaged(tx));
    }
    // The neighbours and the entry between them.
    let (left, right, between) = match position.checked_sub(1) {
        Some(between) => (inner.child(tx, between)?, at, between),
        None => (at, inner.child(tx, 1)?, 0),
    };
    let mut left = write::<N, H>(tx.raw, left)?;
    let mut right = write::<N, H>(tx.raw, right)?;
    let (mut fewer, mut more) = (left.entries().len(), right.entries().len());
    if fewer + more < MERGED_MAX {
        let (mut key, mut value, child) = inner.remove(between);
        while right.entries().len() > 0 {
            let (next_key, next_value, side) = right.pop_front();
            left.push_back(key, value, side);
            (key, value) = (next_key, next_value);
        }
        let last = right.take_first();
        left.push_back(key, value, last);
        let is_short = inner.entries.len() < ENTRIES_MIN;
        drop((left, right, inner));
        drop(child);
        return Ok(is_short);
    }
    while fewer + 1 < more {
        let (key, value, side) = right.pop_front();
        let (key, value) = inner.entries.replace(between, key, value);
        left.push_back(key, value, side);
        (fewer, more) = (fewer + 1, more - 1);
    }
    while more + 1 < fewer {
        let (key, value, side) = left.pop_back();
        let (key, value) = inner.entries.replace(between, key, value);
        right.push_front(key, value, side);
        (fewer, more) = (fewer - 1, more + 1);
    }
    Ok(false)
}
