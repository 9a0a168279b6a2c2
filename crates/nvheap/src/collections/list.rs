//! A doubly linked list.

use super::slot;
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::pointer::{PBox, Read, Write, read, write};
use crate::tx::Tx;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut};

/// A doubly linked list.
///
/// Its length and ends are part of the object that contains it, as with [`crate::PVec`]: changing the list needs a
/// mutable borrow of that object. A list of any length is destroyed in constant memory.
#[repr(C)]
pub struct PList<T, H: Brand> {
    first: Option<PBox<Node<T, H>, H>>,
    last: Back<T, H>,
    len: u64,
}

/// An element. Its value may have been taken out, when it is about to go.
#[repr(C)]
struct Node<T, H: Brand> {
    next: Option<PBox<Node<T, H>, H>>,
    previous: Back<T, H>,
    value: MaybeUninit<T>,
    has_value: u64,
}

/// A pointer against the order: to an element that the list owns already, or to none.
#[repr(transparent)]
struct Back<T, H: Brand> {
    word: Option<NonZeroU64>,
    of: PhantomData<*const T>,
    heap: PhantomData<fn(H) -> H>,
}

impl<T, H: Brand> Clone for Back<T, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, H: Brand> Copy for Back<T, H> {}

impl<T, H: Brand> Back<T, H> {
    const NONE: Self = Back { word: None, of: PhantomData, heap: PhantomData };
}

impl<T: Persist<H>, H: Brand> Back<T, H> {
    fn to(node: &PBox<Node<T, H>, H>) -> Self {
        Back { word: Some(node.word()), of: PhantomData, heap: PhantomData }
    }
}

// SAFETY: a word, of which every pattern is a value; where it leads is checked when it is followed.
unsafe impl<H: Brand, T: Persist<H>> Persist<H> for Back<T, H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.leaf("back");
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

impl<T, H: Brand> Node<T, H> {
    fn value(&self) -> &T {
        assert!(self.has_value == 1);
        // SAFETY: it has a value.
        unsafe { self.value.assume_init_ref() }
    }
}

impl<T, H: Brand> Drop for Node<T, H> {
    fn drop(&mut self) {
        if self.has_value == 1 {
            // SAFETY: it has a value, which is not used again.
            unsafe { self.value.assume_init_drop() };
        }
    }
}

// SAFETY: the fields are described; the value is checked if there is one.
unsafe impl<H: Brand, T: Persist<H>> Persist<H> for Node<T, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.begin(".link", 0, size_of::<Self>());
        shape.field::<Option<PBox<Self, H>>, H>("next", offset_of!(Self, next));
        shape.field::<Back<T, H>, H>("previous", offset_of!(Self, previous));
        shape.field::<T, H>("value", offset_of!(Self, value));
        shape.end();
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: initialised bytes inside the node.
        unsafe {
            (*at).has_value < 2 && ((*at).has_value == 0 || T::is_valid((&raw const (*at).value).cast()))
        }
    }
}

/// A value of a list, for reading.
#[derive(Debug)]
pub struct Item<'t, T, H: Brand>(Read<'t, Node<T, H>>);

impl<T, H: Brand> Deref for Item<'_, T, H> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.value()
    }
}

/// A value of a list, borrowed mutably.
#[derive(Debug)]
pub struct ItemMut<'t, T, H: Brand>(Write<'t, Node<T, H>>);

impl<T, H: Brand> Deref for ItemMut<'_, T, H> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.value()
    }
}

impl<T, H: Brand> DerefMut for ItemMut<'_, T, H> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: whoever lends a node has checked that it has a value.
        unsafe { self.0.value.assume_init_mut() }
    }
}

impl<T, H: Brand> fmt::Debug for Node<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Node")
    }
}

impl<T, H: Brand> PList<T, H> {
    /// An empty list, which takes no block.
    pub const fn new() -> Self {
        PList { first: None, last: Back::NONE, len: 0 }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T, H: Brand> Default for PList<T, H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, H: Brand> fmt::Debug for PList<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PList(len {})", self.len)
    }
}

