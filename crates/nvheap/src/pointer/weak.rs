//! Pointers that do not keep objects alive.

use super::{Strong, Weak, offset, tag};
use crate::error::{Error, Result};
use crate::persist::{Brand, Persist, Pointing, Shape};
use crate::tx::{Meta, STRONG_MAX, Tx, with_current};
use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;

impl<T: Persist<H>, H: Brand> Weak<T, H> {
    /// A pointer that keeps the object, if it still exists.
    pub fn upgrade(&self, tx: &Tx<'_, H>) -> Result<Option<Strong<T, H>>> {
        let header = tx.raw.header(offset(self.word))?;
        let meta = header.meta();
        if meta.tag() != tag(self.word) || meta.weak() == 0 {
            return Err(tx.raw.distrust(Error::damaged(
                offset(self.word),
                "a weak pointer leads to no object of its type",
            )));
        }
        if meta.strong() == 0 {
            return Ok(None);
        }
        if meta.strong() == STRONG_MAX {
            return Err(tx.raw.doom(Error::TooManyReferences { most: STRONG_MAX }));
        }
        header.set_meta(Meta::new(meta.strong() + 1, meta.weak(), meta.tag()));
        Ok(Some(Strong::from_word(self.word)))
    }

    /// The caller has counted the reference.
    pub(super) fn from_word(word: NonZeroU64) -> Self {
        Weak { word, of: PhantomData }
    }
}

impl<T, H: Brand> Drop for Weak<T, H> {
    fn drop(&mut self) {
        with_current(TypeId::of::<H>(), |tx| tx.release_weak(offset(self.word)));
    }
}

impl<T, H: Brand> fmt::Debug for Weak<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weak({:#x})", offset(self.word))
    }
}

// SAFETY: eight bytes, not all of them zero; where they lead is checked when they are followed.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Weak<T, H> {
    const ANY_BYTES: bool = false;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("weak", Pointing::Weak);
    }
    unsafe fn is_valid(at: *const Self) -> bool {
        // SAFETY: eight initialised bytes, aligned.
        unsafe { *at.cast::<u64>() != 0 }
    }
}

// SAFETY: the same bytes, where zero stands for `None`: the pointer is a transparent `NonZeroU64`.
unsafe impl<T: Persist<H>, H: Brand> Persist<H> for Option<Weak<T, H>> {
    const ANY_BYTES: bool = true;
    fn describe(shape: &mut Shape) {
        shape.points_to::<T, H>("weak?", Pointing::Weak);
    }
    unsafe fn is_valid(_: *const Self) -> bool {
        true
    }
}
