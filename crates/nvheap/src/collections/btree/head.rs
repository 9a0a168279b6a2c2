//! Searching an inner node: in place where possible.
//!
//! A search needs the order, four keys and a child of a node. They are read one by one, and the node's lock is looked at before a key is
//! compared and at the end. A copy of the node took as many stores as it has words: behind the fence of the commit before there
//! is room for a few dozen, and the way to a leaf passes several nodes.

use super::node::{Children, FIRST, Inner, Keys, child, search};
use crate::collections::order::Order;
use crate::error::Result;
use crate::persist::{Brand, Persist, Shape};
use crate::pointer::{Room, offset, peek, tag};
use crate::tx::{InPlace, Tx};
use std::cmp::Ordering;
use std::mem::{needs_drop, offset_of};
use std::num::NonZeroU64;

/// The beginning of an inner node: what a search reads of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head<K, V, H: Brand> {
    children: Children<K, V, H>,
    pub keys: Keys<K>,
}

/// What a search finds in an inner node.
pub(super) enum Step {
    /// The position of the key.
    Found(usize),
    /// The position that the way to it leads through, and the child there; and whether the node is among the transaction's reads, not
    /// among its changes.
    Below(usize, NonZeroU64, bool),
}

impl<K: Persist<H>, V: Persist<H>, H: Brand> Head<K, V, H> {
    const WORDS: usize = size_of::<Self>() / 8;
    const ORDER: usize = offset_of!(Self, keys) / 8;
    const KEYS: usize = Self::ORDER + offset_of!(Keys<K>, keys) / 8;
    const KEY_WORDS: usize = size_of::<K>() / 8;
    /// Whether keys are read in place: whole words, and not many; one that points to something is copied with its node.
    const IS_IN_PLACE: bool = size_of::<K>().is_multiple_of(8) && size_of::<K>() <= 64 && !needs_drop::<K>();

    /// Searches the node `at`.
    #[inline]
    pub fn step(
        tx: &Tx<'_, H>,
        at: NonZeroU64,
        mut compare: impl FnMut(&K) -> Result<Ordering>,
    ) -> Result<Step> {
        if Self::IS_IN_PLACE
            && let Some(node) = tx.raw.in_place(offset(at), Self::WORDS, tag(at))?
            && let Some(step) = Self::step_in_place(&node, &mut compare)?
            && node.has_read()?
        {
            return Ok(step);
        }
        Self::step_copied(tx, at, compare)
    }

    /// The same in place; `None` if the node has changed meanwhile, or is damaged.
    #[inline(always)]
    fn step_in_place(
        node: &InPlace<'_>,
        mut compare: impl FnMut(&K) -> Result<Ordering>,
    ) -> Result<Option<Step>> {
        node.prefetch();
        let order = Order::of(node.word(Self::ORDER));
        let (mut is_whole, mut key) = (order.is_valid(), Room::<K>::new());
        let found = search(if is_whole { order.count() } else { 0 }, |position| {
            let first = Self::KEYS + order.slot(position) * Self::KEY_WORDS;
            for word in 0..Self::KEY_WORDS {
                // SAFETY: a word of the room, which has those of a key.
                unsafe { key.words().add(word).write(node.word(first + word)) };
            }
            let key = key.words().cast::<K>().cast_const();
            // SAFETY: the words of a key were written there.
            is_whole = is_whole && node.is_unchanged() && (K::ANY_BYTES || unsafe { K::is_valid(key) });
            match is_whole {
                // SAFETY: a value, which is not dropped.
                true => compare(unsafe { &*key }),
                false => Ok(Ordering::Equal),
            }
        })?;
        let step = match found {
            Ok(position) => Some(Step::Found(position)),
            Err(position) => {
                let index = if position == 0 { FIRST } else { order.slot(position - 1) };
                NonZeroU64::new(node.word(index)).map(|child| Step::Below(position, child, true))
            }
        };
        Ok(step.filter(|_| is_whole))
    }

    #[inline(never)]
    fn step_copied(
        tx: &Tx<'_, H>,
        at: NonZeroU64,
        compare: impl FnMut(&K) -> Result<Ordering>,
    ) -> Result<Step> {
        let mut room = Room::new();
        let head = peek::<Self, H>(tx.raw, at, &mut room)?;
        Ok(match head.keys.search(compare)? {
            Ok(position) => Step::Found(position),
            Err(position) => {
                let child = child(tx, &head.children, &head.keys, position)?;
                Step::Below(position, child, !tx.raw.has_changed(at)?)
            }
        })
    }

    /// The child before the entry at a position, or behind the last one.
    #[inline]
    pub fn child(&self, tx: &Tx<'_, H>, position: usize) -> Result<NonZeroU64> {
        child(tx, &self.children, &self.keys, position)
    }
}

// SAFETY: the beginning of an inner node, which describes it; the keys in use are checked.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for Head<K, V, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        const { assert!(offset_of!(Inner<K, V, H>, entries) == offset_of!(Self, keys)) }
        <Inner<K, V, H> as Persist<H>>::describe(shape);
    }
    #[inline]
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: initialised bytes.
        unsafe { Keys::is_valid::<H>(&raw const (*at).keys) }
    }
}