#[cold]
fn damaged<H: Brand>(tx: &Tx<'_, H>) -> Error {
    tx.raw.distrust(Error::damaged(0, "a list has more elements, or fewer, than its length"))
}

impl<T: Persist<H>, H: Brand> PList<T, H> {
    /// Refuses to use it if it is not one of this transaction's.
    #[inline]
    fn trust(&self, tx: &Tx<'_, H>) -> Result<()> {
        self.first.as_ref().map_or(Ok(()), |first| first.trust(tx))
    }

    fn read_back<'t>(tx: &'t Tx<'_, H>, back: Back<T, H>) -> Result<Read<'t, Node<T, H>>> {
        checked(tx, read::<Node<T, H>, H>(tx.raw, back.word.ok_or_else(|| damaged(tx))?)?)
    }

    fn write_back<'t>(tx: &'t Tx<'_, H>, back: Back<T, H>) -> Result<Write<'t, Node<T, H>>> {
        checked(tx, write::<Node<T, H>, H>(tx.raw, back.word.ok_or_else(|| damaged(tx))?)?)
    }

    /// Inserts a value at the front.
    pub fn push_front(&mut self, tx: &Tx<'_, H>, value: T) -> Result<()> {
        self.trust(tx)?;
        let next = self.first.take();
        let next_back = next.as_ref().map(Back::to);
        let node = Node { next, previous: Back::NONE, value: MaybeUninit::new(value), has_value: 1 };
        let node = PBox::new(tx, node)?;
        match next_back {
            Some(next) => Self::write_back(tx, next)?.previous = Back::to(&node),
            None => self.last = Back::to(&node),
        }
        self.first = Some(node);
        self.len += 1;
        Ok(())
    }

    /// Appends a value.
    pub fn push_back(&mut self, tx: &Tx<'_, H>, value: T) -> Result<()> {
        self.trust(tx)?;
        let node = Node { next: None, previous: self.last, value: MaybeUninit::new(value), has_value: 1 };
        let node = PBox::new(tx, node)?;
        let back = Back::to(&node);
        match self.last.word {
            Some(_) => Self::write_back(tx, self.last)?.next = Some(node),
            None => self.first = Some(node),
        }
        self.last = back;
        self.len += 1;
        Ok(())
    }

    /// Removes the first value and returns it.
    pub fn pop_front(&mut self, tx: &Tx<'_, H>) -> Result<Option<T>> {
        let Some(first) = &self.first else { return Ok(None) };
        let first = Back::to(first);
        self.unlink(tx, first).map(Some)
    }

    /// Removes the last value and returns it.
    pub fn pop_back(&mut self, tx: &Tx<'_, H>) -> Result<Option<T>> {
        match self.last.word {
            Some(_) => self.unlink(tx, self.last).map(Some),
            None => Ok(None),
        }
    }

    /// Takes an element out.
    fn unlink(&mut self, tx: &Tx<'_, H>, back: Back<T, H>) -> Result<T> {
        self.trust(tx)?;
        let mut node = Self::write_back(tx, back)?;
        let (next, previous) = (node.next.take(), node.previous);
        node.has_value = 0;
        // SAFETY: it had a value, which the mark says is taken.
        let value = unsafe { slot::take(&mut node.value) };
        drop(node);
        match &next {
            Some(next) => Self::write_back(tx, Back::to(next))?.previous = previous,
            None => self.last = previous,
        }
        let old = match previous.word {
            Some(_) => std::mem::replace(&mut Self::write_back(tx, previous)?.next, next),
            None => std::mem::replace(&mut self.first, next),
        };
        drop(old);
        self.len = self.len.checked_sub(1).ok_or_else(|| damaged(tx))?;
        Ok(value)
    }

