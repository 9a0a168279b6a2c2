//! Nodes of a B-tree: at most fifteen entries, and in an inner node the children between them.
//!
//! Invariants: the slots that the order names first, as many as it counts, hold a key and a value; the order says how the keys
//! are sorted. The child in slot `s` is the one behind the entry in slot `s`; the last one is the one before all.

use crate::collections::guard::Lends;
use crate::collections::order::{Order, SLOTS};
use crate::collections::slot;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::pointer::{Write, allocate, offset};
use crate::tx::{Tx, with_current};
use std::any::TypeId;
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroU64;
use std::ops::Deref;

/// A node with fewer entries is merged or filled from a neighbour.
pub(super) const ENTRIES_MIN: usize = 5;
/// A node that was merged has at most so many, so that the next insertion does not split it.
pub(super) const MERGED_MAX: usize = 12;
/// What stays on the left of a split.
pub(super) const SPLIT: usize = SLOTS / 2;

/// The keys of a node, which the holder of this value owns.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Keys<K> {
    order: Order,
    pub(super) keys: [MaybeUninit<K>; SLOTS],
}

/// A leaf, and a part of an inner node.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Entries<K, V> {
    keys: Keys<K>,
    values: [MaybeUninit<V>; SLOTS],
}

/// Where a key is, or where it would be.
pub(super) type Position = std::result::Result<usize, usize>;

/// Finds a key among `size` keys in order; `compare` compares the key at a position with it.
#[inline(always)]
pub(super) fn search(
    mut size: usize,
    mut compare: impl FnMut(usize) -> Result<Ordering>,
) -> Result<Position> {
    if size == 0 {
        return Ok(Err(0));
    }
    let mut base = 0;
    while size > 1 {
        let middle = base + size / 2;
        let is_greater = compare(middle)? == Ordering::Greater;
        base = select_unpredictable(is_greater, base, middle);
        size -= size / 2;
    }
    Ok(match compare(base)? {
        Ordering::Equal => Ok(base),
        Ordering::Less => Err(base + 1),
        Ordering::Greater => Err(base),
    })
}

impl<K> Keys<K> {
    #[inline]
    pub fn len(&self) -> usize {
        self.order.count()
    }

    #[inline]
    fn slot(&self, position: usize) -> usize {
        assert!(position < self.len(), "position {position} of {}", self.len());
        self.order.slot(position)
    }

    #[inline]
    pub fn key(&self, position: usize) -> &K {
        // SAFETY: a slot in use.
        unsafe { self.keys[self.slot(position)].assume_init_ref() }
    }

    /// The position of the key that `compare` finds equal, or where it would be.
    #[inline]
    pub fn search(&self, mut compare: impl FnMut(&K) -> Result<Ordering>) -> Result<Position> {
        search(self.len(), |position| compare(self.key(position)))
    }

    /// # Safety
    /// Initialised bytes of keys.
    #[inline]
    pub(super) unsafe fn is_valid<H: Brand>(at: *const Self) -> bool
    where
        K: Persist<H>,
    {
        // SAFETY: the word is initialised, and of every pattern an order can be made.
        let order = unsafe { (*at).order };
        let is_key = |position| {
            // SAFETY: a slot inside the node, with initialised bytes.
            unsafe { K::is_valid((&raw const (*at).keys[order.slot(position)]).cast()) }
        };
        order.is_valid() && (K::ANY_BYTES || (0..order.count()).all(is_key))
    }
}

impl<K, V> Deref for Entries<K, V> {
    type Target = Keys<K>;

    #[inline]
    fn deref(&self) -> &Keys<K> {
        &self.keys
    }
}

impl<K, V> Entries<K, V> {
    pub fn new() -> Self {
        let keys = Keys { order: Order::EMPTY, keys: [const { MaybeUninit::zeroed() }; SLOTS] };
        Entries { keys, values: [const { MaybeUninit::zeroed() }; SLOTS] }
    }

    pub fn is_full(&self) -> bool {
        self.len() == SLOTS
    }

    #[inline]
    pub fn value(&self, position: usize) -> &V {
        // SAFETY: a slot in use.
        unsafe { self.values[self.slot(position)].assume_init_ref() }
    }

    pub fn value_mut(&mut self, position: usize) -> &mut V {
        let slot = self.slot(position);
        // SAFETY: a slot in use.
        unsafe { self.values[slot].assume_init_mut() }
    }

    /// Puts an entry at a position; returns its slot.
    pub fn insert(&mut self, position: usize, key: K, value: V) -> usize {
        let slot = self.keys.order.insert(position);
        (self.keys.keys[slot], self.values[slot]) = (MaybeUninit::new(key), MaybeUninit::new(value));
        slot
    }

