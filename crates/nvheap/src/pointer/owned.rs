//! Pointers that keep objects alive.

use super::{Handle, PBox, Read, Strong, Weak, Write, allocate, offset, read, write};
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Shape};
use crate::tx::{Header, Meta, RawTx, STRONG_MAX, Tx, WEAK_MAX};
use std::marker::PhantomData;
use std::num::NonZeroU64;

/// Operations on objects that are owned, alone or with others.
macro_rules! owner {
    ($pointer:ident) => {
        impl<T: Persist<H>, H: Brand> $pointer<T, H> {
            /// A new object with this value.
            pub fn new(tx: &Tx<'_, H>, value: T) -> Result<Self> {
                allocate::<T, H>(tx.raw, value).map(|word| $pointer { word, of: PhantomData })
            }

            /// The value, for reading.
            #[inline]
            pub fn read<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Read<'t, T>> {
                self.trust(tx)?;
                read::<T, H>(tx.raw, self.word)
            }

            /// The value, borrowed mutably.
            #[inline]
            pub fn write<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Write<'t, T>> {
                self.trust(tx)?;
                write::<T, H>(tx.raw, self.word)
            }

            /// A reference for the program, which keeps the object alive beyond the transaction.
            pub fn handle(&self, tx: &Tx<'_, H>) -> Result<Handle<T, H>> {
                self.trust(tx)?;
                Handle::new(tx, self.word)
            }

            /// Refuses to follow it if it is not one of this transaction's.
            #[inline(always)]
            pub(crate) fn trust(&self, tx: &Tx<'_, H>) -> Result<()> {
                tx.raw.trust(self, self.word, false)
            }

            /// Starts to load the object, which is needed soon.
            #[inline]
            pub fn prefetch(&self, tx: &Tx<'_, H>) {
                tx.raw.core().memory.prefetch(offset(self.word));
            }
        }
    };
}

owner!(PBox);
owner!(Strong);

// SAFETY: eight bytes, not all of them zero; where they lead is checked when they are followed.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for PBox<T, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("box");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: eight initialised bytes, aligned.
        unsafe { *at.cast::<u64>() != 0 }
    }
}

// SAFETY: the same bytes, where zero stands for `None`: the pointer is a transparent `NonZeroU64`.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Option<PBox<T, H>> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("box?");
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

// SAFETY: eight bytes, not all of them zero; where they lead is checked when they are followed.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Strong<T, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("strong");
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: eight initialised bytes, aligned.
        unsafe { *at.cast::<u64>() != 0 }
    }
}

// SAFETY: the same bytes, where zero stands for `None`: the pointer is a transparent `NonZeroU64`.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Option<Strong<T, H>> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("strong?");
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}

impl<T: Persist<H>, H: Brand> PBox<T, H> {
    /// The word stored in the heap.
    #[inline]
    pub(crate) fn word(&self) -> NonZeroU64 {
        self.word
    }

    /// Moves the value out; the object is destroyed.
    pub fn into_inner(self, tx: &Tx<'_, H>) -> Result<T>
    where
        T: Default,
    {
        let mut value = self.write(tx)?;
        Ok(std::mem::take(&mut *value))
    }
}

impl<T: Persist<H>, H: Brand> Strong<T, H> {
    /// Another pointer to the same object.
    pub fn share(&self, tx: &Tx<'_, H>) -> Result<Self> {
        self.trust(tx)?;
        Strong::counted(tx.raw, tx.raw.header(offset(self.word))?, self.word)
    }

    /// One more pointer to the object with this header.
    pub(super) fn counted(tx: RawTx<'_>, header: Header<'_>, word: NonZeroU64) -> Result<Self> {
        let meta = header.meta();
        if meta.strong() == STRONG_MAX {
            return Err(tx.doom(Error::TooManyReferences { most: STRONG_MAX }));
        }
        header.set_meta(Meta::new(meta.strong() + 1, meta.weak(), meta.tag()));
        Ok(Strong { word, of: PhantomData })
    }

    /// A weak pointer to the same object.
    pub fn downgrade(&self, tx: &Tx<'_, H>) -> Result<Weak<T, H>> {
        self.trust(tx)?;
        let header = tx.raw.header(offset(self.word))?;
        let meta = header.meta();
        if meta.weak() == WEAK_MAX {
            return Err(tx.raw.doom(Error::TooManyReferences { most: WEAK_MAX }));
        }
        header.set_meta(Meta::new(meta.strong(), meta.weak() + 1, meta.tag()));
        Ok(Weak { word: self.word, of: PhantomData })
    }

    /// True if both point to the same object.
    pub fn is_same(&self, other: &Self) -> bool {
        self.word == other.word
    }
}