    /// The first value.
    pub fn front<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Option<Item<'t, T, H>>> {
        self.trust(tx)?;
        self.first.as_ref().map(|first| Self::read_back(tx, Back::to(first)).map(Item)).transpose()
    }

    /// The last value.
    pub fn back<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Option<Item<'t, T, H>>> {
        self.trust(tx)?;
        self.last.word.map(|_| Self::read_back(tx, self.last).map(Item)).transpose()
    }

    /// The first value, borrowed mutably.
    pub fn front_mut<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Option<ItemMut<'t, T, H>>> {
        self.trust(tx)?;
        self.first.as_ref().map(|first| Self::write_back(tx, Back::to(first)).map(ItemMut)).transpose()
    }

    /// The last value, borrowed mutably.
    pub fn back_mut<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Option<ItemMut<'t, T, H>>> {
        self.trust(tx)?;
        self.last.word.map(|_| Self::write_back(tx, self.last).map(ItemMut)).transpose()
    }

    /// Iterates over all values, from either end.
    pub fn iter<'t>(&'t self, tx: &'t Tx<'_, H>) -> Iter<'t, T, H> {
        let first = self.first.as_ref().map_or(Back::NONE, Back::to);
        // If it is refused, the transaction cannot commit.
        let left = self.trust(tx).map_or(0, |()| self.len);
        Iter { tx, front: first, back: self.last, left }
    }

    /// Removes the values for which `keep` returns false.
    pub fn retain(&mut self, tx: &Tx<'_, H>, mut keep: impl FnMut(&T) -> bool) -> Result<()> {
        self.trust(tx)?;
        let mut at = self.first.as_ref().map(Back::to);
        while let Some(back) = at {
            let node = Self::read_back(tx, back)?;
            at = node.next.as_ref().map(Back::to);
            let is_kept = keep(node.value());
            drop(node);
            if !is_kept {
                drop(self.unlink(tx, back)?);
            }
        }
        Ok(())
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        *self = PList::new();
    }
}

/// The node has a value.
fn checked<'t, T: 't, H: Brand, N: Deref<Target = Node<T, H>> + 't>(tx: &'t Tx<'_, H>, node: N) -> Result<N> {
    if node.has_value == 1 { Ok(node) } else { Err(damaged(tx)) }
}

// SAFETY: the fields are described; the pointer and the words are checked when they are used.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for PList<T, H> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.begin(".list", 0, size_of::<Self>());
        shape.field::<Option<PBox<Node<T, H>, H>>, H>("first", 0);
        shape.field::<Back<T, H>, H>("last", offset_of!(Self, last));
        shape.field::<u64, H>("len", offset_of!(Self, len));
        shape.end();
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

/// All values of a list. See [`PList::iter`].
pub struct Iter<'t, T, H: Brand> {
    tx: &'t Tx<'t, H>,
    front: Back<T, H>,
    back: Back<T, H>,
    left: u64,
}

impl<'t, T: Persist<H>, H: Brand> Iter<'t, T, H> {
    fn step(
        &mut self,
        next: impl FnOnce(&mut Self) -> Result<Read<'t, Node<T, H>>>,
    ) -> Option<Result<Item<'t, T, H>>> {
        self.left = self.left.checked_sub(1)?;
        let node = next(self);
        if node.is_err() {
            self.left = 0;
        }
        Some(node.map(Item))
    }
}

impl<T, H: Brand> fmt::Debug for Iter<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Iter({} left)", self.left)
    }
}

impl<'t, T: Persist<H>, H: Brand> Iterator for Iter<'t, T, H> {
    type Item = Result<Item<'t, T, H>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(|iter| {
            let node = PList::read_back(iter.tx, iter.front)?;
            iter.front = node.next.as_ref().map_or(Back::NONE, Back::to);
            Ok(node)
        })
    }
}

impl<T: Persist<H>, H: Brand> DoubleEndedIterator for Iter<'_, T, H> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(|iter| {
            let node = PList::read_back(iter.tx, iter.back)?;
            iter.back = node.previous;
            Ok(node)
        })
    }
}