    /// Takes the entry at a position out; returns it and its slot.
    pub fn remove(&mut self, position: usize) -> (K, V, usize) {
        let at = self.keys.order.remove(position);
        // SAFETY: the slot was in use and is no more: these are the only values.
        unsafe { (slot::take(&mut self.keys.keys[at]), slot::take(&mut self.values[at]), at) }
    }

    /// Exchanges the entry at a position.
    pub fn replace(&mut self, position: usize, key: K, value: V) -> (K, V) {
        let slot = self.slot(position);
        let (old_key, old_value) = (&mut self.keys.keys[slot], &mut self.values[slot]);
        let (old_key, old_value) = (
            std::mem::replace(old_key, MaybeUninit::new(key)),
            std::mem::replace(old_value, MaybeUninit::new(value)),
        );
        // SAFETY: the slot is in use; these were its values.
        unsafe { (old_key.assume_init(), old_value.assume_init()) }
    }
}

impl<K, V> Drop for Entries<K, V> {
    fn drop(&mut self) {
        while self.len() > 0 {
            self.remove(self.len() - 1);
        }
    }
}

// SAFETY: the fields are described; the slots in use are checked.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for Entries<K, V> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.begin(".entries", SLOTS as u32, size_of::<Self>());
        shape.field::<[K; SLOTS], H>("keys", offset_of!(Keys<K>, keys));
        shape.field::<[V; SLOTS], H>("values", offset_of!(Self, values));
        shape.end();
    }
    #[inline]
    unsafe fn is_valid(at: *const Self) -> bool {
        let is_value = |position| {
            // SAFETY: a slot inside the node, with initialised bytes; the order is valid when this is called.
            unsafe { V::is_valid((&raw const (*at).values[(*at).keys.order.slot(position)]).cast()) }
        };
        // SAFETY: the keys come first; of every pattern an order can be made.
        let (is_valid, count) =
            unsafe { (Keys::is_valid::<H>(&raw const (*at).keys), (*at).keys.order.count()) };
        is_valid && (V::ANY_BYTES || (0..count).all(is_value))
    }
}

/// The only pointer to a node: an inner one or a leaf, as its height says.
#[repr(transparent)]
pub(crate) struct Child<K, V, H: Brand> {
    word: NonZeroU64,
    /// Neither `Send` nor `Sync`: it cannot leave its transaction.
    of: PhantomData<*const (K, V)>,
    heap: PhantomData<fn(H) -> H>,
}

impl<K: Persist<H>, V: Persist<H>, H: Brand> Child<K, V, H> {
    pub fn leaf(tx: &Tx<'_, H>, node: Entries<K, V>) -> Result<Self> {
        Ok(Child { word: allocate::<_, H>(tx.raw, node)?, of: PhantomData, heap: PhantomData })
    }

    pub fn inner(tx: &Tx<'_, H>, node: Inner<K, V, H>) -> Result<Self> {
        Ok(Child { word: allocate::<_, H>(tx.raw, node)?, of: PhantomData, heap: PhantomData })
    }
}

impl<K, V, H: Brand> Drop for Child<K, V, H> {
    fn drop(&mut self) {
        with_current(TypeId::of::<H>(), |tx| tx.release_strong(offset(self.word)));
    }
}

impl<K, V, H: Brand> std::fmt::Debug for Child<K, V, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Child({:#x})", offset(self.word))
    }
}

// SAFETY: eight bytes, where zero stands for `None`; where they lead is checked when they are followed.
#[diagnostic::do_not_recommend]
unsafe impl<K: Persist<H>, V: Persist<H>, H: Brand> Persist<H> for Option<Child<K, V, H>> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        let leaf = shape.number::<Entries<K, V>, H>(false);
        let inner = shape.number::<Inner<K, V, H>, H>(false);
        shape.leaf(&format!("node?#{leaf}|{inner}"));
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

pub(super) type Children<K, V, H> = [Option<Child<K, V, H>>; SLOTS + 1];

/// A node that is no leaf.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Inner<K, V, H: Brand> {
    children: Children<K, V, H>,
    pub entries: Entries<K, V>,
}

/// The child before the entry at a position, or behind the last one.
#[inline]
pub(super) fn child<K, V, H: Brand>(
    tx: &Tx<'_, H>,
    children: &Children<K, V, H>,
    keys: &Keys<K>,
    position: usize,
) -> Result<NonZeroU64> {
    let index = if position == 0 { FIRST } else { keys.slot(position - 1) };
    match &children[index] {
        Some(child) => Ok(child.word),
        None => Err(tx.raw.distrust(Error::damaged(0, "a node of a tree lacks a child"))),
    }
}

/// Where the child before all entries is.
pub(super) const FIRST: usize = SLOTS;

