//! Borrows of values in a transaction.

use crate::tx::Private;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// Room for the words of a value.
#[repr(C, align(8))]
pub(crate) struct Room<T> {
    value: MaybeUninit<T>,
}

impl<T> Room<T> {
    #[inline]
    pub fn new() -> Room<T> {
        Room { value: MaybeUninit::uninit() }
    }

    #[inline]
    pub fn words(&mut self) -> *mut u64 {
        (&raw mut *self).cast()
    }
}

/// A value as the transaction sees it. Objects it points to are read through its pointers.
// A copy stays in the arena: moved out of it by value, it would be loaded in other pieces than it was stored in, and such a
// load waits until the stores have left the processor, behind the fence of the commit before.
pub struct Read<'t, T> {
    // First, so that the compiler's message about a value that leaves its transaction names this and not the cell.
    of: PhantomData<*const T>,
    value: &'t T,
    borrow: &'t Cell<i64>,
}

impl<'t, T> Read<'t, T> {
    /// A copy that was lent, whose cell says so.
    ///
    /// # Safety
    /// It holds a value.
    #[inline]
    pub(super) unsafe fn lent(copy: Private<'t>) -> Read<'t, T> {
        // SAFETY: the copy stays until the transaction ends, or until nobody reads it any more.
        Read { value: unsafe { &*copy.data.cast::<T>() }, borrow: copy.borrow, of: PhantomData }
    }

    /// A value that the transaction has changed; `None` while it is borrowed mutably.
    pub(super) fn shared(private: Private<'t>) -> Option<Read<'t, T>> {
        let readers = private.borrow.get();
        if readers < 0 {
            return None;
        }
        private.borrow.set(readers + 1);
        // SAFETY: the private copy holds a value until the transaction ends, and nobody changes it while it is borrowed.
        Some(Read { value: unsafe { &*private.data.cast::<T>() }, borrow: private.borrow, of: PhantomData })
    }
}

impl<T> Deref for Read<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Read<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // The value is not dropped: the heap's own is the one that counts.
        self.borrow.set(self.borrow.get() - 1);
    }
}

impl<T: fmt::Debug> fmt::Debug for Read<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A value borrowed mutably. Changes through it are part of the transaction.
pub struct Write<'t, T> {
    value: &'t mut T,
    borrow: &'t Cell<i64>,
}

impl<'t, T> Write<'t, T> {
    /// `None` while it is already borrowed.
    #[inline]
    pub(super) fn exclusive(private: Private<'t>) -> Option<Write<'t, T>> {
        if private.borrow.get() != 0 {
            return None;
        }
        private.borrow.set(-1);
        // SAFETY: the private copy holds a value until the transaction ends, and nobody else has borrowed it.
        let value = unsafe { &mut *private.data.cast::<T>() };
        Some(Write { value, borrow: private.borrow })
    }
}

impl<T> Deref for Write<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Write<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Drop for Write<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.borrow.set(0);
    }
}

impl<T: fmt::Debug> fmt::Debug for Write<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
