//! Iteration over a map from both ends.
//!
//! Each end holds a copy of its current leaf; when that is exhausted, it searches from the top for the key after the
//! last one. So concurrent changes are safe.

use super::node::Entries;
use super::{PBTreeMap, Place, read_inner, read_leaf};
use crate::collections::guard::Ref;
use crate::collections::key::Key;
use crate::error::Result;
use crate::persist::{Brand, Persist};
use crate::pointer::Read;
use crate::tx::Tx;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forth,
    Back,
}

/// Finds the next entry in a direction; `compare` gives the position of a key relative to the start: `Less` before
/// it, `Greater` after it; an equal key counts as one of the two.
fn seek<K: Key<H>, V: Persist<H>, H: Brand>(
    map: &PBTreeMap<K, V, H>,
    tx: &Tx<'_, H>,
    way: Way,
    mut compare: impl FnMut(&K) -> Result<Ordering>,
) -> Result<Option<Place>> {
    let Some((mut at, height)) = map.top(tx)? else { return Ok(None) };
    // The entry of the lowest node on the way that lies in the direction.
    let mut best = None;
    let mut place = |node, is_leaf, entries: &Entries<K, V>| -> Result<(usize, Option<Place>)> {
        let position = match entries.search(&mut compare)? {
            Ok(position) | Err(position) => position,
        };
        let at = if way == Way::Forth { Some(position) } else { position.checked_sub(1) };
        let found = at.filter(|&at| at < entries.len()).map(|position| Place { node, is_leaf, position });
        Ok((position, found))
    };
    for _ in 0..height {
        let inner = read_inner::<K, V, H>(tx, at)?;
        let (position, found) = place(at, false, &inner.entries)?;
        best = found.or(best);
        at = inner.child(tx, position)?;
    }
    let found = place(at, true, &*read_leaf::<K, V, H>(tx, at)?)?.1;
    Ok(found.or(best))
}

type Entry<'t, K, V> = (Ref<'t, K>, Ref<'t, V>);

/// The first entry after a key.
pub(super) fn after<'t, K: Key<H>, V: Persist<H>, H: Brand>(
    map: &'t PBTreeMap<K, V, H>,
    tx: &'t Tx<'_, H>,
    from: Bound<&K>,
) -> Result<Option<Entry<'t, K, V>>> {
    let place = seek(map, tx, Way::Forth, |key| match from {
        Bound::Excluded(from) => Ok(key.compare_keys(tx, from)?.then(Ordering::Less)),
        Bound::Included(_) | Bound::Unbounded => Ok(Ordering::Greater),
    })?;
    let copy = |place: Place| {
        map.with(tx, place, |entries| {
            (Ref::copy(tx.raw, entries.key(place.position)), Ref::copy(tx.raw, entries.value(place.position)))
        })
    };
    place.map(copy).transpose()
}

/// One end of an iteration.
struct End<'t, K, V> {
    /// The leaf it is in, and the next position.
    leaf: Option<(Read<'t, Entries<K, V>>, usize)>,
    last: Option<Ref<'t, K>>,
}