impl<K, V, H: Brand> Inner<K, V, H> {
    pub fn new(first: Option<Child<K, V, H>>) -> Self {
        let mut inner = Inner { children: [const { None }; SLOTS + 1], entries: Entries::new() };
        inner.children[FIRST] = first;
        inner
    }

    /// The child before the entry at a position, or behind the last one.
    #[inline]
    pub fn child(&self, tx: &Tx<'_, H>, position: usize) -> Result<NonZeroU64> {
        child(tx, &self.children, &self.entries, position)
    }

    /// Puts an entry and the child behind it at a position.
    pub fn insert(&mut self, position: usize, key: K, value: V, child: Option<Child<K, V, H>>) {
        let slot = self.entries.insert(position, key, value);
        self.children[slot] = child;
    }

    /// Takes out an entry and the child behind it.
    pub fn remove(&mut self, position: usize) -> (K, V, Option<Child<K, V, H>>) {
        let (key, value, slot) = self.entries.remove(position);
        (key, value, self.children[slot].take())
    }
}

// SAFETY: both fields are described; the entries are checked.
unsafe impl<H: Brand, K: Persist<H>, V: Persist<H>> Persist<H> for Inner<K, V, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.begin(".inner", SLOTS as u32, size_of::<Self>());
        shape.field::<Children<K, V, H>, H>("children", 0);
        shape.field::<Entries<K, V>, H>("entries", offset_of!(Self, entries));
        shape.end();
    }
    #[inline]
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: initialised bytes.
        unsafe { <Entries<K, V> as Persist<H>>::is_valid(&raw const (*at).entries) }
    }
}

/// What leaves and inner nodes have in common: entries with something between them.
pub(super) trait Node<K, V> {
    /// What lies between entries: a child, or nothing.
    type Side;

    fn entries(&mut self) -> &mut Entries<K, V>;

    /// Takes the first entry out, and what was before it.
    fn pop_front(&mut self) -> (K, V, Self::Side);

    /// Puts an entry first, and something before it.
    fn push_front(&mut self, key: K, value: V, side: Self::Side);

    /// Takes the last entry out, and what was behind it.
    fn pop_back(&mut self) -> (K, V, Self::Side);

    /// Puts an entry last, and something behind it.
    fn push_back(&mut self, key: K, value: V, side: Self::Side);

    /// Takes out what is before all entries.
    fn take_first(&mut self) -> Self::Side;

    /// Puts something before all entries.
    fn put_first(&mut self, side: Self::Side);
}

impl<K, V> Node<K, V> for Entries<K, V> {
    type Side = ();

    fn entries(&mut self) -> &mut Entries<K, V> {
        self
    }

    fn pop_front(&mut self) -> (K, V, ()) {
        let (key, value, _) = self.remove(0);
        (key, value, ())
    }

    fn push_front(&mut self, key: K, value: V, (): ()) {
        self.insert(0, key, value);
    }

    fn pop_back(&mut self) -> (K, V, ()) {
        let (key, value, _) = self.remove(self.len() - 1);
        (key, value, ())
    }

    fn push_back(&mut self, key: K, value: V, (): ()) {
        self.insert(self.len(), key, value);
    }

    fn take_first(&mut self) {}

    fn put_first(&mut self, (): ()) {}
}

impl<K, V, H: Brand> Node<K, V> for Inner<K, V, H> {
    type Side = Option<Child<K, V, H>>;

    fn entries(&mut self) -> &mut Entries<K, V> {
        &mut self.entries
    }

    fn pop_front(&mut self) -> (K, V, Self::Side) {
        let (key, value, behind) = self.remove(0);
        (key, value, std::mem::replace(&mut self.children[FIRST], behind))
    }

    fn push_front(&mut self, key: K, value: V, side: Self::Side) {
        let first = std::mem::replace(&mut self.children[FIRST], side);
        self.insert(0, key, value, first);
    }

    fn pop_back(&mut self) -> (K, V, Self::Side) {
        self.remove(self.entries.len() - 1)
    }

    fn push_back(&mut self, key: K, value: V, side: Self::Side) {
        self.insert(self.entries.len(), key, value, side);
    }

    fn take_first(&mut self) -> Self::Side {
        self.children[FIRST].take()
    }

    fn put_first(&mut self, side: Self::Side) {
        self.children[FIRST] = side;
    }
}

impl<K, V> Lends<V> for Write<'_, Entries<K, V>> {
    fn value(&self, index: usize) -> &V {
        (**self).value(index)
    }

    fn value_mut(&mut self, index: usize) -> &mut V {
        (**self).value_mut(index)
    }
}

impl<K, V, H: Brand> Lends<V> for Write<'_, Inner<K, V, H>> {
    fn value(&self, index: usize) -> &V {
        self.entries.value(index)
    }

    fn value_mut(&mut self, index: usize) -> &mut V {
        self.entries.value_mut(index)
    }
}
