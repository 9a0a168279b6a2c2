//! Borrows of map entries.

use crate::tx::RawTx;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ops::{Deref, DerefMut};

/// A key or value as of the time it was read; later changes in the same transaction are not visible.
pub struct Ref<'t, T> {
    value: ManuallyDrop<T>,
    /// Another copy that is equally good, if the value has pointers: those in the transaction's own memory are
    /// trusted.
    place: Option<&'t T>,
    /// It cannot leave the transaction.
    of: PhantomData<(&'t (), *const T)>,
}

impl<'t, T> Ref<'t, T> {
    /// A copy of the bytes of `value`, which stays the owner of what it points to.
    #[inline]
    pub(super) fn copy(tx: RawTx<'t>, value: &T) -> Self {
        let place = if needs_drop::<T>() { Some(tx.keep_copy(value)) } else { None };
        // SAFETY: a value. The copy is never dropped.
        Ref { value: ManuallyDrop::new(unsafe { std::ptr::read(value) }), place, of: PhantomData }
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.place.unwrap_or(&self.value)
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A node of which one value is borrowed.
pub(super) trait Lends<V> {
    fn value(&self, index: usize) -> &V;
    fn value_mut(&mut self, index: usize) -> &mut V;
}

/// A value borrowed mutably. Its whole node is borrowed: until this is dropped, other keys of the same node cannot be
/// changed, and an attempt fails with [`crate::Error::Borrowed`].
pub struct RefMut<'t, V> {
    node: Box<dyn Lends<V> + 't>,
    index: usize,
}

impl<'t, V> RefMut<'t, V> {
    pub(super) fn new(node: impl Lends<V> + 't, index: usize) -> Self {
        RefMut { node: Box::new(node), index }
    }
}

impl<V> Deref for RefMut<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        self.node.value(self.index)
    }
}

impl<V> DerefMut for RefMut<'_, V> {
    fn deref_mut(&mut self) -> &mut V {
        self.node.value_mut(self.index)
    }
}

impl<V: fmt::Debug> fmt::Debug for RefMut<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