/// The entries of a map whose keys lie in a range. See [`PBTreeMap::range`].
pub struct Range<'t, K, V, H: Brand, R> {
    map: &'t PBTreeMap<K, V, H>,
    tx: &'t Tx<'t, H>,
    range: R,
    front: End<'t, K, V>,
    back: End<'t, K, V>,
    is_over: bool,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K, V, H: Brand, R> std::fmt::Debug for Range<'_, K, V, H, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Range")
    }
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand, R: RangeBounds<K::Query>> Range<'t, K, V, H, R> {
    pub(super) fn new(map: &'t PBTreeMap<K, V, H>, tx: &'t Tx<'_, H>, range: R) -> Self {
        let end = || End { leaf: None, last: None };
        Range { map, tx, range, front: end(), back: end(), is_over: false, of: PhantomData }
    }

    /// Where the iteration from an end begins or continues.
    fn seek(&self, way: Way) -> Result<Option<Place>> {
        let (tx, end) = (self.tx, if way == Way::Forth { &self.front } else { &self.back });
        let bound = if way == Way::Forth { self.range.start_bound() } else { self.range.end_bound() };
        // An equal key lies behind an excluded start of the walk, seen in its direction.
        let (outside, inside) = match way {
            Way::Forth => (Ordering::Less, Ordering::Greater),
            Way::Back => (Ordering::Greater, Ordering::Less),
        };
        seek(self.map, tx, way, |key| match (&end.last, bound) {
            (Some(last), _) => Ok(key.compare_keys(tx, last)?.then(outside)),
            (None, Bound::Included(bound)) => Ok(key.compare(tx, bound)?.then(inside)),
            (None, Bound::Excluded(bound)) => Ok(key.compare(tx, bound)?.then(outside)),
            (None, Bound::Unbounded) => Ok(inside),
        })
    }

    /// The next entry from an end, before it is known whether it lies in the range.
    fn advance(&mut self, way: Way) -> Result<Option<Entry<'t, K, V>>> {
        let end = if way == Way::Forth { &mut self.front } else { &mut self.back };
        if let Some((leaf, position)) = &mut end.leaf {
            let entry =
                (Ref::copy(self.tx.raw, leaf.key(*position)), Ref::copy(self.tx.raw, leaf.value(*position)));
            let next = if way == Way::Forth { Some(*position + 1) } else { position.checked_sub(1) };
            match next.filter(|&next| next < leaf.len()) {
                Some(next) => *position = next,
                None => end.leaf = None,
            }
            return Ok(Some(entry));
        }
        let Some(place) = self.seek(way)? else { return Ok(None) };
        if place.is_leaf {
            let leaf = read_leaf::<K, V, H>(self.tx, place.node)?;
            let end = if way == Way::Forth { &mut self.front } else { &mut self.back };
            end.leaf = Some((leaf, place.position));
            return self.advance(way);
        }
        let inner = read_inner::<K, V, H>(self.tx, place.node)?;
        Ok(Some((
            Ref::copy(self.tx.raw, inner.entries.key(place.position)),
            Ref::copy(self.tx.raw, inner.entries.value(place.position)),
        )))
    }

    /// Whether a key that was reached from an end lies beyond the range or where the other end has been.
    fn is_beyond(&self, way: Way, key: &K) -> Result<bool> {
        let (tx, other) = (self.tx, if way == Way::Forth { &self.back } else { &self.front });
        let beyond = if way == Way::Forth { Ordering::Greater } else { Ordering::Less };
        if let Some(last) = &other.last {
            let order = key.compare_keys(tx, last)?;
            return Ok(order == beyond || order == Ordering::Equal);
        }
        let bound = if way == Way::Forth { self.range.end_bound() } else { self.range.start_bound() };
        Ok(match bound {
            Bound::Included(bound) => key.compare(tx, bound)? == beyond,
            Bound::Excluded(bound) => {
                let order = key.compare(tx, bound)?;
                order == beyond || order == Ordering::Equal
            }
            Bound::Unbounded => false,
        })
    }

    fn step(&mut self, way: Way) -> Option<Result<Entry<'t, K, V>>> {
        if self.is_over {
            return None;
        }
        let entry = self.advance(way).and_then(|entry| match entry {
            Some((key, value)) if !self.is_beyond(way, &key)? => Ok(Some((key, value))),
            _ => Ok(None),
        });
        match &entry {
            Ok(Some((key, _))) => {
                let end = if way == Way::Forth { &mut self.front } else { &mut self.back };
                end.last = Some(Ref::copy(self.tx.raw, key));
            }
            _ => self.is_over = true,
        }
        entry.transpose()
    }
}

impl<'t, K: Key<H>, V: Persist<H>, H: Brand, R: RangeBounds<K::Query>> Iterator for Range<'t, K, V, H, R> {
    type Item = Result<Entry<'t, K, V>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Way::Forth)
    }
}

impl<K: Key<H>, V: Persist<H>, H: Brand, R: RangeBounds<K::Query>> DoubleEndedIterator
    for Range<'_, K, V, H, R>
{
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Way::Back)
    }
}
