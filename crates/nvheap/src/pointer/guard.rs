//! What a transaction lends of a value.

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

enum Place<'t, T> {
    Copy(Room<T>),
    Private(&'t T, &'t Cell<i64>),
}

/// A value as the transaction sees it. What it points to is read through its pointers.
pub struct Read<'t, T> {
    place: Place<'t, T>,
    of: PhantomData<*const T>,
}

impl<'t, T> Read<'t, T> {
    /// # Safety
    /// The room holds a value.
    #[inline]
    pub(super) unsafe fn copied(room: Room<T>) -> Read<'t, T> {
        Read { place: Place::Copy(room), of: PhantomData }
    }

    /// A value that the transaction has changed; `None` while it is borrowed for a change.
    pub(super) fn shared(private: Private<'t>) -> Option<Read<'t, T>> {
        let readers = private.borrow.get();
        if readers < 0 {
            return None;
        }
        private.borrow.set(readers + 1);
        // SAFETY: the private copy holds a value until the transaction ends, and nobody changes it while it is borrowed.
        let value = unsafe { &*private.data.cast::<T>() };
        Some(Read { place: Place::Private(value, private.borrow), of: PhantomData })
    }
}

impl<T> Deref for Read<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.place {
            // SAFETY: `copied` was called with a value. It is never dropped: the heap's own is the one that counts.
            Place::Copy(room) => unsafe { room.value.assume_init_ref() },
            Place::Private(value, _) => value,
        }
    }
}

impl<T> Drop for Read<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Place::Private(_, borrow) = self.place {
            borrow.set(borrow.get() - 1);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Read<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A value to be changed. What is stored through it is part of the transaction.
pub struct Write<'t, T> {
    value: &'t mut T,
    borrow: &'t Cell<i64>,
}

impl<'t, T> Write<'t, T> {
    /// `None` while it is borrowed already.
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
