//! State of a thread, lent to one function at a time: a `RefCell` that counts in tests only. A store behind the fence
//! of a commit waits for it, and the processor has room for a few dozen.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

pub(crate) struct Own<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    is_lent: Cell<bool>,
}

/// The value, until it is dropped.
pub(crate) struct Lent<'a, T> {
    own: &'a Own<T>,
}

impl<T> Own<T> {
    pub fn new(value: T) -> Self {
        Own {
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            is_lent: Cell::new(false),
        }
    }

    /// # Safety
    /// It is not lent already: it is returned before calling anything that borrows it, or the program's code. Builds
    /// with debug assertions check that.
    #[inline(always)]
    pub unsafe fn lend(&self) -> Lent<'_, T> {
        #[cfg(debug_assertions)]
        assert!(!self.is_lent.replace(true), "lent twice");
        Lent { own: self }
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: whoever lent it answered for it.
        unsafe { &*self.own.value.get() }
    }
}

impl<T> DerefMut for Lent<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.own.value.get() }
    }
}

#[cfg(debug_assertions)]
impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        self.own.is_lent.set(false);
    }
}

impl<T> fmt::Debug for Own<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}
